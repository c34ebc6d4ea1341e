//! System calls: the only place with `unsafe`.

pub(crate) mod confined;
pub(crate) mod mount;
pub(crate) mod namespace;
pub(crate) mod seccomp_probe;
pub(crate) mod xattr;
