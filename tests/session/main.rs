//! One session, driven through the library: what it asks, what it records, and what it leaves when it fails.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, also in what tests share")]

mod bench;
mod costs;
mod failures;
mod overlap;
mod steps;
