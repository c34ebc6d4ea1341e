//! Bad: its lock is the existence of a file, which a killed session leaves behind, and it waits for that file to go away
//! for as long as it takes. After one kill no session ever runs again, and none says why.
//!
//! The lab must say, after a kill while the lock file is there: `hung`.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use crashlab_subjects::{STATE, finish, load, mark, replace};

const LOCK: &str = "state.json.lock";

fn main() -> ExitCode {
    finish(session())
}

fn session() -> Result<(), String> {
    wait_for_lock().map_err(|error| format!("{LOCK}: cannot create it: {error}"))?;
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

fn wait_for_lock() -> io::Result<()> {
    loop {
        match OpenOptions::new().write(true).create_new(true).open(LOCK) {
            Ok(_) => return Ok(()),
            // The fault: nobody may be left who could remove it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(error),
        }
    }
}
