//! Flags of files that stop even root from removing them (`chattr +i`, `chattr +a`).
#![allow(unsafe_code)]

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::errno::Errno;

/// The kernel's `FS_IMMUTABLE_FL` and `FS_APPEND_FL`.
const KEPT: libc::c_int = 0x10 | 0x20;

/// Takes both flags from a file or folder. Links are not followed.
///
/// # Errors
///
/// Where it cannot be opened, where its file system has no such flags, and where only root may do it.
pub(crate) fn clear(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)?;
    let mut flags: libc::c_int = 0;
    // SAFETY: this request writes one `int`, which lives until the call returns.
    Errno::result(unsafe { libc::ioctl(file.as_raw_fd(), libc::FS_IOC_GETFLAGS, &raw mut flags) })?;
    flags &= !KEPT;
    // SAFETY: this request reads one `int`, which lives until the call returns.
    Errno::result(unsafe {
        libc::ioctl(file.as_raw_fd(), libc::FS_IOC_SETFLAGS, &raw const flags)
    })?;
    Ok(())
}
