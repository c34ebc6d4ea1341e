//! Bad: notes in `current.txt` which question it is working on, and a session that finds such a note takes the question
//! for done. A question whose session was killed before it saved is never answered.
//!
//! The lab must say, after a kill between the note and the save: `diverged`. The state file is whole and an old
//! version, and yet the next session ends where no undisturbed session ever ends.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use crashlab_subjects::{STATE, finish, load, mark, replace};

const CURRENT: &str = "current.txt";

fn main() -> ExitCode {
    finish(session())
}

fn session() -> Result<(), String> {
    let mut state = load()?;
    if let Ok(interrupted) = fs::read_to_string(CURRENT) {
        // The fault: begun is not done.
        state.queue.retain(|question| *question != interrupted);
    }
    mark("loaded");
    let Some(question) = state.queue.first() else {
        return Ok(());
    };
    replace(Path::new(CURRENT), question.as_bytes())
        .map_err(|error| format!("{CURRENT}: cannot write: {error}"))?;
    state.answer_next();
    replace(Path::new(STATE), &state.encode())
        .map_err(|error| format!("{STATE}: cannot save: {error}"))?;
    mark("saved");
    fs::remove_file(CURRENT).map_err(|error| format!("{CURRENT}: cannot remove: {error}"))
}
