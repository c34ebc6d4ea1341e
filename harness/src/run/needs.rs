//! What a scenario needs to be tried at all: programs that must be there, containers, and a probe that must succeed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::unistd::{AccessFlags, access};

use super::LabError;
use super::stage::{Stage, show};
use crate::judge::account;
use crate::sandbox;
use crate::scenario::Scenario;
use crate::subject::Exit;

/// Looks for the programs that a scenario needs, and whether its races can have the containers that they ask for.
///
/// # Errors
///
/// [`LabError::Missing`] with the first that is not there.
pub fn look_for_needs(scenario: &Scenario) -> Result<(), LabError> {
    let root = scenario.root.to_string_lossy();
    let missing = scenario.needs.iter().map(|name| name.replace("{root}", &root));
    if let Some(name) = missing.into_iter().find(|name| !is_installed(Path::new(name), scenario)) {
        return Err(LabError::Missing(format!("{name} is not installed")));
    }
    if !scenario.faults.iter().any(|fault| fault.kind.in_containers()) {
        return Ok(());
    }
    sandbox::containers().as_ref().map(drop).map_err(|why| no_containers(why))
}

/// What to say where there are none.
pub(super) fn no_containers(why: &str) -> LabError {
    LabError::Missing(format!("a race in containers: {why}; `crashlab doctor` says what to do"))
}

/// A path must lead to a program, relative to the scenario's root; a name must be in a folder of `PATH`.
fn is_installed(name: &Path, scenario: &Scenario) -> bool {
    match name.parent() {
        Some(folder) if folder.as_os_str().is_empty() => {
            search_path(scenario).iter().any(|folder| is_program(&folder.join(name)))
        }
        _ => is_program(&scenario.root.join(name)),
    }
}

fn is_program(path: &Path) -> bool {
    path.is_file() && access(path, AccessFlags::X_OK).is_ok()
}

/// The folders in which the scenario's programs are looked up: its own, then those of the lab.
pub(super) fn search_path(scenario: &Scenario) -> Vec<PathBuf> {
    let lab = std::env::var_os("PATH");
    let lab = lab.as_deref().unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
    scenario.path.iter().cloned().chain(std::env::split_paths(lab)).collect()
}

impl Stage<'_> {
    /// Runs the scenario's probe, if it has one, in an empty work folder.
    ///
    /// # Errors
    ///
    /// [`LabError::Missing`] where it fails, does not end within the scenario's time limit or cannot be started.
    pub(super) fn probe(&self) -> Result<(), LabError> {
        let Some(probe) = &self.scenario.probe else {
            return Ok(());
        };
        let failed = |how: &str| LabError::Missing(format!("the probe {} {how}", show(probe)));
        match self.outcome(probe, &Arc::new(self.empty()?)) {
            Ok(outcome) if outcome.success() => Ok(()),
            Ok(outcome) if outcome.finish.exit == Exit::TimedOut => {
                Err(failed("does not end within its time"))
            }
            Ok(outcome) => Err(failed(&format!("fails: {}", account(&outcome)))),
            Err(LabError::Scenario(_)) => Err(failed("cannot be started")),
            Err(error) => Err(error),
        }
    }
}
