//! The checkpoint: what one session leaves for the next, and its format byte for byte. Pure, no I/O.

use indexmap::IndexMap;

/// Everything that the next session needs. Fields are in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checkpoint {
    /// Questions still to be worked, the next one first.
    pub queue: Vec<String>,
    /// One-line summaries of the last answers, the oldest first.
    pub notes: Vec<String>,
    /// Question to answer.
    pub answers: IndexMap<String, Answer>,
    /// Question to the reason for which a person must decide.
    pub pending: IndexMap<String, String>,
    /// How many sessions have changed this checkpoint.
    pub sessions_run: u64,
}

/// A recorded answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// The text.
    pub text: String,
    /// Sections of the corpus, as `file#N`.
    pub citations: Vec<String>,
}

/// Why bytes are no checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found} at line {line}, column {column} ({})", if pointer.is_empty() { "the top level" } else { pointer.as_str() })]
pub struct Damage {
    /// What was found and what was expected.
    pub found: String,
    /// From 1.
    pub line: usize,
    /// From 1, in code points.
    pub column: usize,
    /// JSON pointer of the place (RFC 6901); empty for the whole document.
    pub pointer: String,
}

impl Checkpoint {
    /// A new queue, nothing done.
    pub fn fresh(questions: Vec<String>) -> Self {
        Checkpoint {
            queue: questions,
            ..Checkpoint::default()
        }
    }

    /// The bytes of the file.
    pub fn encode(&self) -> Vec<u8> {
        todo!()
    }

    /// The checkpoint in the bytes of a file.
    ///
    /// # Errors
    ///
    /// [`Damage`] for anything that is no checkpoint, at any level.
    pub fn decode(_bytes: &[u8]) -> Result<Self, Damage> {
        todo!()
    }
}
