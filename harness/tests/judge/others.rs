//! Verdicts on damage, overlap, idle runs and alarms.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crashlab::fault::damage::Remains;
use crashlab::judge::{
    Content, DamageCase, Grade, Masks, OverlapCase, Serial, Side, Validity, Verdict, Word,
    judge_alert, judge_damage, judge_idle, judge_overlap, metadata_changes, orders, told,
};
use crashlab::recording::Trace;
use crashlab::subject::{End, Exit};
use crashlab::tree::{Node, NodeKind, Tree};

use super::build::{Log, changed, controls, found, linked, outcome, state, tree};

#[test]
fn damage_must_be_refused_by_name_with_the_bytes_untouched() {
    let state = state(&["s.json"]);
    let versions = found(&tree(&[("s.json", "a")]), &Log::default().replace("b"), &state);
    let controls = controls(&versions, &|text| Ok(text.map_or("fresh".into(), str::to_uppercase)));
    let start = tree(&[("s.json", "?")]);
    let (undamaged, damaged) = (state.image(&tree(&[("s.json", "a")])), state.image(&start));
    let judge_as = |validity, end: &str, exit, said: &str| {
        let outcome = outcome(&state, &start, &tree(&[("s.json", end)]), exit, said);
        judge_damage(&DamageCase {
            controls: &controls,
            start: &undamaged,
            damaged: &damaged,
            outcome: &outcome,
            files: &state.paths,
            place: &state.paths[0],
            validity,
        })
    };
    let judge = |end: &str, exit, said: &str| judge_as(Validity::Invalid, end, exit, said);
    let refused = judge("?", Exit::Code(65), "error: s.json: damaged");
    assert_eq!((refused.word, refused.grade), (Word::Refused, Grade::Good));
    for (end, exit, said, word) in [
        ("?", Exit::Code(1), "panicked", Word::Crashed),
        ("", Exit::Code(1), "error: s.json: damaged", Word::Crashed),
        ("?", Exit::Signal(11), "s.json", Word::Crashed),
        ("?", Exit::TimedOut, "", Word::Hung),
        ("fresh", Exit::Code(0), "", Word::Restarted),
        ("A", Exit::Code(0), "", Word::Accepted),
        ("?", Exit::Code(0), "warning: s.json", Word::Accepted),
    ] {
        let verdict = judge(end, exit, said);
        assert_eq!((verdict.word, verdict.grade), (word, Grade::Fault), "{end} {exit} {said}");
    }
    for (validity, end, word, grade) in [
        (Validity::Valid, "?", Word::Undetectable, Grade::Warning),
        (Validity::Valid, "fresh", Word::Undetectable, Grade::Warning),
        (Validity::Older, "A", Word::Undetectable, Grade::Warning),
        (Validity::Older, "fresh", Word::Restarted, Grade::Fault),
        (Validity::Unknown, "?", Word::NotMeasured, Grade::Unknown),
        (Validity::Unknown, "fresh", Word::Restarted, Grade::Fault),
    ] {
        let verdict = judge_as(validity, end, Exit::Code(0), "");
        assert_eq!((verdict.word, verdict.grade), (word, grade), "{validity:?} {end}");
        let refused = judge_as(validity, "?", Exit::Code(1), "s.json: damaged");
        assert_eq!(refused.word, Word::Refused, "{validity:?}");
    }
    let unknown = judge_as(Validity::Unknown, "?", Exit::Code(0), "");
    assert!(unknown.why.contains("give the fault a `valid` command"), "{}", unknown.why);
}

/// What stands in the place of the file must stand there afterwards, with the mode that forbids to read it.
#[test]
fn what_is_no_file_must_be_left_alone() {
    let state = state(&["s.json"]);
    let versions = found(&tree(&[("s.json", "a")]), &Log::default().replace("b"), &state);
    let controls = controls(&versions, &|text| Ok(text.map_or("fresh".into(), str::to_uppercase)));
    let file = tree(&[("s.json", "a")]);
    let path = &state.paths[0];
    let judge = |start: &Tree, end: &Tree| {
        let outcome = outcome(&state, start, end, Exit::Code(1), "s.json: no file");
        judge_damage(&DamageCase {
            controls: &controls,
            start: &state.image(&file),
            damaged: &state.image(start),
            outcome: &outcome,
            files: &state.paths,
            place: path,
            validity: Validity::Unknown,
        })
        .word
    };
    let nothing = {
        let mut tree = file.clone();
        tree.nodes.remove(path);
        tree
    };
    for remains in [
        Remains::Folder,
        Remains::DanglingLink,
        Remains::Socket,
        Remains::Fifo,
        Remains::Unreadable,
    ] {
        let start = remains.put(&file, path);
        assert_ne!(start, file, "{remains:?}");
        assert_eq!(judge(&start, &start), Word::Refused, "{remains:?}");
        assert_eq!(judge(&start, &file), Word::Crashed, "{remains:?} was replaced");
        assert_eq!(judge(&start, &nothing), Word::Crashed, "{remains:?} was removed");
    }
}

