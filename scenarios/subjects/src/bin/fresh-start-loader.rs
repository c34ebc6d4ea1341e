//! Bad: takes a state that it cannot read for no state at all, and starts the queue over. Everything that was done is
//! gone, and each session from then on reports success.
//!
//! The lab must say, after damage: `restarted`.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use crashlab_subjects::{STATE, State, finish, mark, replace};

fn main() -> ExitCode {
    finish(session())
}

fn session() -> Result<(), String> {
    // The fault: "not there" and "there, but damaged" end in the same place.
    let mut state = fs::read(STATE)
        .ok()
        .and_then(|bytes| State::parse(&bytes).ok())
        .unwrap_or_else(State::fresh);
    mark("loaded");
    if state.answer_next().is_none() {
        return Ok(());
    }
    replace(Path::new(STATE), &state.encode())
        .map_err(|error| format!("{STATE}: cannot save: {error}"))?;
    mark("saved");
    Ok(())
}
