//! A fork server: a program that is brought once to where it is about to look at what is watched, and goes on from there in
//! a copy of itself for each state. What a run costs before that (a new process, its sandbox and filter, the loader, an
//! interpreter's start) is paid once.
//!
//! The program is unmodified. It is followed call by call, and stands before the first one that need not come to the
//! same in every run: one that looks at a watched file, changes anything, makes a process or thread, asks for its own
//! number, or is not known here ([`calls_before::sort`]). A copy, made by a `clone` that the lab puts in the place of that call,
//! is a sibling in a session of its own, with the thread number where its C library keeps it; then it makes the call.
//!
//! What is not as in a run of its own: times and random numbers that a program took before (so that a server is renewed after
//! [`RENEWED_AFTER`]), the layout of its memory, and the answer of `gettid`. So no copy's word is taken alone where it
//! matters: see [`Recoveries`](crate::recovery::Recoveries).

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, io};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::termios::{Termios, tcgetattr};

use super::names::Inode;
use super::output::Collector;
use super::resolve;
use super::spawn::{self, Started};
use super::tracer::executable;
use super::{Detail, Options, Pinned, TraceError, filter_for, watched_by};
use crate::op::Stream;
use crate::sandbox::Sandbox;
use crate::subject::{OUTPUT_LIMIT, Program};
use crate::sys::ptrace::{self, Entry, News, Stopped, Why};
use crate::sys::{arch, memory, process};

mod calls_before;
mod journey;
mod ways;

use journey::{Brought, Journey, Place, to_exit};

/// After this a program's idea of the time is too old, unless it took long itself to get where it stands: then after so many
/// times as long.
const RENEWED_AFTER: Duration = Duration::from_secs(1);
const RENEWED_AFTER_TIMES: u32 = 4;

/// A program that stands where copies of it go on.
#[derive(Debug)]
pub(crate) struct ForkServer {
    /// It stands after a call that was none.
    stop: Option<Stopped>,
    process: Process,
    /// Its registers there, and the call that comes next.
    registers: libc::user_regs_struct,
    next: Entry,
    /// When it came there, and how long its copies may take that for now.
    arrived: Instant,
    keeps: Duration,
    detail: Detail,
    started: Kept,
    /// Where its C library keeps its thread's number.
    own_number: u64,
    /// The list of robust locks that it has told the kernel of.
    robust_list: Option<[u64; 2]>,
    /// Descriptors whose position it has in common with its copies, with that.
    positions: Vec<(i32, u64)>,
    /// The sandbox's view when it began.
    view: u64,
}

/// What copies have in common with it.
#[derive(Debug)]
struct Kept {
    outputs: [OwnedFd; 2],
    ends: [(Inode, Stream); 2],
    kept: [OwnedFd; 2],
    /// As its outputs were before any copy had them.
    terminal: Option<Termios>,
    flags: [OFlag; 2],
}

impl ForkServer {
    /// Brings a program to where copies of it can begin, in the sandbox, which it leaves as it is; `None` where there is no
    /// such place. `is_same` tells of a file in the watched folder that every run finds as it is now, and may be read before.
    ///
    /// The calling thread traces it from now on, as in [`run`](super::run).
    ///
    /// # Errors
    ///
    /// [`TraceError`] where the program cannot be started or traced.
    pub(crate) fn start(
        program: &Program,
        sandbox: &Sandbox,
        options: &Options,
        is_same: &dyn Fn(&Path) -> bool,
    ) -> Result<Option<ForkServer>, TraceError> {
        if !can_serve(program, sandbox, options) {
            return Ok(None);
        }
        for may_ask in [true, false] {
            match Self::bring(program, sandbox, options, is_same, may_ask)? {
                Brought::Stands(server) => return Ok(Some(*server)),
                Brought::Asked => {}
                Brought::Lost => return Ok(None),
            }
        }
        Ok(None)
    }

