//! What survived, in the cases that need more than one state file and one recovery: the step that it belongs to, promises of
//! what was struck off, journals, and ends that cannot be compared.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crashlab::judge::{
    Controls, CrashCase, Masks, Outcome, Shapes, State, Verdict, Versions, Word, judge_crash,
};
use crashlab::recording::Trace;
use crashlab::subject::Exit;
use crashlab::tree::Tree;

use super::build::{Log, changed, controls, found, outcome, recovered, state, tree};

struct Case {
    state: State,
    versions: Versions,
    controls: Controls,
    promised: usize,
    stepped_on: bool,
    /// Where the recovery ends from where the run vouched for a journal.
    vouched: Vec<Outcome>,
}

impl Case {
    /// A run that saves `{ab}` and `{abc}` over `{a}`, and a recovery whose end is upper case.
    fn new() -> Case {
        let log = Log::default().replace("{ab}").replace("{abc}");
        Case::of(found(&tree(&[("s.json", "{a}")]), &log, &state(&["s.json"])))
    }

    fn of(versions: Versions) -> Case {
        let controls = controls(&versions, &|text| Ok(text.unwrap_or("fresh").to_uppercase()));
        Case {
            state: state(&["s.json"]),
            versions,
            controls,
            promised: 0,
            stepped_on: false,
            vouched: Vec::new(),
        }
    }

    fn judge(&self, outcome: &Outcome) -> Verdict {
        judge_crash(&CrashCase {
            versions: &self.versions,
            promised: self.promised,
            controls: &self.controls,
            ends: &self.controls.ends(&self.versions),
            survivor: &self.state.image(&outcome.start),
            stepped_on: self.stepped_on,
            outcome,
            check_failed: None,
            effect_repeated: None,
            vouched: &self.vouched,
            state: &self.state,
        })
    }

    fn between(&self, survivor: &Tree, end: &Tree) -> Outcome {
        outcome(&self.state, survivor, end, Exit::Code(0), "")
    }

    fn word(&self, survivor: &str, end: &str) -> Word {
        self.verdict(survivor, end).word
    }

    fn verdict(&self, survivor: &str, end: &str) -> Verdict {
        self.judge(&self.between(&tree(&[("s.json", survivor)]), &tree(&[("s.json", end)])))
    }
}

fn having_read(mut outcome: Outcome, path: &str) -> Outcome {
    let events = Log::default().reads(path).events;
    outcome.trace = Arc::new(Trace { events, ..Trace::clone(&outcome.trace) });
    outcome
}

#[test]
fn what_survives_a_later_step_is_old_unless_it_is_the_end() {
    let case = Case { stepped_on: true, ..Case::new() };
    assert_eq!(case.word("{a}", "{A}"), Word::Old);
    assert_eq!(case.word("{ab}", "{AB}"), Word::Old);
    assert_eq!(case.word("{abc}", "{ABC}"), Word::New, "nothing newer is to come");
    let idle = Case::of(found(&tree(&[("s.json", "{a}")]), &Log::default(), &state(&["s.json"])));
    assert_eq!(idle.word("{a}", "{A}"), Word::Old, "there was no step");
}

#[test]
fn a_promise_of_what_was_struck_off_is_one_of_what_stood_before() {
    let log = Log::default()
        .replace("{ab}")
        .write("s.json", 0, "[")
        .sync("s.json")
        .write("s.json", 0, "{")
        .write("s.json", 2, "c")
        .close("s.json");
    let versions = found(&tree(&[("s.json", "{a}")]), &log, &state(&["s.json"]));
    let mut case = Case::of(versions);
    case.controls = controls(&case.versions, &|text| match text {
        Some(text) if text.starts_with('[') => Err("s.json: damaged".into()),
        text => Ok(text.unwrap_or("fresh").to_uppercase()),
    });
    assert_eq!(case.controls.standing(&case.versions), [true, true, false, true]);
    case.promised = 2;
    assert_eq!(case.word("{ab}", "{AB}"), Word::New);
    assert_eq!(case.word("{a}", "{A}"), Word::Lost);
    case.promised = 3;
    assert_eq!(case.word("{ab}", "{AB}"), Word::Lost);
}

