//! One session, driven through the library: what it asks, what it records, and what it leaves when it fails.

mod bench;
mod costs;
mod failures;
mod overlap;
mod steps;
