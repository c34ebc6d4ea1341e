//! The checkpoint that a command works on, and what sits beside it.

use std::path::{Path, PathBuf};

use indexmap::IndexSet;

use super::args::{FreshArgs, PlaceArgs};
use super::error::CliError;
use super::out::say;
use crate::clock::Clock;
use crate::control::StopFile;
use crate::corpus::Corpus;
use crate::log::{Entry, Log};
use crate::store::{self, Loaded, Store};
use crate::{builtin, digest, history};

/// A checkpoint and its companions.
#[derive(Debug)]
pub(super) struct Place {
    /// As the user gave it, for messages.
    pub(super) path: PathBuf,
    pub(super) store: Box<dyn Store>,
    pub(super) log: Log,
    pub(super) stop: StopFile,
    pub(super) clock: Clock,
}

impl Place {
    pub(super) fn open(args: &PlaceArgs) -> Result<Self, CliError> {
        let (kind, path) = args.resolve()?;
        let store = store::open(kind, &path);
        let target = store.target()?;
        let clock = Clock::System;
        Ok(Place {
            path,
            log: Log::beside(&target, clock),
            stop: StopFile::beside(&target),
            store,
            clock,
        })
    }

    /// The checkpoint, which must be there.
    pub(super) fn load(&self) -> Result<Loaded, CliError> {
        self.store.read()?.ok_or_else(|| CliError::NoCheckpoint { path: self.path.clone() })
    }

    /// The log as far as it can be read; what is wrong with it is said on standard error. `loaded` is the checkpoint as it is.
    pub(super) fn read_log(&self, loaded: Option<&Loaded>) -> Vec<Entry> {
        let log = match self.log.read() {
            Ok(log) => log,
            Err(error) => {
                say(&format!("warning: {error}"));
                return Vec::new();
            }
        };
        if let Some(complaint) = log.complaint() {
            say(&format!("warning: {}: {complaint}", self.log.path().display()));
        }
        let now =
            loaded.and_then(|loaded| loaded.bytes.as_deref()).map(|bytes| digest::sha256(bytes));
        history::settle(log.entries, now.as_deref())
    }

    /// Says what could not be written to the log, and each reason once.
    pub(super) fn warn_of_log(&self) {
        let failures = self.log.take_failures();
        let words: IndexSet<String> = failures.iter().map(ToString::to_string).collect();
        for failure in words {
            say(&format!("warning: {failure}; the checkpoint is not affected"));
        }
    }
}

/// The questions of a fresh queue, each once: a question that is asked twice would be paid twice, and its first answer lost.
pub(super) fn questions(args: &FreshArgs) -> Result<Vec<String>, CliError> {
    let questions = match &args.queue {
        Some(path) => builtin::parse_questions(&read_text(path)?),
        None if args.question.is_empty() => builtin::parse_questions(builtin::QUESTIONS),
        None => Vec::new(),
    };
    let all: IndexSet<String> =
        questions.into_iter().chain(args.question.iter().cloned()).collect();
    Ok(all.into_iter().collect())
}

fn read_text(path: &Path) -> Result<String, CliError> {
    std::fs::read_to_string(path).map_err(|source| CliError::File {
        path: path.into(),
        what: "read the questions",
        source,
    })
}

/// The corpus in a folder, or the built-in one.
pub(super) fn corpus(folder: Option<&Path>) -> Result<Corpus, CliError> {
    Ok(folder.map_or_else(Corpus::built_in, Corpus::load)?)
}
