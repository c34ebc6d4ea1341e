//! Bad: takes a state that it cannot read for no state at all, and starts the queue over. Everything that was done is
//! gone, and each session from then on reports success.
//!
//! The lab must say, after damage: `restarted`.

use std::fs;
use std::process::ExitCode;

use crashlab_subjects::{STATE, State, finish, work};

fn main() -> ExitCode {
    finish(session())
}

fn session() -> Result<(), String> {
    // The fault: "not there" and "there, but damaged" end in the same place.
    let state = fs::read(STATE)
        .ok()
        .and_then(|bytes| State::parse(&bytes).ok())
        .unwrap_or_else(State::fresh);
    work(state)
}
