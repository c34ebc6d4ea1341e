//! Recoveries: what a user would run next, run once for each distinct tree.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::judge::{Outcome, account};
use crate::run::{LabError, Stage};
use crate::scenario::CommandLine;
use crate::tree::Tree;

/// An outcome, with the state paths that it was looked at for.
type SeenFor = (Vec<PathBuf>, Outcome);

/// The hash of a tree that was checked, and the marks that had been passed before.
type Checked = ([u8; 32], Vec<String>);

/// What runs came to, by the hash of the tree that they began with.
#[derive(Debug, Default)]
struct Known {
    outcomes: RefCell<HashMap<[u8; 32], SeenFor>>,
    checks: RefCell<HashMap<Checked, Option<String>>>,
}

/// Everything that a scenario's recovery was run on so far.
#[derive(Debug)]
pub struct Recoveries<'a> {
    stage: Stage<'a>,
    known: Rc<Known>,
}

impl<'a> Recoveries<'a> {
    /// None yet.
    pub fn new(stage: &Stage<'a>) -> Recoveries<'a> {
        Recoveries { stage: stage.clone(), known: Rc::default() }
    }

    /// The same runs, looked at for other state files.
    pub fn seen_by(&self, stage: &Stage<'a>) -> Recoveries<'a> {
        Recoveries { stage: stage.clone(), known: self.known.clone() }
    }

    /// The recovery's outcome on this tree; equal trees are run once.
    ///
    /// # Errors
    ///
    /// As [`Stage::run`].
    pub fn on(&self, tree: &Tree) -> Result<Outcome, LabError> {
        let hash = tree.hash();
        match self.known(&hash) {
            Some(outcome) => Ok(outcome),
            None => self.on_known(hash, &Arc::new(tree.clone())),
        }
    }

    /// What is known of the tree of this hash already, as this stage's state files show it.
    fn known(&self, hash: &[u8; 32]) -> Option<Outcome> {
        let paths = &self.stage.state.paths;
        let (seen, outcome) = self.known.outcomes.borrow().get(hash).cloned()?;
        if seen == *paths {
            return Some(outcome);
        }
        let outcome = self.stage.seen(&outcome);
        self.know(*hash, outcome.clone());
        Some(outcome)
    }

    fn know(&self, hash: [u8; 32], outcome: Outcome) {
        let paths = self.stage.state.paths.clone();
        self.known.outcomes.borrow_mut().insert(hash, (paths, outcome));
    }

    /// As [`on`](Self::on), of a tree whose hash is known.
    ///
    /// # Errors
    ///
    /// As [`Stage::run`].
    pub fn on_known(&self, hash: [u8; 32], tree: &Arc<Tree>) -> Result<Outcome, LabError> {
        if let Some(outcome) = self.known(&hash) {
            return Ok(outcome);
        }
        let outcome = self.stage.outcome(self.command(), tree)?;
        self.know(hash, outcome.clone());
        Ok(outcome)
    }

    /// Runs the recovery on all of these trees, `jobs` at a time, each in a sandbox of its own, or on as many as it comes
    /// to before it is told to stop.
    ///
    /// # Errors
    ///
    /// As [`Stage::run`]: the first.
    pub fn ahead(&self, trees: &[([u8; 32], Arc<Tree>)], jobs: usize) -> Result<(), LabError> {
        let is_new =
            |(hash, _): &&([u8; 32], Arc<Tree>)| !self.known.outcomes.borrow().contains_key(hash);
        let todo: Vec<&([u8; 32], Arc<Tree>)> = trees.iter().filter(is_new).collect();
        let progress = &self.stage.settings().progress;
        progress.plan(todo.len());
        let jobs = jobs.min(todo.len());
        if jobs < 2 || !self.stage.has_fixed_place() {
            for (hash, tree) in todo {
                match self.on_known(*hash, tree) {
                    Err(LabError::Interrupted) => break,
                    outcome => drop(outcome?),
                }
                progress.done();
            }
            return Ok(());
        }
        let next = AtomicUsize::new(0);
        let (command, stage) = (self.command(), self.stage.like());
        let work = |job: usize| -> Result<Vec<([u8; 32], Outcome)>, LabError> {
            let stage = stage.another(job)?;
            let mut done = Vec::new();
            while let Some((hash, tree)) = todo.get(next.fetch_add(1, Ordering::Relaxed)) {
                match stage.outcome(command, tree) {
                    Err(LabError::Interrupted) => break,
                    outcome => done.push((*hash, outcome?)),
                }
                stage.settings().progress.done();
            }
            Ok(done)
        };
        let results: Vec<_> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..jobs).map(|job| scope.spawn(move || work(job))).collect();
            workers.into_iter().map(|worker| worker.join()).collect()
        });
        for result in results {
            let done = result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            done.into_iter().for_each(|(hash, outcome)| self.know(hash, outcome));
        }
        Ok(())
    }

    /// What the scenario's check says of this tree, if it has one and that fails; `marks` had been passed before the crash.
    ///
    /// # Errors
    ///
    /// As [`Stage::run`].
    pub fn check(&self, tree: &Arc<Tree>, marks: &[String]) -> Result<Option<String>, LabError> {
        let Some(command) = &self.stage.scenario.recovery.check else {
            return Ok(None);
        };
        let key = (tree.hash(), marks.to_vec());
        if let Some(said) = self.known.checks.borrow().get(&key) {
            return Ok(said.clone());
        }
        let outcome = self.stage.outcome_knowing(command, tree, &key.1)?;
        let said = (!outcome.success()).then(|| account(&outcome));
        self.known.checks.borrow_mut().insert(key, said.clone());
        Ok(said)
    }

    /// The stage on which it runs.
    pub fn stage(&self) -> &Stage<'a> {
        &self.stage
    }

    /// The recovery's command.
    pub fn command(&self) -> &CommandLine {
        &self.stage.scenario.recovery.command
    }
}
