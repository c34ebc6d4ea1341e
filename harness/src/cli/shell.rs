//! A shell for the user in the folder of a case.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::report::crashed_folder;
use crate::sandbox;
use crate::tree::{Tree, write_out};

/// Opens a shell in a folder that is as the crash left it, and waits for its end: where the case was kept, in that folder, else
/// in one that is removed then.
///
/// # Errors
///
/// Why that cannot be, in words.
pub(super) fn open(crashed: &Tree, id: &str, keep: Option<&Path>) -> Result<(), String> {
    match keep {
        Some(folder) => run(&crashed_folder(id, folder), id, "stays"),
        None => {
            let folder = tempfile::Builder::new().prefix("crashlab-replay-").tempdir();
            let folder = folder.map_err(|error| format!("a folder for the shell: {error}"))?;
            let made = Made(folder.keep());
            write_out(crashed, &made.0).map_err(|error| error.to_string())?;
            run(&made.0, id, "goes with this shell")
        }
    }
}

/// A folder that goes, whatever modes the user or the subject gave to what is in it.
struct Made(PathBuf);

impl Drop for Made {
    fn drop(&mut self) {
        if let Err(error) = sandbox::remove(&self.0) {
            super::output::complain(&format!("cannot remove {}: {error}", self.0.display()));
        }
    }
}

fn run(folder: &Path, id: &str, what_becomes: &str) -> Result<(), String> {
    let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
    let shell = shell.unwrap_or_else(|| OsString::from("/bin/sh"));
    let _nobody_reads = writeln!(
        std::io::stderr(),
        "{id}: a shell in {}, which {what_becomes}; `exit` leaves it",
        folder.display()
    );
    let mut command = Command::new(&shell);
    command.current_dir(folder).env("PWD", folder).env("CRASHLAB_CASE", id);
    // How the shell ends is the user's own business.
    super::interrupt::for_shell(|| command.status())
        .map(drop)
        .map_err(|error| format!("cannot start {}: {error}; set SHELL", shell.display()))
}
