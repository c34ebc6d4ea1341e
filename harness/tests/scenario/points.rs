//! The short texts for places and turns read back what they print.

use crashlab::scenario::{KillPoint, Turn, Until};
use proptest::prelude::*;

fn mark() -> impl Strategy<Value = String> {
    "[A-Za-z0-9][A-Za-z0-9._-]{0,8}"
}

fn kill_point() -> impl Strategy<Value = KillPoint> {
    const WORDS: [&str; 7] = ["create", "write", "rename", "sync", "sync-range", "lock", "utimens"];
    prop_oneof![
        Just(KillPoint::All),
        any::<u32>().prop_map(KillPoint::After),
        (1..=u32::MAX, 1..=u64::MAX).prop_map(|(op, bytes)| KillPoint::Inside(op, bytes)),
        (prop::sample::select(&WORDS[..]), 1..=u32::MAX)
            .prop_map(|(word, nth)| KillPoint::Kind(word.into(), nth)),
        (mark(), prop_oneof![Just(1), 1..=u32::MAX])
            .prop_map(|(name, nth)| KillPoint::Mark(name, nth)),
    ]
}

fn turn() -> impl Strategy<Value = Turn> {
    let until = prop_oneof![Just(Until::End), mark().prop_map(Until::Mark)];
    ("[a-z0-9]{1,4}(-[a-z0-9]{1,4}){0,2}", until)
        .prop_map(|(process, until)| Turn { process, until })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_kill_point_reads_back(point in kill_point()) {
        prop_assert_eq!(point.to_string().parse(), Ok(point));
    }

    #[test]
    fn a_turn_reads_back(turn in turn()) {
        prop_assert_eq!(turn.to_string().parse(), Ok(turn));
    }

    /// Whatever is read prints so that it is read as the same again.
    #[test]
    fn no_two_meanings(text in "(all|mark:|rename|write|sync)?[#+]?[0-9a-z]{0,4}(#[0-9]{1,2})?") {
        if let Ok(point) = text.parse::<KillPoint>() {
            prop_assert_eq!(point.to_string().parse(), Ok(point));
        }
    }
}

#[test]
fn numbers_have_one_spelling() {
    for wrong in [
        "+5",
        "-1",
        "007",
        "4294967296",
        "0+1",
        "1+0",
        "1+",
        "+1",
        "1+01",
        "rename#0",
        "rename#01",
        "mark:x#0",
        "mark:x#",
        "mark:",
        "",
    ] {
        assert!(wrong.parse::<KillPoint>().is_err(), "{wrong:?} was taken");
    }
}

/// `rename#1` must be possible for each word that the op log has, and for no other but `output`.
#[test]
fn all_words_of_the_op_log_are_known() {
    let source = include_str!("../../src/op.rs");
    let (_, body) = source.split_once("pub fn word(&self)").unwrap();
    let mut words: Vec<&str> = body
        .lines()
        .take_while(|line| *line != "}")
        .filter_map(|line| line.split_once("=> \"")?.1.split('"').next())
        .collect();
    words.sort_unstable();
    assert!(words.len() >= 18, "{words:?}");
    for word in &words {
        let point = format!("{word}#1").parse::<KillPoint>();
        assert_eq!(point, Ok(KillPoint::Kind(word.to_string(), 1)));
    }
    let error = "copy#1".parse::<KillPoint>().unwrap_err();
    let (_, known) = error.expected.split_once(": ").unwrap();
    let mut known: Vec<&str> = known.split(", ").collect();
    known.sort_unstable();
    words.push("output");
    words.sort_unstable();
    assert_eq!(known, words);
    assert_eq!("output#2".parse::<KillPoint>(), Ok(KillPoint::Output(2)));
}
