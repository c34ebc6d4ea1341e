//! Bad: takes a state that it is not allowed to read for one that is not there, and starts the queue over. The save goes
//! well, since a rename asks the folder and not the file. What it can read it checks, and refuses by name.
//!
//! The lab must say, after the damage `unreadable`: `restarted`.

use std::fs;
use std::process::ExitCode;

use crashlab_subjects::{STATE, State, finish, work};

fn main() -> ExitCode {
    finish(session())
}

fn session() -> Result<(), String> {
    // The fault: every error is taken for the one that says that there is no file.
    let state = match fs::read(STATE) {
        Err(_) => State::fresh(),
        Ok(bytes) => State::parse(&bytes).map_err(|error| format!("{STATE}: damaged: {error}"))?,
    };
    work(state)
}
