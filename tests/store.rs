//! smoke
use long_horizon::checkpoint::Checkpoint;
use long_horizon::store::{self, StoreKind, Wait};

#[test]
fn smoke() {
    let dir = tempfile::tempdir().unwrap();
    for kind in StoreKind::ALL {
        let path = dir.path().join(kind.name());
        let store = store::open(kind, &path);
        assert!(store.read().unwrap().is_none());
        let t = store.begin(Wait::Fail).unwrap();
        let c = Checkpoint::fresh(vec!["ä".into(), "b\u{7f}".into()]);
        let bytes = t.save(&c).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        println!("{}", String::from_utf8_lossy(&bytes));
        let t = store.begin(Wait::Fail).unwrap();
        assert_eq!(t.loaded().unwrap().checkpoint, c);
        if kind == StoreKind::Json {
            println!("{}", store.begin(Wait::Fail).unwrap_err());
            println!("{:?}", store.holder());
        }
        drop(t);
        println!("{:?}", store.holder());
    }
    println!(
        "{:?}",
        std::fs::read_dir(dir.path())
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect::<Vec<_>>()
    );
}
