//! Bad: an answer is recorded in two steps that belong together. It appends the answer to `answers.jsonl`, then takes
//! the question from the queue. A session that is killed in between is asked the same question again, and the answer
//! stands there twice. Each file by itself is always whole.
//!
//! The lab must say, after a kill between the two: `repeated`.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use crashlab_subjects::{STATE, finish, load, mark, replace};
use serde_json::json;

const ANSWERS: &str = "answers.jsonl";

fn main() -> ExitCode {
    finish(session())
}

fn session() -> Result<(), String> {
    let mut state = load()?;
    mark("loaded");
    let Some(question) = state.answer_next() else {
        return Ok(());
    };
    let answer = state.answers.remove(&question);
    state.notes.clear();
    // The fault: two files, one after the other, and no way to tell whether the first step was done.
    append(&format!("{}\n", json!({ "question": question, "answer": answer })))
        .map_err(|error| format!("{ANSWERS}: cannot append: {error}"))?;
    replace(Path::new(STATE), &state.encode())
        .map_err(|error| format!("{STATE}: cannot save: {error}"))?;
    mark("saved");
    Ok(())
}

fn append(line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(ANSWERS)?;
    file.write_all(line.as_bytes())?;
    file.sync_all()
}
