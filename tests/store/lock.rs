//! The lock: it excludes, tells who holds it, ends with its holder, and is never two.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;

use long_horizon::store::{Holder, JsonStore, Store, StoreError, Wait};

use super::{Folder, again, sample, set, started_again};

/// A process id that no system gives.
const NO_PROCESS: &str = "2147483647\n";

fn busy(path: &Path) -> Holder {
    match JsonStore::new(path).begin(Wait::Fail) {
        Err(StoreError::Busy { holder, .. }) => holder,
        other => panic!("not busy: {other:?}"),
    }
}

#[test]
fn a_second_session_is_refused_at_once_and_told_by_whom() {
    let folder = Folder::with_state();
    let store = JsonStore::new(folder.state());
    let held = store.begin(Wait::Fail).unwrap();
    let error = JsonStore::new(folder.state()).begin(Wait::Fail).unwrap_err();
    insta::assert_snapshot!(folder.text(&error), @"DIR/state.json: another session (process PID) holds the checkpoint; nothing was done; try again when it has ended");
    let us = Holder { pid: Some(std::process::id()), claim: None };
    assert_eq!(busy(&folder.state()), us);
    assert_eq!(store.holders().unwrap(), [us]);
    // Who does not take it is not kept out.
    assert!(store.read().unwrap().is_some());
    held.save(&sample(4)).unwrap();
    assert_eq!(store.holders().unwrap(), []);
    assert!(store.begin(Wait::Fail).is_ok());
}

#[test]
fn it_is_let_go_however_a_session_ends() {
    let folder = Folder::with_state();
    let store = JsonStore::new(folder.state());
    drop(store.begin(Wait::Fail).unwrap());
    let held = store.begin(Wait::Fail).unwrap();
    fs::write(folder.state(), "[]").unwrap();
    held.save(&sample(4)).unwrap_err();
    store.begin(Wait::Fail).unwrap_err();
    fs::write(folder.state(), sample(3).encode()).unwrap();
    assert_eq!(store.holders().unwrap(), []);
    assert!(store.begin(Wait::Fail).is_ok());
}

#[test]
fn it_is_one_lock_by_whatever_path_one_comes() {
    let folder = Folder::with_state();
    symlink("state.json", folder.at("link")).unwrap();
    symlink(".", folder.at("same-folder")).unwrap();
    let store = JsonStore::new(folder.at("link"));
    let _held = store.begin(Wait::Fail).unwrap();
    for other in ["state.json", "same-folder/state.json", "same-folder/link"] {
        assert_eq!(busy(&folder.at(other)).pid, Some(std::process::id()), "{other}");
    }
}

#[test]
fn another_process_is_named_and_its_death_frees_the_checkpoint() {
    if let Some(folder) = started_again() {
        let store = JsonStore::new(folder.join("state.json"));
        let _held = store.begin(Wait::Fail).unwrap();
        println!("\nheld");
        // Until the other end is closed; it is killed before.
        let _end = std::io::stdin().read_to_end(&mut Vec::new());
        return;
    }
    let folder = Folder::with_state();
    let mut child =
        again("lock::another_process_is_named_and_its_death_frees_the_checkpoint", folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "held"));
    let store = JsonStore::new(folder.state());
    let holder = Holder { pid: Some(child.id()), claim: None };
    assert_eq!(busy(&folder.state()), holder);
    assert_eq!(store.holders().unwrap(), [holder]);

    child.kill().unwrap();
    child.wait().unwrap();
    assert_ne!(fs::read(folder.lock()).unwrap(), b"", "it could not clean up");
    assert_eq!(store.holders().unwrap(), [], "what it left is not believed");
    let held = store.begin(Wait::Fail).unwrap();
    assert_eq!(fs::read(folder.lock()).unwrap(), format!("{}\n", std::process::id()).as_bytes());
    drop(held);
}

