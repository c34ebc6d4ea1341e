//! `timeline`: what happened, for a person who was not there.

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::args::PlaceArgs;
use super::error::CliError;
use super::out::Out;
use super::place::Place;
use crate::clock::rfc3339;
use crate::exit::Exit;
use crate::history::{self, SessionRecord};
use crate::log::{Ending, Entry, Event, Resolution};
use crate::store::Holder;

/// One line of the timeline.
#[derive(Debug)]
struct Line {
    /// Its place in the log.
    index: usize,
    time: Timestamp,
    words: String,
    document: Value,
}

pub(super) fn timeline(args: &PlaceArgs, out: &mut Out) -> Result<Exit, CliError> {
    let place = Place::open(args)?;
    // A checkpoint that cannot be read does not hide what happened to it.
    let loaded = place.store.read().ok().flatten();
    let log = place.read_log(loaded.as_ref());
    let holders = place.store.holders()?;
    let mut lines = session_lines(&history::sessions(&log), &holders);
    lines.extend(log.iter().enumerate().filter_map(person_line));
    // Not by time: the log is in the order of the checkpoints, and the clock may have been set back.
    lines.sort_by_key(|line| line.index);
    if lines.is_empty() && !args.json {
        out.line(&format!(
            "{}: nothing has happened yet, or the log was lost",
            place.log.path().display()
        ));
    }
    for line in &lines {
        if args.json {
            out.json(&line.document);
        } else {
            out.line(&format!("{}  {}", rfc3339(line.time), line.words));
        }
    }
    Ok(Exit::Done)
}

fn session_lines(sessions: &[SessionRecord], holders: &[Holder]) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut attempts: HashMap<&str, u32> = HashMap::new();
    for (index, session) in sessions.iter().enumerate() {
        let question = &session.start.question;
        // One after another, a session of another question ends the row; side by side it does not.
        if session.start.claim.is_none() {
            attempts.retain(|other, _| other == question);
        }
        let attempt = *attempts.entry(question).and_modify(|count| *count += 1).or_insert(1);
        let next = sessions.get(index + 1);
        let (outcome, detail) = outcome(session, next, holders);
        let again = if attempt > 1 { format!(" (attempt {attempt})") } else { String::new() };
        let detail_words = detail.as_ref().map_or(String::new(), |detail| format!(": {detail}"));
        lines.push(Line {
            index: session.index,
            time: session.started,
            words: format!(
                "session {}: {outcome}{again}: {question}{detail_words}",
                session.start.session
            ),
            document: session_document(session, outcome, attempt),
        });
    }
    lines
}

/// What became of a session, and a word more about it.
fn outcome(
    session: &SessionRecord,
    next: Option<&SessionRecord>,
    holders: &[Holder],
) -> (&'static str, Option<String>) {
    let Some((_, end)) = &session.end else {
        return match next {
            _ if session.start.claim.is_some() => {
                (if session.runs(holders) { "running" } else { "killed, nothing recorded" }, None)
            }
            Some(next) if next.start.before != session.start.before => {
                ("no end, but the checkpoint had changed when the next began", None)
            }
            Some(_) => ("killed, nothing recorded", None),
            None if session.runs(holders) => ("running", None),
            None => ("no end: killed", None),
        };
    };
    let cited: Vec<&str> = end.cited.iter().map(|cited| cited.section.as_str()).collect();
    match end.choice {
        Ending::Answer if cited.is_empty() => ("answered", None),
        Ending::Answer => ("answered", Some(format!("cites {}", cited.join(", ")))),
        Ending::Flag => ("handed to a person", end.reason.clone()),
        Ending::Failed => ("failed", end.reason.clone()),
    }
}

fn session_document(session: &SessionRecord, outcome: &str, attempt: u32) -> Value {
    json!({
        "time": rfc3339(session.started), "event": "session", "session": session.start.session, "pid": session.start.pid,
        "question": session.start.question, "attempt": attempt, "outcome": outcome,
        "ended": session.end.as_ref().map(|(time, _)| rfc3339(*time)),
        "end": session.end.as_ref().map(|(_, end)| end),
    })
}

/// The line of what a person did.
fn person_line((index, entry): (usize, &Entry)) -> Option<Line> {
    let by = |by: &Option<String>| by.as_ref().map_or(String::new(), |by| format!(" by {by}"));
    let why = |reason: &Option<String>| {
        reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"))
    };
    let words = match &entry.event {
        Event::Start(_) | Event::Decision(_) | Event::End(_) | Event::Resolving(_) => return None,
        Event::Resolve(Resolution { question, note, by, .. }) => {
            format!("resolved by {by}: {question}: {note}")
        }
        Event::Stop { by: who, reason } => format!("stopped{}{}", by(who), why(reason)),
        Event::Resume { by: who, reason } => format!("resumed{}{}", by(who), why(reason)),
    };
    Some(Line {
        index,
        time: entry.time,
        words,
        document: serde_json::to_value(entry).unwrap_or_default(),
    })
}
