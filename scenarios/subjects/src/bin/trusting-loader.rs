//! Bad: takes everything that is JSON for its state. What does not fit it passes over, and goes on with the rest: a
//! queue of another type is an empty queue, answers of another type are thrown away, a field too many is carried along.
//!
//! The lab must say, after damage that leaves JSON: `accepted`. (It does refuse what is no JSON at all.)

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use crashlab_subjects::{STATE, State, ask_model, finish, mark, replace};
use serde_json::{Map, Value, json};

fn main() -> ExitCode {
    finish(session())
}

fn session() -> Result<(), String> {
    let bytes = fs::read(STATE).unwrap_or_else(|_| State::fresh().encode());
    let mut state: Value = serde_json::from_slice(&bytes)
        .map_err(|error| format!("{STATE}: not JSON: {error}; restore it from a backup"))?;
    mark("loaded");
    // The fault: whatever is of another type than expected counts as empty.
    let queue = state["queue"].as_array().cloned().unwrap_or_default();
    let Some((question, rest)) = queue.split_first() else {
        println!("nothing to do");
        return Ok(());
    };
    let question = question.as_str().unwrap_or_default();
    if !state["answers"].is_object() {
        state["answers"] = Map::new().into();
    }
    let text = ask_model(question);
    state["answers"][question] = json!({ "text": text, "citations": [] });
    state["sessions_run"] = (state["sessions_run"].as_u64().unwrap_or(0) + 1).into();
    state["queue"] = rest.into();
    replace(Path::new(STATE), format!("{state:#}\n").as_bytes())
        .map_err(|error| format!("{STATE}: cannot save: {error}"))?;
    mark("saved");
    Ok(())
}
