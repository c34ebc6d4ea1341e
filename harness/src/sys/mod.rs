//! System calls: the only place with `unsafe`.

pub(crate) mod arch;
pub(crate) mod memory;
pub(crate) mod process;
pub(crate) mod ptrace;
pub(crate) mod pty;
pub(crate) mod seccomp;
