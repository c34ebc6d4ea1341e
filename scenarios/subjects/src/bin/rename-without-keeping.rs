//! Bad: puts a new file in the place of the old one and keeps nothing of it but the name. A state file that only its
//! owner could read is readable for all afterwards, and a symbolic link has become a file of its own.
//!
//! The lab must say, where the state file has a mode of its own or is a link: `metadata` (a warning).

use std::path::Path;
use std::process::ExitCode;

use crashlab_subjects::{STATE, finish, load, mark, replace};

fn main() -> ExitCode {
    finish(session())
}

fn session() -> Result<(), String> {
    let mut state = load()?;
    mark("loaded");
    if state.answer_next().is_none() {
        return Ok(());
    }
    // The fault: `replace` knows the name alone; the mode is whatever the umask leaves, and the link is not followed.
    replace(Path::new(STATE), &state.encode())
        .map_err(|error| format!("{STATE}: cannot save: {error}"))?;
    mark("saved");
    Ok(())
}
