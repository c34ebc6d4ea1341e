//! Runs of which the end counts, and of the way there only what was overwritten unread: with a stop for each open and each
//! read, but none for a write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::LabError;
use super::stage::Stage;
use crate::judge::{Outcome, has_empty_file, tells_overwrites};
use crate::scenario::CommandLine;
use crate::trace::{Detail, Undisturbed};
use crate::tree::Tree;

/// Whether a scenario's recovery is worth being run briefly: not where its own log is asked for, nor once a brief log
/// did not tell enough, since then that of the next tree will not either.
#[derive(Debug)]
pub(crate) struct Brevity(AtomicBool);

impl Brevity {
    pub(crate) fn of(stage: &Stage<'_>) -> Brevity {
        Brevity(AtomicBool::new(stage.scenario.recovery.depth < 2))
    }

    /// How most recoveries are traced now.
    pub(crate) fn usual(&self) -> Detail {
        if self.0.load(Ordering::Relaxed) { Detail::Overwrites } else { Detail::Reads }
    }
}

/// A recovery's outcome, by whoever runs it in a detail; tells whether its log is a brief one. One that does not tell for
/// certain what was overwritten unread is not used: the recovery is run once more.
///
/// # Errors
///
/// As [`Stage::run`].
pub(crate) fn recovered(
    start: &Tree,
    brevity: &Brevity,
    mut run: impl FnMut(Detail) -> Result<Outcome, LabError>,
) -> Result<(Outcome, bool), LabError> {
    if brevity.0.load(Ordering::Relaxed) && !has_empty_file(start) {
        let outcome = run(Detail::Overwrites)?;
        if is_enough(&outcome) && outcome.trace.gaps.is_empty() {
            return Ok((outcome, true));
        }
        brevity.0.store(false, Ordering::Relaxed);
    }
    Ok((run(Detail::Reads)?, false))
}

impl Stage<'_> {
    /// Runs the recovery, see [`recovered`].
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub(crate) fn recovered(
        &self,
        command: &CommandLine,
        start: &Arc<Tree>,
        brevity: &Brevity,
    ) -> Result<(Outcome, bool), LabError> {
        recovered(start, brevity, |detail| {
            self.outcome_in(command, start, detail, &mut Undisturbed)
        })
    }
}

/// A brief log tells that nothing was overwritten unread. What it tells of that is not exact: a file that was replaced by its
/// own bytes was not changed.
pub(crate) fn is_enough(outcome: &Outcome) -> bool {
    outcome.unread.is_empty() && tells_overwrites(&outcome.trace.events)
}
