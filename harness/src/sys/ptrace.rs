//! ptrace, behind types: a [`Stopped`] thread is consumed by what lets it run, so that it cannot be resumed twice.
//!
//! Every request can find that the thread is gone, since SIGKILL ends also a stopped one; that is [`Gone`], which is no
//! error but news that the next wait explains.

#![allow(unsafe_code)]

use std::io;
use std::mem::{MaybeUninit, size_of};

use crate::sys::arch;

/// A thread id.
pub(crate) type Tid = i32;

/// The thread does not exist any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gone;

/// A thread that stands in a ptrace stop.
#[derive(Debug)]
#[must_use = "a stopped thread stays where it is until it is resumed"]
pub(crate) struct Stopped {
    tid: Tid,
}

/// Why a thread stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// At the entry of a call that the filter traps.
    Entry,
    /// At the exit of a call whose exit was asked for.
    Exit,
    /// Before a signal is delivered.
    Signal(i32),
    /// All threads of the process were stopped by a signal.
    GroupStop,
    /// A new thread's first stop, or the end of a group stop.
    Begin,
    /// It made a new thread or process with this id.
    Made(Tid),
    /// It executes a new program; the id that it had before (exec gives it that of the thread group).
    Exec(Tid),
    /// Anything else.
    Other,
}

/// Where a thread stands that was to stop at its next call, or at the exit of one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Phase {
    /// At the entry of this call.
    Entry(Entry),
    /// At the entry too, where the filter traps the call.
    Trapped,
    /// At its exit, with what it returned.
    Exit(i64),
}

/// What a wait told.
#[derive(Debug)]
pub(crate) enum News {
    /// A thread stopped.
    Stop(Stopped, Why),
    /// A thread ended with an exit code.
    Exited(Tid, i32),
    /// A thread was ended by a signal.
    Killed(Tid, i32),
    /// Nothing yet.
    Nothing,
    /// There is nobody to wait for.
    NoChildren,
}

/// The call at whose entry a thread stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    /// The data that the filter gave with it.
    pub(crate) data: u16,
    /// Its number.
    pub(crate) number: u64,
    /// Its arguments.
    pub(crate) args: [u64; 6],
}

const OPTIONS: i32 = libc::PTRACE_O_EXITKILL
    | libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACESECCOMP
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC;

/// Starts to trace a child without stopping it. It dies with this thread.
///
/// # Errors
///
/// The kernel's answer.
pub(crate) fn seize(tid: Tid) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, tid, 0, OPTIONS as usize).map(|_| ())
}

fn request(what: libc::c_uint, tid: Tid, address: usize, data: usize) -> io::Result<i64> {
    // SAFETY: the callers pass addresses of live buffers of the size that the request asks for, or plain numbers; ptrace
    // touches no other memory of this process.
    let answer = unsafe { libc::ptrace(what, tid, address, data) };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(answer)
}

fn request_or_gone(what: libc::c_uint, tid: Tid, address: usize, data: usize) -> Result<i64, Gone> {
    // ESRCH is the usual answer; EIO and others come from a thread that is dying as well. In all cases the wait tells more.
    request(what, tid, address, data).map_err(|_| Gone)
}

impl Stopped {
    /// Who stands here.
    pub(crate) fn tid(&self) -> Tid {
        self.tid
    }

    /// Goes on until the next trapped call; a pending signal can be delivered on the way.
    pub(crate) fn go(self, signal: i32) -> Result<(), Gone> {
        request_or_gone(libc::PTRACE_CONT, self.tid, 0, signal as usize).map(|_| ())
    }

    /// Goes on until the exit of the call at whose entry it stands.
    pub(crate) fn go_to_exit(self) -> Result<(), Gone> {
        request_or_gone(libc::PTRACE_SYSCALL, self.tid, 0, 0).map(|_| ())
    }

    /// Stays in a group stop, but listens for what ends it.
    pub(crate) fn listen(self) -> Result<(), Gone> {
        request_or_gone(libc::PTRACE_LISTEN, self.tid, 0, 0).map(|_| ())
    }

    /// The call at whose entry it stands.
    pub(crate) fn entry(&self) -> Result<Entry, Gone> {
        let info = self.syscall_info()?;
        match info.op {
            libc::PTRACE_SYSCALL_INFO_SECCOMP => {
                // SAFETY: `op` says which member of the union the kernel filled.
                let seccomp = unsafe { info.u.seccomp };
                Ok(Entry { data: seccomp.ret_data as u16, number: seccomp.nr, args: seccomp.args })
            }
            _ => Err(Gone),
        }
    }

