//! Bad: its lock is the existence of a file, which a killed session leaves behind, and every later session refuses to
//! run until a person removes it. The refusal is polite, names the file and changes nothing; it would be right after
//! damage, but nothing was damaged.
//!
//! The lab must say, after a kill while the lock file is there: `refused`.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::ExitCode;

use crashlab_subjects::{STATE, finish, load, mark, replace};

const LOCK: &str = "state.json.lock";

fn main() -> ExitCode {
    finish(session())
}

fn session() -> Result<(), String> {
    // The fault: the file says that somebody once began, not that somebody is at work.
    (OpenOptions::new().write(true).create_new(true).open(LOCK))
        .map_err(|error| format!("{STATE} is in use by another session ({LOCK}: {error})"))?;
    let worked = work();
    fs::remove_file(LOCK).map_err(|error| format!("{LOCK}: cannot remove it: {error}"))?;
    worked
}

fn work() -> Result<(), String> {
    let mut state = load()?;
    mark("loaded");
    if state.answer_next().is_some() {
        replace(Path::new(STATE), &state.encode())
            .map_err(|error| format!("{STATE}: cannot save: {error}"))?;
        mark("saved");
    }
    Ok(())
}
