//! Recordings as files: through the command, and through the library where a file must be made by hand.

// A test says with a panic what went wrong; its support need not do better.
#![allow(clippy::unwrap_used)]

mod recording {
    mod another_machine;
    mod bytes;
    mod calls;
    mod command;
    mod damaged;
    pub(crate) mod property;
    mod round_trip;
    pub(crate) mod support;
}

#[path = "../../fuzz/replay.rs"]
mod replay;
