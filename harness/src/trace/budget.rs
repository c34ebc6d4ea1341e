//! How much of a run is kept: events lie in memory, the bytes that were written on the disk, and a run can write without
//! end.

use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;

use crate::op::OpKind;
use crate::trace::Step;
use crate::trace::tracer::Tracer;

const MIB: u64 = 1 << 20;

/// What a run's log may hold. A run that goes beyond is ended, and a gap says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Written bytes, together, which take as much of the disk: 4 GiB by default.
    pub bytes: u64,
    /// Events and gaps, together, which stay in memory: a million by default, in some hundred MiB.
    pub events: usize,
    /// Bytes that may be used up on the file system of the work folder, wherever in the sandbox: 4 GiB by default.
    pub disk: u64,
}

/// So much is to be left on it, in bytes: others use it too.
const LEFT_MIN: u64 = 64 << 20;
/// How many calls are let in between two looks at the disk.
const CALLS_A_LOOK: u32 = 64;

/// How full the file system of the work folder is.
#[derive(Debug, Clone)]
pub(super) struct Disk {
    work: PathBuf,
    /// Bytes that were free when the run began.
    before: u64,
    calls: u32,
}

impl Disk {
    pub(super) fn of(work: &Path) -> Disk {
        Disk { work: work.to_owned(), before: free(work).unwrap_or(0), calls: 0 }
    }
}

fn free(path: &Path) -> Option<u64> {
    let found = statvfs(path).ok()?;
    Some(found.blocks_available() as u64 * found.fragment_size() as u64)
}

impl Default for Budget {
    fn default() -> Self {
        Budget { bytes: 4096 * MIB, events: 1_000_000, disk: 4096 * MIB }
    }
}

/// The bytes that an op keeps.
pub(super) fn kept(kind: &OpKind) -> u64 {
    match kind {
        OpKind::Write { data, .. } => data.len() as u64,
        OpKind::Xattr { value: Some(value), .. } => value.len() as u64,
        _ => 0,
    }
}

impl Tracer<'_> {
    /// Ends a run that fills the disk, which the machine needs as well, and which is mostly its memory.
    pub(super) fn unless_disk_is_full(&mut self) -> Step {
        let disk = &mut self.world.disk;
        disk.calls += 1;
        if !disk.calls.is_multiple_of(CALLS_A_LOOK) || self.killed {
            return Step::Go;
        }
        let Some(left) = free(&disk.work) else {
            return Step::Go;
        };
        let used = disk.before.saturating_sub(left);
        if used <= self.budget.disk && (left >= LEFT_MIN || used <= LEFT_MIN) {
            return Step::Go;
        }
        let what =
            format!("the disk of the sandbox was filled ({} MiB): the run was ended", used >> 20);
        self.gap_once(&what, None);
        Step::KillAll
    }

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

    /// Ends the run where what it does cannot be kept: the disk is full.
    pub(super) fn unless_lost(&mut self) -> Step {
        let Some(why) = self.world.spool.failure().filter(|_| !self.killed) else {
            return Step::Go;
        };
        self.gap_once(
            &format!("the log cannot be written, so the run was ended: {why}"),
            Some(PathBuf::new()),
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
