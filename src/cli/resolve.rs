//! `resolve`: a person decides a pending question.

use serde_json::json;

use super::args::ResolveArgs;
use super::error::CliError;
use super::out::{Out, say};
use super::place::Place;
use crate::digest;
use crate::exit::Exit;
use crate::log::{Event, Resolution};
use crate::queue;
use crate::store::{StoreError, Wait};

pub(super) fn resolve(args: &ResolveArgs, out: &mut Out) -> Result<Exit, CliError> {
    let place = Place::open(&args.place)?;
    let mut transaction = match place.store.begin(Wait::Fail) {
        Err(StoreError::Busy { holder, .. }) => {
            let path = place.path.display();
            say(&format!("{path}: {holder} works on it; waiting until it has ended"));
            place.store.begin(Wait::Block)?
        }
        begun => begun?,
    };
    let Some(loaded) = transaction.loaded() else {
        return Err(CliError::NoCheckpoint { path: place.path });
    };
    let before = digest::sha256(loaded.bytes.as_deref().map_or(&[], Vec::as_slice));
    let next = if place.store.resolves_anything() {
        queue::resolve_anything(&loaded.checkpoint, &args.question, &args.note)
    } else {
        queue::resolve(&loaded.checkpoint, &args.question, &args.note)
            .map_err(|why| CliError::NotPending { path: place.path.clone(), why })?
    };
    let resolution = Resolution {
        question: args.question.clone(),
        note: args.note.clone(),
        by: args.by.clone(),
        before,
        after: digest::sha256_of_parts(&next.encoded().parts()),
    };
    // Only the log tells who it was: a kill right after the save must not cost that.
    place.log.record(Event::Resolving(resolution.clone()));
    transaction.replace(&next)?;
    // With the lock still held: the log is in the order of the checkpoints.
    place.log.record(Event::Resolve(resolution));
    place.warn_of_log();
    if args.place.json {
        out.json(&json!({"resolved": args.question, "note": args.note, "by": args.by, "pending": next.pending.len()}));
    } else {
        out.line(&format!("resolved by {}: {}", args.by, args.question));
        out.line(&format!("{}: {} waiting for a person", place.path.display(), next.pending.len()));
    }
    Ok(Exit::Done)
}