    /// What the call at whose exit it stands returned: negative for an error number.
    pub(crate) fn result(&self) -> Result<i64, Gone> {
        let info = self.syscall_info()?;
        match info.op {
            libc::PTRACE_SYSCALL_INFO_EXIT => {
                // SAFETY: `op` says which member of the union the kernel filled.
                let exit = unsafe { info.u.exit };
                Ok(exit.sval)
            }
            _ => Err(Gone),
        }
    }

    /// Where it stands, if it was let go by [`go_to_exit`](Self::go_to_exit).
    pub(crate) fn phase(&self) -> Result<Phase, Gone> {
        let info = self.syscall_info()?;
        // SAFETY: `op` says which member of the union the kernel filled.
        unsafe {
            match info.op {
                libc::PTRACE_SYSCALL_INFO_ENTRY => {
                    let (number, args) = (info.u.entry.nr, info.u.entry.args);
                    Ok(Phase::Entry(Entry { data: 0, number, args }))
                }
                libc::PTRACE_SYSCALL_INFO_SECCOMP => Ok(Phase::Trapped),
                libc::PTRACE_SYSCALL_INFO_EXIT => Ok(Phase::Exit(info.u.exit.sval)),
                _ => Err(Gone),
            }
        }
    }

    fn syscall_info(&self) -> Result<libc::ptrace_syscall_info, Gone> {
        let mut info = MaybeUninit::<libc::ptrace_syscall_info>::zeroed();
        let size = size_of::<libc::ptrace_syscall_info>();
        request_or_gone(libc::PTRACE_GET_SYSCALL_INFO, self.tid, size, info.as_mut_ptr() as usize)?;
        // SAFETY: the structure is plain data, for which zeroes are valid, and the kernel wrote at most its size.
        Ok(unsafe { info.assume_init() })
    }

    /// Whether the signal before whose delivery it stands came from the kernel, since the thread did what it cannot do.
    pub(crate) fn is_at_fault(&self, signal: i32) -> bool {
        const FAULTS: [i32; 6] =
            [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS];
        if !FAULTS.contains(&signal) {
            return false;
        }
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        let asked =
            request_or_gone(libc::PTRACE_GETSIGINFO, self.tid, 0, info.as_mut_ptr() as usize);
        // SAFETY: the structure is plain data, for which zeroes are valid, and the kernel wrote at most its size.
        asked.is_ok() && unsafe { info.assume_init() }.si_code > 0
    }

    /// Changes an argument of the call at whose entry it stands.
    pub(crate) fn set_argument(&self, index: usize, value: u64) -> Result<(), Gone> {
        self.change_registers(|registers| arch::set_argument(registers, index, value))
    }

    /// Goes on without the call at whose entry it stands, which is answered with this error number.
    pub(crate) fn refuse(self, errno: i32) -> Result<(), Gone> {
        self.make_none(errno)?;
        self.go(0)
    }

    /// Makes the call at whose entry it stands none, which is answered with this error number.
    pub(crate) fn make_none(&self, errno: i32) -> Result<(), Gone> {
        self.change_registers(|registers| arch::answer(registers, -i64::from(errno)))?;
        if let Some(note) = arch::CALL_NUMBER_NOTE {
            let mut none: libc::c_int = -1;
            let mut vector =
                libc::iovec { iov_base: (&raw mut none).cast(), iov_len: size_of::<libc::c_int>() };
            let vector = &raw mut vector as usize;
            request_or_gone(libc::PTRACE_SETREGSET, self.tid, note, vector)?;
        }
        Ok(())
    }

    /// After a call: when it goes on, it enters this one, with all other registers as given.
    pub(crate) fn enter(
        &self,
        registers: &libc::user_regs_struct,
        number: i64,
        args: &[u64],
    ) -> Result<(), Gone> {
        let mut registers = *registers;
        arch::enter(&mut registers, number, args);
        self.write_registers(registers)
    }

    /// At the exit of a call: it is entered again, with this argument as it was before somebody changed it.
    pub(crate) fn enter_again(self, entry: &Entry, index: usize) -> Result<(), Gone> {
        self.change_registers(|registers| {
            arch::set_argument(registers, index, entry.args[index]);
            arch::enter_again(registers, entry.number, entry.args[0]);
        })?;
        self.go(0)
    }

