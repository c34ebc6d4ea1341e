//! Good: the whole of what the others leave out. One lock from load to save, a temporary file that is synced and then
//! renamed, the folder synced, mode kept, leftovers taken over, damage refused with the file's name, and nothing at all
//! when there is nothing to do.
//!
//! The lab must have nothing to say: not after a kill, not after damage, not in an overlap, not when idle.

use std::fs::{self, File};
use std::io::{self, Write};
use std::process::ExitCode;

use crashlab_subjects::{STATE, finish, load, lock, mark};

fn main() -> ExitCode {
    finish(session())
}

fn session() -> Result<(), String> {
    if load()?.queue.is_empty() {
        return Ok(());
    }
    let _held = lock().map_err(|error| format!("{STATE}: cannot lock: {error}"))?;
    let mut state = load()?;
    mark("loaded");
    let Some(question) = state.answer_next() else {
        return Ok(());
    };
    save(&state.encode()).map_err(|error| format!("{STATE}: cannot save: {error}"))?;
    mark("saved");
    println!("saved the answer to {question}");
    Ok(())
}

/// Under the lock the temporary file's fixed name is ours alone, and whoever left one there is dead.
fn save(bytes: &[u8]) -> io::Result<()> {
    let temporary = format!("{STATE}.tmp");
    let mut file = File::create(&temporary)?;
    file.write_all(bytes)?;
    if let Ok(old) = fs::metadata(STATE) {
        file.set_permissions(old.permissions())?;
    }
    file.sync_all()?;
    fs::rename(&temporary, STATE)?;
    File::open(".")?.sync_all()
}
