//! The database store beyond what every store must do: whose database it is, what others may do to it, and what it tells.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, also in what tests share")]

#[path = "../command/mod.rs"]
mod command;

mod commands;
mod others;
mod side_by_side;
