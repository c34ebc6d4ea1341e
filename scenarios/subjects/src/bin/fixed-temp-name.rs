//! Bad: its temporary file has one fixed name for all sessions, and is opened whether or not another session is just
//! writing it. Two at once write into the same file, and the late half of the one lands in what the other has saved.
//!
//! `fixed-temp-name NAME` works the first question; NAME becomes part of the answer, so that two sessions differ.
//! The mark `half-written` lies between the two halves of the write.
//!
//! The lab must say, in an overlap where one session runs while another stands at that mark: `torn`. The one that
//! ran through has reported success, and what it saved is then half its own and half the other's.

use std::env;
use std::fs::{self, File};
use std::io::{self, Write};
use std::process::ExitCode;

use crashlab_subjects::{STATE, State, ask_model, finish, load, mark};

fn main() -> ExitCode {
    finish(session())
}

fn session() -> Result<(), String> {
    let name = env::args().nth(1).unwrap_or_else(|| "nobody".into());
    let mut state = load()?;
    mark("loaded");
    let Some(question) = state.queue.first().cloned() else {
        return Ok(());
    };
    let text = format!("{}, says {name}", ask_model(&question));
    state.record(&question, &text);
    save(&state).map_err(|error| format!("{STATE}: cannot save: {error}"))?;
    println!("{name} saved the answer to {question}");
    Ok(())
}

fn save(state: &State) -> io::Result<()> {
    // The fault: one name for all, and no lock.
    let temporary = format!("{STATE}.tmp");
    let bytes = state.encode();
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let mut file = File::create(&temporary)?;
    file.write_all(first)?;
    mark("half-written");
    file.write_all(second)?;
    drop(file);
    fs::rename(&temporary, STATE)
}
