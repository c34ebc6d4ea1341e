//! What is not a file, or cannot be reached, is told apart from no file. Nothing is waited for, nothing is created.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use long_horizon::store::{JsonStore, Store, StoreError, StoreKind, Wait};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::{Folder, as_ordinary_user, sample, set_mode, started_again};

/// The text of the error that every way in gives.
fn refused(folder: &Folder, path: &Path) -> String {
    let store = JsonStore::new(path);
    let before = folder.names();
    let errors = [
        store.read().unwrap_err(),
        store.begin(Wait::Fail).unwrap_err(),
        store.begin(Wait::Block).unwrap_err(),
        store.target().unwrap_err(),
        store.holders().unwrap_err(),
    ];
    assert!(
        errors.iter().all(|error| matches!(error, StoreError::Unreadable { .. })),
        "{errors:?}"
    );
    assert_eq!(folder.names(), before);
    let text = folder.text(&errors[0]);
    assert!(errors.iter().all(|error| folder.text(error) == text));
    text
}

#[test]
fn what_is_there_but_no_file() {
    let folder = Folder::new();
    fs::create_dir(folder.at("folder")).unwrap();
    mkfifo(&folder.at("pipe"), Mode::S_IRWXU).unwrap();
    let _listener = UnixListener::bind(folder.at("socket")).unwrap();
    symlink("/dev/zero", folder.at("device")).unwrap();
    symlink("pipe", folder.at("link-to-pipe")).unwrap();
    let texts = ["folder", "folder/", "pipe", "socket", "device", "link-to-pipe"]
        .map(|name| refused(&folder, &folder.at(name)));
    insta::assert_snapshot!(texts.join("\n"), @"
    DIR/folder: cannot read the checkpoint: it is a folder, not a file; give the path of a file
    DIR/folder/: cannot read the checkpoint: it is a folder, not a file; give the path of a file
    DIR/pipe: cannot read the checkpoint: it is a named pipe, not a file; give the path of a file
    DIR/socket: cannot read the checkpoint: it is a socket, not a file; give the path of a file
    DIR/device: cannot read the checkpoint: it is a device, not a file; give the path of a file
    DIR/link-to-pipe: cannot read the checkpoint: it is a named pipe, not a file; give the path of a file
    ");
}

#[test]
fn what_cannot_be_reached() {
    let folder = Folder::with_state();
    symlink("gone", folder.at("dangling")).unwrap();
    symlink("dangling", folder.at("dangling-twice")).unwrap();
    symlink("no-folder/state.json", folder.at("dangling-folder")).unwrap();
    symlink("round", folder.at("round")).unwrap();
    let long = "n".repeat(300);
    let paths = [
        "dangling",
        "dangling-twice",
        "dangling-folder",
        "dangling/state.json",
        "round",
        "round/state.json",
        "state.json/state.json",
        "state.json/",
        "missing/state.json",
        "missing/",
        "missing/.",
        "missing/..",
        &long,
    ];
    let texts = paths.map(|name| refused(&folder, &folder.at(name)).replace(&long, "LONG"));
    insta::assert_snapshot!(texts.join("\n"), @"
    DIR/dangling: cannot read the checkpoint: it is a symbolic link that leads to nothing (DIR/gone); bring back the file it leads to, or remove the link to start a fresh queue
    DIR/dangling-twice: cannot read the checkpoint: it is a symbolic link that leads to nothing (DIR/gone); bring back the file it leads to, or remove the link to start a fresh queue
    DIR/dangling-folder: cannot read the checkpoint: it is a symbolic link that leads to nothing (DIR/no-folder/state.json); bring back the file it leads to, or remove the link to start a fresh queue
    DIR/dangling/state.json: cannot read the checkpoint: its folder DIR/dangling is a symbolic link that leads to nothing; create the folder, or correct the path
    DIR/round: cannot read the checkpoint: its symbolic links lead round in a circle; correct the links
    DIR/round/state.json: cannot read the checkpoint: its symbolic links lead round in a circle; correct the links
    DIR/state.json/state.json: cannot read the checkpoint: a part of its path is a file, not a folder; correct the path
    DIR/state.json/: cannot read the checkpoint: a part of its path is a file, not a folder; correct the path
    DIR/missing/state.json: cannot read the checkpoint: its folder DIR/missing is not there; create the folder, or correct the path
    DIR/missing/: cannot read the checkpoint: that is not the name of a file; give the path of a file
    DIR/missing/.: cannot read the checkpoint: that is not the name of a file; give the path of a file
    DIR/missing/..: cannot read the checkpoint: that is not the name of a file; give the path of a file
    DIR/LONG: cannot read the checkpoint: its name is too long for this file system; choose a shorter name
    ");
    let text = refused(&folder, Path::new(""));
    insta::assert_snapshot!(text, @": cannot read the checkpoint: that is not the name of a file; give the path of a file");
}

#[test]
fn what_may_not_be_read() {
    if let Some(folder) = started_again() {
        for name in ["state.json", "closed/state.json", "link"] {
            let store = JsonStore::new(folder.join(name));
            for error in [store.read().unwrap_err(), store.begin(Wait::Fail).unwrap_err()] {
                assert!(matches!(error, StoreError::Unreadable { .. }), "{error}");
                let expected =
                    "cannot read the checkpoint: permission denied; run as the user who owns it";
                assert!(error.to_string().contains(&format!("/{name}: {expected}")), "{error}");
            }
        }
        return;
    }
    let folder = Folder::with_state();
    fs::create_dir(folder.at("closed")).unwrap();
    fs::write(folder.at("closed/state.json"), sample(3).encode()).unwrap();
    symlink("closed/state.json", folder.at("link")).unwrap();
    set_mode(&folder.state(), 0o200);
    set_mode(&folder.at("closed"), 0o600);
    // Writable, so that it is the reading that fails.
    set_mode(folder.path(), 0o777);
    as_ordinary_user("unreadable::what_may_not_be_read", folder.path());
    set_mode(&folder.at("closed"), 0o700);
}

#[test]
fn a_lock_file_that_is_none_is_told_and_not_waited_for() {
    let mut texts = Vec::new();
    for kind in ["link", "pipe", "folder", "socket"] {
        let folder = Folder::with_state();
        let listener = match kind {
            "link" => symlink("state.json", folder.lock()).map(|()| None),
            "pipe" => mkfifo(&folder.lock(), Mode::S_IRWXU).map(|()| None).map_err(Into::into),
            "folder" => fs::create_dir(folder.lock()).map(|()| None),
            _ => UnixListener::bind(folder.lock()).map(Some),
        };
        let _open = listener.unwrap();
        let store = JsonStore::new(folder.state());
        for wait in [Wait::Fail, Wait::Block] {
            let error = store.begin(wait).unwrap_err();
            assert!(matches!(error, StoreError::Write { .. }), "{error}");
            if wait == Wait::Fail {
                texts.push(folder.text(&error));
            }
        }
        assert!(matches!(store.holders(), Err(StoreError::Unreadable { .. })), "{kind}");
        assert_eq!(fs::read(folder.state()).unwrap(), sample(3).encode());
        assert!(store.read().unwrap().is_some(), "reading needs no lock");
    }
    insta::assert_snapshot!(texts.join("\n"), @"
    DIR/state.json.lock: cannot open the lock file: it is a symbolic link, not a file; the checkpoint is as it was; remove the cause, then run again
    DIR/state.json.lock: cannot open the lock file: it is a named pipe, not a file; the checkpoint is as it was; remove the cause, then run again
    DIR/state.json.lock: cannot open the lock file: it is a folder, not a file; the checkpoint is as it was; remove the cause, then run again
    DIR/state.json.lock: cannot open the lock file: it is a socket, not a file; the checkpoint is as it was; remove the cause, then run again
    ");
}

/// The reference counts what cannot be reached as no file; what is there and no file it would wait for or fail on.
#[test]
fn the_reference_refuses_only_what_is_there_and_no_file() {
    let folder = Folder::with_state();
    fs::create_dir(folder.at("folder")).unwrap();
    mkfifo(&folder.at("pipe"), Mode::S_IRWXU).unwrap();
    symlink("round", folder.at("round")).unwrap();
    symlink("gone", folder.at("dangling")).unwrap();
    let read = |name: &str| long_horizon::store::open(StoreKind::Reference, folder.at(name)).read();
    for name in ["folder", "pipe"] {
        assert!(matches!(read(name), Err(StoreError::Unreadable { .. })), "{name}");
    }
    for name in ["round", "dangling", "state.json/x", "missing/x"] {
        assert!(matches!(read(name), Ok(None)), "{name}");
    }
}