/// Where a run begins with what a fresh start makes, an end from there is no fresh start.
#[test]
fn an_earlier_version_that_is_like_none_proves_nothing() {
    let state = state(&["s.json"]);
    let start = tree(&[("s.json", "0")]);
    let versions = found(&start, &Log::default().replace("1"), &state);
    let controls =
        controls(&versions, &|text| Ok(if text == Some("1") { "2" } else { "1" }.into()));
    let image = state.image(&start);
    let outcome = outcome(&state, &start, &tree(&[("s.json", "1")]), Exit::Code(0), "");
    let verdict = judge_damage(&DamageCase {
        controls: &controls,
        start: &image,
        damaged: &image,
        outcome: &outcome,
        files: &state.paths,
        place: &state.paths[0],
        validity: Validity::Older,
    });
    assert_eq!(verdict.word, Word::Undetectable);
}

fn sides(ends: &[(Exit, bool)]) -> Vec<Side> {
    let name = |position: usize| ["a", "b", "c"][position].to_owned();
    ends.iter()
        .enumerate()
        .map(|(at, (exit, changed_state))| Side {
            name: name(at),
            exit: *exit,
            changed_state: *changed_state,
            unsaid: None,
            refuses_again: false,
        })
        .collect()
}

/// The verdict where each order of processes leaves this text.
fn judged(sides: &[Side], text: &dyn Fn(&[usize]) -> String, end: &str, masks: &Masks) -> Verdict {
    let state = state(&["s.json"]);
    let image = |text: &str| state.image(&tree(&[("s.json", text)]));
    let serial: Vec<Serial> = orders(sides.len())
        .into_iter()
        .map(|order| Serial { image: image(&text(&order)), order, told: Vec::new() })
        .collect();
    let contents: BTreeSet<Content> =
        serial.iter().flat_map(|serial| serial.image.files.values().cloned()).collect();
    let whole: BTreeMap<_, _> = [("s.json".into(), contents)].into();
    let (image, told, died) = (&image(end), &[], None);
    let case = OverlapCase { sides, image, told, died, serial: &serial, whole: &whole, masks };
    judge_overlap(&case)
}

/// Each process adds its letter.
fn letters(order: &[usize]) -> String {
    order.iter().map(|side| ["a", "b", "c"][*side]).collect()
}

fn overlap(ends: &[(Exit, bool)], end: &str) -> Word {
    judged(&sides(ends), &letters, end, &Masks::default()).word
}

#[test]
fn an_overlap_must_end_as_some_order_would() {
    let (did, refused, failed) =
        ((Exit::Code(0), true), (Exit::Code(75), false), (Exit::Code(1), true));
    assert_eq!(overlap(&[did, did], "ab"), Word::Serial);
    assert_eq!(overlap(&[did, did], "ba"), Word::Serial);
    assert_eq!(overlap(&[did, refused], "a"), Word::Serial);
    assert_eq!(overlap(&[did, did], "a"), Word::Lost);
    assert_eq!(overlap(&[did, did], ""), Word::Lost);
    assert_eq!(overlap(&[did, failed], "a"), Word::Diverged, "it failed and had changed something");
    assert_eq!(overlap(&[did, refused], "b"), Word::Diverged);
    assert_eq!(overlap(&[did, did], "a?"), Word::Torn);
    assert_eq!(overlap(&[did, (Exit::TimedOut, false)], "a"), Word::Hung);
    assert_eq!(overlap(&[did, did, did], "cab"), Word::Serial);
    assert_eq!(overlap(&[did, refused, did], "ca"), Word::Serial);
    assert_eq!(overlap(&[did, did, did], "ca"), Word::Lost);
}

