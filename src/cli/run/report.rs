//! What a run prints: a session as soon as its checkpoint is on disk, and how the run ended.

use serde_json::json;

use super::budget::Budget;
use crate::choice::Choice;
use crate::cli::error::CliError;
use crate::cli::out::Out;
use crate::cli::place::Place;
use crate::control::Stopped;
use crate::session::{Left, Worked};
use crate::words::questions;

/// Why no further session starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// There were as many as were asked for.
    Sessions,
    Empty,
    Stopped(Stopped),
    Tokens,
    Seconds,
}

impl End {
    fn name(&self) -> &'static str {
        match self {
            End::Sessions => "sessions",
            End::Empty => "empty",
            End::Stopped(_) => "stopped",
            End::Tokens => "tokens",
            End::Seconds => "seconds",
        }
    }
}

pub(super) fn print_session(out: &mut Out, json: bool, done: &Worked) {
    if json {
        return out.json(&session_json(done));
    }
    let Worked { session, question, .. } = done;
    match &done.choice {
        Choice::Answer { text, citations } => {
            out.line(&format!("session {session}: answered: {question}"));
            let cites = match citations.as_slice() {
                [] => String::new(),
                _ => format!(" [{}]", citations.join(", ")),
            };
            out.line(&format!("  {text}{cites}"));
        }
        Choice::Flag { reason } => {
            out.line(&format!("session {session}: handed to a person: {question}"));
            out.line(&format!("  {reason}"));
        }
    }
}

fn session_json(done: &Worked) -> serde_json::Value {
    let mut document = json!({
        "session": done.session, "question": done.question, "open": done.open,
        "tokens_in": done.tokens_in, "tokens_out": done.tokens_out, "ms": done.ms,
    });
    match &done.choice {
        Choice::Answer { text, citations } => {
            document["answer"] = json!({"text": text, "citations": citations});
        }
        Choice::Flag { reason } => document["flag"] = json!({"reason": reason}),
    }
    document
}

/// How a run ended that did not fail.
#[derive(Debug)]
pub(super) struct Summary<'a> {
    pub(super) end: End,
    pub(super) sessions: u64,
    pub(super) budget: &'a Budget,
    /// What the last session left; where there was none, what is on disk now, or would be the queue. `None`: it cannot be read, and no
    /// session has tried to.
    pub(super) left: Option<Left>,
}

impl<'a> Summary<'a> {
    /// `last`: what the last session left. Others may have gone on from there, which is not for this run to tell.
    pub(super) fn new(
        end: End,
        sessions: u64,
        last: Option<Left>,
        budget: &'a Budget,
        place: &Place,
        fresh: Option<Vec<String>>,
    ) -> Result<Self, CliError> {
        if last.is_some() && end != End::Empty {
            return Ok(Summary { end, sessions, budget, left: last });
        }
        let left = match (place.store.read(), &end) {
            (Ok(Some(loaded)), _) => Some(Left::of(&loaded.checkpoint)),
            (Ok(None), _) => fresh.map(|fresh| Left { queue: fresh, ..Left::default() }),
            // It may be stopped for its repair. Who stopped it knows.
            (Err(_), End::Stopped(_)) => None,
            (Err(error), _) => return Err(error.into()),
        };
        Ok(Summary { end, sessions, budget, left })
    }

    pub(super) fn print_json(&self, out: &mut Out) {
        let left = self.left.as_ref();
        out.json(&json!({
            "end": self.end.name(),
            "sessions": self.sessions,
            "open": left.map(|left| &left.queue),
            "answers": left.map(|left| left.answers),
            "pending": left.map(|left| left.pending),
            "budget": self.budget.json(),
            "stopped": match &self.end {
                End::Stopped(stopped) => Some(stopped),
                _ => None,
            },
        }));
    }

    pub(super) fn print(&self, out: &mut Out, place: &Place) {
        let path = place.path.display();
        match &self.end {
            End::Sessions => {}
            End::Empty if self.sessions == 0 => out.line("nothing to do: the queue is empty"),
            End::Empty => out.line("the queue is empty"),
            End::Tokens => out.line(
                "the budget ends here: the next session might need more tokens than are left",
            ),
            End::Seconds => out.line("the budget ends here: the time is over"),
            End::Stopped(stopped) => out
                .line(&format!("{path}: {stopped}; no session starts until `long-horizon resume`")),
        }
        let Some(left) = &self.left else {
            return;
        };
        out.line(&format!(
            "{path}: {} in the queue, {} answered, {} waiting for a person",
            left.queue.len(),
            left.answers,
            left.pending
        ));
        if let Some(budget) = self.budget.words() {
            out.line(&format!("budget: {budget}; {} open", questions(left.queue.len())));
            for question in &left.queue {
                out.line(&format!("  {question}"));
            }
        }
    }
}
