//! The stores: what they keep, what they refuse by which name, and what they leave behind.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, also in what tests share")]

mod any_bytes;
mod lock;
mod meanwhile;
mod reference;
mod saving;
mod unreadable;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use long_horizon::checkpoint::Checkpoint;
use long_horizon::store::StoreError;
use tempfile::TempDir;

/// Tells a test that was started again in a process of its own which folder it is about.
const AGAIN: &str = "LONG_HORIZON_TEST_FOLDER";
/// Owns nothing, on every system.
const NOBODY: u32 = 65534;

/// A temporary folder in which the checkpoint is `state.json`.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Folder(TempDir::new().unwrap())
    }

    /// One with a checkpoint that three sessions have changed.
    fn with_state() -> Self {
        let folder = Folder::new();
        fs::write(folder.state(), sample(3).encode()).unwrap();
        folder
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    fn state(&self) -> PathBuf {
        self.at("state.json")
    }

    fn lock(&self) -> PathBuf {
        self.at("state.json.lock")
    }

    /// The names in it.
    fn names(&self) -> BTreeSet<String> {
        names(self.path())
    }

    /// An error's text, with what differs between runs replaced.
    fn text(&self, error: &StoreError) -> String {
        let text = error.to_string().replace(self.path().to_str().unwrap(), "DIR");
        text.replace(&std::process::id().to_string(), "PID")
    }
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

/// A checkpoint after so many sessions.
fn sample(sessions_run: u64) -> Checkpoint {
    Checkpoint {
        notes: vec!["first? -> yes".to_owned()],
        sessions_run,
        ..Checkpoint::fresh(vec!["second?".to_owned(), "third?".to_owned()])
    }
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// The command that runs one test of this binary again, with `AGAIN` set to a folder.
fn again(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture"]).env(AGAIN, folder);
    command
}

/// Set where this is a test that [`again`] or [`as_ordinary_user`] started.
fn started_again() -> Option<PathBuf> {
    std::env::var_os(AGAIN).map(PathBuf::from)
}

/// Runs a test again as a user for whom permissions count: this one, or, if this is the superuser, nobody.
fn as_ordinary_user(test: &str, folder: &Path) {
    let mut command = again(test, folder);
    let programs = TempDir::new().unwrap();
    if nix::unistd::geteuid().is_root() {
        // Nobody may not be able to reach the program where it is.
        let program = programs.path().join("tests");
        fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        set_mode(programs.path(), 0o755);
        command = Command::new(program);
        command.args([test, "--exact", "--nocapture"]).env(AGAIN, folder);
        command.current_dir("/").uid(NOBODY).gid(NOBODY);
    }
    let output = loop {
        match command.output() {
            // Another test's child, just being started, still has a copy of the descriptor that wrote the program.
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                std::thread::yield_now()
            }
            output => break output,
        }
    };
    match output {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr))
        }
        Err(error) => println!("skipped: cannot run as an ordinary user here: {error}"),
    }
}
