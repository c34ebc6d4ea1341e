//! Bad: its status says how long questions have been waiting for a person, and is content with any answer. Whatever
//! watches exit codes never raises an alarm, while the pile grows.
//!
//! `silent-status run` works one question and flags what needs a person; `silent-status status` reports.
//! `waiting-since.json` holds the second (since 1970) in which each pending question was flagged.
//!
//! The lab must say, when the oldest question has waited for years: `unnoticed`.

use std::env;
use std::fs;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use crashlab_subjects::{finish, load, work};
use serde_json::{Map, Value};

const WAITING: &str = "waiting-since.json";
const SECONDS_PER_DAY: u64 = 86_400;

fn main() -> ExitCode {
    match env::args().nth(1).as_deref() {
        Some("run") => finish(session()),
        Some("status") => finish(status()),
        _ => finish(Err("say `run` or `status`".into())),
    }
}

fn session() -> Result<(), String> {
    work(load()?)
}

fn status() -> Result<(), String> {
    let state = load()?;
    let bytes = fs::read(WAITING).map_err(|error| format!("{WAITING}: cannot read it: {error}"))?;
    let since: Map<String, Value> =
        serde_json::from_slice(&bytes).map_err(|error| format!("{WAITING}: damaged: {error}"))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs());
    let oldest = (state.pending.keys())
        .filter_map(|question| since.get(question)?.as_u64())
        .map(|second| now.saturating_sub(second) / SECONDS_PER_DAY)
        .max();
    // The fault: an age is printed, and no age is too old.
    println!("queued: {}", state.queue.len());
    println!("pending: {}", state.pending.len());
    println!("oldest pending: {} days", oldest.unwrap_or(0));
    Ok(())
}
