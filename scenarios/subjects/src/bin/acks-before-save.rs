//! Bad: says that an answer is saved before it saves it. Whoever reads that line and goes away is wrong when the session
//! is killed in between.
//!
//! The lab must say, when told that the line `saved ...` acknowledges, after a kill between it and the rename: `lost`.

use std::path::Path;
use std::process::ExitCode;

use crashlab_subjects::{STATE, finish, load, mark, replace};

fn main() -> ExitCode {
    finish(session())
}

fn session() -> Result<(), String> {
    let mut state = load()?;
    mark("loaded");
    let Some(question) = state.answer_next() else {
        return Ok(());
    };
    // The fault: a promise, not a report.
    println!("saved the answer to {question}");
    replace(Path::new(STATE), &state.encode())
        .map_err(|error| format!("{STATE}: cannot save: {error}"))
}
