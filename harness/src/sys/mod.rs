//! System calls: the only place with `unsafe`.
