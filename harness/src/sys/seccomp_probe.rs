//! Asks the kernel what filters of system calls can do.
#![allow(unsafe_code)]

use nix::errno::Errno;

/// The kernel's `SECCOMP_GET_ACTION_AVAIL`.
const IS_AVAILABLE: libc::c_uint = 2;

/// Whether a filter can hand a call to the tracer.
pub(crate) fn tracing_is_available() -> Result<(), Errno> {
    let action: u32 = libc::SECCOMP_RET_TRACE;
    // SAFETY: with this operation the call reads one number of 32 bits, which lives until it returns.
    Errno::result(unsafe { libc::syscall(libc::SYS_seccomp, IS_AVAILABLE, 0, &raw const action) })
        .map(drop)
}
