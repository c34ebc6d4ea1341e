//! What the running of faults gives: a case with all the evidence, judged when the controls are complete.

use std::sync::Arc;

use crate::judge::{Image, Verdict, Word};
use crate::recording::Stack;
use crate::tree::Tree;

/// A judged case.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its id, which [`replay`](crate::cli) takes.
    pub id: String,
    /// What was found.
    pub verdict: Verdict,
    /// Warnings beside the verdict: the word and what it is about.
    pub warnings: Vec<(Word, String)>,
    /// What a person needs to see.
    pub evidence: Evidence,
}

/// What a person needs to see of a case.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// The tree before the run.
    pub before: Option<Arc<Tree>>,
    /// The tree that the recovery began with: after the kill, or with the damage in it.
    pub crashed: Option<Arc<Tree>>,
    /// The tree at the end.
    pub ended: Option<Arc<Tree>>,
    /// Events up to the crash point, a line each.
    pub ops: Vec<String>,
    /// Events after it: those that it kept from happening, or those of the processes that went on.
    pub ops_after: Vec<String>,
    /// Where in the log the crash point lies.
    pub cause: Option<Cause>,
    /// From where those ops were made that the case hangs on, where call stacks were taken.
    pub calls: Vec<Called>,
    /// The state files around the crash point.
    pub around: Option<Around>,
    /// Of a race, the schedule: a column for each program.
    pub schedule: Vec<String>,
    /// Of a race with a view, what that said of the state; empty otherwise.
    pub view: String,
    /// What was said by the program that was judged.
    pub said: String,
    /// The recovery was not run from its beginning, but from where it first looks at the tree, as a copy of one that stood
    /// there.
    pub forked: bool,
}

/// Where a crash point lies: the op before which it is, and who was killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// Cases of one cause have the same one, whatever their ops' numbers are.
    pub kind: String,
    /// Who was killed, in words, or that the power failed; empty where it was the subject, whole.
    pub who: String,
    /// The last op before the point, in words.
    pub after: Option<String>,
    /// The op before which, or in which, it lies: the next that changes something.
    pub before: Option<String>,
}

/// An op, and from where it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Called {
    /// Its number.
    pub op: u32,
    /// What it was, in words: `rename s.json`.
    pub what: String,
    /// The stack at it.
    pub stack: Arc<Stack>,
}

/// The state files around a crash point.
#[derive(Debug, Clone)]
pub struct Around {
    /// As they were saved before it.
    pub before: Image,
    /// As they would have been saved next, if there was more to be saved.
    pub after: Option<Image>,
    /// As they were found.
    pub found: Image,
}

/// Both streams of a program's output, as far as they are text.
pub(super) fn said(end: &crate::subject::End) -> String {
    String::from_utf8_lossy(&[end.stderr.as_slice(), &end.stdout].concat()).into_owned()
}
