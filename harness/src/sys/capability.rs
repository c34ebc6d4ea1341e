//! Capabilities of the calling process.
#![allow(unsafe_code)]

use nix::errno::Errno;

/// `_LINUX_CAPABILITY_VERSION_3`: each set in two words.
const VERSION: u32 = 0x2008_0522;
const CAP_DAC_OVERRIDE: u32 = 1;
const CAP_DAC_READ_SEARCH: u32 = 2;

#[repr(C)]
struct Header {
    version: u32,
    pid: libc::c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Gives up what lets root read, write and search what a mode forbids, and the right to gain any privileges, by which a
/// program that root executes would have them again. Only system calls: it runs in a fork.
///
/// # Errors
///
/// The kernel's answer.
pub(crate) fn drop_overrides() -> Result<(), Errno> {
    // SAFETY: plain numbers.
    Errno::result(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
    let mut header = Header { version: VERSION, pid: 0 };
    let mut sets = [Sets { effective: 0, permitted: 0, inheritable: 0 }; 2];
    // SAFETY: the header and the two sets that this version has are live, and of the kernel's layout.
    Errno::result(unsafe { libc::syscall(libc::SYS_capget, &raw mut header, sets.as_mut_ptr()) })?;
    let kept = !(1 << CAP_DAC_OVERRIDE | 1 << CAP_DAC_READ_SEARCH);
    sets[0].effective &= kept;
    sets[0].permitted &= kept;
    sets[0].inheritable &= kept;
    // SAFETY: as before; the kernel only reads them.
    Errno::result(unsafe { libc::syscall(libc::SYS_capset, &raw mut header, sets.as_ptr()) })?;
    Ok(())
}
