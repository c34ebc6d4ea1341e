//! Starting a program in a child, and signals for processes.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use libc::sock_filter;
use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow};

use crate::sandbox::Entry;
use crate::subject::FILE_BYTES_MAX;
use crate::sys::{arch, seccomp};

/// All that a child needs before its exec, prepared by its parent: it may only make system calls.
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
    /// It is the first process of a process namespace of its own, where this is given.
    pub(crate) container: Option<Container>,
}

/// A process namespace for one program alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Container {
    /// Its `/proc` shows what is in it, and not what is outside.
    pub(crate) own_proc: bool,
}

/// A child that waits until it is told to go on. Until it executes its program it runs in this process's memory, so that
/// starting it does not depend on how much that is; it has a stack of its own.
pub(crate) struct Child<'a> {
    /// Its process id.
    pub(crate) pid: i32,
    /// Who made the namespace that it is the first in, and is not gone yet.
    maker: Option<i32>,
    go: OwnedFd,
    failure: File,
    /// It has memory of its own by now, or has ended.
    is_apart: bool,
    _way: Box<Way<'a>>,
    _stack: Box<[MaybeUninit<u8>]>,
}

/// What the child goes by.
struct Way<'a> {
    launch: &'a Launch<'a>,
    argv: Vec<*const libc::c_char>,
    env: Vec<*const libc::c_char>,
    wait: RawFd,
    go: RawFd,
    report: RawFd,
    /// The end of the stack of whoever is first in a namespace; it lies below that of its maker.
    inner_stack: *mut libc::c_void,
}

/// Bytes of a child's stack: a few frames, and the zeroed structures of its calls.
const STACK_BYTES: usize = 64 << 10;

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

/// Starts a child that waits for [`Child::release`] and then becomes the program. Whoever sees that it has become it, or
/// has ended, says so by [`Child::is_apart`].
///
/// # Errors
///
/// The kernel's answer to `pipe` or `clone`.
pub(crate) fn start<'a>(launch: &'a Launch<'a>) -> io::Result<Child<'a>> {
    let (wait, go) = pipe()?;
    let (failure, report) = pipe()?;
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        strings.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
    };
    let (argv, env) = (pointers(launch.argv), pointers(launch.env));
    // The child has these in a table of its own: they are closed here when this returns, and not there.
    let (to_wait, to_go, to_report) = (wait.as_raw_fd(), go.as_raw_fd(), report.as_raw_fd());
    let stacks = if launch.container.is_some() { 2 } else { 1 };
    let mut stack: Box<[MaybeUninit<u8>]> = Box::new_uninit_slice(stacks * STACK_BYTES);
    let top = stack.as_mut_ptr_range().end.cast::<libc::c_void>();
    let top = top.wrapping_sub(top.addr() % 16);
    let inner_stack = top.wrapping_sub(STACK_BYTES);
    let (wait, report) = (to_wait, to_report);
    let way = Box::new(Way { launch, argv, env, wait, go: to_go, report, inner_stack });
    // No handler of this process may run in a child that shares its memory.
    let all = SigSet::all();
    let before = all.thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    // SAFETY: the child has this stack, which ends at a multiple of 16 bytes, for itself, and runs `become_program` alone,
    // which never returns and goes by `way`. It makes system calls, allocates nothing and takes no lock; what it reads
    // lives as long as the `Child`, whose drop waits until the memory is not shared any more.
    let pid = unsafe {
        let way = (&raw const *way).cast_mut().cast();
        libc::clone(become_program, top, libc::CLONE_VM | libc::SIGCHLD, way)
    };
    let failed = io::Error::last_os_error();
    // It was the thread's own mask a moment ago.
    let _ = before.thread_set_mask();
    match pid {
        -1 => Err(failed),
        pid => Ok(Child {
            pid,
            maker: None,
            go,
            failure: failure.into(),
            is_apart: false,
            _way: way,
            _stack: stack,
        }),
    }
}

