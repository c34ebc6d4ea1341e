//! Runs a program that prepares itself between fork and exec, until it ends or its time is over.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::sys::forked::Forked;

/// Runs the command in a session of its own, with nothing on its standard input; `prepare` runs in the child after
/// the fork and does system calls alone. When the program ends, or at the latest after `limit`, all of its session's
/// first process group is ended.
///
/// # Errors
///
/// Where it cannot be started, and [`io::ErrorKind::TimedOut`].
pub(crate) fn output(
    command: &mut Command,
    prepare: impl Fn() -> Result<(), Errno> + Send + Sync + 'static,
    limit: Duration,
) -> io::Result<Output> {
    let (mut stdout, mut stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
    command.stdin(Stdio::null()).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
    let prepare = move || {
        nix::unistd::setsid()?;
        prepare().map_err(io::Error::from)
    };
    // SAFETY: system calls alone, by the contract of this function; making an error from a number allocates nothing.
    unsafe { command.pre_exec(prepare) };
    let deadline = Instant::now() + limit;
    let forked = Forked::new();
    let mut child = command.spawn()?;
    drop(forked);
    let group = Pid::from_raw(child.id().cast_signed());
    let in_time = ended_before(group, deadline);
    // The group may be empty already.
    let _ = killpg(group, Signal::SIGKILL);
    let status = child.wait()?;
    if !in_time? {
        return Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("still running after {limit:?}, and ended"),
        ));
    }
    Ok(Output { status, stdout: content(&mut stdout)?, stderr: content(&mut stderr)? })
}

fn content(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Waits for the end of a child without reaping it.
fn ended_before(child: Pid, deadline: Instant) -> io::Result<bool> {
    // SAFETY: takes no pointers.
    let descriptor =
        Errno::result(unsafe { libc::syscall(libc::SYS_pidfd_open, child.as_raw(), 0) })?;
    // SAFETY: the descriptor is new, and nobody else knows it.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor as RawFd) };
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(0) if deadline <= Instant::now() => return Ok(false),
            Ok(0) | Err(Errno::EINTR) => {}
            Ok(_) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
    }
}
