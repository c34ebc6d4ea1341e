//! System calls: the only place with `unsafe`.

pub(crate) mod xattr;
