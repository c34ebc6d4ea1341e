//! The reference's protocol: what its check sees, and each of the weak points that it is kept for.

use std::fs;
use std::os::unix::fs::symlink;

use indexmap::IndexMap;
use long_horizon::checkpoint::Checkpoint;
use long_horizon::store::{JsonStore, ReferenceStore, Store, StoreError, Wait};

use super::{Folder, mode, sample, set, set_mode};

/// Begins a session, lets `other` act, and saves counter 4.
fn saved_after(folder: &Folder, other: impl FnOnce()) -> Result<(), StoreError> {
    let store = ReferenceStore::new(folder.state());
    let held = store.begin(Wait::Fail).unwrap();
    other();
    held.save(&sample(4))
}

fn assert_saved(folder: &Folder) {
    assert_eq!(fs::read(folder.state()).unwrap(), sample(4).encode());
}

#[test]
fn it_loads_and_saves_the_same_format() {
    let folder = Folder::with_state();
    let store = ReferenceStore::new(folder.state());
    let held = store.begin(Wait::Fail).unwrap();
    assert_eq!(held.loaded().unwrap().checkpoint, sample(3));
    held.save(&sample(4)).unwrap();
    assert_saved(&folder);
    assert_eq!(folder.names(), set(["state.json"]), "no lock file");
}

#[test]
fn a_session_that_finished_meanwhile_is_seen() {
    let folder = Folder::with_state();
    let error = saved_after(&folder, || fs::write(folder.state(), sample(5).encode()).unwrap())
        .unwrap_err();
    assert!(matches!(error, StoreError::Changed { loaded_sessions: 3, found_sessions: 5, .. }));
    assert_eq!(fs::read(folder.state()).unwrap(), sample(5).encode());
    assert_eq!(folder.names(), set(["state.json"]));
}

#[test]
fn a_counter_of_a_file_that_appeared_is_compared_with_zero() {
    for (found, refused) in [(0, false), (1, true)] {
        let folder = Folder::new();
        let result =
            saved_after(&folder, || fs::write(folder.state(), sample(found).encode()).unwrap());
        assert_eq!(result.is_err(), refused, "{found}");
    }
}

#[test]
fn weak_two_sessions_at_once_are_not_kept_apart() {
    let folder = Folder::with_state();
    let store = ReferenceStore::new(folder.state());
    let first = store.begin(Wait::Fail).unwrap();
    let second = store.begin(Wait::Fail).unwrap();
    assert_eq!(store.holders().unwrap(), []);
    first.save(&sample(4)).unwrap();
    second.save(&sample(4)).unwrap_err();
}

#[test]
fn weak_a_resolve_in_between_is_erased() {
    let folder = Folder::with_state();
    let pending = IndexMap::from([("first?".to_owned(), "a person decided".to_owned())]);
    let resolved = Checkpoint { pending, ..sample(3) };
    saved_after(&folder, || fs::write(folder.state(), resolved.encode()).unwrap()).unwrap();
    assert_saved(&folder);
}

#[test]
fn weak_a_note_may_answer_what_nobody_asked() {
    assert!(ReferenceStore::new("state.json").resolves_anything());
    assert!(!JsonStore::new("state.json").resolves_anything());
}

#[test]
fn weak_a_deleted_file_is_written_anew() {
    let folder = Folder::with_state();
    saved_after(&folder, || fs::remove_file(folder.state()).unwrap()).unwrap();
    assert_saved(&folder);
}

#[test]
fn weak_a_link_is_replaced_and_the_mode_is_lost() {
    let folder = Folder::new();
    fs::write(folder.at("real"), sample(3).encode()).unwrap();
    set_mode(&folder.at("real"), 0o600);
    symlink("real", folder.state()).unwrap();
    let store = ReferenceStore::new(folder.state());
    assert_eq!(store.target().unwrap(), folder.state());
    saved_after(&folder, || {}).unwrap();
    assert_saved(&folder);
    assert!(!fs::symlink_metadata(folder.state()).unwrap().is_symlink());
    assert_eq!(
        fs::read(folder.at("real")).unwrap(),
        sample(3).encode(),
        "what it led to is left behind"
    );

    let folder = Folder::with_state();
    set_mode(&folder.state(), 0o611);
    saved_after(&folder, || {}).unwrap();
    assert_ne!(mode(&folder.state()), 0o611);
}

#[test]
fn weak_a_link_that_leads_to_nothing_starts_the_queue_over() {
    let folder = Folder::new();
    symlink("gone", folder.state()).unwrap();
    let store = ReferenceStore::new(folder.state());
    assert_eq!(store.read().unwrap(), None);
    saved_after(&folder, || {}).unwrap();
    assert_saved(&folder);
}

#[test]
fn weak_a_file_damaged_in_between_gives_the_parsers_message() {
    for (damaged, message) in
        [("{\"queue\": [", "EOF while parsing"), ("", "EOF while parsing"), ("[]", "not an object")]
    {
        let folder = Folder::with_state();
        let error =
            saved_after(&folder, || fs::write(folder.state(), damaged).unwrap()).unwrap_err();
        assert!(matches!(error, StoreError::Write { .. }), "{error:?}");
        assert!(error.to_string().contains(message), "{error}");
        assert_eq!(fs::read(folder.state()).unwrap(), damaged.as_bytes());
    }
    // And what is still JSON with the right counter is replaced, unseen.
    let folder = Folder::with_state();
    saved_after(&folder, || fs::write(folder.state(), "{\"sessions_run\": 3}").unwrap()).unwrap();
    assert_saved(&folder);
}

#[test]
fn weak_temp_files_of_killed_sessions_stay() {
    let folder = Folder::with_state();
    fs::write(folder.at("state.json.1.tmp"), "half a check").unwrap();
    // Its own it takes over, since it does not create exclusively.
    let own = format!("state.json.{}.tmp", std::process::id());
    fs::write(folder.at(&own), "half a check").unwrap();
    saved_after(&folder, || {}).unwrap();
    assert_saved(&folder);
    assert_eq!(folder.names(), set(["state.json", "state.json.1.tmp"]));
}

#[test]
fn a_damaged_file_does_not_load() {
    let folder = Folder::new();
    fs::write(folder.state(), "[]").unwrap();
    let error = ReferenceStore::new(folder.state()).begin(Wait::Fail).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }));
}
