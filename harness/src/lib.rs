//! `crashlab` finds out what the state files of a program look like after every kill, damage and overlap.
//!
//! The data goes one way, and the modules are the stations of that way:
//!
//! 1. [`scenario`]: a TOML file says who is tried, on what, and what must hold afterwards;
//! 2. [`trace`]: the subject runs once in its [`sandbox`] under a tracer, which writes down an [`op`] log;
//! 3. [`fault`]: pure functions turn that recording into cases;
//! 4. [`tree`]: what is on the disk at a case's crash point;
//! 5. [`recovery`]: what a user would run next, on exactly that tree;
//! 6. [`judge`]: pure again: recording, state and outcome give a verdict;
//! 7. [`report`]: one stream of events, many forms.
//!
//! [`run`] strings them together.

pub mod cli;
pub mod fault;
pub mod judge;
pub mod op;
pub mod recording;
pub mod recovery;
pub mod report;
pub mod run;
pub mod sandbox;
pub mod scenario;
pub mod subject;
mod sys;
pub mod trace;
pub mod tree;
