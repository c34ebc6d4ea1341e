//! `has-work`: the exit code tells a scheduler whether a run would find something to do. Reads only.

use serde_json::json;

use super::args::HasWorkArgs;
use super::error::CliError;
use super::out::Out;
use super::place::{self, Place};
use crate::exit::Exit;
use crate::words::questions;

pub(super) fn has_work(args: &HasWorkArgs, out: &mut Out) -> Result<Exit, CliError> {
    let place = Place::open(&args.place)?;
    // A damaged checkpoint must be heard of, also while it is stopped.
    let open = match place.store.read()? {
        Some(loaded) => loaded.checkpoint.queue.len(),
        None => place::questions(&args.fresh)?.len(),
    };
    let stopped = place.stop.read()?;
    let has_work = open > 0 && stopped.is_none();
    if args.place.json {
        out.json(&json!({"work": has_work, "queue": open, "stopped": stopped}));
    } else {
        let words = match &stopped {
            Some(stopped) => format!("no work: {stopped}"),
            None if open == 0 => "no work: the queue is empty".to_owned(),
            None => format!("work: {}", questions(open)),
        };
        out.line(&format!("{}: {words}", place.path.display()));
    }
    Ok(if has_work { Exit::Done } else { Exit::NO_WORK })
}
