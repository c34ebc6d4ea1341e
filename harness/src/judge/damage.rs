//! The verdict on a damaged file: the recovery must refuse it, by name, and leave its bytes alone.

use std::path::{Path, PathBuf};

use super::control::{Controls, account};
use super::{Image, Outcome, Verdict, Word};

/// A damaged state with all that is needed to judge it.
#[derive(Debug)]
pub struct DamageCase<'a> {
    /// The undisturbed ends.
    pub controls: &'a Controls,
    /// The state files of the run's start, undamaged.
    pub start: &'a Image,
    /// The state files with the damage in them.
    pub damaged: &'a Image,
    /// What the recovery made of it.
    pub outcome: &'a Outcome,
    /// The damaged file, and the state path by which the scenario names it, which can be a folder's.
    pub files: &'a [PathBuf],
    /// Where in the tree the damage is.
    pub place: &'a Path,
    /// What is known of the damaged file, whatever the recovery says.
    pub validity: Validity,
}

/// What is known of a damaged file, whatever the recovery says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    /// It is no state file: the damage is one of the seven, or the scenario's `valid` command says so.
    Invalid,
    /// The scenario's `valid` command takes it for a state file.
    Valid,
    /// It is one: what it was before the run.
    Older,
    /// Nothing: the scenario has no `valid` command.
    Unknown,
}

/// Judges by the first verdict that fits.
pub fn judge_damage(case: &DamageCase<'_>) -> Verdict {
    let verdict = judge(case);
    Verdict { grade: verdict.word.grade_after_damage(), ..verdict }
}

fn judge(case: &DamageCase<'_>) -> Verdict {
    let outcome = case.outcome;
    if outcome.hung() {
        return Verdict::new(Word::Hung, "the recovery did not end within its time");
    }
    if outcome.success() {
        return judge_accepted(case);
    }
    match (outcome.refusal(case.files.iter()), case.is_untouched()) {
        (Some(refusal), true) => Verdict::new(Word::Refused, refusal),
        (refusal, untouched) => {
            let why = match (refusal.is_some(), untouched) {
                (true, _) => "the recovery named the file, but changed it",
                (false, false) => "the recovery failed without naming the file, and changed it",
                (false, true) => "the recovery failed without naming the file",
            };
            Verdict::new(Word::Crashed, format!("{why}: {}", account(outcome)))
        }
    }
}

/// The recovery took what it found for good.
fn judge_accepted(case: &DamageCase<'_>) -> Verdict {
    match case.validity {
        Validity::Valid => Verdict::new(
            Word::Undetectable,
            "the damaged file is valid by the scenario's own `valid` command",
        ),
        _ if case.began_anew() => {
            Verdict::new(Word::Restarted, "the recovery ended as if there had been no file")
        }
        Validity::Older => Verdict::new(
            Word::Undetectable,
            "an earlier version is a valid file: nothing in it says that it is not the last one",
        ),
        Validity::Invalid => {
            let how = if case.is_untouched() { "left it as it is" } else { "went on from it" };
            let why = format!("the recovery took the damaged file for good and {how}");
            Verdict::new(Word::Accepted, why)
        }
        Validity::Unknown => Verdict::not_measured(
            "the recovery took the damaged file for good, and whether it may is not known: give the \
             fault a `valid` command, which succeeds where the file is valid all the same",
        ),
    }
}

impl DamageCase<'_> {
    /// All is as the damage left it: the bytes, what kind of thing it is, and its mode where that is the damage.
    fn is_untouched(&self) -> bool {
        let (start, end) = (&self.outcome.start, &self.outcome.end);
        let is_same = match (start.get(self.place), end.get(self.place)) {
            (Some(before), Some(after)) => {
                before.kind == after.kind && (before.mode != 0 || after.mode == 0)
            }
            (before, after) => before == after,
        };
        is_same && self.outcome.image == *self.damaged
    }

    /// It ended where it ends from no file. Where it ends there from the start's version as well, an earlier version
    /// says nothing.
    fn began_anew(&self) -> bool {
        let controls = self.controls;
        let none = controls.end_from_none();
        let is_its_own = self.validity == Validity::Older && controls.end(self.start) == none;
        none == Some(controls.masks.apply(&self.outcome.image)) && !is_its_own
    }
}
