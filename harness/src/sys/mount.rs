//! Attributes of mounts, for which the C library has no wrapper everywhere.
#![allow(unsafe_code)]

use std::ffi::CStr;

use nix::errno::Errno;

/// `struct mount_attr` of `mount_setattr(2)`.
#[repr(C)]
struct Attributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// The kernel's `MOUNT_ATTR_RDONLY`.
const READ_ONLY: u64 = 1;
/// The kernel's `AT_RECURSIVE`.
const RECURSIVE: libc::c_int = 0x8000;

/// Makes the mount at `top` and all below it read-only, and stops what is mounted from spreading to other namespaces.
/// Only a system call.
pub(crate) fn seal(top: &CStr) -> Result<(), Errno> {
    let attributes =
        Attributes { set: READ_ONLY, clear: 0, propagation: libc::MS_PRIVATE, user_namespace: 0 };
    set_attributes(top, RECURSIVE, &attributes)
}

/// Makes the one mount at `target` writable. Only a system call.
pub(crate) fn unseal(target: &CStr) -> Result<(), Errno> {
    let attributes = Attributes { set: 0, clear: READ_ONLY, propagation: 0, user_namespace: 0 };
    set_attributes(target, 0, &attributes)
}

fn set_attributes(path: &CStr, flags: libc::c_int, attributes: &Attributes) -> Result<(), Errno> {
    // SAFETY: `path` ends in a NUL, and `attributes` is the structure of the size that is passed with it; the
    // kernel only reads both.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            std::ptr::from_ref(attributes),
            size_of::<Attributes>(),
        )
    };
    Errno::result(result).map(drop)
}
