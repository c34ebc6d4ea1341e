//! Bad: does not look whether there is anything to do. With an empty queue it still asks the model what to do next, and
//! writes down that it ran.
//!
//! The lab must say, when it is run with an empty queue: `repeated`.

use std::path::Path;
use std::process::ExitCode;

use crashlab_subjects::{STATE, ask_model, finish, load, mark, replace};

fn main() -> ExitCode {
    finish(session())
}

fn session() -> Result<(), String> {
    let mut state = load()?;
    mark("loaded");
    if state.answer_next().is_none() {
        // The fault: the model is asked what the code knows.
        ask_model("what to do next");
        state.sessions_run += 1;
    }
    replace(Path::new(STATE), &state.encode())
        .map_err(|error| format!("{STATE}: cannot save: {error}"))?;
    mark("saved");
    Ok(())
}
