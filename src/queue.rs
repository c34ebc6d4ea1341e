//! How a checkpoint changes: one decision applied to the first question, or a person's decision to a pending one. Pure.

use std::collections::HashSet;

use crate::checkpoint::{Answer, Checkpoint};
use crate::choice::Choice;

/// Notes that are kept; the oldest are dropped.
pub const MAX_NOTES: usize = 6;
/// How much of an answer its note holds, in code points.
pub const NOTE_CODE_POINTS: usize = 80;
/// What stands between the question and the answer in a note.
pub const NOTE_ARROW: &str = " -> ";

/// Why a session's decision cannot be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    /// There is no question.
    #[error("the queue is empty")]
    Empty,
    /// `sessions_run` is at its end.
    #[error("`sessions_run` is {}, the largest number it can hold; set it back by hand", u64::MAX)]
    CounterFull,
}

/// Why a question cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotPending {
    /// It is still to be worked.
    #[error(
        "`{question}` is still in the queue, so a session will work it; only a pending question can be resolved; nothing was written"
    )]
    Queued {
        /// The question.
        question: String,
    },
    /// It has an answer.
    #[error(
        "`{question}` is answered already; only a pending question can be resolved; nothing was written"
    )]
    Answered {
        /// The question.
        question: String,
    },
    /// It is nowhere in the checkpoint.
    #[error("`{question}` is not pending, so nothing was written{}", nearest(near))]
    Unknown {
        /// The question.
        question: String,
        /// Pending questions that are spelled nearly like it, the nearest first.
        near: Vec<String>,
    },
}

fn nearest(near: &[String]) -> String {
    match near {
        [] => "; no pending question is spelled nearly like it; `pending` lists them".to_owned(),
        _ => {
            let lines: Vec<_> = near.iter().map(|question| format!("\n  {question}")).collect();
            format!("; did you mean:{}", lines.concat())
        }
    }
}

/// The checkpoint after a session: the first question leaves the queue, answered or flagged.
///
/// # Errors
///
/// [`StepError`].
pub fn apply(checkpoint: &Checkpoint, choice: &Choice) -> Result<Checkpoint, StepError> {
    let mut next = checkpoint.clone();
    if next.queue.is_empty() {
        return Err(StepError::Empty);
    }
    next.sessions_run = next.sessions_run.checked_add(1).ok_or(StepError::CounterFull)?;
    let question = next.queue.remove(0);
    match choice {
        Choice::Answer { text, citations } => record(&mut next, question, text, citations),
        Choice::Flag { reason } => {
            next.pending.insert(question, reason.clone());
        }
    }
    Ok(next)
}

/// The checkpoint after a person decided a pending question. `sessions_run` stays: this is no session.
///
/// # Errors
///
/// [`NotPending`].
pub fn resolve(
    checkpoint: &Checkpoint,
    question: &str,
    note: &str,
) -> Result<Checkpoint, NotPending> {
    let question = question.to_owned();
    // First: a question that is queued as well would be worked again, and the person's decision lost.
    if checkpoint.queue.contains(&question) {
        return Err(NotPending::Queued { question });
    }
    if !checkpoint.pending.contains_key(&question) {
        return Err(if checkpoint.answers.contains_key(&question) {
            NotPending::Answered { question }
        } else {
            let near = near_matches(checkpoint, &question);
            NotPending::Unknown { question, near }
        });
    }
    Ok(resolve_anything(checkpoint, &question, note))
}

/// As [`resolve`], of any question whatever: what is not pending is answered all the same, and what is queued stays queued.
pub fn resolve_anything(checkpoint: &Checkpoint, question: &str, note: &str) -> Checkpoint {
    let mut next = checkpoint.clone();
    next.pending.shift_remove(question);
    record(&mut next, question.to_owned(), note, &[]);
    next
}

/// How many of the questions are neither queued nor answered nor pending.
pub fn count_unknown(checkpoint: &Checkpoint, questions: &[String]) -> usize {
    let queued: HashSet<&String> = checkpoint.queue.iter().collect();
    let is_known = |question: &&String| {
        queued.contains(question)
            || checkpoint.answers.contains_key(*question)
            || checkpoint.pending.contains_key(*question)
    };
    questions.iter().filter(|question| !is_known(question)).count()
}

fn record(checkpoint: &mut Checkpoint, question: String, text: &str, citations: &[String]) {
    checkpoint.notes.push(note(&question, text));
    let surplus = checkpoint.notes.len().saturating_sub(MAX_NOTES);
    checkpoint.notes.drain(..surplus);
    checkpoint
        .answers
        .insert(question, Answer { text: text.to_owned(), citations: citations.to_vec() });
}

/// The note that an answer leaves.
pub fn note(question: &str, text: &str) -> String {
    let beginning: String = text.chars().take(NOTE_CODE_POINTS).collect();
    format!("{question}{NOTE_ARROW}{beginning}")
}

