//! What a save keeps: bytes, mode, owner, links; and what it leaves beside the checkpoint: an empty lock file.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use long_horizon::checkpoint::Checkpoint;
use long_horizon::store::{self, Holder, JsonStore, Store, StoreError, StoreKind, Wait};
use nix::errno::Errno;

use super::{
    AGAIN, Folder, NOBODY, again, as_ordinary_user, mode, names, sample, set, set_mode,
    started_again,
};

/// One session: adds one to the counter.
fn session(path: &Path) -> Result<(), StoreError> {
    let store = JsonStore::new(path);
    let held = store.begin(Wait::Fail)?;
    let mut checkpoint = held.loaded().expect("a checkpoint").checkpoint.clone();
    checkpoint.sessions_run += 1;
    held.save(&checkpoint)
}

#[test]
fn reading_creates_nothing() {
    for kind in StoreKind::ALL {
        let folder = Folder::new();
        let store = store::open(kind, folder.state());
        assert_eq!(store.read().unwrap(), None);
        assert_eq!(store.holders().unwrap(), []);
        assert_eq!(store.target().unwrap(), folder.state());
        assert_eq!(folder.names(), set([]));

        store.begin(Wait::Fail).unwrap().save(&sample(3)).unwrap();
        let before = folder.names();
        let loaded = store.read().unwrap().unwrap();
        assert_eq!(loaded.checkpoint, sample(3));
        assert_eq!(loaded.bytes.as_deref(), Some(&sample(3).encode()));
        assert_eq!(store.holders().unwrap(), []);
        assert_eq!(folder.names(), before);
    }
}

#[test]
fn kinds_and_holders_are_told_by_name() {
    assert_eq!(StoreKind::ALL.map(|kind| kind.to_string()), ["json", "reference", "sqlite"]);
    assert_eq!(Holder { pid: Some(7), claim: None }.to_string(), "process 7");
    assert_eq!(Holder { pid: None, claim: None }.to_string(), "a session");
}

#[test]
fn the_first_save_creates_the_file_as_any_program_would() {
    let folder = Folder::new();
    let store = JsonStore::new(folder.state());
    let held = store.begin(Wait::Fail).unwrap();
    assert!(held.loaded().is_none());
    let fresh = Checkpoint::fresh(vec!["first?".to_owned()]);
    held.save(&fresh).unwrap();
    assert_eq!(fs::read(folder.state()).unwrap(), fresh.encode());
    assert_eq!(folder.names(), set(["state.json", "state.json.lock"]));
    assert_eq!(fs::read(folder.lock()).unwrap(), b"", "nobody is in");
    // The umask decides, as for a file that is created plainly.
    fs::write(folder.at("plain"), "").unwrap();
    assert_eq!(mode(&folder.state()), mode(&folder.at("plain")));
}

#[test]
fn a_save_replaces_the_whole_file_and_keeps_its_mode() {
    for kept in [0o600, 0o640, 0o666, 0o444] {
        let folder = Folder::with_state();
        set_mode(&folder.state(), kept);
        let before = fs::metadata(folder.state()).unwrap().ino();
        session(&folder.state()).unwrap();
        assert_eq!(fs::read(folder.state()).unwrap(), sample(4).encode());
        assert_eq!(mode(&folder.state()), kept);
        assert_ne!(fs::metadata(folder.state()).unwrap().ino(), before, "written in place");
        assert_eq!(folder.names(), set(["state.json", "state.json.lock"]));
    }
}

#[test]
fn the_owner_is_kept_where_that_is_allowed() {
    let folder = Folder::with_state();
    if chown(folder.state(), Some(NOBODY), Some(NOBODY)).is_err() {
        println!("skipped: only the superuser can give a file away");
        return;
    }
    set_mode(&folder.state(), 0o4640);
    session(&folder.state()).unwrap();
    let now = fs::metadata(folder.state()).unwrap();
    assert_eq!((now.uid(), now.gid()), (NOBODY, NOBODY));
    assert_eq!(
        mode(&folder.state()),
        0o4640,
        "a change of owner takes bits away; they are set after it"
    );
}

