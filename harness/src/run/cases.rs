//! What the running of faults gives: a case with all the evidence, judged when the controls are complete.

use std::sync::Arc;

use crate::judge::{Verdict, Word};
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
    /// What was said by the program that was judged.
    pub said: String,
}

/// Both streams of a program's output, as far as they are text.
pub(super) fn said(end: &crate::subject::End) -> String {
    String::from_utf8_lossy(&[end.stderr.as_slice(), &end.stdout].concat()).into_owned()
}
