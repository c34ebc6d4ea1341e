//! `run`: sessions one after another, until the plan, the queue or the budget ends, or a person stops them.

use std::time::Duration;

use serde_json::{Value, json};

use super::args::RunArgs;
use super::error::CliError;
use super::out::{Out, say};
use super::place::{self, Place};
use crate::choice::Choice;
use crate::clock::Stopwatch;
use crate::exit::Exit;
use crate::history;
use crate::session::{Limits, Outcome, Session, Worked};
use crate::status::questions;
use crate::trace::Trace;

/// Why no further session starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// As many as were asked for.
    Sessions,
    Empty,
    Stopped,
    Tokens,
    Seconds,
    Failed,
}

/// What may be spent, and what was.
#[derive(Debug)]
struct Budget {
    tokens_max: Option<u64>,
    seconds_max: Option<u64>,
    tokens_used: u64,
    watch: Stopwatch,
}

pub(super) fn run(args: &RunArgs, out: &mut Out) -> Result<Exit, CliError> {
    let place = Place::open(&args.place)?;
    let model = args.model.open()?;
    let corpus = place::corpus(args.corpus.as_deref())?;
    let fresh = place::questions(&args.fresh)?;
    let mut trace = open_trace(args)?;
    tell_of_start(args, &place, &fresh)?;
    let mut budget = Budget {
        tokens_max: args.max_tokens,
        seconds_max: args.max_seconds,
        tokens_used: 0,
        watch: place.clock.stopwatch(),
    };
    let mut session = Session {
        store: &*place.store,
        model: &*model,
        corpus: &corpus,
        questions: &fresh,
        log: &place.log,
        clock: place.clock,
        limits: Limits::default(),
    };
    let planned = if args.until_empty {
        u64::MAX
    } else {
        args.sessions.unwrap_or(1)
    };
    let mut worked = 0;
    let result = work(
        &place,
        &mut session,
        planned,
        &mut budget,
        &mut trace,
        &mut |done| {
            worked += 1;
            print_session(args, out, done);
        },
    );
    if let Some((path, error)) = trace.failure() {
        say(&format!(
            "warning: {}: cannot write the trace: {error}",
            path.display()
        ));
    }
    let end = *result.as_ref().unwrap_or(&End::Failed);
    print_end(args, &place, out, end, worked, &budget, &fresh)?;
    result.map(|_| Exit::Done)
}

fn work(
    place: &Place,
    session: &mut Session<'_>,
    planned: u64,
    budget: &mut Budget,
    trace: &mut Trace,
    on_session: &mut dyn FnMut(&Worked),
) -> Result<End, CliError> {
    for _ in 0..planned {
        if place.stop.read()?.is_some() {
            return Ok(End::Stopped);
        }
        let Some(limits) = budget.limits() else {
            return Ok(End::Seconds);
        };
        session.limits = limits;
        let outcome = session.run(trace);
        place.warn_of_log();
        match outcome? {
            Outcome::Empty => return Ok(End::Empty),
            Outcome::OverBudget { .. } => return Ok(End::Tokens),
            Outcome::Worked(done) => {
                budget.tokens_used += done.tokens_in + done.tokens_out;
                on_session(&done);
            }
        }
    }
    Ok(End::Sessions)
}

impl Budget {
    fn tokens_left(&self) -> Option<u64> {
        self.tokens_max
            .map(|max| max.saturating_sub(self.tokens_used))
    }

    fn time_left(&self) -> Option<Duration> {
        self.seconds_max
            .map(|max| Duration::from_secs(max).saturating_sub(self.watch.elapsed()))
    }

    /// What the next session may spend; `None`: there is no time left.
    fn limits(&self) -> Option<Limits> {
        let limits = Limits {
            tokens: self.tokens_left(),
            ..Limits::default()
        };
        match self.time_left() {
            Some(Duration::ZERO) => None,
            Some(left) => Some(Limits {
                call: limits.call.min(left),
                ..limits
            }),
            None => Some(limits),
        }
    }

    fn words(&self) -> Vec<String> {
        let tokens = self
            .tokens_max
            .zip(self.tokens_left())
            .map(|(max, left)| format!("{left} of {max} tokens left"));
        let seconds = self
            .seconds_max
            .zip(self.time_left())
            .map(|(max, left)| format!("{} of {max} seconds left", left.as_secs()));
        tokens.into_iter().chain(seconds).collect()
    }

    fn json(&self) -> Value {
        json!({
            "tokens": self.tokens_max.map(|max| json!({"max": max, "used": self.tokens_used, "left": self.tokens_left()})),
            "seconds": self.seconds_max.map(|max| json!({"max": max, "left": self.time_left().map(|left| left.as_secs())})),
        })
    }
}

