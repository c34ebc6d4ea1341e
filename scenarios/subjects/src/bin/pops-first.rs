//! Bad: takes the question from the queue, saves, and only then writes the answer into its own file. A session that is
//! killed in between loses the answer: nobody asks that question again. Each file by itself is always whole.
//!
//! The lab must say, after a kill between the two, of the two files that must agree: `torn`.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use crashlab_subjects::{STATE, ask_model, finish, load, mark, replace};
use serde_json::{Map, Value};

const ANSWERS: &str = "answers.json";

fn main() -> ExitCode {
    finish(session())
}

fn session() -> Result<(), String> {
    let mut state = load()?;
    let mut answers = load_answers()?;
    mark("loaded");
    if state.queue.is_empty() {
        return Ok(());
    }
    let question = state.queue.remove(0);
    state.sessions_run += 1;
    answers.insert(question.clone(), ask_model(&question).into());
    // The fault: the question is gone before its answer is there.
    replace(Path::new(STATE), &state.encode())
        .map_err(|error| format!("{STATE}: cannot save: {error}"))?;
    let text = format!("{:#}\n", Value::from(answers));
    replace(Path::new(ANSWERS), text.as_bytes())
        .map_err(|error| format!("{ANSWERS}: cannot save: {error}"))?;
    mark("saved");
    Ok(())
}

fn load_answers() -> Result<Map<String, Value>, String> {
    match fs::read(ANSWERS) {
        Ok(bytes) => {
            serde_json::from_slice(&bytes).map_err(|error| format!("{ANSWERS}: damaged: {error}"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Map::new()),
        Err(error) => Err(format!("{ANSWERS}: cannot read it: {error}")),
    }
}
