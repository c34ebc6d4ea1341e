//! `import`: a checkpoint in the reference's format, put into a store that has none yet.

use serde_json::json;

use super::args::ImportArgs;
use super::error::CliError;
use super::out::Out;
use super::place::Place;
use crate::checkpoint::Checkpoint;
use crate::exit::Exit;
use crate::files;
use crate::store::Wait;
use crate::words::questions;

pub(super) fn import(args: &ImportArgs, out: &mut Out) -> Result<Exit, CliError> {
    let file = || args.file.clone();
    let bytes = files::read(&args.file).map_err(|source| CliError::File {
        path: file(),
        what: "read the checkpoint",
        source,
    })?;
    let checkpoint = Checkpoint::decode(&bytes)
        .map_err(|damage| CliError::NotImported { path: file(), damage })?;
    let place = Place::open(&args.place)?;
    let mut transaction = place.store.begin(Wait::Fail)?;
    if transaction.loaded().is_some() {
        return Err(CliError::Exists { path: place.path });
    }
    transaction.replace(&checkpoint)?;
    let (queue, answers, pending) =
        (checkpoint.queue.len(), checkpoint.answers.len(), checkpoint.pending.len());
    if args.place.json {
        out.json(&json!({"imported": place.path.display().to_string(), "queue": queue, "answers": answers, "pending": pending}));
    } else {
        out.line(&format!(
            "{}: imported {}: {} in the queue, {answers} answered, {pending} waiting for a person",
            place.path.display(),
            args.file.display(),
            questions(queue)
        ));
    }
    Ok(Exit::Done)
}
