//! A recording: one traced run, with the trees before and after it; and files that hold such runs.

use std::time::Duration;

use serde::{Deserialize, Serialize};

mod calls;
mod format;
mod header;
mod owners;
mod read;
mod spool;
mod write;

pub use calls::{CallSite, Calls, FRAMES_MAX, Stack};
pub use format::FORMAT_VERSION;
pub use header::Header;
pub use read::{ReadError, Recorded, read, read_from};
pub use spool::Spool;
pub use write::{Recorder, WriteError};

use crate::op::{Event, Op, What};
use crate::subject::End;
use crate::tree::Tree;

/// Something that the tracer could not see or does not model. A case that a gap touches is not measured.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Gap {
    /// What was not seen, in words for the report.
    pub what: String,
    /// The watched path that it touches; `None` where it touches none of them.
    #[serde(with = "crate::op::path::option")]
    pub path: Option<std::path::PathBuf>,
    /// How many events had been written down when it came.
    pub at_event: usize,
}

/// What a traced run leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Everything seen, in order.
    pub events: Vec<Event>,
    /// How each program ended, in the order in which they were given.
    pub ends: Vec<End>,
    /// What was not seen.
    pub gaps: Vec<Gap>,
    /// From where the ops were made, where that was asked for.
    pub calls: Calls,
    /// The whole run.
    pub elapsed: Duration,
}

impl Trace {
    /// The numbered ops in their order.
    pub fn ops(&self) -> impl Iterator<Item = &Op> {
        self.events.iter().filter_map(Event::op)
    }
}

/// The names of the marks that a run passed, in their order, each as often as it was passed.
pub fn marks(events: &[Event]) -> Vec<String> {
    let name = |event: &Event| match &event.what {
        What::Mark(name) => Some(name.clone()),
        _ => None,
    };
    events.iter().filter_map(name).collect()
}

/// A traced run between two trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// The watched folder before the run.
    pub before: Tree,
    /// The run.
    pub trace: Trace,
    /// The watched folder after the run.
    pub after: Tree,
}
