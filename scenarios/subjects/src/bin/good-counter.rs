//! Good: counts its runs in `count.txt`, by rename. Killed after the rename and run again it ends one higher than an
//! undisturbed run does, and that is right: the killed run had counted.
//!
//! The lab must have nothing to say, after a kill anywhere.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use crashlab_subjects::{finish, mark, replace};

const COUNT: &str = "count.txt";

fn main() -> ExitCode {
    finish(count())
}

fn count() -> Result<(), String> {
    let count: u64 = match fs::read_to_string(COUNT) {
        Ok(text) => (text.trim_end().parse())
            .map_err(|error| format!("{COUNT}: damaged: {error}; restore it from a backup"))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(format!("{COUNT}: cannot read it: {error}")),
    };
    mark("loaded");
    let next = format!("{}\n", count + 1);
    replace(Path::new(COUNT), next.as_bytes())
        .map_err(|error| format!("{COUNT}: cannot save: {error}"))?;
    println!("run {}", count + 1);
    Ok(())
}
