//! Good: appends three entries to `log.txt`, each a whole line in one write and synced, the second so long that a kill
//! can fall inside its write. The next run drops a last line without an end, and goes on behind what is whole.
//!
//! The lab must have nothing to say, after a kill anywhere.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::process::ExitCode;

use crashlab_subjects::{finish, mark};

const LOG: &str = "log.txt";

/// Length of the long line, in bytes: more than the 4096 after which a killed write can stop.
const LONG: usize = 10_000;

fn main() -> ExitCode {
    finish(append().map_err(|error| format!("{LOG}: cannot append: {error}")))
}

fn append() -> io::Result<()> {
    let mut file = (OpenOptions::new().read(true).append(true).create(true)).open(LOG)?;
    let whole = drop_torn_line(&mut file)?;
    mark("loaded");
    for (step, length) in [5, LONG, 5].into_iter().enumerate() {
        let line = format!("{} {}\n", whole + step, "x".repeat(length));
        file.write_all(line.as_bytes())?;
        file.sync_data()?;
        println!("line {} is in the log", whole + step);
    }
    Ok(())
}

/// Cuts off what follows the last line end; returns the number of whole lines.
fn drop_torn_line(file: &mut File) -> io::Result<usize> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let end = (bytes.iter().rposition(|byte| *byte == b'\n')).map_or(0, |at| at + 1);
    if end < bytes.len() {
        file.set_len(end as u64)?;
        file.sync_all()?;
    }
    Ok(bytes[..end].iter().filter(|byte| **byte == b'\n').count())
}
