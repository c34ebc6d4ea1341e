//! Pseudo-terminals.

#![allow(unsafe_code)]

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

/// Opens a pair in raw mode (bytes pass unchanged), 24 lines of 80 columns; the lab's end first.
///
/// Neither end becomes anyone's controlling terminal, and neither survives an exec.
///
/// # Errors
///
/// The kernel's answer.
pub(crate) fn open() -> io::Result<(OwnedFd, OwnedFd)> {
    let master =
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open("/dev/ptmx")?;
    let unlocked: libc::c_int = 0;
    let size = libc::winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the descriptor is open, and each request gets what it expects: a pointer to a live integer, flags, a pointer
    // to a live `winsize`. The descriptor that TIOCGPTPEER returns is new and owned by nobody else.
    let slave = unsafe {
        if libc::ioctl(master.as_raw_fd(), libc::TIOCSPTLCK, &raw const unlocked) != 0 {
            return Err(io::Error::last_os_error());
        }
        let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
        let slave = libc::ioctl(master.as_raw_fd(), libc::TIOCGPTPEER, flags);
        if slave < 0 {
            return Err(io::Error::last_os_error());
        }
        if libc::ioctl(master.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) != 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(slave)
    };
    let mut mode = nix::sys::termios::tcgetattr(&slave)?;
    nix::sys::termios::cfmakeraw(&mut mode);
    nix::sys::termios::tcsetattr(&slave, nix::sys::termios::SetArg::TCSANOW, &mode)?;
    Ok((master.into(), slave))
}