#[test]
fn an_owner_that_cannot_be_kept_is_found_out_before_the_work() {
    if let Some(folder) = started_again() {
        let store = JsonStore::new(folder.join("state.json"));
        let error = store.begin(Wait::Fail).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, StoreError::Write { .. }), "{text}");
        assert!(
            text.contains(
                "cannot give the temp file the owner of the checkpoint: Operation not permitted"
            ),
            "{text}"
        );
        return;
    }
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: only the superuser can have a file of another user here");
        return;
    }
    let folder = Folder::with_state();
    // All may write in the folder, so all but the owner could be arranged.
    set_mode(folder.path(), 0o777);
    as_ordinary_user(
        "saving::an_owner_that_cannot_be_kept_is_found_out_before_the_work",
        folder.path(),
    );
    assert_eq!(fs::read(folder.state()).unwrap(), sample(3).encode());
    assert_eq!(fs::metadata(folder.state()).unwrap().uid(), 0);
    assert_eq!(folder.names(), set(["state.json", "state.json.lock"]));
}

#[test]
fn links_are_followed_and_stay() {
    let folder = Folder::with_state();
    let elsewhere = Folder::new();
    symlink("state.json", folder.at("near")).unwrap();
    symlink(folder.at("near"), elsewhere.at("far")).unwrap();
    fs::create_dir(folder.at("sub")).unwrap();
    symlink("../near", folder.at("sub/up")).unwrap();
    let before = (names(elsewhere.path()), names(&folder.at("sub")));

    for (round, path) in
        [folder.at("near"), elsewhere.at("far"), folder.at("sub/up")].into_iter().enumerate()
    {
        let store = JsonStore::new(&path);
        let target = fs::canonicalize(store.target().unwrap()).unwrap();
        assert_eq!(target, fs::canonicalize(folder.state()).unwrap());
        session(&path).unwrap();
        assert_eq!(fs::read(folder.state()).unwrap(), sample(4 + round as u64).encode());
        assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
    }
    assert_eq!((names(elsewhere.path()), names(&folder.at("sub"))), before);
    assert_eq!(folder.names(), set(["near", "state.json", "state.json.lock", "sub"]));
}

#[test]
fn what_killed_sessions_left_is_removed_and_nothing_else() {
    let folder = Folder::with_state();
    let dead = ["state.json.1.tmp", "state.json.0042.tmp", "state.json.99999999999999999999.tmp"];
    let own = format!("state.json.{}.tmp", std::process::id());
    let others = [
        "state.json.tmp",
        "state.json..tmp",
        "state.json.1x.tmp",
        "state.json.-1.tmp",
        "state.json.1.tmp.bak",
        "xstate.json.1.tmp",
        "state.jso.1.tmp",
        "state.json.1",
    ];
    for name in dead.iter().chain(&others).chain([&own.as_str()]) {
        fs::write(folder.at(name), "half a check").unwrap();
    }
    fs::create_dir(folder.at("state.json.7.tmp")).unwrap();
    symlink("state.json", folder.at("state.json.8.tmp")).unwrap();

    let store = JsonStore::new(folder.state());
    store.read().unwrap();
    assert!(dead.iter().all(|name| folder.names().contains(*name)), "reading has no lock");
    drop(store.begin(Wait::Fail).unwrap());

    let mut left = set(others);
    left.extend(set(["state.json", "state.json.lock", "state.json.7.tmp", "state.json.8.tmp"]));
    assert_eq!(folder.names(), left);
}

#[test]
fn what_a_killed_session_left_and_cannot_be_removed_is_told_before_the_work() {
    const TEST: &str =
        "saving::what_a_killed_session_left_and_cannot_be_removed_is_told_before_the_work";
    if let Some(folder) = started_again() {
        let error = JsonStore::new(folder.join("state.json")).begin(Wait::Fail).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("state.json.1.tmp: cannot remove the temp file of a killed"),
            "{text}"
        );
        return;
    }
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: only the superuser can have a file of another user here");
        return;
    }
    let folder = Folder::new();
    fs::write(folder.at("state.json.1.tmp"), "half a check").unwrap();
    // All may write in it, and remove only what is theirs.
    set_mode(folder.path(), 0o1777);
    as_ordinary_user(TEST, folder.path());
    assert_eq!(folder.names(), set(["state.json.1.tmp", "state.json.lock"]));
}

