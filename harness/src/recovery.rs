//! Recoveries: what a user would run next, run once for each distinct tree.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use crate::judge::{Outcome, account};
use crate::run::{LabError, Stage};
use crate::scenario::CommandLine;
use crate::tree::Tree;

/// Everything that a scenario's recovery was run on so far.
#[derive(Debug)]
pub struct Recoveries<'a> {
    stage: &'a Stage<'a>,
    outcomes: RefCell<HashMap<[u8; 32], Outcome>>,
    checks: RefCell<HashMap<[u8; 32], Option<String>>>,
}

impl<'a> Recoveries<'a> {
    /// None yet.
    pub fn new(stage: &'a Stage<'a>) -> Recoveries<'a> {
        Recoveries { stage, outcomes: RefCell::default(), checks: RefCell::default() }
    }

    /// The recovery's outcome on this tree; equal trees are run once.
    ///
    /// # Errors
    ///
    /// As [`Stage::run`].
    pub fn on(&self, tree: &Tree) -> Result<Outcome, LabError> {
        let hash = tree.hash();
        if let Some(outcome) = self.outcomes.borrow().get(&hash) {
            return Ok(outcome.clone());
        }
        let outcome = self.stage.outcome(self.command(), &Arc::new(tree.clone()))?;
        self.outcomes.borrow_mut().insert(hash, outcome.clone());
        Ok(outcome)
    }

    /// What the scenario's check says of this tree, if it has one and that fails.
    ///
    /// # Errors
    ///
    /// As [`Stage::run`].
    pub fn check(&self, tree: &Arc<Tree>) -> Result<Option<String>, LabError> {
        let Some(command) = &self.stage.scenario.recovery.check else {
            return Ok(None);
        };
        let hash = tree.hash();
        if let Some(said) = self.checks.borrow().get(&hash) {
            return Ok(said.clone());
        }
        let outcome = self.stage.outcome(command, tree)?;
        let said = (!outcome.success()).then(|| account(&outcome));
        self.checks.borrow_mut().insert(hash, said.clone());
        Ok(said)
    }

    /// The stage on which it runs.
    pub fn stage(&self) -> &'a Stage<'a> {
        self.stage
    }

    /// The recovery's command.
    pub fn command(&self) -> &CommandLine {
        &self.stage.scenario.recovery.command
    }
}