    /// Its registers; `None` for a thread that runs the code of an older processor (32 bits), which has others.
    pub(crate) fn registers(&self) -> Option<libc::user_regs_struct> {
        let (registers, len) = self.read_registers().ok()?;
        (len == size_of::<libc::user_regs_struct>()).then_some(registers)
    }

    /// The registers, and how many bytes of them the kernel filled.
    fn read_registers(&self) -> Result<(libc::user_regs_struct, usize), Gone> {
        let mut registers = MaybeUninit::<libc::user_regs_struct>::zeroed();
        let mut vector = libc::iovec {
            iov_base: registers.as_mut_ptr().cast(),
            iov_len: size_of::<libc::user_regs_struct>(),
        };
        let note = libc::NT_PRSTATUS as usize;
        request_or_gone(libc::PTRACE_GETREGSET, self.tid, note, &raw mut vector as usize)?;
        // SAFETY: the structure is plain data, for which zeroes are valid, and the kernel wrote at most its size.
        Ok((unsafe { registers.assume_init() }, vector.iov_len))
    }

    fn change_registers(
        &self,
        change: impl FnOnce(&mut libc::user_regs_struct),
    ) -> Result<(), Gone> {
        let (mut registers, _) = self.read_registers()?;
        change(&mut registers);
        self.write_registers(registers)
    }

    fn write_registers(&self, mut registers: libc::user_regs_struct) -> Result<(), Gone> {
        let mut vector = libc::iovec {
            iov_base: (&raw mut registers).cast(),
            iov_len: size_of::<libc::user_regs_struct>(),
        };
        let note = libc::NT_PRSTATUS as usize;
        request_or_gone(libc::PTRACE_SETREGSET, self.tid, note, &raw mut vector as usize)?;
        Ok(())
    }

    /// Writes eight bytes into its memory, also where that is write-protected.
    pub(crate) fn poke(&self, address: u64, value: u64) -> Result<(), Gone> {
        request_or_gone(libc::PTRACE_POKEDATA, self.tid, address as usize, value as usize)
            .map(|_| ())
    }
}

fn event_message(tid: Tid) -> Option<u64> {
    let mut message: libc::c_ulong = 0;
    request(libc::PTRACE_GETEVENTMSG, tid, 0, &raw mut message as usize).ok()?;
    Some(message)
}

/// Waits for news of anything that this thread traces (`tid` -1) or of one thread of it.
///
/// # Errors
///
/// The kernel's answer, other than "interrupted" and "no children".
pub(crate) fn wait(tid: Tid, block: bool) -> io::Result<News> {
    let mut status = 0;
    let flags = libc::__WALL | libc::__WNOTHREAD | if block { 0 } else { libc::WNOHANG };
    let found = loop {
        // SAFETY: `status` is a live integer.
        let found = unsafe { libc::waitpid(tid, &raw mut status, flags) };
        if found >= 0 {
            break found;
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::ECHILD) => return Ok(News::NoChildren),
            _ => return Err(error),
        }
    };
    if found == 0 {
        return Ok(News::Nothing);
    }
    Ok(if libc::WIFEXITED(status) {
        News::Exited(found, libc::WEXITSTATUS(status))
    } else if libc::WIFSIGNALED(status) {
        News::Killed(found, libc::WTERMSIG(status))
    } else if libc::WIFSTOPPED(status) {
        News::Stop(Stopped { tid: found }, why(found, status))
    } else {
        News::Nothing
    })
}

fn why(tid: Tid, status: i32) -> Why {
    let signal = libc::WSTOPSIG(status);
    let message = || event_message(tid).unwrap_or(0);
    match status >> 16 {
        0 if signal == libc::SIGTRAP | 0x80 => Why::Exit,
        0 => Why::Signal(signal),
        libc::PTRACE_EVENT_SECCOMP => Why::Entry,
        libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
            Why::Made(message() as Tid)
        }
        libc::PTRACE_EVENT_EXEC => Why::Exec(message() as Tid),
        libc::PTRACE_EVENT_STOP if signal == libc::SIGTRAP => Why::Begin,
        libc::PTRACE_EVENT_STOP => Why::GroupStop,
        _ => Why::Other,
    }
}

/// Whether this thread has children (or traces anything) already.
pub(crate) fn has_children() -> bool {
    // SAFETY: all zeroes is a valid `siginfo_t`, and the kernel writes no more than one.
    let answer = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let flags =
            libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL | libc::__WNOTHREAD;
        libc::waitid(libc::P_ALL, 0, &raw mut info, flags)
    };
    answer == 0
}
