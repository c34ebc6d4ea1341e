//! Bad: its check of the notes counts them. It never opens the source that a note was taken from, so that a note which
//! says something else than its source does passes for good.
//!
//! `trusting-notes run` works one question: it looks its key up in `facts.txt` (lines `key: fact`) and takes a note;
//! `trusting-notes verify` checks the notes.
//!
//! The lab must say, when the source has changed since the note was taken: `unnoticed`.

use std::env;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use crashlab_subjects::{STATE, finish, load, mark, replace};

const FACTS: &str = "facts.txt";

fn main() -> ExitCode {
    match env::args().nth(1).as_deref() {
        Some("run") => finish(session()),
        Some("verify") => finish(verify()),
        _ => finish(Err("say `run` or `verify`".into())),
    }
}

fn session() -> Result<(), String> {
    let mut state = load()?;
    let Some(question) = state.queue.first().cloned() else {
        return Ok(());
    };
    let facts =
        fs::read_to_string(FACTS).map_err(|error| format!("{FACTS}: cannot read it: {error}"))?;
    let fact = (facts.lines())
        .filter_map(|line| line.split_once(": "))
        .find_map(|(key, fact)| (key == question).then_some(fact))
        .unwrap_or("nothing is known");
    mark("model-called");
    state.record(&question, fact);
    replace(Path::new(STATE), &state.encode())
        .map_err(|error| format!("{STATE}: cannot save: {error}"))?;
    mark("saved");
    Ok(())
}

fn verify() -> Result<(), String> {
    let state = load()?;
    // The fault: a note that is there counts as a note that is right.
    println!("{} notes checked, all good", state.notes.len());
    Ok(())
}
