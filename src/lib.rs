//! `long-horizon` works through a queue of questions across separate processes, with one checkpoint file between them.
//!
//! The way of one session, in the order of the modules:
//!
//! 1. [`store`] reads the [`checkpoint`]: the queue, the notes, the answers, what waits for a person.
//! 2. [`retrieval`] finds the sections of the [`corpus`] that the first question is answered from.
//! 3. [`prompt`] builds the context from the notes, never from an earlier session's messages.
//! 4. A [`model`] decides once, and [`choice`] checks what it decided: answer, or flag for a person.
//! 5. [`queue`] applies the decision, and the store replaces the checkpoint.
//!
//! [`session`] does these steps; [`trace`] and [`log`] tell of them. [`status`], [`history`] and [`drift`] look at what is there, and
//! [`control`] stops and resumes. A session that is killed at any point leaves the old checkpoint or the new one.
//!
//! ```
//! use long_horizon::clock::Clock;
//! use long_horizon::corpus::Corpus;
//! use long_horizon::log::Log;
//! use long_horizon::model::Echo;
//! use long_horizon::session::{Limits, Outcome, Session};
//! use long_horizon::store::{self, StoreKind};
//! use long_horizon::trace::Trace;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let store = store::open(StoreKind::Json, folder.path().join("queue.json"));
//! let session = Session {
//!     store: &*store,
//!     model: &Echo,
//!     corpus: &Corpus::built_in()?,
//!     questions: &["Is a rename atomic?".to_owned()],
//!     log: &Log::beside(&store.target()?, Clock::System),
//!     clock: Clock::System,
//!     limits: Limits::default(),
//! };
//! assert!(matches!(session.run(&mut Trace::Off)?, Outcome::Worked(_)));
//! assert_eq!(session.run(&mut Trace::Off)?, Outcome::Empty);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod builtin;
pub mod checkpoint;
pub mod choice;
pub mod cli;
pub mod clock;
pub mod control;
pub mod corpus;
pub mod digest;
pub mod drift;
pub mod exit;
mod files;
pub mod history;
pub mod log;
pub mod model;
pub mod prompt;
pub mod queue;
pub mod retrieval;
pub mod session;
pub mod status;
pub mod store;
pub mod trace;
pub mod words;
