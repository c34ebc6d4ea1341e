//! Starting a program in a forked child, and signals for processes.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use libc::sock_filter;

use crate::sandbox::Entry;
use crate::subject::FILE_BYTES_MAX;
use crate::sys::seccomp;

/// All that a child needs between fork and exec, prepared before: there it may only make system calls.
pub(crate) struct Launch<'a> {
    /// Paths to try, in order.
    pub(crate) candidates: &'a [CString],
    /// The arguments.
    pub(crate) argv: &'a [CString],
    /// The environment, as `NAME=value`.
    pub(crate) env: &'a [CString],
    /// Standard input, output and error.
    pub(crate) stdio: [RawFd; 3],
    /// Enters the sandbox.
    pub(crate) entry: &'a Entry,
    /// The folder to start in, as it is called inside the sandbox.
    pub(crate) folder: &'a CString,
    /// The filter for its system calls.
    pub(crate) filter: &'a [sock_filter],
}

/// A child that waits until it is told to go on.
pub(crate) struct Child {
    /// Its process id.
    pub(crate) pid: i32,
    go: OwnedFd,
    failure: OwnedFd,
}

/// What a child could not do.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The step, in words.
    pub(crate) stage: String,
    /// The error number.
    pub(crate) errno: i32,
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC).map_err(io::Error::from)
}

/// Forks a child that waits for [`Child::release`] and then becomes the program.
///
/// # Errors
///
/// The kernel's answer to `pipe` or `fork`.
pub(crate) fn fork(launch: &Launch<'_>) -> io::Result<Child> {
    let (wait, go) = pipe()?;
    let (failure, report) = pipe()?;
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        strings.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
    };
    let argv = pointers(launch.argv);
    let env = pointers(launch.env);
    // SAFETY: the child runs only `become_program`, which makes system calls on data that exists already, and never returns.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => become_program(
            launch,
            &argv,
            &env,
            wait.as_raw_fd(),
            go.as_raw_fd(),
            report.as_raw_fd(),
        ),
        pid => Ok(Child { pid, go, failure }),
    }
}

impl Child {
    /// Lets it go on.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub(crate) fn release(&self) -> io::Result<()> {
        nix::unistd::write(&self.go, b"g").map(|_| ()).map_err(io::Error::from)
    }

    /// What it could not do; called when it has ended before it became the program.
    pub(crate) fn failure(self) -> Failure {
        let mut bytes = Vec::new();
        let mut file = std::fs::File::from(self.failure);
        // A child that was killed has said nothing; then there is nothing to read either.
        let _ = io::Read::read_to_end(&mut file, &mut bytes);
        match bytes.split_first_chunk::<4>() {
            Some((errno, stage)) => Failure {
                stage: String::from_utf8_lossy(stage).into_owned(),
                errno: i32::from_ne_bytes(*errno),
            },
            None => Failure {
                stage: "it ended before its first instruction".into(),
                errno: libc::ESRCH,
            },
        }
    }
}

/// The child's way from fork to exec.
fn become_program(
    launch: &Launch<'_>,
    argv: &[*const libc::c_char],
    env: &[*const libc::c_char],
    wait: RawFd,
    go: RawFd,
    report: RawFd,
) -> ! {
    // The lab's own end must be gone, or the child would wait for itself if the lab died.
    // SAFETY: closes a descriptor that nothing in this process uses any more; `read` gets a live byte.
    unsafe {
        libc::close(go);
        let mut byte = 0u8;
        if libc::read(wait, (&raw mut byte).cast(), 1) != 1 {
            libc::_exit(127);
        }
    }
    let (stage, errno) = match prepare(launch) {
        Err(failure) => failure,
        Ok(()) => ("execute it", execute(launch.candidates, argv, env)),
    };
    let errno = errno.to_ne_bytes();
    // SAFETY: both writes get live buffers with their lengths; `_exit` runs no handlers of the parent's.
    unsafe {
        libc::write(report, errno.as_ptr().cast(), errno.len());
        libc::write(report, stage.as_ptr().cast(), stage.len());
        libc::_exit(127)
    }
}

fn checked(answer: i64, stage: &'static str) -> Result<(), (&'static str, i32)> {
    if answer < 0 {
        return Err((stage, io::Error::last_os_error().raw_os_error().unwrap_or(0)));
    }
    Ok(())
}