fn open_trace(args: &RunArgs) -> Result<Trace, CliError> {
    match &args.trace {
        None => Ok(Trace::Off),
        Some(path) => Trace::to_file(path).map_err(|source| CliError::File {
            path: path.clone(),
            what: "write the trace",
            source,
        }),
    }
}

/// Two things that a user would want to know before the first session.
fn tell_of_start(args: &RunArgs, place: &Place, fresh: &[String]) -> Result<(), CliError> {
    let path = place.path.display();
    let Some(loaded) = place.store.read()? else {
        let earlier = place
            .log
            .read()
            .map_or(0, |log| history::sessions(&log.entries).len());
        if earlier > 0 {
            say(&format!(
                "warning: {path}: there is no checkpoint, although its log tells of {earlier} sessions; this starts a fresh queue"
            ));
        }
        return Ok(());
    };
    if args.fresh.queue.is_some() || !args.fresh.question.is_empty() {
        let checkpoint = &loaded.checkpoint;
        let ignored = fresh
            .iter()
            .filter(|q| {
                !checkpoint.queue.contains(q)
                    && !checkpoint.answers.contains_key(*q)
                    && !checkpoint.pending.contains_key(*q)
            })
            .count();
        if ignored > 0 {
            say(&format!(
                "warning: {path}: there is a checkpoint, so the questions given were not queued; {ignored} of them are not in it"
            ));
        }
    }
    Ok(())
}

fn print_session(args: &RunArgs, out: &mut Out, done: &Worked) {
    if args.place.json {
        let mut document = json!({
            "session": done.session, "question": done.question, "open": done.open,
            "tokens_in": done.tokens_in, "tokens_out": done.tokens_out, "ms": done.ms,
        });
        match &done.choice {
            Choice::Answer { text, citations } => {
                document["answer"] = json!({"text": text, "citations": citations})
            }
            Choice::Flag { reason } => document["flag"] = json!({"reason": reason}),
        }
        return out.json(&document);
    }
    match &done.choice {
        Choice::Answer { text, citations } => {
            out.line(&format!(
                "session {}: answered: {}",
                done.session, done.question
            ));
            let cites = if citations.is_empty() {
                String::new()
            } else {
                format!(" [{}]", citations.join(", "))
            };
            out.line(&format!("  {text}{cites}"));
        }
        Choice::Flag { reason } => {
            out.line(&format!(
                "session {}: handed to a person: {}",
                done.session, done.question
            ));
            out.line(&format!("  {reason}"));
        }
    }
}

fn print_end(
    args: &RunArgs,
    place: &Place,
    out: &mut Out,
    end: End,
    worked: u64,
    budget: &Budget,
    fresh: &[String],
) -> Result<(), CliError> {
    if end == End::Failed {
        return Ok(());
    }
    let loaded = place.store.read()?;
    let open = loaded
        .as_ref()
        .map_or(fresh, |loaded| &loaded.checkpoint.queue);
    let stopped = if end == End::Stopped {
        place.stop.read()?
    } else {
        None
    };
    if args.place.json {
        out.json(&json!({
            "end": end.name(), "sessions": worked, "open": open,
            "answers": loaded.as_ref().map_or(0, |l| l.checkpoint.answers.len()),
            "pending": loaded.as_ref().map_or(0, |l| l.checkpoint.pending.len()),
            "budget": budget.json(), "stopped": stopped,
        }));
        return Ok(());
    }
    match end {
        End::Stopped => {
            let who = stopped.unwrap_or_default().to_string();
            out.line(&format!(
                "{}: {who}; no session was started; `long-horizon resume` lets them start again",
                place.path.display()
            ));
        }
        End::Empty if worked == 0 => out.line("nothing to do: the queue is empty"),
        End::Empty => out.line("the queue is empty"),
        End::Tokens => {
            out.line("the budget ends here: the next session might need more tokens than are left")
        }
        End::Seconds => out.line("the budget ends here: the time is over"),
        End::Sessions | End::Failed => {}
    }
    if let Some(loaded) = &loaded
        && end != End::Stopped
    {
        let checkpoint = &loaded.checkpoint;
        out.line(&format!(
            "{}: {} in the queue, {} answered, {} waiting for a person",
            place.path.display(),
            checkpoint.queue.len(),
            checkpoint.answers.len(),
            checkpoint.pending.len()
        ));
    }
    let left = budget.words();
    if !left.is_empty() {
        out.line(&format!(
            "budget: {}; {} open",
            left.join(", "),
            questions(open.len())
        ));
        for question in open {
            out.line(&format!("  {question}"));
        }
    }
    Ok(())
}

impl End {
    fn name(self) -> &'static str {
        match self {
            End::Sessions => "sessions",
            End::Empty => "empty",
            End::Stopped => "stopped",
            End::Tokens => "tokens",
            End::Seconds => "seconds",
            End::Failed => "failed",
        }
    }
}