#[test]
fn a_process_id_that_cannot_be_right_is_not_told() {
    for content in [
        "",
        NO_PROCESS,
        "0\n",
        "-1\n",
        "12",
        "x\n",
        "1\n2\n",
        "99999999999999999999\n",
        "\u{fffd}\n",
    ] {
        let folder = Folder::with_state();
        let mut file = File::create(folder.lock()).unwrap();
        file.lock().unwrap();
        file.write_all(content.as_bytes()).unwrap();
        assert_eq!(busy(&folder.state()), Holder { pid: None, claim: None }, "{content:?}");
    }
    let folder = Folder::with_state();
    let file = File::create(folder.lock()).unwrap();
    file.lock().unwrap();
    let error = JsonStore::new(folder.state()).begin(Wait::Fail).unwrap_err();
    insta::assert_snapshot!(folder.text(&error), @"DIR/state.json: another session holds the checkpoint; nothing was done; try again when it has ended");
}

#[test]
fn whoever_waits_loads_what_the_other_saved() {
    let folder = Folder::with_state();
    let store = JsonStore::new(folder.state());
    let held = store.begin(Wait::Fail).unwrap();
    let (waits, waiting) = mpsc::channel();
    let path = folder.state();
    let other = thread::spawn(move || {
        let store = JsonStore::new(path);
        waits.send(()).unwrap();
        let held = store.begin(Wait::Block).unwrap();
        held.loaded().unwrap().checkpoint.sessions_run
    });
    waiting.recv().unwrap();
    held.save(&sample(4)).unwrap();
    assert_eq!(other.join().unwrap(), 4);
}

#[test]
fn whoever_waits_for_a_lock_file_that_is_removed_takes_the_new_one() {
    let folder = Folder::with_state();
    let store = JsonStore::new(folder.state());
    let held = store.begin(Wait::Fail).unwrap();
    let path = folder.state();
    let (got, has) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    let other = thread::spawn(move || {
        let store = JsonStore::new(path);
        let _held = store.begin(Wait::Block).unwrap();
        got.send(()).unwrap();
        ended.recv().unwrap_err();
    });
    // Once both have the file open, the other can only wait for this very file.
    while descriptors_of(&folder.lock()) < 2 {
        thread::yield_now();
    }
    fs::remove_file(folder.lock()).unwrap();
    drop(held);
    has.recv().unwrap();
    assert!(folder.names().contains("state.json.lock"));
    assert!(busy(&folder.state()).pid.is_some(), "the other holds a lock that nobody else can see");
    drop(end);
    other.join().unwrap();
    assert_eq!(folder.names(), set(["state.json", "state.json.lock"]));
}

#[test]
fn no_session_of_many_at_once_is_lost() {
    const WORKERS: u64 = 4;
    const SESSIONS: u64 = 5;
    let folder = Folder::with_state();
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                let store = JsonStore::new(folder.state());
                for _ in 0..SESSIONS {
                    let held = store.begin(Wait::Block).unwrap();
                    let sessions_run = held.loaded().unwrap().checkpoint.sessions_run;
                    held.save(&sample(sessions_run + 1)).unwrap();
                }
            });
        }
    });
    let sessions_run = 3 + WORKERS * SESSIONS;
    assert_eq!(fs::read(folder.state()).unwrap(), sample(sessions_run).encode());
    assert_eq!(folder.names(), set(["state.json", "state.json.lock"]));
}

/// How many descriptors of this process are of the file at `path`.
fn descriptors_of(path: &Path) -> usize {
    let path = fs::canonicalize(path).unwrap();
    let open = fs::read_dir("/proc/self/fd").unwrap();
    open.filter(|entry| {
        entry.as_ref().is_ok_and(|entry| fs::read_link(entry.path()).is_ok_and(|to| to == path))
    })
    .count()
}

#[test]
fn asking_who_holds_it_turns_nobody_away() {
    const ROUNDS: usize = 500;
    let folder = Folder::with_state();
    // What a killed session left, so that asking cannot stop at an empty file.
    fs::write(folder.lock(), NO_PROCESS).unwrap();
    let path = folder.state();
    let (end, ended) = mpsc::channel::<()>();
    let asking = thread::spawn(move || {
        let store = JsonStore::new(path);
        while ended.try_recv() == Err(mpsc::TryRecvError::Empty) {
            store.holders().unwrap();
        }
    });
    let store = JsonStore::new(folder.state());
    for _ in 0..ROUNDS {
        drop(store.begin(Wait::Fail).unwrap());
    }
    drop(end);
    asking.join().unwrap();
}
