//! Whether a thread sleeps, and in what: from `/proc`, only asked while some program is held.

use crate::sys::arch;

/// The letter of `/proc/TID/stat`; `None` where there is no such thread.
pub(super) fn state(tid: i32) -> Option<char> {
    let text = std::fs::read_to_string(format!("/proc/{tid}/stat")).ok()?;
    // The name in parentheses can hold anything, also a parenthesis.
    text.rsplit_once(") ")?.1.chars().next()
}

/// The thread sleeps in the kernel.
pub(super) fn sleeps(tid: i32) -> bool {
    sleeps_in(tid, 'S').is_some()
}

/// The call in which the thread sleeps, in this state. The kernel tells the call of nobody who is on a processor or waits for one;
/// the state alone does not say that, since who looks for an ended child is called asleep meanwhile, also after it was woken. And as the
/// call is told of those as well whom a signal has stopped, the state is looked at afterwards.
fn sleeps_in(tid: i32, letter: char) -> Option<(i64, Vec<u64>)> {
    call(tid).filter(|_| state(tid) == Some(letter))
}

/// The thread stands where the lab has stopped it, and was not killed since.
pub(super) fn stands_still(tid: i32) -> bool {
    state(tid) == Some('t')
}

/// The process has a handler for the signal.
pub(super) fn handles(tid: i32, signal: i32) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0);
    caught >> (signal - 1) & 1 == 1
}

/// The thread sleeps until another thread or process does something: no time-out wakes it.
pub(super) fn waits_for_others(tid: i32) -> bool {
    match state(tid) {
        // It waits for a vforked child.
        Some('D') => sleeps_in(tid, 'D').is_some_and(|(number, _)| {
            [arch::VFORK, libc::SYS_clone, libc::SYS_clone3].contains(&number)
        }),
        Some('S') => {
            sleeps_in(tid, 'S').is_some_and(|(number, args)| has_no_time_out(number, &args))
        }
        // Ended, but not yet collected by its parent.
        Some('Z') => true,
        _ => false,
    }
}

/// The thread waits for bytes, or for room for them: in a pipe or a socket.
pub(super) fn waits_for_data(tid: i32) -> bool {
    sleeps_in(tid, 'S').is_some_and(|(number, _)| {
        [
            libc::SYS_read,
            libc::SYS_readv,
            libc::SYS_write,
            libc::SYS_writev,
            libc::SYS_openat,
            libc::SYS_accept,
            libc::SYS_accept4,
            libc::SYS_connect,
            libc::SYS_recvfrom,
            libc::SYS_recvmsg,
            libc::SYS_flock,
            libc::SYS_fcntl,
            arch::OPEN,
        ]
        .contains(&number)
    })
}

fn has_no_time_out(number: i64, args: &[u64]) -> bool {
    let argument = |index: usize| args.get(index).copied().unwrap_or(0);
    match number {
        libc::SYS_wait4 | libc::SYS_waitid => true,
        libc::SYS_futex => argument(3) == 0,
        libc::SYS_ppoll => argument(2) == 0,
        libc::SYS_epoll_pwait => argument(3) as i32 == -1,
        number if number == arch::POLL => argument(2) as i32 == -1,
        number if number == arch::EPOLL_WAIT => argument(3) as i32 == -1,
        _ => false,
    }
}

/// The call that a sleeping thread is in, with its arguments.
fn call(tid: i32) -> Option<(i64, Vec<u64>)> {
    let text = std::fs::read_to_string(format!("/proc/{tid}/syscall")).ok()?;
    let mut fields = text.split_ascii_whitespace();
    let number = fields.next()?.parse().ok()?;
    let args = fields
        .filter_map(|field| u64::from_str_radix(field.trim_start_matches("0x"), 16).ok())
        .collect();
    Some((number, args))
}
