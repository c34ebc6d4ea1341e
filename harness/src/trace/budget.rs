//! How much of a run is kept: a log lies in memory with all bytes that were written, and a run can write without end.

use crate::op::OpKind;
use crate::trace::Step;
use crate::trace::tracer::Tracer;

const MIB: usize = 1 << 20;

/// What a run's log may hold. A run that goes beyond is ended, and a gap says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Written bytes, together: 256 MiB by default.
    pub bytes: usize,
    /// Events and gaps, together: a million by default, which take about as much memory.
    pub events: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Budget { bytes: 256 * MIB, events: 1_000_000 }
    }
}

/// The bytes that an op keeps.
pub(super) fn kept(kind: &OpKind) -> usize {
    match kind {
        OpKind::Write { data, .. } => data.len(),
        OpKind::Xattr { value: Some(value), .. } => value.len(),
        _ => 0,
    }
}

impl Tracer<'_> {
    /// Ends the run over a write that the log has no room for.
    pub(super) fn wrote_too_much(&mut self) -> Step {
        let most = match self.budget.bytes {
            bytes if bytes % MIB == 0 => format!("{} MiB", bytes / MIB),
            bytes => format!("{bytes} bytes"),
        };
        self.gap_once(
            &format!("more than {most} were written, which the log would keep: the run was ended"),
            None,
        );
        Step::KillAll
    }

    /// Ends the run once the log is full.
    pub(super) fn unless_full(&mut self) -> Step {
        let most = self.budget.events;
        if self.killed || self.events.len() + self.gaps.len() < most {
            return Step::Go;
        }
        self.gap_once(
            &format!("more than {most} events, which the log would keep: the run was ended"),
            None,
        );
        Step::KillAll
    }
}
