//! `long-horizon` works through a queue of questions across separate processes, with one checkpoint file between them.
#![forbid(unsafe_code)]

pub mod checkpoint;
pub mod store;