/// Where how they end and what they print is compared too, both must be as in one order.
#[test]
fn what_programs_tell_belongs_to_the_outcome() {
    let state = state(&["s.json"]);
    let image = |text: &str| state.image(&tree(&[("s.json", text)]));
    let end = |exit: i32, output: &str| End {
        exit: Exit::Code(exit),
        stdout: output.into(),
        stderr: b"waited a while".to_vec(),
        elapsed: std::time::Duration::ZERO,
    };
    let names = ["a", "b"];
    // Each prints how many there were before it.
    let serial: Vec<Serial> = orders(2)
        .into_iter()
        .map(|order| {
            let tell =
                |(count, side): (usize, &usize)| told(names[*side], &end(0, &count.to_string()));
            let told = order.iter().enumerate().map(tell).collect();
            Serial { image: image(&"x".repeat(order.len())), order, told }
        })
        .collect();
    let sides = sides(&[(Exit::Code(0), true), (Exit::Code(0), true)]);
    let judged = |text: &str, a: End, b: End, died| {
        let all = [told("a", &a), told("b", &b)];
        let whole = [(
            "s.json".into(),
            ["x", "xx"].map(image).iter().flat_map(|image| image.files.values().cloned()).collect(),
        )];
        judge_overlap(&OverlapCase {
            sides: &sides,
            image: &image(text),
            told: &all,
            died,
            serial: &serial,
            whole: &whole.into(),
            masks: &Masks::default(),
        })
    };
    assert_eq!(judged("xx", end(0, "0"), end(0, "1"), None).word, Word::Serial);
    assert_eq!(judged("xx", end(0, "1"), end(0, "0"), None).word, Word::Serial);
    let both_first = judged("xx", end(0, "0"), end(0, "0"), None);
    assert_eq!(both_first.word, Word::Diverged);
    assert!(both_first.why.ends_with("but the output of b is not"), "{}", both_first.why);
    assert_eq!(judged("x", end(0, "0"), end(0, "0"), None).word, Word::Lost);
    let quiet = End { stderr: Vec::new(), ..end(0, "1") };
    assert_eq!(judged("xx", end(0, "0"), quiet, None).word, Word::Serial);
}

/// Orders are then those of the others, with what the dead may have left.
#[test]
fn a_survivor_may_not_refuse_for_ever() {
    let state = state(&["s.json"]);
    let image = |text: &str| state.image(&tree(&[("s.json", text)]));
    let mut refused = sides(&[(Exit::Killed, false), (Exit::Code(75), false)]);
    let serial = [
        Serial { order: Vec::new(), image: image(""), told: Vec::new() },
        Serial { order: vec![1], image: image("b"), told: Vec::new() },
    ];
    let judged = |refused: &[Side]| {
        judge_overlap(&OverlapCase {
            sides: refused,
            image: &image(""),
            told: &[],
            died: Some(0),
            serial: &serial,
            whole: &BTreeMap::new(),
            masks: &Masks::default(),
        })
    };
    // It refused while the other still lived.
    assert_eq!(judged(&refused).word, Word::Serial);
    refused[1].refuses_again = true;
    let verdict = judged(&refused);
    assert_eq!((verdict.word, verdict.grade), (Word::Refused, Grade::Fault));
    assert_eq!(verdict.why, "`a` was killed; `b` refused with exit code 75, over what it left");
}

#[test]
fn an_overlap_tells_who_did_what() {
    let (did, refused) = ((Exit::Code(0), true), (Exit::Code(75), false));
    let why =
        |ends: &[(Exit, bool)], end| judged(&sides(ends), &letters, end, &Masks::default()).why;
    assert_eq!(why(&[did, did], "ba"), "as `b`, `a` one after another");
    assert_eq!(
        why(&[did, refused], "a"),
        "as `a` one after another; `b` refused with exit code 75"
    );
    assert_eq!(
        why(&[did, did, refused], "b"),
        "`a`, `b` succeeded, and the files are as if only `b` had run"
    );
}

#[test]
fn who_must_say_something_and_does_not_is_unnoticed() {
    let mut sides = sides(&[(Exit::Code(0), true), (Exit::Code(75), false)]);
    sides[1].unsaid = Some("^busy".into());
    let verdict = judged(&sides, &letters, "a", &Masks::default());
    assert_eq!(verdict.word, Word::Unnoticed);
    assert_eq!(verdict.why, "nothing is lost, but `b` (exit code 75) never says `^busy`");
}

#[test]
fn where_equal_orders_end_differently_nothing_is_measured() {
    let did = (Exit::Code(0), true);
    let mut masks = Masks::default();
    masks.unstable.insert("s.json".into());
    let word = |end| judged(&sides(&[did, did]), &letters, end, &masks).word;
    assert_eq!(word("ab"), Word::Serial);
    assert_eq!(word("a"), Word::NotMeasured);
}