#[test]
fn a_damaged_checkpoint_is_left_alone_with_all_that_is_beside_it() {
    let folder = Folder::new();
    fs::write(folder.state(), "{\"queue\": [").unwrap();
    fs::write(folder.at("state.json.1.tmp"), "perhaps what a person needs").unwrap();
    let store = JsonStore::new(folder.state());
    let text = folder.text(&store.begin(Wait::Fail).unwrap_err());
    insta::assert_snapshot!(text, @"DIR/state.json: the checkpoint is damaged: a file that was cut off where a string was expected at line 1, column 12 (/queue/0); nothing was changed; restore it from a backup or repair it by hand, then run again");
    assert!(matches!(store.read(), Err(StoreError::Damaged { .. })));
    assert_eq!(fs::read(folder.state()).unwrap(), b"{\"queue\": [");
    assert_eq!(folder.names(), set(["state.json", "state.json.1.tmp", "state.json.lock"]));
}

#[test]
fn a_transaction_that_is_dropped_has_changed_nothing() {
    let folder = Folder::with_state();
    // Who may write anyway rehearses nothing: once the lock file is there, nothing is created beside the checkpoint.
    fs::write(folder.lock(), "").unwrap();
    fs::File::open(folder.path()).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    let before = fs::metadata(folder.state()).unwrap();
    drop(JsonStore::new(folder.state()).begin(Wait::Fail).unwrap());
    let touched = fs::metadata(folder.path()).unwrap().modified().unwrap();
    assert_eq!(touched, SystemTime::UNIX_EPOCH);
    let after = fs::metadata(folder.state()).unwrap();
    assert_eq!((before.ino(), before.mtime_nsec()), (after.ino(), after.mtime_nsec()));
    assert_eq!(folder.names(), set(["state.json", "state.json.lock"]));
    assert_eq!(fs::read(folder.lock()).unwrap(), b"");
}

#[test]
fn names_of_all_kinds_work() {
    for name in
        ["-", "--help", " ", ".hidden", "no ending", "ü.json", "a.1.tmp", "x\n"].map(OsStr::new)
    {
        works(name);
    }
    works(OsStr::from_bytes(b"not-\xff-utf8"));
}

fn works(name: &OsStr) {
    let folder = Folder::new();
    let path = folder.path().join(name);
    fs::write(&path, sample(3).encode()).unwrap();
    session(&path).unwrap();
    session(&path).unwrap();
    assert_eq!(fs::read(&path).unwrap(), sample(5).encode(), "{name:?}");
    assert_eq!(folder.names().len(), 2, "{name:?}: {:?}", folder.names());
}

#[test]
fn a_relative_path_stays_relative() {
    if started_again().is_some() {
        for path in ["-state", "./-state", "sub/../-state", "link"] {
            session(Path::new(path)).unwrap();
        }
        assert_eq!(JsonStore::new("-state").target().unwrap(), Path::new("-state"));
        assert_eq!(JsonStore::new("new").target().unwrap(), Path::new("new"));
        assert!(JsonStore::new("link").target().unwrap().is_relative());
        let store = JsonStore::new("new");
        store.begin(Wait::Fail).unwrap().save(&sample(1)).unwrap();
        return;
    }
    let folder = Folder::new();
    fs::write(folder.at("-state"), sample(3).encode()).unwrap();
    fs::create_dir(folder.at("sub")).unwrap();
    symlink("sub/../-state", folder.at("link")).unwrap();
    let mut command = again("saving::a_relative_path_stays_relative", folder.path());
    let output = command.current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::read(folder.at("-state")).unwrap(), sample(7).encode());
    assert_eq!(folder.names(), set(["-state", "-state.lock", "link", "new", "new.lock", "sub"]));
}

#[test]
fn a_save_that_fails_leaves_everything_as_it_was() {
    let folder = Folder::with_state();
    let store = JsonStore::new(folder.state());
    let held = store.begin(Wait::Fail).unwrap();
    let in_the_way = format!("state.json.{}.tmp", std::process::id());
    fs::create_dir(folder.at(&in_the_way)).unwrap();
    let error = held.save(&sample(4)).unwrap_err();
    insta::assert_snapshot!(folder.text(&error), @"DIR/state.json.PID.tmp: cannot create the temp file: File exists (os error 17); the checkpoint is as it was; remove what is there, then run again");
    assert_eq!(fs::read(folder.state()).unwrap(), sample(3).encode());
    assert_eq!(folder.names(), set(["state.json", "state.json.lock", &in_the_way]));
}

