//! Namespaces that outlive the process that made them.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, pipe2};

use super::forked::Forked;

/// What a forked maker of namespaces says: the step (its meaning is the caller's) and the error number.
pub(crate) type Failure = (u8, Errno);

/// A process that has made its namespaces and waits to be ended, which its drop does. It has copies of all descriptors of the lab
/// for as long as it lives.
#[derive(Debug)]
pub(crate) struct Maker {
    pid: Pid,
    /// Given up after the drop has ended the process.
    _forked: Forked,
}

/// Forks a process that does `work` and then waits; returns once the work is done.
///
/// `work` runs in a copy of a process that may have had other threads: only system calls, nothing that allocates.
///
/// # Errors
///
/// `Ok(Err(failure))` where the work failed, and an error of its own where there is no such process at all.
pub(crate) fn make(
    work: impl FnOnce() -> Result<(), Failure>,
) -> io::Result<Result<Maker, Failure>> {
    let (reader, writer) = pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    let lab = nix::unistd::getpid();
    let forked = Forked::new();
    // SAFETY: the child does system calls alone, by the contract of this function, and never returns from here.
    let maker = match unsafe { fork() }? {
        ForkResult::Parent { child } => Maker { pid: child, _forked: forked },
        ForkResult::Child => child(lab, writer, work),
    };
    drop(writer);
    let mut answer = [0; 5];
    File::from(reader).read_exact(&mut answer)?;
    let [step, errno @ ..] = answer;
    Ok(match i32::from_ne_bytes(errno) {
        0 => Ok(maker),
        errno => Err((step, Errno::from_raw(errno))),
    })
}

/// Keeps a panic from unwinding into what is a copy of the caller.
struct NeverReturns;

impl Drop for NeverReturns {
    fn drop(&mut self) {
        // SAFETY: ends the process and touches no memory.
        unsafe { libc::_exit(101) }
    }
}

fn child(lab: Pid, writer: OwnedFd, work: impl FnOnce() -> Result<(), Failure>) -> ! {
    let guard = NeverReturns;
    // A lab that went before this took effect would leave the process for ever.
    let tied = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
    if tied.is_ok() && nix::unistd::getppid() == lab {
        let (step, errno) = match work() {
            Ok(()) => (0, 0),
            Err((step, errno)) => (step, errno as i32),
        };
        let mut answer = [step; 5];
        answer[1..].copy_from_slice(&errno.to_ne_bytes());
        if nix::unistd::write(&writer, &answer) == Ok(answer.len()) {
            loop {
                nix::unistd::pause();
            }
        }
    }
    drop(guard);
    unreachable!("the guard ends the process")
}

impl Maker {
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Opens a file of this process's folder in `/proc`, such as `ns/net`.
    pub(crate) fn open(&self, file: &str) -> io::Result<File> {
        File::open(format!("/proc/{}/{file}", self.pid))
    }
}

impl Drop for Maker {
    fn drop(&mut self) {
        // Neither can fail in a way that leaves a process: it is ours, and it is there until we have waited for it.
        let _ = kill(self.pid, Signal::SIGKILL);
        while waitpid(self.pid, None) == Err(Errno::EINTR) {}
    }
}

/// Brings up the loopback device of the network namespace that the caller is in. Only system calls.
pub(crate) fn loopback_up() -> Result<(), Errno> {
    // SAFETY: takes no pointers.
    let socket = Errno::result(unsafe {
        libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0)
    })?;
    // SAFETY: the descriptor is new, and nobody else knows it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: all-zero bytes are a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: this request reads an `ifreq`, which lives until the call returns.
    Errno::result(unsafe {
        libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request)
    })
    .map(drop)
}
