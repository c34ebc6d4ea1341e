//! The providers, against a server of our own on loopback.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, also in what tests share")]

#[path = "../command/mod.rs"]
mod command;

mod ask;
mod failures;
mod program;
mod replies;
mod requests;
mod server;
mod words;
