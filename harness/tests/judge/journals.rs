//! Journals: at which ops a run vouches for one, and what a recovery may make of it.

use crashlab::judge::vouched;
use crashlab::op::LockAction::{Exclusive, Shared, Unlock};

use super::build::{Log, found, state, tree};

const NONE: [u32; 0] = [];

/// The ops at which a run that began with `s.json` and the journal `j` vouched for a journal.
fn moments(log: Log) -> Vec<u32> {
    let (before, state) = (tree(&[("s.json", "aa"), ("j", "")]), state(&["s.json"]));
    let versions = found(&before, &log, &state);
    vouched(&before, &log.events, &state, &versions).expect("the log fits")
}

#[test]
fn a_journal_that_is_synced_after_a_write_is_vouched_for() {
    assert_eq!(moments(Log::default().write("j", 0, "x").sync("j")), [2]);
    assert_eq!(moments(Log::default().sync("j")), NONE, "nothing was written");
    assert_eq!(moments(Log::default().write("j", 0, "x").sync("j").sync("j")), [2]);
    assert_eq!(
        moments(Log::default().write("j", 0, "x").sync("s.json")),
        NONE,
        "it is another file"
    );
    assert_eq!(moments(Log::default().allocate("j", 8).sync("j")), [2]);
    assert_eq!(moments(Log::default().truncate("j").sync("j")), [2]);
}

#[test]
fn a_journal_that_is_written_under_a_lock_is_vouched_for_by_its_release() {
    let write = |log: Log| log.write("j", 0, "x");
    let with = |action| Log::default().lock("j", action);
    assert_eq!(moments(write(with(Exclusive)).lock("j", Unlock)), [3]);
    assert_eq!(moments(write(with(Exclusive))), NONE, "it still holds it");
    assert_eq!(moments(write(with(Shared)).lock("j", Unlock)), NONE);
    assert_eq!(moments(with(Exclusive).lock("j", Unlock)), NONE, "nothing was written");
}

#[test]
fn while_the_state_is_half_written_nothing_is_vouched_for() {
    let log = Log::default()
        .write("s.json", 0, "b")
        .write("j", 0, "x")
        .sync("j")
        .write("s.json", 1, "b")
        .close("s.json")
        .write("j", 0, "y")
        .sync("j");
    assert_eq!(moments(log), [6]);
}

#[test]
fn a_file_that_becomes_the_state_is_no_journal() {
    let log = Log::default().create("t").write("t", 0, "b").sync("t").rename("t", "s.json");
    assert_eq!(moments(log), NONE);
}
