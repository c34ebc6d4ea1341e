//! What a run may not do to processes that are none of its own: a subject that signals its parent, or everybody, would
//! otherwise end the lab, and on a good day the user's session with it.
//!
//! Signals within the run are the kernel's business. A process group is the run's where no living process outside of
//! the run is in it: programs are started in sessions of their own, so that this holds for every group that a subject
//! can make. `kill(-1, ..)` is refused whole, since the kernel offers no smaller "everybody". Signal 0, which only asks,
//! does not even stop, and what is aimed at nobody goes through, so that the kernel tells the truth about it. Calls of
//! another processor's table are not decoded, here neither; their gap says so.

use std::io;
use std::path::Path;

use nix::unistd::{Pid, getpgid};

use crate::sys::ptrace::Tid;
use crate::trace::calls::Call;
use crate::trace::tracer::Tracer;
use crate::trace::{blocked, numbers};

/// `PIDFD_SIGNAL_PROCESS_GROUP` (Linux 6.9).
const TO_GROUP: u64 = 4;

/// The calls that do something to a process.
const AIMED: [Call; 8] = [
    Call::Kill,
    Call::Tkill,
    Call::Tgkill,
    Call::RtSigqueueinfo,
    Call::RtTgsigqueueinfo,
    Call::PidfdSendSignal,
    Call::Ptrace,
    Call::ProcessVmWritev,
];

/// Whom a call is aimed at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aim {
    /// A process, by the id of any of its threads.
    Process(i32),
    /// A process group.
    Group(i32),
    /// All processes that there are.
    Everybody,
    /// The caller hides what its descriptor stands for.
    Hidden,
}

impl Tracer<'_> {
    /// In words for a gap, where the call would do something to a process that is none of the run's.
    pub(super) fn aims_outside(&self, tid: Tid, call: Call, args: &[u64; 6]) -> Option<String> {
        let (reaches, whom) = match aim(tid, call, args)? {
            Aim::Process(pid) => (self.is_outsider(pid), "a process outside the run"),
            Aim::Group(group) => (self.has_outsiders(group), "a process group outside the run"),
            Aim::Everybody => (true, "every process, also outside the run,"),
            Aim::Hidden => (true, "a process that may be outside the run"),
        };
        reaches.then(|| format!("{} of {whom} was refused", call.name()))
    }

    /// Somebody who lives and is not of the run. Who has ended but was not collected yet takes no harm.
    fn is_outsider(&self, pid: i32) -> bool {
        let is_ours = self.threads.contains_key(&pid)
            || self.threads.values().any(|thread| thread.process == pid);
        !is_ours && blocked::state(pid).is_some_and(|state| !matches!(state, 'Z' | 'X'))
    }

    fn has_outsiders(&self, group: i32) -> bool {
        let Ok(processes) = std::fs::read_dir("/proc") else {
            return true;
        };
        processes
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter(|pid| getpgid(Some(Pid::from_raw(*pid))) == Ok(Pid::from_raw(group)))
            .any(|pid| self.is_outsider(pid))
    }
}

fn aim(tid: Tid, call: Call, args: &[u64; 6]) -> Option<Aim> {
    let number = |index: usize| args[index] as i32;
    // Of every other call, which are the most, nothing more is asked.
    if !AIMED.contains(&call) {
        return None;
    }
    match call {
        // Its numbers are others than the lab's, and lead to processes below it alone; so do its descriptors of processes.
        _ if numbers::are_own(tid) => None,
        Call::PidfdSendSignal => {
            let process = match process_of(tid, number(0)) {
                Ok(process) => process?,
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return Some(Aim::Hidden);
                }
                Err(_) => return None,
            };
            let group = args[3] & TO_GROUP != 0;
            Some(if group { Aim::Group(process) } else { Aim::Process(process) })
        }
        // It only asks.
        Call::Kill if args[1] == 0 => None,
        Call::Kill => match number(0) {
            0 => Some(Aim::Group(getpgid(Some(Pid::from_raw(tid))).ok()?.as_raw())),
            -1 => Some(Aim::Everybody),
            pid if pid > 0 => Some(Aim::Process(pid)),
            group => group.checked_neg().map(Aim::Group),
        },
        Call::Tkill | Call::RtSigqueueinfo | Call::ProcessVmWritev => Some(Aim::Process(number(0))),
        Call::Tgkill | Call::RtTgsigqueueinfo | Call::Ptrace => Some(Aim::Process(number(1))),
        _ => None,
    }
}

/// The process that a descriptor stands for: one by `pidfd_open`, or a folder of `/proc`.
fn process_of(tid: Tid, fd: i32) -> io::Result<Option<i32>> {
    let info = std::fs::read_to_string(format!("/proc/{tid}/fdinfo/{fd}"))?;
    if let Some(pid) = info.lines().find_map(|line| line.strip_prefix("Pid:")) {
        return Ok(pid.trim().parse().ok());
    }
    let link = std::fs::read_link(format!("/proc/{tid}/fd/{fd}"))?;
    let name = link.file_name().filter(|_| link.parent() == Some(Path::new("/proc")));
    Ok(name.and_then(|name| name.to_str()?.parse().ok()))
}
