//! What undisturbed runs tell: which doubtful versions stand, what a run read, and what a program said.

use crashlab::judge::{account, last_lines, overwritten_unread};
use crashlab::op::OpKind;
use crashlab::subject::Exit;

use super::build::{Log, controls, found, outcome, state, tree};

#[test]
fn a_doubtful_version_that_recovers_stands() {
    let log = Log::default()
        .write("s.json", 0, "b")
        .sync("s.json")
        .write("s.json", 1, "c")
        .close("s.json");
    let versions = found(&tree(&[("s.json", "aa")]), &log, &state(&["s.json"]));
    let upper = |text: Option<&str>| Ok(text.unwrap_or("fresh").to_uppercase());
    assert_eq!(controls(&versions, &upper).standing(&versions), [true; 3]);
    // Where every recovery ends alike, an end tells nothing against a version.
    let same = |_: Option<&str>| Ok("SAME".into());
    assert_eq!(controls(&versions, &same).standing(&versions), [true; 3]);
}

#[test]
fn a_file_is_read_before_it_is_changed() {
    let there = tree(&[("s.json", "a"), ("u", "1")]);
    let state = state(&["s.json", "u"]);
    let reads = |log: Log| overwritten_unread(&there, &log.events, &state).is_empty();
    assert!(reads(Log::default().reads("s.json").replace("b")));
    assert!(!reads(Log::default().replace("b")));
    assert!(!reads(Log::default().reads("u").replace("b")), "it read another");
    assert!(!reads(Log::default().replace("b").reads("s.json")), "too late");
    assert!(reads(Log::default().append("s.json", 1, "b")), "what was there stays");
    assert!(!reads(Log::default().append("s.json", 1, "b").replace("c")), "and then goes unread");
    assert!(reads(Log::default().op(OpKind::Unlink { path: "nothing".into() })), "not to be told");
    let first = overwritten_unread(&tree(&[]), &Log::default().replace("b").events, &state);
    assert!(first.is_empty(), "there was nothing to read");
    let blind = overwritten_unread(&there, &Log::default().reads("u").replace("b").events, &state);
    assert_eq!(blind, ["s.json".into()].into());
}

#[test]
fn the_last_lines_that_are_not_blank() {
    let state = state(&["s.json"]);
    let end = tree(&[]);
    let mut outcome = outcome(&state, &end, &end, Exit::Code(3), "one\n  two  \n\n \nthree \n\n");
    outcome.finish.stdout = b"said\n".to_vec();
    assert_eq!(account(&outcome), "exit code 3: three");
    assert_eq!(last_lines(&outcome.finish, 2), ["  two", "three"]);
    assert_eq!(last_lines(&outcome.finish, 9).len(), 3);
    outcome.finish.stderr =
        b"SyntaxError: no JSON\n    at new Error (x.js)\n\nNode.js v20\n".to_vec();
    assert_eq!(account(&outcome), "exit code 3: SyntaxError: no JSON", "what tells why");
    outcome.finish.stderr = b" \n".to_vec();
    assert_eq!(account(&outcome), "exit code 3: said", "then what is on standard output");
    outcome.finish.stdout.clear();
    assert_eq!(account(&outcome), "exit code 3");
}