fn prepare(launch: &Launch<'_>) -> Result<(), (&'static str, i32)> {
    // SAFETY: system calls on numbers and on live, initialised structures; the program has only this thread.
    unsafe {
        // A session without a controlling terminal: nothing can prompt on /dev/tty, and no hang-up comes when it ends.
        checked(i64::from(libc::setsid()), "make a session")?;
        for (target, source) in launch.stdio.iter().enumerate() {
            checked(
                i64::from(libc::dup2(*source, target as RawFd)),
                "set up standard input and output",
            )?;
        }
        for signal in 1..=64 {
            // Fails for the two that cannot be handled and those that the library keeps to itself.
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
        // Closed by the exec, not now: the report pipe, and what the sandbox has prepared, are still needed.
        let all = libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
        checked(all, "close the lab's descriptors")?;
        let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        checked(
            i64::from(libc::setrlimit(libc::RLIMIT_CORE, &raw const no_core)),
            "turn off core dumps",
        )?;
        let mut size: libc::rlimit = std::mem::zeroed();
        checked(
            i64::from(libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut size)),
            "ask for the limit of files",
        )?;
        size.rlim_max = size.rlim_max.min(FILE_BYTES_MAX);
        size.rlim_cur = size.rlim_cur.min(size.rlim_max);
        checked(
            i64::from(libc::setrlimit(libc::RLIMIT_FSIZE, &raw const size)),
            "limit the size of files",
        )?;
    }
    launch.entry.enter().map_err(|error| (error.stage, error.errno))?;
    // SAFETY: a live C string, and plain numbers.
    unsafe {
        checked(i64::from(libc::chdir(launch.folder.as_ptr())), "enter the work folder")?;
        checked(
            i64::from(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)),
            "give up privileges",
        )?;
    }
    seccomp::install(launch.filter).map_err(|errno| ("install the system call filter", errno))
}

/// A program that the lab has just written can still be open for writing in a child of another thread, until that one
/// executes its own program: so often it is tried again, with this pause.
const TRIES_WHILE_BUSY: u32 = 500;
const PAUSE: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 2_000_000 };

/// Tries the candidates in order, as `execvp` does; returns why none worked.
fn execute(
    candidates: &[CString],
    argv: &[*const libc::c_char],
    env: &[*const libc::c_char],
) -> i32 {
    let mut answer = libc::ENOENT;
    for candidate in candidates {
        let (mut tries, pause) = (TRIES_WHILE_BUSY, PAUSE);
        let errno = loop {
            // SAFETY: all are live C strings, the arrays end with a null pointer.
            unsafe { libc::execve(candidate.as_ptr(), argv.as_ptr(), env.as_ptr()) };
            let errno = io::Error::last_os_error().raw_os_error().unwrap_or(0);
            if errno != libc::ETXTBSY || tries == 0 {
                break errno;
            }
            tries -= 1;
            // SAFETY: a live `timespec`, and a null pointer for "the rest is not wanted".
            unsafe { libc::nanosleep(&raw const pause, ptr::null_mut()) };
        };
        match errno {
            libc::ENOENT | libc::ENOTDIR => {}
            libc::EACCES => answer = libc::EACCES,
            errno => return errno,
        }
    }
    answer
}

/// SIGKILL for a process; that it is gone already is fine.
pub(crate) fn kill(pid: i32) {
    // SAFETY: plain numbers; the process is one that this thread traces, so that its id is not reused before it is reaped.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

/// A descriptor that stands for a process, whatever happens to its id.
///
/// # Errors
///
/// The kernel's answer.
pub(crate) fn pidfd(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: plain numbers; the descriptor that comes back is new and owned by nobody else.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(fd as RawFd))
    }
}

/// Sends a signal to the process that the descriptor stands for; that it is gone already is fine.
pub(crate) fn signal(pidfd: &OwnedFd, signal: i32) {
    // SAFETY: an open descriptor, plain numbers and a null pointer, which means "as kill does".
    unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_fd().as_raw_fd(),
            signal,
            ptr::null::<libc::siginfo_t>(),
            0,
        )
    };
}
