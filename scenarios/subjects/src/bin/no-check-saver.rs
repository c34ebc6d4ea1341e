//! Bad: saves by rename, but without a look at whether the file is still what it loaded. Of two sessions that loaded the
//! same state, the second to save erases what the first wrote, and both report success.
//!
//! The lab must say, in an overlap where one loads before and saves after the other: `lost`.

use std::fs;
use std::process::{ExitCode, id};

use crashlab_subjects::{STATE, State, finish, load, mark};

fn main() -> ExitCode {
    finish(session())
}

fn session() -> Result<(), String> {
    let mut state = load()?;
    mark("loaded");
    let Some(question) = state.answer_next() else {
        return Ok(());
    };
    // The fault: nobody asks whether another session has saved meanwhile.
    save(&state).map_err(|error| format!("{STATE}: cannot save: {error}"))?;
    mark("saved");
    println!("saved the answer to {question}");
    Ok(())
}

fn save(state: &State) -> std::io::Result<()> {
    let temporary = format!("{STATE}.{}.tmp", id());
    fs::write(&temporary, state.encode())?;
    fs::rename(&temporary, STATE)
}
