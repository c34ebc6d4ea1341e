//! The verdict on a damaged file: the recovery must refuse it, by name, and leave its bytes alone.

use std::path::PathBuf;

use super::control::{Controls, account};
use super::{Image, Outcome, Verdict, Word};

/// A damaged state with all that is needed to judge it.
#[derive(Debug)]
pub struct DamageCase<'a> {
    /// The undisturbed ends.
    pub controls: &'a Controls,
    /// The state files with the damage in them.
    pub damaged: &'a Image,
    /// What the recovery made of it.
    pub outcome: &'a Outcome,
    /// The damaged file, and the state path by which the scenario names it, which can be a folder's.
    pub files: &'a [PathBuf],
}

/// Judges by the first verdict that fits.
pub fn judge_damage(case: &DamageCase<'_>) -> Verdict {
    let verdict = judge(case);
    Verdict { grade: verdict.word.grade_after_damage(), ..verdict }
}

fn judge(case: &DamageCase<'_>) -> Verdict {
    let outcome = case.outcome;
    let untouched = outcome.image == *case.damaged;
    if outcome.hung() {
        return Verdict::new(Word::Hung, "the recovery did not end within its time");
    }
    let refusal = outcome.refusal(case.files.iter());
    if let Some(refusal) = refusal.as_ref().filter(|_| untouched) {
        return Verdict::new(Word::Refused, refusal);
    }
    if !outcome.success() {
        let why = match (refusal.is_some(), untouched) {
            (true, false) => "the recovery named the file, but changed its bytes",
            (false, false) => "the recovery failed without naming the file, and changed its bytes",
            _ => "the recovery failed without naming the file",
        };
        return Verdict::new(Word::Crashed, format!("{why}: {}", account(outcome)));
    }
    let end = case.controls.masks.apply(&outcome.image);
    if case.controls.end_from_none().as_ref() == Some(&end) {
        return Verdict::new(Word::Restarted, "the recovery ended as if there had been no file");
    }
    let how = if untouched { "left it as it is" } else { "went on from it" };
    Verdict::new(Word::Accepted, format!("the recovery took the damaged file for good and {how}"))
}
