//! What happens to a checkpoint between load and save by someone who ignores the lock: each is refused, by its own name,
//! and what that one did stays.

use std::fs;
use std::os::unix::fs::symlink;

use indexmap::IndexMap;
use long_horizon::checkpoint::Checkpoint;
use long_horizon::store::{JsonStore, Store, StoreError, Wait};

use super::{Folder, sample, set};

/// Begins a session, lets `other` act, and saves. Returns the error after making sure that the save changed nothing.
fn refused(folder: &Folder, other: impl FnOnce()) -> StoreError {
    let store = JsonStore::new(folder.state());
    let held = store.begin(Wait::Fail).unwrap();
    other();
    let before = (fs::read(folder.state()).ok(), folder.names());
    let error = held.save(&sample(9)).unwrap_err();
    assert_eq!((fs::read(folder.state()).ok(), folder.names()), before, "{error}");
    error
}

#[test]
fn a_change_is_refused_also_where_the_counter_is_the_same() {
    let folder = Folder::with_state();
    let pending = IndexMap::from([("first?".to_owned(), "a person must decide".to_owned())]);
    let resolved = Checkpoint { pending, ..sample(3) };
    let error = refused(&folder, || fs::write(folder.state(), resolved.encode()).unwrap());
    assert!(matches!(error, StoreError::Changed { loaded_sessions: 3, found_sessions: 3, .. }));
    insta::assert_snapshot!(folder.text(&error), @"DIR/state.json: the checkpoint was changed while this session worked (its session counter is still 3, so by resolve or by hand); nothing was written; run again");
}

#[test]
fn a_change_of_the_counter_is_told() {
    let folder = Folder::with_state();
    let error = refused(&folder, || fs::write(folder.state(), sample(5).encode()).unwrap());
    assert!(matches!(error, StoreError::Changed { loaded_sessions: 3, found_sessions: 5, .. }));
    insta::assert_snapshot!(folder.text(&error), @"DIR/state.json: the checkpoint was changed while this session worked (its session counter was 3, and is 5 now); nothing was written; run again");
}

#[test]
fn a_change_of_white_space_only_is_one() {
    let folder = Folder::with_state();
    let mut spaced = sample(3).encode();
    spaced.push(b'\n');
    let error = refused(&folder, || fs::write(folder.state(), spaced).unwrap());
    assert!(matches!(error, StoreError::Changed { .. }), "{error}");
}

#[test]
fn the_same_bytes_in_another_file_are_no_change() {
    let folder = Folder::with_state();
    let store = JsonStore::new(folder.state());
    let held = store.begin(Wait::Fail).unwrap();
    fs::write(folder.at("copy"), sample(3).encode()).unwrap();
    fs::rename(folder.at("copy"), folder.state()).unwrap();
    held.save(&sample(4)).unwrap();
}

#[test]
fn a_deleted_file_is_not_written_anew() {
    let folder = Folder::with_state();
    let error = refused(&folder, || fs::remove_file(folder.state()).unwrap());
    assert!(matches!(error, StoreError::Deleted { .. }));
    insta::assert_snapshot!(folder.text(&error), @"DIR/state.json: the checkpoint was deleted while this session worked; nothing was written; restore it, or run again to start a fresh queue");
}

#[test]
fn a_damaged_file_is_named_as_such() {
    let folder = Folder::with_state();
    let error = refused(&folder, || fs::write(folder.state(), "{\"queue\": [").unwrap());
    assert!(matches!(error, StoreError::DamagedMeanwhile { .. }));
    insta::assert_snapshot!(folder.text(&error), @"DIR/state.json: the checkpoint was damaged while this session worked: a file that was cut off where a string was expected at line 1, column 12 (/queue/0); nothing was written; restore it from a backup or repair it by hand, then run again");
}

#[test]
fn a_file_that_appeared_is_not_replaced_whatever_is_in_it() {
    for bytes in [sample(0).encode(), Vec::new(), b"[]".to_vec()] {
        let folder = Folder::new();
        let error = refused(&folder, || fs::write(folder.state(), bytes).unwrap());
        assert!(matches!(error, StoreError::Appeared { .. }));
        insta::allow_duplicates! { insta::assert_snapshot!(folder.text(&error), @"DIR/state.json: a checkpoint appeared while this session worked; nothing was written; run again"); }
    }
}

#[test]
fn something_else_in_its_place_is_told() {
    let folder = Folder::with_state();
    let error = refused(&folder, || {
        fs::remove_file(folder.state()).unwrap();
        fs::create_dir(folder.state()).unwrap();
    });
    assert!(matches!(error, StoreError::Unreadable { .. }));
    insta::assert_snapshot!(folder.text(&error), @"DIR/state.json: cannot read the checkpoint: it is a folder, not a file; give the path of a file");
}

#[test]
fn a_link_that_leads_elsewhere_is_told() {
    let folder = Folder::new();
    for name in ["a", "b"] {
        fs::write(folder.at(name), sample(3).encode()).unwrap();
    }
    symlink("a", folder.state()).unwrap();
    // To the same bytes, but the lock that is held is not the one of this file.
    let error = refused(&folder, || {
        fs::remove_file(folder.state()).unwrap();
        symlink("b", folder.state()).unwrap();
    });
    assert!(matches!(error, StoreError::Unreadable { .. }));
    insta::assert_snapshot!(folder.text(&error), @"DIR/state.json: cannot read the checkpoint: its link led to DIR/a before, and leads to DIR/b now; nothing was written; run again");
    assert_eq!(folder.names(), set(["a", "a.lock", "b", "state.json"]));
}

#[test]
fn a_lock_file_that_was_removed_or_replaced_protects_nobody() {
    let folder = Folder::with_state();
    let error = refused(&folder, || fs::remove_file(folder.lock()).unwrap());
    assert!(matches!(error, StoreError::Write { .. }));
    insta::assert_snapshot!(folder.text(&error), @"DIR/state.json.lock: cannot rely on the lock file: it was removed or replaced while this session worked, so another may hold it; the checkpoint is as it was; remove the cause, then run again");

    let other = JsonStore::new(folder.state());
    let error = refused(&folder, || {
        fs::remove_file(folder.lock()).unwrap();
        drop(other.begin(Wait::Fail).unwrap());
    });
    assert!(matches!(error, StoreError::Write { .. }), "{error}");
}