/// Pending questions spelled nearly like `question`, at most three, the nearest first.
fn near_matches(checkpoint: &Checkpoint, question: &str) -> Vec<String> {
    const NEAR: f64 = 0.6;
    // The comparison takes time and memory by the product of both lengths. Nobody types what is longer.
    const COMPARED_MAX: usize = 400;
    let wanted = question.to_lowercase();
    let likeness = |known: &str| {
        if wanted.len().max(known.len()) > COMPARED_MAX {
            return 0.0;
        }
        strsim::normalized_damerau_levenshtein(&wanted, known)
    };
    let mut scored: Vec<(f64, &String)> = checkpoint
        .pending
        .keys()
        .map(|known| {
            let known_lower = known.to_lowercase();
            let contained = !wanted.is_empty() && known_lower.contains(&wanted);
            (if contained { 1.0 } else { likeness(&known_lower) }, known)
        })
        .filter(|(likeness, _)| *likeness >= NEAR)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(3).map(|(_, known)| known.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Choice {
        Choice::Answer { text: text.to_owned(), citations: vec!["a#1".to_owned()] }
    }

    fn flag(reason: &str) -> Choice {
        Choice::Flag { reason: reason.to_owned() }
    }

    fn queue(questions: &[&str]) -> Checkpoint {
        Checkpoint::fresh(questions.iter().map(|q| (*q).to_owned()).collect())
    }

    #[test]
    fn an_answer_is_recorded_noted_and_counted() {
        let after = apply(&queue(&["q1", "q2"]), &answer("yes")).unwrap();
        assert_eq!(after.queue, ["q2"]);
        assert_eq!(after.notes, ["q1 -> yes"]);
        assert_eq!(after.answers["q1"].text, "yes");
        assert_eq!(after.answers["q1"].citations, ["a#1"]);
        assert!(after.pending.is_empty());
        assert_eq!(after.sessions_run, 1);
    }

    #[test]
    fn a_flag_leaves_no_answer_and_no_note() {
        let after = apply(&queue(&["q1", "q2"]), &flag("sources disagree")).unwrap();
        assert_eq!(after.queue, ["q2"]);
        assert!(after.notes.is_empty() && after.answers.is_empty());
        assert_eq!(after.pending["q1"], "sources disagree");
        assert_eq!(after.sessions_run, 1);
    }

    #[test]
    fn a_note_holds_eighty_code_points_not_bytes_and_not_graphemes() {
        let text = "é\u{1F600}".repeat(60);
        let after = apply(&queue(&["q"]), &answer(&text)).unwrap();
        let noted = after.notes[0].strip_prefix("q -> ").unwrap();
        assert_eq!(noted.chars().count(), 80);
        assert!(text.starts_with(noted));
        assert_eq!(after.answers["q"].text, text);
    }

    #[test]
    fn six_notes_are_kept_and_the_oldest_goes_first() {
        let mut checkpoint = queue(&["1", "2", "3", "4", "5", "6", "7", "8"]);
        for _ in 0..8 {
            checkpoint = apply(&checkpoint, &answer("x")).unwrap();
        }
        assert_eq!(checkpoint.notes, ["3 -> x", "4 -> x", "5 -> x", "6 -> x", "7 -> x", "8 -> x"]);
        assert_eq!(checkpoint.answers.len(), 8);
    }

    #[test]
    fn an_empty_queue_and_a_full_counter_are_errors() {
        assert_eq!(apply(&queue(&[]), &answer("x")), Err(StepError::Empty));
        let mut full = queue(&["q"]);
        full.sessions_run = u64::MAX;
        assert_eq!(apply(&full, &answer("x")), Err(StepError::CounterFull));
    }

    #[test]
    fn resolving_answers_without_citations_and_keeps_the_counter() {
        let mut checkpoint = apply(&queue(&["q1", "q2"]), &flag("why")).unwrap();
        checkpoint.notes = (0..6).map(|n| format!("old {n} -> x")).collect();
        let after = resolve(&checkpoint, "q1", "a person says so").unwrap();
        assert!(after.pending.is_empty());
        assert_eq!(after.answers["q1"].text, "a person says so");
        assert!(after.answers["q1"].citations.is_empty());
        assert_eq!(after.notes.len(), 6);
        assert_eq!(after.notes[5], "q1 -> a person says so");
        assert_eq!(after.sessions_run, checkpoint.sessions_run);
        assert_eq!(after.queue, ["q2"]);
    }

    #[test]
    fn only_a_pending_question_can_be_resolved() {
        let mut checkpoint = apply(&queue(&["Is it atomic?", "queued"]), &flag("why")).unwrap();
        assert!(matches!(resolve(&checkpoint, "queued", "n"), Err(NotPending::Queued { .. })));
        match resolve(&checkpoint, "is it atomic", "n") {
            Err(NotPending::Unknown { near, .. }) => assert_eq!(near, ["Is it atomic?"]),
            other => panic!("{other:?}"),
        }
        match resolve(&checkpoint, "something else altogether", "n") {
            Err(NotPending::Unknown { near, .. }) => assert!(near.is_empty()),
            other => panic!("{other:?}"),
        }
        // Pending and queued at once, as only a hand edit can leave it: a session would answer it over the person's decision.
        checkpoint.queue.push("Is it atomic?".to_owned());
        assert!(matches!(
            resolve(&checkpoint, "Is it atomic?", "n"),
            Err(NotPending::Queued { .. })
        ));
        checkpoint.queue.clear();
        let resolved = resolve(&checkpoint, "Is it atomic?", "n").unwrap();
        assert!(matches!(
            resolve(&resolved, "Is it atomic?", "again"),
            Err(NotPending::Answered { .. })
        ));
    }

    /// Compared letter by letter, these would take hours.
    #[test]
    fn a_long_question_is_looked_for_at_once() {
        let long = "x".repeat(1_000_000);
        let checkpoint = apply(&queue(&[&format!("{long}?")]), &flag("why")).unwrap();
        match resolve(&checkpoint, &format!("{long}!"), "n") {
            Err(NotPending::Unknown { near, .. }) => assert!(near.is_empty()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_question_is_known_wherever_it_stands() {
        let flagged = apply(&queue(&["pending", "answered", "queued"]), &flag("why")).unwrap();
        let checkpoint = apply(&flagged, &answer("yes")).unwrap();
        let asked = ["pending", "answered", "queued", "new"].map(str::to_owned);
        assert_eq!(count_unknown(&checkpoint, &asked), 1);
        assert_eq!(count_unknown(&checkpoint, &asked[..3]), 0);
    }
}