#[test]
fn a_write_that_stops_half_way_leaves_everything_as_it_was() {
    const TEST: &str = "saving::a_write_that_stops_half_way_leaves_everything_as_it_was";
    // More than any of the units in which shells count the limit below.
    let large = Checkpoint::fresh(vec!["very long ".repeat(1000)]);
    if let Some(folder) = started_again() {
        let store = JsonStore::new(folder.join("state.json"));
        let held = store.begin(Wait::Fail).unwrap();
        let error = held.save(&large).unwrap_err();
        assert!(
            error.to_string().contains("cannot write the temp file: File too large"),
            "{error}"
        );
        assert_eq!(store.holders().unwrap(), []);
        return;
    }
    let folder = Folder::with_state();
    let test = again(TEST, folder.path());
    // The shell has the limit, and the signal ignored, which the program inherits: then the call fails instead.
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 4; exec \"$0\" \"$@\""])
        .arg(test.get_program())
        .args(test.get_args())
        .env(AGAIN, folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::read(folder.state()).unwrap(), sample(3).encode());
    assert_eq!(folder.names(), set(["state.json", "state.json.lock"]));
}

#[test]
fn a_folder_that_cannot_be_written_is_found_out_before_the_work() {
    const TEST: &str = "saving::a_folder_that_cannot_be_written_is_found_out_before_the_work";
    if let Some(folder) = started_again() {
        for name in ["with-lock", "without-lock", "without-state"] {
            let path = folder.join(name).join("state.json");
            let store = JsonStore::new(&path);
            let error = store.begin(Wait::Fail).unwrap_err();
            assert!(matches!(error, StoreError::Write { .. }), "{error}");
            assert!(error.to_string().contains("Permission denied"), "{error}");
            let found = store.read().unwrap();
            assert_eq!(found.is_some(), name != "without-state", "reading needs less");
        }
        return;
    }
    let folder = Folder::new();
    set_mode(folder.path(), 0o755);
    for name in ["with-lock", "without-lock", "without-state"] {
        let inner = folder.at(name);
        fs::create_dir(&inner).unwrap();
        if name != "without-state" {
            fs::write(inner.join("state.json"), sample(3).encode()).unwrap();
            set_mode(&inner.join("state.json"), 0o644);
        }
        if name != "without-lock" {
            fs::write(inner.join("state.json.lock"), "").unwrap();
            set_mode(&inner.join("state.json.lock"), 0o666);
        }
        set_mode(&inner, 0o555);
    }
    as_ordinary_user(TEST, folder.path());
    for name in ["with-lock", "without-lock", "without-state"] {
        // So that an ordinary user can remove it.
        set_mode(&folder.at(name), 0o755);
    }
}

/// The temp file's name is longer than the lock's, and would be refused only once the model was paid.
#[test]
fn a_name_from_which_no_temp_file_can_be_made_is_found_out_before_the_work() {
    let folder = Folder::new();
    let store = JsonStore::new(folder.at(&"n".repeat(250)));
    let error = store.begin(Wait::Fail).unwrap_err();
    assert!(matches!(error, StoreError::Write { step: "create the temp file", .. }), "{error}");
    assert!(error.to_string().ends_with("give it a shorter name, then run again"), "{error}");
}

#[test]
fn what_to_do_depends_on_why_it_could_not_be_written() {
    for (errno, remedy) in [
        (Errno::ENOSPC, "make room on the disk"),
        (Errno::EDQUOT, "make room on the disk"),
        (Errno::EACCES, "run as the owner of the checkpoint"),
        (Errno::EROFS, "make the file system writable"),
        (Errno::EEXIST, "remove what is there"),
        (Errno::ENAMETOOLONG, "give it a shorter name"),
        (Errno::EIO, "remove the cause"),
    ] {
        let path = "state.json".into();
        let text = StoreError::Write { path, step: "write", source: errno.into() }.to_string();
        assert!(text.contains(&format!("the checkpoint is as it was; {remedy}")), "{text}");
    }
}
