//! Checkpoints to try the format on.

use indexmap::IndexMap;
use long_horizon::checkpoint::{Answer, Checkpoint};
use proptest::collection::vec;
use proptest::prelude::*;

/// Text with more than its share of what needs care.
pub(crate) fn text() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        6 => prop::char::range(' ', '~'),
        2 => any::<char>(),
        1 => prop::char::range('\0', ' '),
        1 => prop::sample::select(vec!['"', '\\', '/', '\u{7f}', '\u{80}', '\u{2028}', '\u{feff}', '\u{ffff}', '\u{10000}', '🦀']),
    ];
    vec(character, 0..24).prop_map(String::from_iter)
}

/// Any checkpoint.
pub(crate) fn checkpoint() -> impl Strategy<Value = Checkpoint> {
    let answer =
        (text(), vec(text(), 0..4)).prop_map(|(text, citations)| Answer { text, citations });
    let count = prop_oneof![Just(0), Just(u64::MAX), 0..1000u64, any::<u64>()];
    let lists = (vec(text(), 0..5), vec(text(), 0..5));
    (lists, vec((text(), answer), 0..5), vec((text(), text()), 0..5), count).prop_map(
        |((queue, notes), answers, pending, sessions_run)| Checkpoint {
            queue,
            notes,
            answers: answers.into_iter().collect(),
            pending: IndexMap::from_iter(pending),
            sessions_run,
        },
    )
}
