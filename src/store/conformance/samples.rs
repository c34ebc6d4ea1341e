//! Checkpoints and decisions that the cases work with.

use indexmap::IndexMap;

use crate::checkpoint::{Answer, Checkpoint};
use crate::choice::Choice;

/// When a case begins: a moment like any other.
pub(super) const BEGIN_SECONDS: i64 = 1_772_366_400;

/// Questions `q1` to `qN` in the queue, and one that waits for a person.
pub(super) fn queue(count: usize) -> Checkpoint {
    let questions = (1..=count).map(|number| format!("q{number}")).collect();
    Checkpoint {
        pending: IndexMap::from([("p".to_owned(), "a person must decide".to_owned())]),
        ..Checkpoint::fresh(questions)
    }
}

/// The answer to a question: another one for each.
pub(super) fn answer(question: &str) -> Choice {
    Choice::Answer {
        text: format!("the answer to {question}"),
        citations: vec!["a#1".to_owned(), question.to_owned()],
    }
}

/// Everything that a text can hold, at every place of a checkpoint.
pub(super) fn every_text() -> Checkpoint {
    let texts = [
        "",
        "plain",
        "\"quoted\" \\ and / slashed",
        "line\nfeed, tab\t, return\r",
        "NUL \0 in the middle",
        "\0",
        "\u{1b}[31mred\u{7f}\u{9b}",
        "é ü \u{1F600} \u{10FFFF} \u{202e}",
        "'; DROP TABLE queue; --",
    ]
    .map(str::to_owned);
    let answer = |text: &String| Answer { text: text.clone(), citations: texts.to_vec() };
    Checkpoint {
        // A question may be asked twice, and may be answered or pending already.
        queue: texts.iter().chain(&texts).cloned().collect(),
        notes: texts.to_vec(),
        answers: texts.iter().map(|text| (text.clone(), answer(text))).collect(),
        pending: texts.iter().map(|text| (text.clone(), text.clone())).collect(),
        sessions_run: u64::MAX,
    }
}

/// As it grows: so many answers of some length.
pub(super) fn answered(count: usize) -> Checkpoint {
    let answers = (0..count).map(|number| {
        let text = format!("{number}: {}", "a text that fills more than one page. ".repeat(5));
        (format!("answered {number}"), Answer { text, citations: vec!["a#1".to_owned()] })
    });
    Checkpoint { answers: answers.collect(), ..queue(3) }
}
