//! Runs the built command in a folder of its own.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses its own part")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, also in what tests share")]

#[path = "../../harness/tests/shell_and_man/mod.rs"]
pub mod shell_and_man;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder in which the command runs.
pub struct Folder(tempfile::TempDir);

/// What a run of the command gave.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Folder {
    pub fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.at(name), content).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.at(name)).unwrap()
    }

    pub fn read_bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.at(name)).unwrap()
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_long-horizon"));
        command.args(args).current_dir(self.path()).stdin(Stdio::null());
        // Help is wrapped to the terminal's width, where one is told.
        command.env_remove("COLUMNS");
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::from(self.command(args).output().unwrap())
    }

    /// Runs the command, which must succeed; gives its standard output.
    pub fn ok(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
        ran.stdout
    }

    /// Every file with its bytes.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        std::fs::read_dir(self.path())
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let name = entry.file_name().into_string().unwrap();
                (name, std::fs::read(entry.path()).unwrap())
            })
            .collect()
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    /// All of it, as a person sees it.
    pub fn text(&self) -> String {
        let code = self.code.map_or("killed".to_owned(), |code| code.to_string());
        format!("{}{}[exit {code}]\n", self.stdout, self.stderr)
    }
}

/// Makes what differs from run to run the same.
pub fn redacted(text: &str) -> String {
    let mut settled = text.to_owned();
    for (find, put) in [
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "TIME"),
        (r"\b[0-9a-f]{64}\b", "SHA256"),
        (r"process \d+", "process PID"),
        (r"\d+ of 100000 tokens", "N of 100000 tokens"),
        (r#""(pid|ms|tokens_in|tokens_out)":\d+"#, r#""$1":N"#),
        (r#""(pending_oldest_seconds|idle_seconds|age_seconds)":\d+"#, r#""$1":N"#),
        (r"(oldest for|waits for|progress  ) ?(\d+[dhms] ?)+", "$1 AGE "),
    ] {
        settled = regex::Regex::new(find).unwrap().replace_all(&settled, put).into_owned();
    }
    settled
}
