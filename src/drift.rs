//! Whether the notes still say what their sources say. Pure.
//!
//! A note can be checked where its answer cites sections: answers of a person and answers in plain text cite none. What cannot be told,
//! because the log lost the digests, is a finding of its own: a check that was not made is no pass.

use std::fmt;

use crate::checkpoint::{Answer, Checkpoint};
use crate::corpus::{Corpus, Section};
use crate::history;
use crate::log::Entry;
use crate::queue::{NOTE_ARROW, note};

/// Something wrong with a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The note, as it stands in the checkpoint.
    pub note: String,
    /// The section it is about; for what concerns the whole note, the first one cited; `None` where there is no answer to cite any.
    pub section: Option<String>,
    /// What is wrong.
    pub drift: Drift,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Drift {
    /// The corpus has no such section any more, or never had.
    Gone,
    /// The section's text is not what it was when the answer was given.
    Changed,
    /// The log does not tell what the section was like.
    Unknown,
    /// The note is not the beginning of the recorded answer.
    NotTheAnswer,
    /// The checkpoint holds no answer to the note's question.
    NoAnswer,
    /// The note holds a number that none of the cited sections holds.
    Number(String),
}

impl Drift {
    /// The name of the kind, for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Drift::Gone => "section-gone",
            Drift::Changed => "section-changed",
            Drift::Unknown => "unknown",
            Drift::NotTheAnswer => "not-the-answer",
            Drift::NoAnswer => "no-answer",
            Drift::Number(_) => "number",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(section) = &self.section {
            let file = section.split('#').next().unwrap_or_default();
            write!(f, "{file}.md, section {section}: ")?;
        }
        match &self.drift {
            Drift::Gone => write!(f, "it is gone"),
            Drift::Changed => write!(f, "it has changed since the answer"),
            Drift::Unknown => {
                write!(f, "the log does not tell what it was like when the answer was given")
            }
            Drift::NotTheAnswer => {
                write!(f, "the note is not the beginning of the recorded answer")
            }
            Drift::NoAnswer => write!(f, "no answer is recorded to the question of this note"),
            Drift::Number(number) => {
                write!(f, "the note says {number}, and no section that it cites does")
            }
        }
    }
}

/// What was checked, and what was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Notes whose answers cite sections.
    pub checked: usize,
    /// Notes whose answers cite none.
    pub without_citations: usize,
    /// In the order of the notes.
    pub findings: Vec<Finding>,
}

/// Checks each note of the checkpoint against the corpus and the log.
pub fn check(checkpoint: &Checkpoint, corpus: &Corpus, log: &[Entry]) -> Report {
    let mut report = Report::default();
    for note in &checkpoint.notes {
        let Some((question, answer)) = answer_of(checkpoint, note) else {
            report.findings.push(Finding {
                note: note.clone(),
                section: None,
                drift: Drift::NoAnswer,
            });
            continue;
        };
        if answer.citations.is_empty() {
            report.without_citations += 1;
            continue;
        }
        report.checked += 1;
        for (section, drift) in drifts(note, question, answer, corpus, log) {
            report.findings.push(Finding { note: note.clone(), section: Some(section), drift });
        }
    }
    report
}

/// The answer that a note belongs to. A question may itself hold an arrow: the longest that fits is meant.
fn answer_of<'a>(checkpoint: &'a Checkpoint, note: &str) -> Option<(&'a str, &'a Answer)> {
    checkpoint
        .answers
        .iter()
        .filter(|(question, _)| {
            note.strip_prefix(question.as_str()).is_some_and(|rest| rest.starts_with(NOTE_ARROW))
        })
        .max_by_key(|(question, _)| question.len())
        .map(|(question, answer)| (question.as_str(), answer))
}

fn drifts(
    noted: &str,
    question: &str,
    answer: &Answer,
    corpus: &Corpus,
    log: &[Entry],
) -> Vec<(String, Drift)> {
    let mut found = Vec::new();
    let logged = history::cited_for(log, question).unwrap_or_default();
    let mut present = Vec::new();
    for cite in &answer.citations {
        let Some(section) = corpus.get(cite) else {
            found.push((cite.clone(), Drift::Gone));
            continue;
        };
        present.push(section);
        let then = logged.iter().find(|cited| cited.section == *cite);
        match then.and_then(|cited| cited.sha256.as_deref()) {
            Some(sha256) if sha256 == section.sha256() => {}
            Some(_) => found.push((cite.clone(), Drift::Changed)),
            None => found.push((cite.clone(), Drift::Unknown)),
        }
    }
    let first = answer.citations.first().cloned().unwrap_or_default();
    if noted != note(question, &answer.text) {
        found.push((first.clone(), Drift::NotTheAnswer));
    }
    let beginning = &noted[question.len() + NOTE_ARROW.len()..];
    for number in numbers_of_note(beginning, &answer.text) {
        if !present.iter().any(|section| holds(section, &number)) {
            found.push((first.clone(), Drift::Number(number)));
        }
    }
    found
}

fn holds(section: &Section, number: &str) -> bool {
    [&section.title, &section.text].iter().any(|text| numbers(text).iter().any(|n| n == number))
}

/// The numbers that begin in a note. Its end may have cut the last one: the answer tells how that goes on.
fn numbers_of_note(beginning: &str, answer: &str) -> Vec<String> {
    let source = if answer.starts_with(beginning) { answer } else { beginning };
    spans(source)
        .into_iter()
        .filter(|(start, _)| *start < beginning.len())
        .map(|(_, number)| number)
        .collect()
}

fn numbers(text: &str) -> Vec<String> {
    spans(text).into_iter().map(|(_, number)| number).collect()
}

/// The numbers in a text, each with the byte it begins at: digits, with points or commas between digits, that do not continue a word, so
/// that the 4 of `ext4` is none. Commas between digits are dropped: `2,147` is `2147`.
fn spans(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let mut at = 0;
    while at < chars.len() {
        let (start, first) = chars[at];
        let in_word = at > 0 && (chars[at - 1].1.is_alphanumeric() || chars[at - 1].1 == '_');
        if !first.is_ascii_digit() || in_word {
            at += 1;
            continue;
        }
        let mut number = String::new();
        while at < chars.len() {
            let (_, c) = chars[at];
            let digit_follows = chars.get(at + 1).is_some_and(|(_, next)| next.is_ascii_digit());
            match c {
                '0'..='9' => number.push(c),
                '.' if digit_follows => number.push(c),
                ',' if digit_follows => {}
                _ => break,
            }
            at += 1;
        }
        found.push((start, number));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_alone_and_lose_their_commas() {
        let cases: [(&str, &[&str]); 6] = [
            ("ext4 commits every 5 seconds", &["5"]),
            ("2,147,479,552 bytes (0x7ffff000)", &["2147479552", "0"]),
            ("since 3.7.9, or 2.6.", &["3.7.9", "2.6"]),
            ("4096-byte pages, 30s, fsync(2)", &["4096", "30", "2"]),
            ("SHA256 of file_1", &[]),
            ("1,2", &["12"]),
        ];
        for (text, expected) in cases {
            assert_eq!(numbers(text), expected, "{text}");
        }
    }

    #[test]
    fn a_number_cut_by_the_end_of_a_note_is_completed_from_the_answer() {
        assert_eq!(numbers_of_note("waits 12", "waits 120 ms, not 7"), ["120"]);
        assert_eq!(numbers_of_note("waits ", "waits 120 ms"), [""; 0]);
        assert_eq!(numbers_of_note("waited 12", "waits 120 ms"), ["12"]);
    }
}
