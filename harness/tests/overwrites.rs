//! Whether a recovery read a file before it overwrote it is told from a log without its writes, where that tells for
//! certain, and else from one with them. Each recovery takes a torn file to an end that proves something if it was read.

use crashlab::judge::Word;
use crashlab::run::{Plan, Settings, try_scenario};
use crashlab::scenario::{FaultKind, KillPoint, Scenario};

/// `tw` stands torn in `s` after the first write of two, and nothing after the truncation.
const SUBJECT: &str = "cat s > /dev/null; { printf tw; printf o; } > s";

fn word_at(point: &str, recovery: &str) -> Word {
    word_of(point, recovery, &["s"])
}

fn word_of(point: &str, recovery: &str, state: &[&str]) -> Word {
    let at = vec![point.parse::<KillPoint>().expect("a kill point")];
    let mut scenario = Scenario::new("overwrites", &["/bin/sh", "-c", SUBJECT], "s")
        .setup("echo one > s; printf x > other")
        .recovery(&["/bin/sh", "-c", recovery])
        .fault(FaultKind::Kill { at });
    scenario.subject.state = state.iter().map(Into::into).collect();
    let result = try_scenario(&scenario, &Plan::All, &Settings::default());
    let result = result.unwrap_or_else(|error| panic!("{recovery}: {error}"));
    result.faults[0].cases[0].verdict.word
}

#[test]
fn what_was_read_first_was_repaired() {
    for point in ["write#1", "truncate#1"] {
        for repairs in [
            "cat s > t || exit 1; printf two > t; mv t s",
            "cat s > t || exit 1; printf two > s",
            "cat s > t || exit 1; printf two 1<> s; rm t",
        ] {
            assert_eq!(word_at(point, repairs), Word::Recovered, "{point}: {repairs}");
        }
    }
}

#[test]
fn what_was_written_over_without_a_truncation_was_not_read() {
    assert_eq!(word_at("write#1", "[ -e s ] && printf two 1<> s"), Word::Torn);
}

#[test]
fn what_was_truncated_or_replaced_was_not_read() {
    for overwrites in ["[ -e s ] && printf two > s", "[ -e s ] && printf two > t && mv t s"] {
        assert_eq!(word_at("write#1", overwrites), Word::Torn, "{overwrites}");
    }
}

/// The truncation of an empty file, and an empty file in its place, change nothing that could be seen.
#[test]
fn what_was_empty_and_is_overwritten_was_not_read() {
    for overwrites in ["printf two > s", "printf two > t && mv t s", "printf two 1<> s"] {
        // What is not empty it reads.
        let recovery = format!("[ -s s ] && cat s > /dev/null; [ -e s ] && {overwrites}");
        assert_eq!(word_at("truncate#1", &recovery), Word::Torn, "{overwrites}");
    }
}

/// One that was read does not speak for another.
#[test]
fn each_of_several_state_files_is_looked_at() {
    let overwrites = "cat other > /dev/null; [ -e s ] && printf two > s";
    assert_eq!(word_of("write#1", overwrites, &["s", "other"]), Word::Torn);
    let reads = "cat s > /dev/null || exit 1; printf x > other; printf two > s";
    assert_eq!(word_of("write#1", reads, &["s", "other"]), Word::Recovered);
}
