//! Running the controls, and the memory of recoveries that spares running one twice on equal trees.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::stage::{Stage, show};
use super::LabError;
use crate::judge::{Controls, Image, Masks, Outcome, Versions, account};
use crate::recording::Recording;
use crate::scenario::CommandLine;
use crate::tree::Tree;

/// Controls that must be equal are run at least so far apart, so that times to the second show.
pub const CONTROLS_APART: Duration = Duration::from_millis(1100);

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
        let Some(command) = &self.stage.scenario.recovery.check else { return Ok(None) };
        let hash = tree.hash();
        if let Some(said) = self.checks.borrow().get(&hash) {
            return Ok(said.clone());
        }
        let outcome = self.stage.outcome(command, tree)?;
        let said = (!outcome.success()).then(|| account(&outcome));
        self.checks.borrow_mut().insert(hash, said.clone());
        Ok(said)
    }

    fn command(&self) -> &CommandLine {
        &self.stage.scenario.recovery.command
    }
}

/// The first round of controls; the second, which shows what times do, comes later by [`FirstRound::finish`].
#[derive(Debug)]
pub struct FirstRound {
    controls: Controls,
    again: Vec<(Arc<Tree>, Image)>,
    since: Instant,
}

impl FirstRound {
    /// Runs the recovery from every version and from no file.
    ///
    /// # Errors
    ///
    /// [`LabError::Scenario`] where the recovery fails from the start's or the end's state.
    pub fn run(recoveries: &Recoveries<'_>, recording: &Recording, versions: &Versions) -> Result<FirstRound, LabError> {
        let state = &recoveries.stage.state;
        let none_tree = without_state(recording, recoveries.stage);
        let none = recoveries.on(&none_tree)?;
        let mut again = vec![(none.start.clone(), none.image.clone())];
        let mut of_version = HashMap::new();
        let last = versions.all.len().saturating_sub(1);
        for (position, version) in versions.all.iter().enumerate() {
            let tree = state.put(&version.image, &recording.before, &recording.after);
            let outcome = recoveries.on(&tree)?;
            if position == 0 || position == last {
                let which = if position == 0 { "start" } else { "end" };
                must_succeed(recoveries, &outcome, which)?;
                again.push((outcome.start.clone(), outcome.image.clone()));
            }
            of_version.insert(version.image.clone(), outcome);
        }
        let began_with_state = !state.image(&recording.before).is_nothing();
        let controls = Controls { of_version, none, masks: Masks::default(), began_with_state };
        Ok(FirstRound { controls, again, since: Instant::now() })
    }

    /// The controls as far as they are known, for more versions to be added.
    pub fn add(&mut self, recoveries: &Recoveries<'_>, recording: &Recording, versions: &Versions) -> Result<(), LabError> {
        let state = &recoveries.stage.state;
        for version in &versions.all {
            if !self.controls.of_version.contains_key(&version.image) {
                let tree = state.put(&version.image, &recording.before, &recording.after);
                self.controls.of_version.insert(version.image.clone(), recoveries.on(&tree)?);
            }
        }
        Ok(())
    }

    /// How long the second round has still to wait.
    pub fn wait(&self) -> Duration {
        CONTROLS_APART.saturating_sub(self.since.elapsed())
    }

    /// Runs the second round, and learns from it what to mask.
    ///
    /// # Errors
    ///
    /// As [`Stage::run`].
    pub fn finish(mut self, recoveries: &Recoveries<'_>) -> Result<Controls, LabError> {
        for (tree, image) in &self.again {
            let second = recoveries.stage.outcome(recoveries.command(), tree)?;
            self.controls.masks.learn(image, &second.image);
        }
        Ok(self.controls)
    }
}

fn must_succeed(recoveries: &Recoveries<'_>, outcome: &Outcome, which: &str) -> Result<(), LabError> {
    let file = recoveries.stage.scenario.file.display();
    if !outcome.success() {
        let command = show(recoveries.command());
        let how = account(outcome);
        return Err(LabError::Scenario(format!(
            "{file}: the recovery {command} fails without any fault, from the state of the run's {which}: {how}"
        )));
    }
    match recoveries.check(&outcome.end)? {
        Some(how) => Err(LabError::Scenario(format!(
            "{file}: the check fails without any fault, after the recovery from the state of the run's {which}: {how}"
        ))),
        None => Ok(()),
    }
}

/// The tree before, without the state files and without anything that the run created or changed.
fn without_state(recording: &Recording, stage: &Stage<'_>) -> Tree {
    let mut tree = stage.state.put(&Image::default(), &recording.before, &recording.after);
    for path in &stage.state.paths {
        tree.nodes.retain(|other, _| !other.starts_with(path) || path.as_os_str().is_empty());
    }
    tree.nodes.retain(|path, node| {
        let is_folder = matches!(node.kind, crate::tree::NodeKind::Folder);
        is_folder || recording.after.nodes.get(path) == Some(node)
    });
    tree
}
