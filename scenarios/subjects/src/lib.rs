//! What the subjects have in common: a miniature of a checkpoint, a scripted model, marks, and one right way to save.
//!
//! Each subject is one file in `src/bin`; its head says what is wrong with it and which verdict the lab must give.
//! It brings its fault itself and takes everything else from here, so that it has that one fault and no other.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use nix::unistd::{AccessFlags, access};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The state file of every subject that keeps a queue, in the current folder.
pub const STATE: &str = "state.json";

/// Notes beyond this many are dropped, the oldest first.
const MAX_NOTES: usize = 6;

/// What one session leaves for the next: a queue of questions and what became of those that were worked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Questions still to be worked, the next one first.
    pub queue: Vec<String>,
    /// One line for each of the last answers, the oldest first.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Question to `{"text", "citations"}`.
    #[serde(default)]
    pub answers: Map<String, Value>,
    /// Question to the reason for which a person must decide.
    #[serde(default)]
    pub pending: Map<String, Value>,
    /// How many sessions have changed this state.
    #[serde(default)]
    pub sessions_run: u64,
}

impl State {
    /// A new queue of three questions, nothing done.
    pub fn fresh() -> Self {
        State { queue: ["first", "second", "third"].map(String::from).to_vec(), ..State::default() }
    }

    /// The state in the bytes of a file.
    ///
    /// # Errors
    ///
    /// What is wrong with them, in words that do not name the file.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let value: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if !value.is_object() {
            return Err("not a JSON object".into());
        }
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    /// The bytes of the file.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(self).expect("a state has only string keys");
        bytes.push(b'\n');
        bytes
    }

    /// Works the first question: asks the model, records the answer and a note, counts the session.
    /// Returns the question; `None` where the queue is empty, and then nothing has happened.
    pub fn answer_next(&mut self) -> Option<String> {
        let question = self.queue.first()?.clone();
        let text = ask_model(&question);
        self.record(&question, &text);
        Some(question)
    }

    /// Records the answer to a question that was in the queue, and counts the session.
    pub fn record(&mut self, question: &str, text: &str) {
        self.queue.retain(|queued| queued != question);
        self.notes.push(format!("{question} -> {text}"));
        self.notes.drain(..self.notes.len().saturating_sub(MAX_NOTES));
        let answer = json!({ "text": text, "citations": [] });
        self.answers.insert(question.into(), answer);
        self.sessions_run += 1;
    }
}

/// The state of [`STATE`]; a fresh queue where there is no file.
///
/// # Errors
///
/// A file that is damaged or cannot be read; the text names it.
pub fn load() -> Result<State, String> {
    match fs::read(STATE) {
        Ok(bytes) => State::parse(&bytes)
            .map_err(|error| format!("{STATE}: damaged: {error}; restore it from a backup")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(State::fresh()),
        Err(error) => Err(format!("{STATE}: cannot read it: {error}")),
    }
}

/// The model: the same question gives the same answer. Passes the mark `model-called`.
pub fn ask_model(question: &str) -> String {
    let text = format!("what is to be said about {question}");
    mark("model-called");
    text
}

/// Replaces a file as it should be done: temporary file beside it, fsync, rename, fsync of the folder.
/// The temporary file has a fixed name, so that the next call takes it over after a kill: for one process at a time.
///
/// # Errors
///
/// The step that failed; the file is then as it was.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = with_suffix(path, ".tmp");
    let mut file = File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    File::open(".")?.sync_all()
}

/// What a session does with a loaded state: answers its next question and replaces the file. Passes the marks `loaded` and
/// `saved`; without a question nothing is written.
///
/// # Errors
///
/// A file that cannot be replaced; the text names it.
pub fn work(mut state: State) -> Result<(), String> {
    mark("loaded");
    if state.answer_next().is_none() {
        return Ok(());
    }
    replace(Path::new(STATE), &state.encode())
        .map_err(|error| format!("{STATE}: cannot save: {error}"))?;
    mark("saved");
    Ok(())
}

/// Takes the advisory lock beside [`STATE`], held until the returned file is dropped; waits for whoever holds it.
///
/// # Errors
///
/// The lock file cannot be opened or locked.
pub fn lock() -> io::Result<File> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(with_suffix(Path::new(STATE), ".lock"))?;
    file.lock()?;
    Ok(file)
}

/// The path with something behind its last component.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut longer = OsString::from(path);
    longer.push(suffix);
    longer.into()
}

/// Announces a place of interest to the lab: one look-up of `/crashlab/mark/NAME`, which fails.
pub fn mark(name: &str) {
    let path = Path::new("/crashlab/mark").join(name);
    let _no_such_file = access(&path, AccessFlags::F_OK);
}

/// The exit code of a subject: 0, or 1 after the error was printed.
pub fn finish(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
