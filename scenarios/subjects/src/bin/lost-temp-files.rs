//! Bad: saves through a temporary file with its process id in the name, and nobody ever removes the temporary file of a
//! session that was killed. The state is always whole; the folder fills up.
//!
//! The lab must say, after a kill between the temporary file's creation and its rename: `leftover` (a warning).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::process::{ExitCode, id};

use crashlab_subjects::{STATE, finish, load, mark};

fn main() -> ExitCode {
    finish(session())
}

fn session() -> Result<(), String> {
    let mut state = load()?;
    mark("loaded");
    if state.answer_next().is_none() {
        return Ok(());
    }
    save(&state.encode()).map_err(|error| format!("{STATE}: cannot save: {error}"))?;
    mark("saved");
    Ok(())
}

fn save(bytes: &[u8]) -> io::Result<()> {
    let (temporary, mut file) = new_temporary()?;
    file.write_all(bytes)?;
    file.sync_all()?;
    // The fault is what is missing: nowhere are the temporary files of dead sessions looked for.
    fs::rename(&temporary, STATE)?;
    File::open(".")?.sync_all()
}

/// A temporary file that no other process has, also where process ids come again.
fn new_temporary() -> io::Result<(String, File)> {
    for attempt in 0_u32.. {
        let name = format!("{STATE}.{}-{attempt}.tmp", id());
        match OpenOptions::new().write(true).create_new(true).open(&name) {
            Ok(file) => return Ok((name, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}
