//! System calls: the only place with `unsafe`.

pub(crate) mod arch;
pub(crate) mod capability;
pub(crate) mod confined;
pub(crate) mod descriptor;
pub(crate) mod flags;
pub(crate) mod forked;
pub(crate) mod map;
pub(crate) mod memory;
pub(crate) mod mount;
pub(crate) mod namespace;
pub(crate) mod process;
pub(crate) mod ptrace;
pub(crate) mod pty;
pub(crate) mod seccomp;
pub(crate) mod seccomp_probe;
pub(crate) mod xattr;