impl Drop for Child<'_> {
    fn drop(&mut self) {
        if !self.is_apart {
            self.maker.into_iter().chain([self.pid]).for_each(|pid| {
                kill(pid);
                // SAFETY: plain numbers and a null pointer, for "the status is not wanted".
                while unsafe { libc::waitpid(pid, ptr::null_mut(), libc::__WALL) } == pid {
                    // A traced one can stop on its way.
                    kill(pid);
                }
            });
        }
    }
}

impl Child<'_> {
    /// Lets it go on.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub(crate) fn release(&self) -> io::Result<()> {
        nix::unistd::write(&self.go, b"g").map(|_| ()).map_err(io::Error::from)
    }

    /// It has made a process namespace, in which another goes on in its place.
    pub(crate) fn goes_on_as(&mut self, pid: i32) {
        self.maker = Some(std::mem::replace(&mut self.pid, pid));
    }

    /// Who made the namespace has ended.
    pub(crate) fn maker_is_gone(&mut self) {
        self.maker = None;
    }

    /// It has become the program, or ended: its memory is not this process's any more.
    pub(crate) fn is_apart(&mut self) {
        self.is_apart = true;
    }

    /// What it could not do; called when it has ended before it became the program.
    pub(crate) fn failure(mut self) -> Failure {
        self.is_apart();
        let mut bytes = Vec::new();
        // A child that was killed has said nothing; then there is nothing to read either.
        let _ = io::Read::read_to_end(&mut &self.failure, &mut bytes);
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

/// The child's way to its program. It runs in the parent's memory beside the parent, which waits for news of it, and has its
/// `errno` in common with that: so calls that can fail on a good way are made directly.
extern "C" fn become_program(way: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `start` passes a `Way` that lives for as long as this runs, and changes nothing in it.
    let way = unsafe { &*way.cast::<Way<'_>>() };
    let mut byte = 0u8;
    // The lab's own end must be gone, or the child would wait for itself if the lab died.
    // SAFETY: closes a descriptor of this process's own table that nothing in it uses; `read` gets a live byte.
    let told = unsafe {
        arch::call(libc::SYS_close, [way.go as usize, 0, 0, 0, 0]);
        let byte = (&raw mut byte).addr();
        arch::call(libc::SYS_read, [way.wait as usize, byte, 1, 0, 0])
    };
    if told == 1 {
        let begun = prepare(way.launch).and_then(|()| match way.launch.container {
            Some(_) => make_container(way),
            None => settle(way.launch).and_then(|()| Err(execute(way))),
        });
        if let Err(failure) = begun {
            tell(way, failure);
        }
    }
    end()
}

/// The same for the first process of a namespace, from where its maker has left off.
extern "C" fn become_first(way: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `make_container` passes the `Way` that it was called with, which lives for as long as this runs.
    let way = unsafe { &*way.cast::<Way<'_>>() };
    let own_proc = way.launch.container.is_some_and(|container| container.own_proc);
    let begun = if own_proc { show_own_processes() } else { Ok(()) };
    let begun = begun.and_then(|()| settle(way.launch)).and_then(|()| Err(execute(way)));
    if let Err::<(), _>(failure) = begun {
        tell(way, failure);
    }
    end()
}

/// A step that failed, and the error number.
type Failed = (&'static str, i32);

/// Makes a process namespace with a process in it that goes on; the caller is then only to end. It is a sibling of the
/// caller: a child of the lab, as if that had made it. A process cannot enter a process namespace itself, and only here, in
/// the sandbox's user namespace, has everybody the right to make one.
fn make_container(way: &Way<'_>) -> Result<(), Failed> {
    let flags = libc::CLONE_VM
        | libc::CLONE_PARENT
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNS
        | libc::SIGCHLD;
    // SAFETY: it has the lower one of the two stacks for itself, whose end is a multiple of 16 bytes, and runs `become_first`
    // alone, which never returns. What holds for the caller holds for it: system calls alone, and `way` outlives it.
    let made = unsafe {
        let argument = (&raw const *way).cast_mut().cast();
        libc::clone(become_first, way.inner_stack, flags, argument)
    };
    match made {
        -1 => {
            let errno = io::Error::last_os_error().raw_os_error().unwrap_or(libc::EPERM);
            Err(("make a process namespace", errno))
        }
        _ => Ok(()),
    }
}

/// Mounts `/proc` anew, for the process namespace that the caller is in; read-only, as all that is not the sandbox's own.
/// Only a system call.
fn show_own_processes() -> Result<(), Failed> {
    let flags = libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    let (kind, place) = (c"proc".as_ptr().addr(), c"/proc".as_ptr().addr());
    // SAFETY: live C strings, numbers, and a null pointer for "no options".
    let mounted = unsafe { arch::call(libc::SYS_mount, [kind, place, kind, flags as usize, 0]) };
    checked(mounted, "show it its own processes in /proc")
}

/// Whether a program can be the first of a process namespace, with `/proc` for it or not, tried by the caller, who has
/// entered the sandbox. Only system calls: it runs in a fork.
///
/// # Errors
///
/// The kernel's answer.
pub(crate) fn try_container(container: Container) -> Result<(), Errno> {
    let flags = libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::SIGCHLD;
    // SAFETY: as a fork: the child has memory of its own, does system calls alone and never returns from here.
    let pid = unsafe { arch::call(libc::SYS_clone, [flags as usize, 0, 0, 0, 0]) };
    if pid == 0 {
        let tried = if container.own_proc { show_own_processes() } else { Ok(()) };
        let code = tried.map_or_else(|(_, errno)| errno, |()| 0);
        // SAFETY: ends the child.
        unsafe { arch::call(libc::SYS_exit_group, [code as usize, 0, 0, 0, 0]) };
    }
    if pid < 0 {
        return Err(Errno::from_raw(-pid as i32));
    }
    let mut status = 0;
    // SAFETY: a live integer for the status.
    while unsafe { libc::waitpid(pid as i32, &raw mut status, 0) } < 0 {
        if Errno::last() != Errno::EINTR {
            return Err(Errno::last());
        }
    }
    match libc::WEXITSTATUS(status) {
        0 if libc::WIFEXITED(status) => Ok(()),
        0 => Err(Errno::EIO),
        errno => Err(Errno::from_raw(errno)),
    }
}

/// Says through the pipe what could not be done.
fn tell(way: &Way<'_>, (stage, errno): Failed) {
    let errno = errno.to_ne_bytes();
    let report = way.report as usize;
    // SAFETY: both writes get live buffers with their lengths.
    unsafe {
        arch::call(libc::SYS_write, [report, errno.as_ptr().addr(), errno.len(), 0, 0]);
        arch::call(libc::SYS_write, [report, stage.as_ptr().addr(), stage.len(), 0, 0]);
    }
}

fn end() -> libc::c_int {
    // SAFETY: ends this process, and runs no handlers of the parent's.
    unsafe { arch::call(libc::SYS_exit_group, [127, 0, 0, 0, 0]) };
    127
}

fn checked(answer: i64, stage: &'static str) -> Result<(), Failed> {
    if answer < 0 { Err((stage, -answer as i32)) } else { Ok(()) }
}

/// `struct sigaction` as the kernel has it, or a set of signals: all zero is the default, and the empty set.
const NO_SIGNAL: [u64; 4] = [0; 4];
/// The bytes of a set of signals.
const SET_BYTES: usize = 8;

/// What is done before the namespaces are as they shall be.
fn prepare(launch: &Launch<'_>) -> Result<(), Failed> {
    let none = NO_SIGNAL.as_ptr().addr();
    // SAFETY: system calls on numbers and on live, initialised structures.
    unsafe {
        for (target, source) in launch.stdio.iter().enumerate() {
            // None of these stands where it goes to: Rust has opened the first three before anything else.
            checked(
                arch::call(libc::SYS_dup3, [*source as usize, target, 0, 0, 0]),
                "set up standard input and output",
            )?;
        }
        for signal in (1..=64).filter(|signal| ![libc::SIGKILL, libc::SIGSTOP].contains(signal)) {
            arch::call(libc::SYS_rt_sigaction, [signal as usize, none, 0, SET_BYTES, 0]);
        }
        // Closed by the exec, not now: the report pipe, and what the sandbox has prepared, are still needed.
        let all = [3, u32::MAX as usize, libc::CLOSE_RANGE_CLOEXEC as usize, 0, 0];
        checked(arch::call(libc::SYS_close_range, all), "close the lab's descriptors")?;
        let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        let limit = |which: u32, new: *const libc::rlimit, old: *mut libc::rlimit| {
            arch::call(libc::SYS_prlimit64, [0, which as usize, new.addr(), old.addr(), 0])
        };
        let core = limit(libc::RLIMIT_CORE, &raw const no_core, ptr::null_mut());
        checked(core, "turn off core dumps")?;
        let mut size = no_core;
        let asked = limit(libc::RLIMIT_FSIZE, ptr::null(), &raw mut size);
        checked(asked, "ask for the limit of files")?;
        size.rlim_max = size.rlim_max.min(FILE_BYTES_MAX);
        size.rlim_cur = size.rlim_cur.min(size.rlim_max);
        let set = limit(libc::RLIMIT_FSIZE, &raw const size, ptr::null_mut());
        checked(set, "limit the size of files")?;
    }
    launch.entry.enter().map_err(|error| (error.stage, error.errno))
}

/// What is left before the exec, in the process that will be the program.
fn settle(launch: &Launch<'_>) -> Result<(), Failed> {
    let none = NO_SIGNAL.as_ptr().addr();
    // SAFETY: a live C string, an empty set of signals, and plain numbers.
    unsafe {
        // A session without a controlling terminal: nothing can prompt on /dev/tty, and no hang-up comes when it ends.
        checked(arch::call(libc::SYS_setsid, [0; 5]), "make a session")?;
        let folder = launch.folder.as_ptr().addr();
        checked(arch::call(libc::SYS_chdir, [folder, 0, 0, 0, 0]), "enter the work folder")?;
        let no_privileges = [libc::PR_SET_NO_NEW_PRIVS as usize, 1, 0, 0, 0];
        checked(arch::call(libc::SYS_prctl, no_privileges), "give up privileges")?;
        // What is pending by now ends the child, as it would end the program.
        let unblock = [libc::SIG_SETMASK as usize, none, 0, SET_BYTES, 0];
        checked(arch::call(libc::SYS_rt_sigprocmask, unblock), "unblock signals")?;
    }
    seccomp::install(launch.filter).map_err(|errno| ("install the system call filter", errno))
}

/// A program that the lab has just written can still be open for writing in a child of another thread, until that one
/// executes its own program: so often it is tried again, with this pause.
const TRIES_WHILE_BUSY: u32 = 500;
const PAUSE: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 2_000_000 };

/// Tries the candidates in order, as `execvp` does; returns only where none worked.
fn execute(way: &Way<'_>) -> Failed {
    ("execute it", try_candidates(way))
}

fn try_candidates(way: &Way<'_>) -> i32 {
    let (argv, env) = (way.argv.as_ptr().addr(), way.env.as_ptr().addr());
    let mut answer = libc::ENOENT;
    for candidate in way.launch.candidates {
        let (mut tries, pause) = (TRIES_WHILE_BUSY, PAUSE);
        let errno = loop {
            // SAFETY: all are live C strings, the arrays end with a null pointer.
            let failed = unsafe {
                arch::call(libc::SYS_execve, [candidate.as_ptr().addr(), argv, env, 0, 0])
            };
            let errno = -failed as i32;
            if errno != libc::ETXTBSY || tries == 0 {
                break errno;
            }
            tries -= 1;
            // SAFETY: a live `timespec`, and a null pointer for "the rest is not wanted".
            unsafe { arch::call(libc::SYS_nanosleep, [(&raw const pause).addr(), 0, 0, 0, 0]) };
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
