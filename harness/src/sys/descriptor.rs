//! Descriptors of other processes.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::sys::process;

/// `KCMP_FILE`.
const FILE: libc::c_int = 0;

/// A descriptor of this process for the open file that a process has as `fd`: position and flags are shared with it.
///
/// # Errors
///
/// The kernel's answer; the kernel and who runs it may not allow this at all.
pub(crate) fn copy(process: i32, fd: RawFd) -> io::Result<OwnedFd> {
    let pidfd = process::pidfd(process)?;
    // SAFETY: plain numbers; the descriptor that comes back is new and owned by nobody else.
    unsafe {
        let copy = libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), fd, 0);
        if copy < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(copy as RawFd))
    }
}

/// Whether `fd` of a thread is the same open file as this descriptor of our own; `false` too where the kernel does not tell.
pub(crate) fn is_same(own: &OwnedFd, tid: i32, fd: RawFd) -> bool {
    // SAFETY: plain numbers.
    let order = unsafe {
        let this = libc::getpid();
        libc::syscall(libc::SYS_kcmp, this, tid, FILE, own.as_raw_fd() as u64, fd as u64)
    };
    order == 0
}
