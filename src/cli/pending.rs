//! `pending`: what waits for a person.

use serde_json::json;

use super::args::PlaceArgs;
use super::error::CliError;
use super::out::Out;
use super::place::Place;
use crate::clock::rfc3339;
use crate::exit::Exit;
use crate::status;
use crate::words::humane;

pub(super) fn pending(args: &PlaceArgs, out: &mut Out) -> Result<Exit, CliError> {
    let place = Place::open(args)?;
    let loaded = place.store.read()?;
    let log = place.read_log(loaded.as_ref());
    let pending = loaded
        .map_or(Vec::new(), |loaded| status::pending(&loaded.checkpoint, &log, place.clock.now()));
    if args.json {
        for item in &pending {
            out.json(&json!({
                "question": item.question,
                "reason": item.reason,
                "since": item.since.map(rfc3339),
                "age_seconds": item.age.map(|age| age.as_secs()),
            }));
        }
        return Ok(Exit::Done);
    }
    if pending.is_empty() {
        out.line(&format!("{}: nothing waits for a person", place.path.display()));
    }
    for item in &pending {
        let age = item.age.map_or("since a time that the log does not tell".to_owned(), |age| {
            format!("for {}", humane(age))
        });
        out.line(&item.question);
        out.line(&format!("  waits {age}: {}", item.reason));
    }
    Ok(Exit::Done)
}
