//! Running scenarios: record, control, break, recover, judge, and tell it as a stream of events.

pub(crate) mod brief;
mod build;
mod cases;
mod check;
mod confirm;
mod controls;
mod damage;
mod derive;
mod disks;
mod evidence;
pub(crate) mod forks;
mod heavy;
mod in_turn;
mod kill;
mod live;
mod needs;
mod overlap;
mod part;
mod plain;
mod pool;
mod power;
mod process;
mod race;
mod scenario;
mod source;
mod stage;

pub use build::build;
pub use cases::{Around, Called, Case, Cause, Evidence};
pub use check::{Found, check, check_from, find_state, keep_recording};
pub use confirm::Confirmation;
pub use disks::{DiskResult, Repaired};
pub(crate) use evidence::is_telling;
pub use pool::run;
pub use race::race_alone;
pub use scenario::{FaultResult, Pause, Plan, ScenarioResult, run_scenario, try_scenario};
pub use source::Source;
pub use stage::Stage;
pub(crate) use stage::show;

use std::path::Path;

use crate::progress::Progress;
use crate::recording::Trace;
use crate::subject::{End, Exit, FILE_BYTES_MAX};

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
    /// Any derived kill is made for real at all.
    pub confirms: bool,
    /// Let recoveries begin as copies of one that stands before its first look at the tree, where each worker has at least so
    /// many to make; `None`: never.
    pub copies_from: Option<usize>,
    /// Take the call stack at each op of the subject.
    pub backtrace: bool,
    /// Run the scenarios' `build` commands.
    pub build: bool,
    /// Print what the build says as it comes.
    pub build_output: bool,
    /// The runs are those of a recording, with these folders in the work folder left out, which programs see as they are,
    /// if they are there.
    pub shown: Option<Vec<std::path::PathBuf>>,
    /// The recording holds only what the subject touches of its folder.
    pub partial: bool,
    /// Counts the states as they are recovered from.
    pub progress: Progress,
}

impl Settings {
    /// The runs are those of a recording, perhaps of another machine.
    pub fn is_recorded(&self) -> bool {
        self.shown.is_some()
    }
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
            confirms: true,
            copies_from: Some(4),
            backtrace: false,
            build: true,
            build_output: false,
            shown: None,
            partial: false,
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
    fn failed(file: &Path, what: &str, end: &End) -> LabError {
        LabError::Scenario(failure(file, what, end))
    }

    /// The same, with what the lab did to the run.
    fn failed_in(file: &Path, what: &str, trace: &Trace) -> LabError {
        let gaps = trace.gaps.iter().map(|gap| format!("\n    not seen: {}", gap.what));
        LabError::Scenario(failure(file, what, &trace.ends[0]) + &gaps.collect::<String>())
    }
}

fn failure(file: &Path, what: &str, end: &End) -> String {
    let mut text = format!("{}: {what} fails without any fault: {}", file.display(), end.exit);
    if end.exit == Exit::TimedOut {
        let seconds = end.elapsed.as_secs_f64();
        text += &format!(" after {seconds:.0} s (`--time-limit`, in a scenario `time-limit`)");
    }
    if outgrew(end) {
        text += &format!("; the lab lets no file grow beyond {} MiB", FILE_BYTES_MAX >> 20);
    }
    for line in crate::judge::last_lines(end, 6) {
        let line: String = line.chars().take(400).collect();
        text += &format!("\n    {line}");
    }
    text
}

/// The program wanted a file to be larger than the lab allows.
fn outgrew(end: &End) -> bool {
    // What the kernel says of it, and what a shell says of a program that the kernel ended.
    const SAID: [&str; 2] = ["File too large", "File size limit exceeded"];
    let text = [&end.stdout, &end.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    end.exit == Exit::Signal(libc::SIGXFSZ)
        || SAID.iter().any(|said| text.iter().any(|text| text.contains(said)))
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
            crate::trace::TraceError::Strayed { .. } => LabError::Lab(format!(
                "{error}, and without namespaces the lab can show its copy of the folder only at a path of its own: \
                 let the program use paths relative to the folder, or write {{dir}} for the folder in its arguments, \
                 or allow namespaces (`crashlab doctor` says how)"
            )),
            crate::trace::TraceError::Unavailable { .. } => {
                LabError::Lab(format!("{error}; `crashlab doctor` says what this machine lacks"))
            }
        }
    }
}

impl From<crate::recording::WriteError> for LabError {
    fn from(error: crate::recording::WriteError) -> Self {
        LabError::Lab(error.to_string())
    }
}

fn check_interrupt() -> Result<(), LabError> {
    if crate::interrupt::is_requested() { Err(LabError::Interrupted) } else { Ok(()) }
}
