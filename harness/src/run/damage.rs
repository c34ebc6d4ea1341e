//! Damage: the state file is damaged, then the recovery runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::LabError;
use super::cases::{Case, Evidence, said};
use super::stage::Stage;
use crate::fault::damage::{self, DamageError};
use crate::judge::{Content, Controls, DamageCase, Image, Outcome, judge_damage};
use crate::recovery::Recoveries;
use crate::tree::Tree;

/// A damage that was done, and what the recovery made of it.
#[derive(Debug)]
pub struct Damaged {
    name: String,
    file: PathBuf,
    before: Arc<Tree>,
    image: Image,
    outcome: Outcome,
}

/// Damages the file in `before`, and runs the recovery on it; or says why the damage does not apply to it.
///
/// # Errors
///
/// [`LabError::Scenario`] where the file is not there or there is no such damage.
pub fn damage(
    stage: &Stage<'_>,
    recoveries: &Recoveries<'_>,
    before: &Tree,
    file: &Path,
    name: &str,
) -> Result<Result<Damaged, DamageError>, LabError> {
    let scenario = stage.scenario.file.display();
    let image = stage.state.image(before);
    let bytes = image.files.get(file).and_then(Content::bytes).ok_or_else(|| {
        LabError::Scenario(format!(
            "{scenario}: nothing to damage: {} is not there before the run",
            file.display()
        ))
    })?;
    let bytes = match damage::apply(name, bytes) {
        Err(error @ DamageError::DoesNotApply { .. }) => return Ok(Err(error)),
        other => other,
    };
    let bytes = bytes
        .map_err(|error| LabError::Scenario(format!("{scenario}: {}: {error}", file.display())))?;
    let mut damaged = image;
    damaged.files.insert(file.to_owned(), Content::Bytes(bytes.into()));
    let tree = stage.state.put(&damaged, before, before);
    let outcome = recoveries.on(&tree)?;
    let (name, file, before) = (name.to_owned(), file.to_owned(), Arc::new(before.clone()));
    Ok(Ok(Damaged { name, file, before, image: damaged, outcome }))
}

impl Damaged {
    /// Judges it, now that the controls are complete.
    pub fn judge(self, stage: &Stage<'_>, controls: &Controls) -> Case {
        let named = stage.state.paths.iter().filter(|path| self.file.starts_with(path)).cloned();
        let files: Vec<PathBuf> = named.chain([self.file.clone()]).collect();
        let verdict = judge_damage(&DamageCase {
            controls,
            damaged: &self.image,
            outcome: &self.outcome,
            files: &files,
        });
        let evidence = Evidence {
            before: Some(self.before),
            crashed: Some(self.outcome.start.clone()),
            ended: Some(self.outcome.end.clone()),
            ops: Vec::new(),
            said: said(&self.outcome.finish),
        };
        Case { id: format!("damage:{}", self.name), verdict, warnings: Vec::new(), evidence }
    }
}
