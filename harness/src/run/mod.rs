//! Running scenarios: record, control, break, recover, judge, and tell it as a stream of events.

pub(crate) mod brief;
mod build;
mod cases;
mod check;
mod confirm;
mod controls;
mod damage;
mod derive;
mod heavy;
mod kill;
mod live;
mod needs;
mod overlap;
mod part;
mod plain;
mod pool;
mod power;
mod scenario;
mod stage;

pub use build::build;
pub use cases::{Case, Evidence};
pub use check::{Found, check, find_state};
pub use confirm::Confirmation;
pub use pool::run;
pub use scenario::{FaultResult, Pause, Plan, ScenarioResult, run_scenario, try_scenario};
pub use stage::Stage;
pub(crate) use stage::show;

use crate::progress::Progress;

/// How to run, whatever is run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How many programs run at the same time.
    pub jobs: usize,
    /// Pin each run to one processor.
    pub pin: bool,
    /// Do without namespaces.
    pub plain: bool,
    /// Make every kill for real, in a run of its own, instead of deriving it from the recording.
    pub live: bool,
    /// How many derived kills of each fault are made for real as well, at most, beside one for each verdict that is a
    /// fault, to see that the lab derives what happens.
    pub confirm: usize,
    /// Run the scenarios' `build` commands.
    pub build: bool,
    /// Print what the build says as it comes.
    pub build_output: bool,
    /// Counts the states as they are recovered from.
    pub progress: Progress,
}

impl Default for Settings {
    fn default() -> Self {
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        Settings {
            jobs,
            pin: true,
            plain: false,
            live: false,
            confirm: 4,
            build: true,
            build_output: false,
            progress: Progress::default(),
        }
    }
}

/// The lab itself failed, or the ground that a scenario gives it.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The scenario, its build or a control is wrong: exit code 2.
    #[error("{0}")]
    Scenario(String),
    /// Something that the scenario needs is not on this machine, so that nothing was tried: this is the reason.
    #[error("skipped: {0}")]
    Missing(String),
    /// The lab cannot run here, or could not see enough: exit code 3.
    #[error("{0}")]
    Lab(String),
    /// It was told to stop.
    #[error("interrupted")]
    Interrupted,
}

impl LabError {
    /// A program that must succeed without any fault did not: how it ended, and the last that it said.
    fn failed(file: &std::path::Path, what: &str, end: &crate::subject::End) -> LabError {
        let mut text = format!("{}: {what} fails without any fault: {}", file.display(), end.exit);
        if end.exit == crate::subject::Exit::TimedOut {
            text +=
                &format!(" after {:.0} s, the scenario's `time-limit`", end.elapsed.as_secs_f64());
        }
        for line in crate::judge::last_lines(end, 6) {
            let line: String = line.chars().take(400).collect();
            text += &format!("\n    {line}");
        }
        LabError::Scenario(text)
    }
}

impl From<crate::sandbox::SandboxError> for LabError {
    fn from(error: crate::sandbox::SandboxError) -> Self {
        LabError::Lab(error.to_string())
    }
}

impl From<crate::tree::SnapshotError> for LabError {
    fn from(error: crate::tree::SnapshotError) -> Self {
        LabError::Lab(error.to_string())
    }
}

impl From<crate::trace::TraceError> for LabError {
    fn from(error: crate::trace::TraceError) -> Self {
        match &error {
            crate::trace::TraceError::Spawn { .. } => LabError::Scenario(error.to_string()),
            crate::trace::TraceError::Unavailable { .. } => {
                LabError::Lab(format!("{error}; `crashlab doctor` says what this machine lacks"))
            }
        }
    }
}

fn check_interrupt() -> Result<(), LabError> {
    if crate::interrupt::is_requested() { Err(LabError::Interrupted) } else { Ok(()) }
}
