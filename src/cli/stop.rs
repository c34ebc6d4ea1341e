//! `stop` and `resume`.

use serde_json::json;

use super::args::StopArgs;
use super::error::CliError;
use super::out::{Out, say};
use super::place::Place;
use super::status;
use crate::control::Stopped;
use crate::exit::Exit;
use crate::log::Event;

pub(super) fn stop(args: &StopArgs, out: &mut Out) -> Result<Exit, CliError> {
    let place = Place::open(&args.place)?;
    let is_new = place.stop.set(&Stopped {
        time: Some(place.clock.now()),
        by: args.by.clone(),
        reason: args.reason.clone(),
    })?;
    if is_new {
        place.log.record(Event::Stop { by: args.by.clone(), reason: args.reason.clone() });
        place.warn_of_log();
    }
    let stopped = place.stop.read()?.unwrap_or_default();
    let running = place.store.holders()?;
    if args.place.json {
        out.json(
            &json!({"stopped": stopped, "changed": is_new, "running": status::running(&running)}),
        );
        return Ok(Exit::Done);
    }
    let path = place.path.display();
    if is_new {
        out.line(&format!(
            "{path}: {stopped}; no further session starts until `long-horizon resume`"
        ));
    } else {
        out.line(&format!("{path}: it was stopped already: {stopped}"));
    }
    // It is about others, and true for this moment only: no part of what was done.
    match running.as_slice() {
        [] => {}
        [_] => say(&format!(
            "{path}: {} works on it now, and will end with its session",
            status::workers(&running)
        )),
        _ => say(&format!(
            "{path}: {} work on it now, and each will end with its session",
            status::workers(&running)
        )),
    }
    Ok(Exit::Done)
}

pub(super) fn resume(args: &StopArgs, out: &mut Out) -> Result<Exit, CliError> {
    let place = Place::open(&args.place)?;
    let was_stopped = place.stop.clear()?;
    if was_stopped {
        place.log.record(Event::Resume { by: args.by.clone(), reason: args.reason.clone() });
        place.warn_of_log();
    }
    if args.place.json {
        out.json(&json!({"stopped": null, "changed": was_stopped}));
    } else if was_stopped {
        out.line(&format!("{}: sessions may start again", place.path.display()));
    } else {
        out.line(&format!("{}: it was not stopped", place.path.display()));
    }
    Ok(Exit::Done)
}
