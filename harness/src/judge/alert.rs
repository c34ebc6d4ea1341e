//! The verdict on an alarm: a state that somebody must be told of.

use regex::bytes::Regex;

use super::control::account;
use super::{Outcome, Verdict, Word};

/// Judges a command that must exit non-zero, change nothing, and print a line that matches.
pub fn judge_alert(outcome: &Outcome, says: &Regex) -> Verdict {
    if outcome.hung() {
        return Verdict::new(Word::Hung, "it did not end within its time");
    }
    if outcome.start != outcome.end {
        return Verdict::new(Word::Diverged, "it changed files");
    }
    let lines = [&outcome.finish.stdout, &outcome.finish.stderr];
    let said =
        lines.iter().any(|text| text.split(|byte| *byte == b'\n').any(|line| says.is_match(line)));
    match (outcome.success(), said) {
        (false, true) => Verdict::new(Word::Noticed, account(outcome)),
        (true, true) => {
            Verdict::new(Word::Unnoticed, "it says so, but exits with 0: nobody is told")
        }
        (true, false) => Verdict::new(Word::Unnoticed, "it exits with 0 and does not say it"),
        (false, false) => Verdict::new(
            Word::Unnoticed,
            format!("it fails without saying it: {}", account(outcome)),
        ),
    }
}
