//! `status`: how the queue stands, and alerts.

use serde_json::{Value, json};

use super::args::StatusArgs;
use super::error::CliError;
use super::out::{Out, say};
use super::place::Place;
use crate::exit::Exit;
use crate::status::{Facts, Status, Thresholds};
use crate::store::Holder;
use crate::words::{counted, humane, questions};

pub(super) fn status(args: &StatusArgs, out: &mut Out) -> Result<Exit, CliError> {
    let place = Place::open(&args.place)?;
    let loaded = place.store.read()?;
    let log = place.read_log(loaded.as_ref());
    let status = Status::new(Facts {
        checkpoint: loaded.as_ref().map(|loaded| &loaded.checkpoint),
        log: &log,
        holders: &place.store.holders()?,
        stopped: place.stop.read()?,
        now: place.clock.now(),
    });
    let alerts: Vec<String> = status
        .alerts(&Thresholds {
            max_queue: args.max_queue,
            max_pending_age: args.max_pending_age,
            max_retries: args.max_retries,
            max_idle: args.max_idle,
        })
        .into_iter()
        .map(|alert| format!("{}: {alert}", place.path.display()))
        .collect();
    if args.place.json {
        out.json(&document(&place, &status, &alerts));
    } else {
        for line in lines(&place, &status) {
            out.line(&line);
        }
    }
    for alert in &alerts {
        say(&format!("alert: {alert}"));
    }
    Ok(if alerts.is_empty() { Exit::Done } else { Exit::Failed })
}

fn lines(place: &Place, status: &Status) -> Vec<String> {
    let mut lines = vec![place.path.display().to_string()];
    let mut row = |name: &str, words: String| lines.push(format!("  {name:<9} {words}"));
    if status.exists {
        let next =
            status.retries.as_ref().map_or(String::new(), |(next, _)| format!("; next: {next}"));
        row("queue", format!("{}{next}", questions(status.queue)));
        row("answers", status.answers.to_string());
        row("pending", pending_words(status));
        row("sessions", status.sessions_run.to_string());
        let retries = status.retries.as_ref().map_or(0, |(_, retries)| *retries);
        row("retries", format!("{retries} in a row of the next question"));
    } else if status.is_lost() {
        row(
            "missing",
            format!(
                "there is no checkpoint, although the log tells of {} that recorded something; a run would start a fresh queue",
                counted(status.recorded_sessions, "session")
            ),
        );
    } else {
        row("missing", "there is no checkpoint yet; a run would start a fresh queue".to_owned());
    }
    row(
        "progress",
        status
            .idle
            .map_or("the log does not tell".to_owned(), |idle| format!("{} ago", humane(idle))),
    );
    row(
        "running",
        match status.running.as_slice() {
            [] => "no".to_owned(),
            [Holder { pid: None, .. }] => "yes".to_owned(),
            holders => format!("yes, {}", workers(holders)),
        },
    );
    row(
        "stopped",
        status
            .stopped
            .as_ref()
            .map_or("no".to_owned(), |stopped| format!("yes,{}", stopped.details())),
    );
    lines
}

fn pending_words(status: &Status) -> String {
    let count = status.pending.len();
    let oldest = status.oldest_pending().map(|age| format!("the oldest for {}", humane(age)));
    let unknown = match status.pending_of_unknown_age() {
        0 => None,
        n => Some(format!("{n} since a time that the log does not tell")),
    };
    [Some(count.to_string()), oldest, unknown].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Who works now, for programs: `null`, or the first of them, with their number where the store lets several work.
pub(super) fn running(holders: &[Holder]) -> Option<Value> {
    let first = holders.first()?;
    let mut document = json!({"pid": first.pid});
    if first.claim.is_some() {
        document["sessions"] = json!(holders.len());
    }
    Some(document)
}

/// Who works now, for people.
pub(super) fn workers(holders: &[Holder]) -> String {
    match holders {
        [holder] => holder.to_string(),
        _ => counted(holders.len(), "session"),
    }
}

fn document(place: &Place, status: &Status, alerts: &[String]) -> Value {
    json!({
        "state": place.path.display().to_string(),
        "exists": status.exists,
        "queue": status.queue,
        "next": status.retries.as_ref().map(|(next, _)| next),
        "answers": status.answers,
        "pending": status.pending.len(),
        "pending_oldest_seconds": status.oldest_pending().map(|age| age.as_secs()),
        "pending_of_unknown_age": status.pending_of_unknown_age(),
        "sessions_run": status.sessions_run,
        "retries": status.retries.as_ref().map_or(0, |(_, retries)| *retries),
        "idle_seconds": status.idle.map(|idle| idle.as_secs()),
        "running": running(&status.running),
        "stopped": status.stopped,
        "alerts": alerts,
    })
}
