//! The tracer on small C programs: what they do to a folder, and what its log says they did, must be the same.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, also in its helpers")]

#[path = "trace/backtrace.rs"]
mod backtrace;
#[path = "trace/commute.rs"]
mod commute;
#[path = "trace/containers.rs"]
mod containers;
#[path = "trace/descriptors.rs"]
mod descriptors;
#[path = "trace/events.rs"]
mod events;
#[path = "trace/faithful.rs"]
mod faithful;
#[path = "trace/folders.rs"]
mod folders;
#[path = "trace/kills.rs"]
mod kills;
#[path = "trace/lives.rs"]
mod lives;
#[path = "trace/outsiders.rs"]
mod outsiders;
#[path = "trace/replay.rs"]
mod replay;
#[path = "trace/steering.rs"]
mod steering;
#[path = "trace/steps.rs"]
mod steps;
#[path = "trace/support.rs"]
mod support;
