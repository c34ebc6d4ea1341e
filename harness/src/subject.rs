//! A program that the lab runs, and how a run of it ended.

use std::ffi::OsString;
use std::time::Duration;

/// What to start.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program and its arguments; the program is looked up in the `PATH` of [`env`](Self::env) if it has no slash.
    pub argv: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Bytes on its standard input; empty means end of file at once.
    pub stdin: Vec<u8>,
    /// Standard output is a pipe and not a pseudo-terminal.
    pub pipe: bool,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Exit {
    /// With this exit code.
    Code(i32),
    /// By this signal, which the lab did not send.
    Signal(i32),
    /// By the lab's SIGKILL at a chosen point.
    Killed,
    /// It was still running when its time was over, and was ended.
    TimedOut,
}

impl Exit {
    /// Exit code 0.
    pub fn success(self) -> bool {
        self == Exit::Code(0)
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exit code {code}"),
            Exit::Signal(number) => match nix::sys::signal::Signal::try_from(*number) {
                Ok(signal) => write!(f, "signal {number} ({signal})"),
                Err(_) => write!(f, "signal {number}"),
            },
            Exit::Killed => f.write_str("killed by the lab"),
            Exit::TimedOut => f.write_str("time limit reached"),
        }
    }
}

/// The end of one program of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// How it ended.
    pub exit: Exit,
    /// All of its standard output (bounded, see [`OUTPUT_LIMIT`]).
    pub stdout: Vec<u8>,
    /// All of its standard error (bounded, see [`OUTPUT_LIMIT`]).
    pub stderr: Vec<u8>,
    /// From its start to its end.
    pub elapsed: Duration,
}

/// No file may grow beyond this, in bytes: as much as a tree may hold.
pub const FILE_BYTES_MAX: u64 = crate::tree::BYTES_MAX;

/// Output beyond this many bytes a stream is thrown away, and said so.
pub const OUTPUT_LIMIT: usize = 1 << 20;
