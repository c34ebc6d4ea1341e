//! The trace of a session: its steps in order, for a person who was not there. One JSON object a line.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// Who did, or decided, a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Actor {
    /// Ordinary code.
    Code,
    /// The model.
    Model,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Who did it.
    pub kind: Actor,
    /// Who decided that it happens.
    pub decided_by: Actor,
    /// What happened; the same for each session.
    pub title: &'static str,
    /// What it was about.
    pub detail: String,
    /// Tokens of the request; 0 for code.
    pub tokens_in: u64,
    /// Tokens of the reply; 0 for code.
    pub tokens_out: u64,
    /// Milliseconds of the model call; 0 for code.
    pub ms: u64,
}

impl Step {
    /// A step of ordinary code.
    pub fn code(title: &'static str, detail: impl Into<String>) -> Self {
        Step {
            kind: Actor::Code,
            decided_by: Actor::Code,
            title,
            detail: detail.into(),
            tokens_in: 0,
            tokens_out: 0,
            ms: 0,
        }
    }
}

/// Where steps go.
#[derive(Debug, Default)]
pub enum Trace {
    /// Nowhere.
    #[default]
    Off,
    /// Into memory.
    Memory(Vec<Step>),
    /// To the end of a file.
    File(TraceFile),
}

/// A trace file. A line that cannot be written is remembered, and no more are tried; the session goes on.
#[derive(Debug)]
pub struct TraceFile {
    path: PathBuf,
    file: File,
    failure: Option<std::io::Error>,
}

impl Trace {
    /// Appends to `path`, which is created where it is missing.
    ///
    /// # Errors
    ///
    /// The kernel's answer to opening it.
    pub fn to_file(path: &Path) -> std::io::Result<Self> {
        Ok(Trace::File(TraceFile {
            path: path.to_owned(),
            file: File::options().append(true).create(true).open(path)?,
            failure: None,
        }))
    }

    /// Adds a step.
    pub fn record(&mut self, step: Step) {
        match self {
            Trace::Off => {}
            Trace::Memory(steps) => steps.push(step),
            Trace::File(trace) => trace.append(&step),
        }
    }

    /// The file and the error of the first line that could not be written.
    pub fn failure(&self) -> Option<(&Path, &std::io::Error)> {
        match self {
            Trace::File(trace) => Some((&trace.path, trace.failure.as_ref()?)),
            _ => None,
        }
    }
}

impl TraceFile {
    fn append(&mut self, step: &Step) {
        if self.failure.is_some() {
            return;
        }
        let written = serde_json::to_string(step)
            .map_err(std::io::Error::from)
            .and_then(|line| self.file.write_all(format!("{line}\n").as_bytes()));
        self.failure = written.err();
    }
}
