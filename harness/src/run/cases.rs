//! What the running of faults gives: a case with all the evidence, judged when the controls are complete.

use std::path::PathBuf;
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
    /// The tree that the recovery, or what was tried, began with.
    pub found: Option<Arc<Tree>>,
    /// The tree that it should have been, to show the difference.
    pub wanted: Option<Arc<Tree>>,
    /// Ops around the crash point, a line each.
    pub ops: Vec<String>,
    /// What the recovery said.
    pub said: String,
    /// The state paths.
    pub state: Vec<PathBuf>,
}
