//! Running the controls: where the recovery ends without any fault.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::LabError;
use super::stage::{Stage, show};
use crate::judge::{Controls, Image, Masks, Outcome, Shapes, Version, Versions};
use crate::recording::{Recording, marks};
use crate::recovery::Recoveries;
use crate::tree::Tree;

/// Controls that must be equal are run at least so far apart, so that times to the second show.
pub const CONTROLS_APART: Duration = Duration::from_millis(1100);

/// The first round of controls; the second, which shows what times do, comes later by [`FirstRound::finish`].
#[derive(Debug)]
pub struct FirstRound {
    controls: Controls,
    /// With the marks that a check of their ends is to know of.
    again: Vec<(Arc<Tree>, Image, Vec<String>)>,
}

impl FirstRound {
    /// Runs the recovery from every version and from no file.
    ///
    /// # Errors
    ///
    /// [`LabError::Scenario`] where the recovery fails from the start's or the end's state.
    pub fn run(
        recoveries: &Recoveries<'_>,
        recording: &Recording,
        versions: &Versions,
    ) -> Result<FirstRound, LabError> {
        let state = &recoveries.stage().state;
        let none_tree = without_state(recording, recoveries.stage());
        let put = |version: &Version| {
            let tree = state.put(&version.image, &recording.before, &recording.after);
            (tree.hash(), Arc::new(tree))
        };
        // Where the recovery fails from the start or the end, nothing else is run.
        let (first, last) = (versions.all.first(), versions.all.last());
        let mut trees: Vec<_> = first.into_iter().chain(last).map(put).collect();
        trees.push((none_tree.hash(), Arc::new(none_tree.clone())));
        recoveries.ahead(&trees)?;
        let none = recoveries.on(&none_tree)?;
        let mut again = vec![(none.start.clone(), none.image.clone(), Vec::new())];
        let mut of_version = HashMap::new();
        let last = versions.all.len().saturating_sub(1);
        for (position, version) in versions.all.iter().enumerate() {
            if position == 0 || position == last {
                let (hash, tree) = put(version);
                let outcome = recoveries.on_known(hash, &tree)?;
                let which = if position == 0 { "start" } else { "end" };
                let passed = if position == 0 { &[] } else { recording.trace.events.as_slice() };
                let passed = marks(passed);
                must_succeed(recoveries, &outcome, which, &passed)?;
                again.push((outcome.start.clone(), outcome.image.clone(), passed));
            }
        }
        let trees: Vec<_> = versions.all.iter().map(put).collect();
        recoveries.ahead(&trees)?;
        for (version, (hash, tree)) in versions.all.iter().zip(&trees) {
            of_version.insert(version.image.clone(), recoveries.on_known(*hash, tree)?);
        }
        let began_with_state = !state.image(&recording.before).is_nothing();
        let (masks, shapes) = (Masks::default(), Shapes::default());
        let controls = Controls { of_version, none, masks, shapes, began_with_state };
        Ok(FirstRound { controls, again })
    }

    /// The controls as far as they are known, for more versions to be added.
    pub fn add(
        &mut self,
        recoveries: &Recoveries<'_>,
        before: &Tree,
        after: &Tree,
        versions: &[Version],
    ) -> Result<(), LabError> {
        more_versions(&mut self.controls, recoveries, before, after, versions)
    }

    /// Runs the second round, and learns from it what to mask; ends are not compared where it is told to stop before.
    ///
    /// # Errors
    ///
    /// As [`Stage::run`].
    pub fn finish(mut self, recoveries: &Recoveries<'_>) -> Result<Controls, LabError> {
        let trees: Vec<Arc<Tree>> = self.again.iter().map(|(tree, ..)| tree.clone()).collect();
        let seconds = match recoveries.again(&trees) {
            // Nobody knows what two equal runs would have differed in.
            Err(LabError::Interrupted) => {
                let images = self.again.iter().flat_map(|(_, image, _)| image.files.keys());
                self.controls.masks.unstable.extend(images.cloned());
                Vec::new()
            }
            seconds => seconds?,
        };
        for (position, ((_, image, passed), second)) in self.again.iter().zip(seconds).enumerate() {
            // The first is that from no file, which may fail.
            if position > 0 {
                let which = if position == 1 { "start" } else { "end" };
                must_succeed(recoveries, &second, which, passed)?;
            }
            self.controls.masks.learn(image, &second.image);
        }
        let Controls { of_version, none, shapes, .. } = &mut self.controls;
        for outcome in of_version.values().chain([&*none]) {
            shapes.learn(outcome.image.files.keys());
        }
        Ok(self.controls)
    }
}

/// Runs the recovery from versions that the controls do not know yet, in the tree `before`; files that it lacks are like
/// those in `after`.
///
/// # Errors
///
/// As [`Stage::run`].
pub fn more_versions(
    controls: &mut Controls,
    recoveries: &Recoveries<'_>,
    before: &Tree,
    after: &Tree,
    versions: &[Version],
) -> Result<(), LabError> {
    let state = &recoveries.stage().state;
    for version in versions {
        if !controls.of_version.contains_key(&version.image) {
            let tree = state.put(&version.image, before, after);
            let outcome = recoveries.on(&tree)?;
            controls.shapes.learn(outcome.image.files.keys());
            controls.of_version.insert(version.image.clone(), outcome);
        }
    }
    Ok(())
}

fn must_succeed(
    recoveries: &Recoveries<'_>,
    outcome: &Outcome,
    which: &str,
    passed: &[String],
) -> Result<(), LabError> {
    let file = &recoveries.stage().scenario.file;
    if !outcome.success() {
        let command = show(recoveries.command());
        let what = format!("the recovery {command} from the state of the run's {which}");
        return Err(LabError::failed(file, &what, &outcome.finish));
    }
    match recoveries.check(&outcome.end, passed)? {
        Some(how) => Err(LabError::Scenario(format!(
            "{}: the check after the recovery from the state of the run's {which} fails without any fault: {how}",
            file.display()
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
        is_folder || recording.after.get(path).is_some_and(|after| after.is_like(node))
    });
    tree
}