/// A line for the time, which is masked, and a line for what each process adds.
#[test]
fn what_only_a_mask_tells_apart_is_not_measured() {
    let did = (Exit::Code(0), true);
    let image = |text: &str| state(&["s.json"]).image(&tree(&[("s.json", text)]));
    let mut masks = Masks::default();
    masks.learn(&image("1\nx"), &image("2\nx"));
    let word = |text: &dyn Fn(&[usize]) -> String, end| {
        judged(&sides(&[did, did]), text, end, &masks).word
    };
    // What each adds stands beside the time.
    let beside = |order: &[usize]| format!("{}\n{}", order.len(), letters(order));
    assert_eq!(word(&beside, "7\nab"), Word::Serial);
    // What each adds is the time.
    let masked = |order: &[usize]| format!("{}\nx", letters(order));
    assert_eq!(word(&masked, "7\nx"), Word::NotMeasured);
    // Only the other order is told by the time alone, and both have done their work.
    let sorted = |order: &[usize]| format!("{}\n{}", letters(order), order.len());
    assert_eq!(word(&sorted, "7\n2"), Word::Serial);
    // What tells fewer processes from each other says nothing of both.
    let both = |order: &[usize]| format!("{}\n{}", letters(order), order.len() == 2);
    assert_eq!(word(&both, "7\ntrue"), Word::Serial);
    // A second process that adds nothing leaves what the first leaves, time and all.
    let first = |order: &[usize]| format!("1\n{}", order.contains(&0));
    assert_eq!(word(&first, "1\ntrue"), Word::Serial);
}

#[test]
fn every_order_of_every_subset() {
    assert_eq!(orders(2), [vec![], vec![0], vec![1], vec![0, 1], vec![1, 0]]);
    assert_eq!(orders(3).len(), 1 + 3 + 6 + 6);
}

#[test]
fn with_nothing_to_do_nothing_may_happen() {
    let state = state(&["s.json"]);
    let start = tree(&[("s.json", "a")]);
    let run = |log: Log, end: &str, exit| {
        let mut outcome = outcome(&state, &start, &tree(&[("s.json", end)]), exit, "");
        let trace = Trace { events: log.events, ..Trace::clone(&outcome.trace) };
        outcome.trace = Arc::new(trace);
        judge_idle(&outcome, &["called".to_owned()]).word
    };
    assert_eq!(run(Log::default().mark("other"), "a", Exit::Code(0)), Word::Unchanged);
    assert_eq!(run(Log::default().mark("called"), "a", Exit::Code(0)), Word::Repeated);
    assert_eq!(run(Log::default().replace("a"), "a", Exit::Code(0)), Word::Repeated);
    assert_eq!(run(Log::default(), "b", Exit::Code(0)), Word::Diverged);
    assert_eq!(run(Log::default(), "a", Exit::Code(1)), Word::Crashed);
    assert_eq!(run(Log::default(), "a", Exit::TimedOut), Word::Hung);
}

#[test]
fn an_alarm_exits_non_zero_says_it_and_changes_nothing() {
    let state = state(&["s.json"]);
    let start = tree(&[("s.json", "a")]);
    let says = regex::bytes::Regex::new("older than").expect("a good expression");
    let run = |end: &str, exit, said: &str| {
        let end = tree(&[("s.json", end), ("s.json.lock", "")]);
        let outcome = outcome(&state, &start, &end, exit, said);
        judge_alert(&outcome, &state.image(&start), &says).word
    };
    assert_eq!(run("a", Exit::Code(1), "x\npending older than 7d\n"), Word::Noticed);
    assert_eq!(run("a", Exit::Code(0), "pending older than 7d"), Word::Unnoticed);
    assert_eq!(run("a", Exit::Code(1), "no such file"), Word::Unnoticed);
    assert_eq!(run("a", Exit::Code(0), ""), Word::Unnoticed);
    assert_eq!(run("b", Exit::Code(1), "older than"), Word::Diverged);
    assert_eq!(run("a", Exit::TimedOut, "older than"), Word::Hung);
}

#[test]
fn links_modes_and_owners_must_be_kept() {
    let state = state(&["s.json"]);
    let before = tree(&[("s.json", "a")]);
    let with = |change: &dyn Fn(&mut Node)| changed(before.clone(), "s.json", change);
    let changes = |after| metadata_changes(&before, &after, &state);
    assert_eq!(
        changes(with(&|node| node.kind = NodeKind::File(b"b".to_vec().into()))),
        Vec::<String>::new()
    );
    assert_eq!(changes(with(&|node| node.mode = 0o600)), ["s.json: mode 0644 became 0600"]);
    assert_eq!(changes(with(&|node| node.uid = 7)), ["s.json: owner 0:0 became 7:0"]);
    let link = |target: &str| linked(tree(&[("real", "a"), ("else", "b")]), "s.json", target);
    assert_eq!(
        metadata_changes(&link("real"), &before, &state),
        ["s.json: the link to real was replaced by a file"]
    );
    assert_eq!(
        metadata_changes(&link("real"), &link("else"), &state),
        ["s.json: the link led to real, and leads to else now"]
    );
    assert_eq!(metadata_changes(&link("real"), &link("real"), &state), Vec::<String>::new());
}
