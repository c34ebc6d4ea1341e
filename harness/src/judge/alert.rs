//! The verdict on an alarm: a state that somebody must be told of.

use regex::bytes::Regex;

use super::control::account;
use super::{Image, Outcome, Verdict, Word};
use crate::subject::End;

/// A line of the output matches.
pub fn says_it(wanted: &Regex, end: &End) -> bool {
    let lines = |text: &Vec<u8>| {
        text.split(|byte| *byte == b'\n').any(|line| wanted.is_match(line.trim_ascii_end()))
    };
    lines(&end.stdout) || lines(&end.stderr)
}

/// Judges a command that must exit non-zero, leave the state files as they were `before`, and print a line that matches.
pub fn judge_alert(outcome: &Outcome, before: &Image, says: &Regex) -> Verdict {
    if outcome.hung() {
        return Verdict::new(Word::Hung, "it did not end within its time");
    }
    if outcome.image != *before {
        return Verdict::new(Word::Diverged, "it changed the state");
    }
    let said = says_it(says, &outcome.finish);
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
