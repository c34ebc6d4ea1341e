//! `crashlab` finds out what the state files of a program look like after every kill, damage and overlap.
//!
//! The data goes one way, and the modules are the stations of that way:
//!
//! 1. [`scenario`]: a TOML file says who is tried, on what, and what must hold afterwards;
//! 2. [`trace`]: the subject runs once in its [`sandbox`] under a tracer, which writes down an [`op`] log; such
//!    a [`recording`] can be kept in a file, and tried elsewhere;
//! 3. [`fault`]: pure functions turn that recording into cases;
//! 4. [`tree`]: what is on the disk at a case's crash point;
//! 5. [`recovery`]: what a user would run next, on exactly that tree;
//! 6. [`judge`]: pure again: recording, state and outcome give a verdict;
//! 7. [`report`]: one stream of events, many forms.
//!
//! [`run`] strings them together. In a test of your own:
//!
//! ```no_run
//! use crashlab::run::{Plan, Settings, try_scenario};
//! use crashlab::scenario::Scenario;
//!
//! let scenario = Scenario::new("nightly", &["/usr/bin/nightly", "state.json"], "state.json")
//!     .setup("cp /srv/example.json state.json")
//!     .kill_everywhere()
//!     .damage_everything();
//! let result = try_scenario(&scenario, &Plan::All, &Settings::default()).expect("the lab can run here");
//! result.assert_held();
//! ```
//!
//! # Limits
//!
//! A kill loses nothing that reached the kernel, so a subject that passes can still lose its file in a power cut. What
//! the tracer cannot see is a [`recording::Gap`], and a case that a gap touches is not measured, which is no pass.

pub mod cli;
pub mod digest;
pub mod fault;
pub mod interrupt;
pub mod judge;
pub mod op;
pub mod progress;
pub mod recording;
pub mod recovery;
pub mod report;
pub mod run;
pub mod sandbox;
pub mod scenario;
pub mod shared;
pub mod subject;
mod sys;
pub mod trace;
pub mod tree;
pub mod watched;
mod wrap;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