    fn bring(
        program: &Program,
        sandbox: &Sandbox,
        options: &Options,
        is_same: &dyn Fn(&Path) -> bool,
        may_ask: bool,
    ) -> Result<Brought<Box<ForkServer>>, TraceError> {
        let pinned = Pinned::to(options.pin)?;
        let unavailable = |what: &'static str| {
            move |source: io::Error| TraceError::Unavailable { what: what.into(), source }
        };
        let filter = filter_for(options.detail, sandbox);
        let Started { stop, pidfd, outputs, ends, kept } =
            spawn::start(program, sandbox, filter, None)?;
        let begun = Instant::now();
        let tid = stop.tid();
        let alarmed = pidfd.try_clone();
        let process = Process { pid: tid, pidfd: Some(pidfd) };
        let copies = |fds: &[OwnedFd; 2]| -> io::Result<Vec<OwnedFd>> {
            fds.iter().map(OwnedFd::try_clone).collect()
        };
        // Its time is limited, and an interrupt is heard.
        let collector = alarmed.and_then(|alarmed| {
            let (outputs, limit) = (copies(&outputs)?, options.time_limit);
            Collector::start(outputs, OUTPUT_LIMIT, vec![alarmed], limit, pinned.before)
        });
        let collector = collector.map_err(unavailable("start a thread for the output"))?;
        let watched = watched_by(tid, sandbox);
        let mut journey = Journey::of(tid, &watched, is_same, may_ask);
        // What the kernel has read of a script tells which interpreter it is; what is looked up in PATH is none of the folder's.
        let named = program.argv.first().filter(|name| name.as_encoded_bytes().contains(&b'/'));
        let mut begins = vec![executable(tid)];
        begins.extend(named.map(|name| sandbox.current().join(name)));
        if !begins.iter().all(|path| journey.is_past(path)) {
            return Ok(Brought::Lost);
        }
        let brought = journey.follow(stop).map_err(unavailable("wait for a stop"))?;
        drop(collector);
        let Place { stop, registers, next } = match brought {
            Brought::Stands(place) => *place,
            Brought::Asked => return Ok(Brought::Asked),
            Brought::Lost => return Ok(Brought::Lost),
        };
        let Some(positions) = positions(tid) else { return Ok(Brought::Lost) };
        let flags = |fd: &OwnedFd| fcntl(fd, FcntlArg::F_GETFL).map(OFlag::from_bits_retain);
        let (Ok(first), Ok(second)) = (flags(&kept[0]), flags(&kept[1])) else {
            return Ok(Brought::Lost);
        };
        let terminal = tcgetattr(&kept[0]).ok();
        let own_number = match memory::read_array::<4>(tid, journey.tid_address) {
            Some(number) if i32::from_ne_bytes(number) == tid => journey.tid_address,
            _ => 0,
        };
        Ok(Brought::Stands(Box::new(ForkServer {
            stop: Some(stop),
            process,
            registers,
            next,
            arrived: Instant::now(),
            keeps: RENEWED_AFTER.max(begun.elapsed() * RENEWED_AFTER_TIMES),
            detail: options.detail,
            started: Kept { outputs, ends, kept, terminal, flags: [first, second] },
            own_number,
            robust_list: journey.robust_list,
            positions,
            view: sandbox.view_number(),
        })))
    }

    /// Its process.
    #[cfg(test)]
    pub(crate) fn pid(&self) -> i32 {
        self.process.pid
    }

    /// A copy that is about to go on; `None` where there is none any more.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub(super) fn fork(&mut self) -> io::Result<Option<Started>> {
        let Some(child) = self.clone_once()? else { return Ok(None) };
        let News::Stop(mut stop, Why::Begin) = ptrace::wait(child.pid, true)? else {
            return Ok(None);
        };
        let mut calls: Vec<(i64, Vec<u64>)> = vec![(libc::SYS_setsid, Vec::new())];
        calls.extend(self.robust_list.map(|list| (libc::SYS_set_robust_list, list.to_vec())));
        for (number, args) in calls {
            if stop.enter(&self.registers, number, &args).is_err() {
                return Ok(None);
            }
            match to_exit(stop, |_| {})? {
                Some((after, result)) if result >= 0 => stop = after,
                _ => return Ok(None),
            }
        }
        if stop.enter(&self.registers, self.next.number as i64, &self.next.args).is_err() {
            return Ok(None);
        }
        let Kept { outputs: [out, err], ends, kept: [its_out, its_err], .. } = &self.started;
        let outputs = [out.try_clone()?, err.try_clone()?];
        let kept = [its_out.try_clone()?, its_err.try_clone()?];
        let ends = *ends;
        Ok(child.keep().map(|pidfd| Started { stop, pidfd, outputs, ends, kept }))
    }

    /// A new process, which stands at its beginning.
    fn clone_once(&mut self) -> io::Result<Option<Process>> {
        let Some(stop) = self.stop.take() else { return Ok(None) };
        let mut flags = (libc::CLONE_PARENT | libc::SIGCHLD) as u64;
        if self.own_number != 0 {
            flags |= (libc::CLONE_CHILD_SETTID | libc::CLONE_CHILD_CLEARTID) as u64;
        }
        let args = arch::clone_arguments(flags, self.own_number);
        if stop.enter(&self.registers, libc::SYS_clone, &args).is_err() {
            return Ok(None);
        }
        let mut made = None;
        self.stop = to_exit(stop, |child| made = Some(child))?.map(|(stop, _)| stop);
        // It is this thread's to wait for, so that nobody else has its number yet.
        let held = |pid| match process::pidfd(pid) {
            Ok(pidfd) => Ok(Process { pid, pidfd: Some(pidfd) }),
            Err(error) => {
                spawn::end(pid);
                Err(error)
            }
        };
        made.map(held).transpose()
    }

    /// Whether a copy that is made now goes on as the first one did.
    pub(crate) fn is_as_it_was(&self, sandbox: &Sandbox, detail: Detail) -> bool {
        let Kept { kept, terminal, flags, .. } = &self.started;
        let is_same_file = |(fd, flags): (&OwnedFd, &OFlag)| {
            fcntl(fd, FcntlArg::F_GETFL).map(OFlag::from_bits_retain) == Ok(*flags)
        };
        let position = |fd| resolve::descriptor(self.process.pid, fd).map(|found| found.position);
        let folder = fs::metadata(format!("/proc/{}/cwd", self.process.pid));
        self.stop.is_some()
            && self.detail == detail
            && self.arrived.elapsed() < self.keeps
            && self.view == sandbox.view_number()
            && kept.iter().zip(flags).all(is_same_file)
            && tcgetattr(&kept[0]).ok() == *terminal
            && self.positions.iter().all(|(fd, at)| position(*fd) == Some(*at))
            // A folder that was removed has no name any more.
            && folder.is_ok_and(|folder| std::os::unix::fs::MetadataExt::nlink(&folder) > 0)
    }
}

