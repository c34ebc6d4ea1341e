//! `long-horizon` raced: sessions, a person's decision and a stop at the same time, in every order of their file operations
//! that matters. The marks and the order of nobody's steps are written down here: exploration finds what there is to find.

use std::collections::BTreeSet;

use crashlab::judge::Word;
use crashlab::run::{ScenarioResult, Settings, race_alone};
use crashlab::scenario::{CommandLine, FaultKind, RaceFault, Scenario};

const PROGRAM: &str = env!("CARGO_BIN_EXE_long-horizon");

const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/files/long-horizon");
const SESSION: &[&str] = &["run", "--model", "stub:scripted=script.json", "--corpus", "corpus"];
const RESOLVE: &[&str] =
    &["resolve", "For how long must a checkpoint be kept?", "--note", "For a year.", "--by", "Ada"];
const STOP: &[&str] = &["stop", "--reason", "maintenance", "--by", "Ada"];

/// A race of these commands with a store.
fn race(store: &str, commands: &[&[&str]], preemptions: u32) -> ScenarioResult {
    race_of(store, commands, |fault| fault.preemptions = Some(preemptions))
}

fn race_of(
    store: &str,
    commands: &[&[&str]],
    change: impl FnOnce(&mut RaceFault),
) -> ScenarioResult {
    let named = |(side, words): (usize, &&[&str])| {
        let stored =
            words.iter().chain(if words[0] == "stop" { &[] as &[&str] } else { &["--store"] });
        let store = (words[0] != "stop").then_some(store);
        let words = [PROGRAM].iter().chain(stored).copied().chain(store);
        let name = format!("{}{}", words.clone().nth(1).unwrap_or_default(), side + 1);
        (name, CommandLine::Argv(words.map(str::to_owned).collect()))
    };
    let processes: Vec<_> = commands.iter().enumerate().map(named).collect();
    let mut scenario = Scenario::new("race", &[PROGRAM], "long-horizon.json");
    scenario.subject.files = Some(FILES.into());
    let mut fault = RaceFault::of(processes);
    change(&mut fault);
    let scenario = scenario.fault(FaultKind::Race(fault));
    race_alone(&scenario, &Settings::default(), None).unwrap_or_else(|error| panic!("{error}"))
}

fn words(result: &ScenarioResult) -> BTreeSet<Word> {
    result.counts().into_keys().collect()
}

/// The shortest schedule that loses something, with its verdict.
fn shortest(result: &ScenarioResult) -> String {
    let cases = &result.faults[0].cases;
    let lost = cases.iter().find(|case| case.verdict.word == Word::Lost).expect("it is lost");
    format!("{}\n{}", lost.verdict.why, lost.evidence.schedule.join("\n"))
}

/// Process ids are others each time.
fn snapshot(name: &str, text: &str) {
    insta::with_settings!({ filters => vec![(r"json\.\d+\.t[^|\n]*", "json.PID.tmp ..")] }, {
        insta::assert_snapshot!(name, text);
    });
}

#[test]
fn the_reference_loses_what_is_saved_between_its_check_and_its_rename() {
    let result = race("reference", &[SESSION, SESSION], 1);
    assert_eq!(words(&result), [Word::Serial, Word::Lost].into());
    snapshot("reference_two_sessions", &shortest(&result));
}

#[test]
fn the_reference_erases_a_persons_decision() {
    let result = race("reference", &[SESSION, RESOLVE], 1);
    assert!(words(&result).contains(&Word::Lost), "{:?}", result.counts());
    snapshot("reference_session_and_resolve", &shortest(&result));
}

/// The scenarios of `scenarios/races` go further.
#[test]
fn the_default_store_loses_nothing() {
    for (commands, preemptions) in [
        (&[SESSION, SESSION][..], 2),
        (&[SESSION, RESOLVE], 1),
        (&[SESSION, RESOLVE, STOP], 0),
        (&[SESSION, SESSION, SESSION], 0),
    ] {
        let result = race("json", commands, preemptions);
        assert_eq!(words(&result), [Word::Serial].into(), "{:?}", result.counts());
    }
}

/// In two containers with one volume both sessions are process 1, and their temporary files have one name.
#[test]
fn the_default_store_loses_nothing_where_process_ids_are_equal() {
    if let Err(why) = crashlab::sandbox::containers() {
        eprintln!("skipped: {why}");
        return;
    }
    let contained = |store: &str| {
        race_of(store, &[SESSION, SESSION], |fault| {
            fault.containers = true;
            fault.preemptions = Some(1);
        })
    };
    let result = contained("json");
    assert_eq!(words(&result), [Word::Serial].into(), "{:?}", result.counts());
    // And the one without a lock is found out.
    assert!(words(&contained("reference")).contains(&Word::Lost));
}
