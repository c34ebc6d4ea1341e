//! Good: saves by rename, and writes down when it did. Two undisturbed runs never end in the same bytes, and that says
//! nothing about what a kill does.
//!
//! The lab must have nothing to say, after a kill anywhere: it has to see that only `saved_at` differs between two equal
//! runs, and leave that out where it compares.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use crashlab_subjects::{STATE, finish, mark, replace};
use serde_json::{Value, json};

fn main() -> ExitCode {
    finish(session())
}

fn session() -> Result<(), String> {
    let mut state: Value = match fs::read(STATE) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map_err(|error| format!("{STATE}: damaged: {error}; restore it from a backup"))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            json!({ "runs": 0, "saved_at": 0 })
        }
        Err(error) => return Err(format!("{STATE}: cannot read it: {error}")),
    };
    let runs = (state["runs"].as_u64()).ok_or_else(|| format!("{STATE}: damaged: no `runs`"))?;
    mark("loaded");
    state["runs"] = (runs + 1).into();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    state["saved_at"] = (now.as_millis() as u64).into();
    replace(Path::new(STATE), format!("{state:#}\n").as_bytes())
        .map_err(|error| format!("{STATE}: cannot save: {error}"))?;
    mark("saved");
    Ok(())
}
