//! Bad: puts a new file in the place of the old one and keeps nothing of it but the name. A state file that only its
//! owner could read is readable for all afterwards, and a symbolic link has become a file of its own.
//!
//! The lab must say, where the state file has a mode of its own or is a link: `metadata` (a warning).

use std::process::ExitCode;

use crashlab_subjects::{finish, load, work};

fn main() -> ExitCode {
    finish(session())
}

fn session() -> Result<(), String> {
    // The fault: the file is replaced by its name alone; the mode is whatever the umask leaves, and the link is not followed.
    work(load()?)
}
