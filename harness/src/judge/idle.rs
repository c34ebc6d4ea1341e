//! The verdict on a program that was started with nothing to do: it must change nothing.

use super::control::account;
use super::{Outcome, Verdict, Word};
use crate::op::What;

/// Judges a run that should have found nothing to do; `never` are marks that it must not pass.
pub fn judge_idle(outcome: &Outcome, never: &[String]) -> Verdict {
    if outcome.hung() {
        return Verdict::new(Word::Hung, "it did not end within its time");
    }
    if !outcome.success() {
        return Verdict::new(
            Word::Crashed,
            format!("it failed with nothing to do: {}", account(outcome)),
        );
    }
    let passed = outcome.trace.events.iter().find_map(|event| match &event.what {
        What::Mark(name) if never.contains(name) => Some(name),
        _ => None,
    });
    if let Some(mark) = passed {
        return Verdict::new(
            Word::Repeated,
            format!("it passed the mark `{mark}` with nothing to do"),
        );
    }
    let ops = outcome.trace.ops().filter(|op| op.kind.changes()).count();
    if ops > 0 {
        return Verdict::new(
            Word::Repeated,
            format!("it wrote with nothing to do ({ops} ops that change files)"),
        );
    }
    if outcome.start != outcome.end {
        return Verdict::new(Word::Diverged, "it changed files with nothing to do");
    }
    Verdict::new(Word::Unchanged, "nothing was done and nothing was changed")
}
