//! Reports: one stream of events, many forms.

mod contents;
mod disks;
mod finding;
mod json;
mod keep;
mod row;
mod summary;
mod terminal;

pub use finding::{tell_case, tell_result};
pub use json::Json;
pub(crate) use json::stack;
pub use keep::{Keep, keep_case};
pub(crate) use keep::{crashed_folder, keep_trees};
pub use summary::{Strictness, Summary};
pub use terminal::Terminal;

use crate::run::{LabError, ScenarioResult};
use crate::scenario::Scenario;

/// What happens while scenarios run.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// A build command was started.
    Building {
        /// The command.
        command: &'a str,
    },
    /// The scenarios begin.
    Begun {
        /// How many there are.
        scenarios: usize,
    },
    /// A scenario came to its end.
    Ended {
        /// Which.
        scenario: &'a Scenario,
        /// What it came to.
        result: &'a ScenarioResult,
    },
    /// A scenario, or the build, could not be run to its end.
    Failed {
        /// Which; `None` for the build.
        scenario: Option<&'a Scenario>,
        /// Why.
        error: &'a LabError,
    },
    /// All is done.
    Done,
}

/// Something that tells people or programs of events.
pub trait Reporter {
    /// Takes in one event.
    fn event(&mut self, event: Event<'_>);
}