/// A process that this thread traces; dropped, it ends.
#[derive(Debug)]
struct Process {
    pid: i32,
    /// Where it has ended by itself its number may be another's by now.
    pidfd: Option<OwnedFd>,
}

impl Process {
    /// It goes on.
    fn keep(mut self) -> Option<OwnedFd> {
        self.pidfd.take()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let Some(pidfd) = &self.pidfd else { return };
        process::signal(pidfd, libc::SIGKILL);
        while let Ok(News::Stop(..)) = ptrace::wait(self.pid, true) {
            process::signal(pidfd, libc::SIGKILL);
        }
    }
}

/// In a namespace of its own a copy would be another process to itself; without namespaces, or over another folder, the
/// sandbox is another one in each run.
fn can_serve(program: &Program, sandbox: &Sandbox, options: &Options) -> bool {
    let is_traced_alike = matches!(options.detail, Detail::Reads | Detail::Overwrites);
    arch::ENTRY_IS_PLAIN
        && is_traced_alike
        && !options.containers
        && !options.backtrace
        && program.stdin.is_empty()
        && sandbox.is_the_same_in_each_run()
}

/// The positions of descriptors beside the first three. They are of files that were opened to be read, or copies of those three:
/// before anything else is opened, the program stands.
fn positions(tid: i32) -> Option<Vec<(i32, u64)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(format!("/proc/{tid}/fd")).ok()? {
        let fd: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        if fd > 2 {
            found.push((fd, resolve::descriptor(tid, fd)?.position));
        }
    }
    Some(found)
}