#[test]
fn what_survived_too_old_is_lost_wherever_the_recovery_takes_it() {
    let case = Case { promised: 1, ..Case::new() };
    let verdict = case.verdict("{a}", "{X}");
    assert_eq!(verdict.word, Word::Lost);
    assert!(verdict.why.starts_with("what survived"), "{}", verdict.why);
}

#[test]
fn torn_says_what_the_recovery_made_of_it() {
    let case = Case::new();
    let why = |outcome: &Outcome| {
        let verdict = case.judge(outcome);
        assert_eq!(verdict.word, Word::Torn);
        verdict.why
    };
    let torn = |end: Result<&str, &str>| {
        let end = end.map(str::to_owned).map_err(str::to_owned);
        recovered(&case.state, Some("{a"), &|_| end.clone())
    };
    assert!(why(&torn(Err("bad JSON"))).contains("failed: exit code 1: bad JSON"));
    assert!(why(&torn(Ok("{A"))).contains("accepted"));
    assert!(
        why(&Outcome { unread: ["s.json".into()].into(), ..torn(Ok("{A")) }).contains("never read")
    );
}

#[test]
fn a_journal_takes_a_whole_version_to_another_one() {
    let case = Case::new();
    let left = |more: &[(&str, &str)]| tree(&[&[("s.json", "{ab}")], more].concat());
    let rolled_back = |start: &Tree| case.between(start, &tree(&[("s.json", "{A}")]));
    let with_journal = rolled_back(&left(&[("j", "{a}")]));
    let verdict = case.judge(&having_read(with_journal.clone(), "j"));
    assert_eq!(verdict.word, Word::Recovered);
    assert!(verdict.why.ends_with("by j"), "{}", verdict.why);
    assert_eq!(case.judge(&with_journal).word, Word::Diverged, "it never looked at it");
    let no_journal = having_read(rolled_back(&left(&[])), "j");
    assert_eq!(case.judge(&no_journal).word, Word::Diverged, "there was none");
    let elsewhere = case.between(&left(&[("j", "{a}")]), &tree(&[("s.json", "{X}")]));
    assert_eq!(case.judge(&having_read(elsewhere, "j")).word, Word::Diverged);
}

#[test]
fn a_journal_that_the_run_vouched_for_takes_it_where_no_version_is() {
    let left = tree(&[("s.json", "{ab}"), ("j", "{w}")]);
    let ends =
        |end: &str, exit| outcome(&state(&["s.json"]), &left, &tree(&[("s.json", end)]), exit, "");
    let verdict = |vouched: Outcome, end: &str| {
        let case = Case { vouched: vec![vouched], ..Case::new() };
        case.judge(&having_read(ends(end, Exit::Code(0)), "j"))
    };
    let recovered = verdict(ends("{W}", Exit::Code(0)), "{W}");
    assert_eq!(recovered.word, Word::Recovered);
    assert!(recovered.why.ends_with("vouched for j"), "{}", recovered.why);
    assert_eq!(verdict(ends("{W}", Exit::Code(0)), "{X}").word, Word::Diverged);
    assert_eq!(verdict(ends("{W}", Exit::Code(1)), "{W}").word, Word::Diverged, "it failed there");
}

#[test]
fn a_file_that_an_undisturbed_recovery_finds_as_well_is_no_journal() {
    let mut case = Case::new();
    let start = tree(&[("s.json", "{ab}"), ("conf", "x")]);
    let control = case.between(&start, &tree(&[("s.json", "{AB}")]));
    case.controls.of_version.insert(case.state.image(&start), control);
    let rolled_back = case.between(&start, &tree(&[("s.json", "{A}")]));
    assert_eq!(case.judge(&having_read(rolled_back, "conf")).word, Word::Diverged);
}

#[test]
fn the_state_itself_is_no_journal() {
    let case = Case::new();
    let start = changed(tree(&[("s.json", "{ab}")]), "s.json", |node| node.mode = 0o600);
    let rolled_back = case.between(&start, &tree(&[("s.json", "{A}")]));
    assert_eq!(case.judge(&having_read(rolled_back, "s.json")).word, Word::Diverged);
}

#[test]
fn what_stands_twice_in_an_undisturbed_end_may_stand_twice() {
    let mut case = Case::new();
    case.controls = controls(&case.versions, &|_| Ok("again\nagain\n".into()));
    assert_eq!(case.word("{a}", "again\nagain\nelse\n"), Word::Diverged);
    assert_eq!(case.word("{a}", "again\nagain\nagain\n"), Word::Repeated);
}

