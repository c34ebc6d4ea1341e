//! `long-horizon` under the lab: killed at every point, damaged in every way, and overlapped.

use crashlab::judge::Word;
use crashlab::run::{Plan, ScenarioResult, Settings, try_scenario};
use crashlab::scenario::{CommandLine, FaultKind, Scenario, Turn, Until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_long-horizon");

fn words(argv: &[&str]) -> Vec<String> {
    [PROGRAM].iter().chain(argv).map(|word| (*word).to_owned()).collect()
}

/// One session on the built-in queue; the recovery works the queue to its end.
fn one_session(name: &str) -> Scenario {
    let until_empty = [PROGRAM, "run", "--until-empty", "--model", "stub:scripted"];
    Scenario::new(name, &[PROGRAM, "run", "--model", "stub:scripted"], "long-horizon.json")
        .recovery(&until_empty)
}

/// Every kill is made for real, in a run of its own.
fn run(scenario: &Scenario) -> ScenarioResult {
    let settings = Settings { live: true, ..Settings::default() };
    let result = try_scenario(scenario, &Plan::All, &settings);
    let result = result.unwrap_or_else(|error| panic!("{}: {error}", scenario.name));
    result.assert_held();
    result
}

fn only(result: &ScenarioResult, allowed: &[Word]) {
    let counts = result.counts();
    assert!(counts.keys().all(|word| allowed.contains(word)), "{counts:?}");
    assert!(!counts.is_empty(), "nothing was tried");
}

#[test]
fn a_session_killed_at_every_op_leaves_the_old_or_the_new_checkpoint() {
    let setup = format!("{PROGRAM} run --sessions 3 --model stub:scripted");
    let result = run(&one_session("fourth session").setup(&setup).kill_everywhere());
    only(&result, &[Word::Old, Word::New]);
    let counts = result.counts();
    assert!(counts[&Word::Old] > 5 && counts[&Word::New] > 2, "{counts:?}");
}

#[test]
fn the_first_session_killed_at_every_op_loses_and_repeats_nothing() {
    only(&run(&one_session("first session").kill_everywhere()), &[Word::Old, Word::New]);
}

#[test]
fn a_session_killed_at_a_mark_has_saved_only_at_the_last_one() {
    let marks = ["loaded", "checked", "saved"].map(|name| format!("mark:{name}"));
    let at = marks.iter().map(|point| point.parse().expect("a kill point")).collect();
    let result = run(&one_session("marks").fault(FaultKind::Kill { at }));
    let words = result.faults[0].cases.iter().map(|case| case.verdict.word);
    assert!(words.eq([Word::Old, Word::Old, Word::New]), "{:?}", result.counts());
}

#[test]
fn a_decision_killed_at_every_op_is_made_or_not() {
    let question =
        "Can a program rely on one 512-byte sector being written atomically in a power failure?";
    let resolve = [PROGRAM, "resolve", question, "--note", "No.", "--by", "Ada"];
    let setup = format!("{PROGRAM} run --sessions 6 --model stub:scripted");
    let scenario = Scenario::new("resolve", &resolve, "long-horizon.json")
        .recovery(&[PROGRAM, "run", "--until-empty", "--model", "stub:scripted"])
        .setup(&setup)
        .kill_everywhere();
    only(&run(&scenario), &[Word::Old, Word::New]);
}

#[test]
fn every_damage_is_refused_by_name_with_the_bytes_untouched() {
    let setup = format!("{PROGRAM} run --sessions 2 --model stub:scripted");
    let result = run(&one_session("damage").setup(&setup).damage_everything());
    only(&result, &[Word::Refused]);
    assert_eq!(result.counts()[&Word::Refused], 7);
}

#[test]
fn a_second_session_stops_before_the_model_is_called() {
    let session = CommandLine::Argv(words(&["run", "--model", "stub:scripted"]));
    let turn = |process: &str, until: Until| Turn { process: process.to_owned(), until };
    let kind = FaultKind::Overlap {
        name: "two".into(),
        processes: vec![("first".into(), session.clone()), ("second".into(), session)],
        order: vec![
            turn("first", Until::Mark("model-called".into())),
            turn("second", Until::End),
            turn("first", Until::End),
        ],
        says: Default::default(),
    };
    let result = run(&one_session("two sessions").fault(kind));
    only(&result, &[Word::Serial]);
    let case = &result.faults[0].cases[0];
    assert!(
        case.verdict.why.contains("`second` refused with exit code 75"),
        "{}",
        case.verdict.why
    );
    let called = case.evidence.ops.iter().filter(|line| line.contains("model-called")).count();
    assert_eq!(called, 1, "{:#?}", case.evidence.ops);
}

#[test]
fn the_reference_store_leaves_its_temporary_file_and_ours_does_not() {
    let setup = format!("{PROGRAM} run --model stub:scripted");
    let session = |store: &str| {
        let argv = [PROGRAM, "run", "--model", "stub:scripted", "--store", store];
        Scenario::new(store, &argv, "long-horizon.json").setup(&setup).kill_everywhere()
    };
    let reference = run(&session("reference").expect(&[Word::Leftover]));
    assert!(reference.counts().contains_key(&Word::Leftover));
    only(&run(&session("json")), &[Word::Old, Word::New]);
}
