//! The checkpoint: what one session leaves for the next, and its format byte for byte. Pure, no I/O.
//!
//! The format is that of Python's `json.dumps(state, indent=2) + "\n"`, so a file can pass between this program and a
//! Python one in both directions without a changed byte. Reading is stricter than Python: what could not be written back
//! unchanged (a lone surrogate, a counter beyond 2^64-1) and what no session wrote (an unknown field, an element of the
//! wrong type) is [`Damage`], with its place.

mod answers;
mod decode;
mod encode;
mod reader;
mod scan;
mod show;

use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;

pub use answers::Answers;
pub use encode::Encoded;

/// Everything that the next session needs. Fields are in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checkpoint {
    /// Questions still to be worked, the next one first.
    pub queue: Vec<String>,
    /// One-line summaries of the last answers, the oldest first.
    pub notes: Vec<String>,
    /// Question to answer.
    pub answers: Answers,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// What was found and what was expected.
    pub found: String,
    /// From 1; only a line feed ends a line.
    pub line: usize,
    /// From 1, in code points.
    pub column: usize,
    /// JSON pointer of the place (RFC 6901), never shortened; empty for the whole document.
    pub pointer: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at line {}, column {} (", self.found, self.line, self.column)?;
        // A question is part of a pointer, and may be a page long or hold what a terminal would obey.
        match self.pointer.as_str() {
            "" => f.write_str("the top level")?,
            pointer => f.write_str(&show::short(pointer))?,
        }
        f.write_str(")")
    }
}

impl std::error::Error for Damage {}

impl Checkpoint {
    /// A new queue, nothing done.
    pub fn fresh(questions: Vec<String>) -> Self {
        Checkpoint { queue: questions, ..Checkpoint::default() }
    }

    /// The bytes of the file: ASCII only, indented by two spaces, one line feed at the end.
    pub fn encode(&self) -> Vec<u8> {
        self.encoded().parts().concat()
    }

    /// As [`encode`](Self::encode), with the answers that were read by [`decode_shared`](Self::decode_shared) and are still
    /// the same left where they are.
    pub fn encoded(&self) -> Encoded<'_> {
        encode::encode(self)
    }

    /// The checkpoint in the bytes of a file.
    ///
    /// `queue` must be there; the other four fields may be missing and are then empty or 0. JSON white space, CRLF
    /// included, may stand wherever JSON allows it.
    ///
    /// # Errors
    ///
    /// [`Damage`] for anything that is no checkpoint, at any level: the first such place in the order of the file. A
    /// missing field is at the opening brace of the object that lacks it.
    pub fn decode(bytes: &[u8]) -> Result<Self, Damage> {
        decode::decode(bytes).map(|(checkpoint, _)| checkpoint)
    }

    /// As [`decode`](Self::decode). Answers that stand in the file as they would be written are not written anew by
    /// [`encoded`](Self::encoded), but taken from these bytes.
    ///
    /// # Errors
    ///
    /// As [`decode`](Self::decode).
    pub fn decode_shared(bytes: &Arc<Vec<u8>>) -> Result<Self, Damage> {
        let (mut checkpoint, as_written) = decode::decode(bytes)?;
        if let Some(span) = as_written {
            checkpoint.answers.keep(bytes.clone(), span);
        }
        Ok(checkpoint)
    }
}
