//! The tracer: runs programs under ptrace and a seccomp filter, and writes down what they do to the watched folder.

use std::time::Duration;

use crate::op::{Event, OpKind};
use crate::recording::Trace;
use crate::sandbox::Sandbox;
use crate::subject::Program;

/// How to trace.
#[derive(Debug, Clone)]
pub struct Options {
    /// After this time everything that was started is ended.
    pub time_limit: Duration,
    /// Reads of watched files are of interest too (costs a stop for each read of any file).
    pub reads: bool,
    /// Pin the tracer and what it traces to this processor.
    pub pin: Option<usize>,
}

/// What a director wants at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Go on.
    Go,
    /// The program stays where it is until [`Director::next`] names it.
    Hold,
    /// SIGKILL for every process of the run, now.
    KillAll,
}

/// Where a program stands, for [`Director::next`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Not yet started, or held by a [`Step::Hold`].
    Held,
    /// Free to run.
    Running,
    /// Free to run, but all of its threads sleep in a lock that another holds.
    Blocked,
    /// All of its processes have ended.
    Ended,
}

/// Steers a run. The default does nothing.
pub trait Director {
    /// The program is about to execute its first instruction.
    fn start(&mut self, _program: usize) -> Step {
        Step::Go
    }
    /// An op is about to begin; `Some(n)` shortens a write to its first `n` bytes.
    fn before(&mut self, _program: usize, _number: u32, _op: &OpKind) -> Option<usize> {
        None
    }
    /// An event has been written down; the actor stands at the exit of its call (for a mark: of the look-up).
    fn after(&mut self, _event: &Event) -> Step {
        Step::Go
    }
    /// Called whenever no program is [`Standing::Running`] and at least one is held; names the one to let go on.
    /// `None` lets all held ones go on.
    fn next(&mut self, _standings: &[Standing]) -> Option<usize> {
        None
    }
}

/// A director that never interferes.
#[derive(Debug, Default)]
pub struct Undisturbed;

impl Director for Undisturbed {}

/// The run could not be made.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A program could not be started.
    #[error("cannot start `{program}`: {stage}: {source}")]
    Spawn {
        /// What was to be started.
        program: String,
        /// The step that failed, in words.
        stage: String,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// This machine does not let the lab trace.
    #[error("cannot trace: {what}: {source}")]
    Unavailable {
        /// What failed.
        what: String,
        /// The kernel's answer.
        source: std::io::Error,
    },
}

/// Runs the programs in the sandbox, together, until all that they started has ended.
///
/// Nothing that they started is left when this returns, also what daemonised, and also on errors.
///
/// # Errors
///
/// [`TraceError`] where a program cannot be started or traced; how programs end is in [`Trace::ends`].
pub fn run(
    _programs: &[Program],
    _sandbox: &Sandbox,
    _options: &Options,
    _director: &mut dyn Director,
) -> Result<Trace, TraceError> {
    todo!()
}
