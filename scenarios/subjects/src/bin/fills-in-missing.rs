//! Bad: fills in what is missing inside of its state. An answer without its text becomes an empty answer, one without
//! citations one that cites nothing; from the next save on nobody can tell them from answers that were given. All that
//! is there it checks, and refuses by name.
//!
//! The lab must say, after damages `missing/POINTER` of an answer's fields: `accepted`.

use std::fs;
use std::process::ExitCode;

use crashlab_subjects::{STATE, State, finish, work};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    // The fault: a default for what every answer has.
    #[serde(default)]
    text: String,
    #[serde(default)]
    citations: Vec<String>,
}

fn main() -> ExitCode {
    finish(session())
}

fn session() -> Result<(), String> {
    let damaged = |error: String| format!("{STATE}: damaged: {error}");
    let bytes = fs::read(STATE).map_err(|error| format!("{STATE}: cannot read it: {error}"))?;
    let mut state = State::parse(&bytes).map_err(damaged)?;
    for answer in state.answers.values_mut() {
        let filled: Answer =
            serde_json::from_value(answer.take()).map_err(|error| damaged(error.to_string()))?;
        *answer = serde_json::to_value(filled).unwrap_or(Value::Null);
    }
    work(state)
}