fn both(queue: &str, done: &str) -> Tree {
    tree(&[("queue", queue), ("done", done)])
}

/// A queue and what is done of it, saved one after the other, and a recovery that works the queue to its end.
fn queue_and_done() -> Case {
    let state = state(&["queue", "done"]);
    let save = |log: Log, path, text| log.create("t").write("t", 0, text).rename("t", path);
    let log = save(save(Log::default(), "done", "a\n"), "queue", "b\n");
    let versions = found(&both("a\nb\n", ""), &log, &state);
    let ends = |start: &Tree, end: &Tree| outcome(&state, start, end, Exit::Code(0), "");
    let of_version = versions.all.iter().map(|version| {
        let start = state.put(&version.image, &both("", ""), &both("", ""));
        (version.image.clone(), ends(&start, &both("", "a\nb\n")))
    });
    let controls = Controls {
        of_version: of_version.collect(),
        none: ends(&tree(&[]), &both("", "")),
        masks: Masks::default(),
        shapes: Shapes::default(),
        began_with_state: true,
    };
    Case { state, versions, controls, promised: 0, stepped_on: true, vouched: Vec::new() }
}

#[test]
fn of_whole_files_that_do_not_agree_work_can_be_done_again() {
    let case = queue_and_done();
    let verdict = |survivor: &Tree| case.judge(&case.between(survivor, &both("", "a\na\nb\n")));
    let again = verdict(&both("a\nb\n", "a\n"));
    assert_eq!((again.word, again.why.as_str()), (Word::Repeated, "2 times in done: a"));
    assert_eq!(verdict(&both("a\nb\n", "?")).word, Word::Torn, "one of them is not whole");
}

#[test]
fn a_repair_must_have_read_what_was_torn_and_no_more() {
    let case = queue_and_done();
    let mended = case.between(&both("a\n", ""), &both("", "a\nb\n"));
    let unread = |path: &str| Outcome { unread: [path.into()].into(), ..mended.clone() };
    assert_eq!(case.judge(&mended).word, Word::Recovered);
    assert_eq!(case.judge(&unread("done")).word, Word::Recovered, "that was whole");
    assert_eq!(case.judge(&unread("queue")).word, Word::Torn);
}

#[test]
fn where_ends_cannot_be_compared_the_surviving_bytes_count() {
    let mut case = Case::new();
    case.controls.masks.unstable.insert("s.json".into());
    assert!(!case.controls.ends_are_stable());
    assert_eq!(case.word("{a}", "{X}"), Word::Old);
    assert_eq!(case.word("{a", "{A}"), Word::Torn, "an end like that proves no repair");
}

/// A state that is a folder, and a recovery that writes a file into it which the run itself never has.
#[test]
fn a_file_that_only_recoveries_leave_is_part_of_their_end() {
    let state = state(&["d"]);
    let before = tree(&[("d/s", "a")]);
    let log = Log::default().reads("d/s").create("t").write("t", 0, "b").rename("t", "d/s");
    let versions = found(&before, &log, &state);
    let ended = |text: &str, log: &str| tree(&[("d/s", text), ("d/log", log)]);
    let control =
        |text: &str, start: &Tree| outcome(&state, start, &ended(text, "done"), Exit::Code(0), "");
    let mut of_version = HashMap::new();
    let mut shapes = Shapes::default();
    for text in ["a", "b"] {
        let start = tree(&[("d/s", text)]);
        of_version.insert(state.image(&start), control(text, &start));
        shapes.learn(state.image(&ended(text, "done")).files.keys());
    }
    let none = control("fresh", &tree(&[]));
    let masks = Masks::default();
    let controls = Controls { of_version, none, masks, shapes, began_with_state: true };
    let case =
        Case { state, versions, controls, promised: 0, stepped_on: true, vouched: Vec::new() };
    let word = |end: &Tree| case.judge(&case.between(&before, end)).word;
    assert_eq!(word(&ended("a", "done")), Word::Old);
    assert_eq!(word(&ended("a", "else")), Word::Diverged);
    let mut stranger = ended("a", "done");
    let node = stranger.nodes[Path::new("d/log")].clone();
    stranger.nodes.insert("d/lock".into(), node);
    assert_eq!(word(&stranger), Word::Old, "a lock that happens to be there is none of it");
}
