//! `run`: sessions one after another, until the plan, the queue or the budget ends, or a person stops them.

mod budget;
mod report;

use super::args::RunArgs;
use super::error::CliError;
use super::out::{Out, say};
use super::place::{self, Place};
use crate::exit::Exit;
use crate::model::Prepared;
use crate::session::{self, Limits, Outcome, Session, Worked};
use crate::store::Loaded;
use crate::trace::Trace;
use crate::words::counted;
use crate::{history, queue};
use budget::Budget;
use report::{End, Summary, print_session};

pub(super) fn run(args: &RunArgs, out: &mut Out) -> Result<Exit, CliError> {
    // Before anything else is touched: a scheduler's environment without the key must be told at the first tick.
    let model = args.model.prepare(args.provider.base_url.as_deref(), args.provider.retries)?;
    let place = Place::open(&args.place)?;
    let mut budget = Budget {
        tokens_max: args.max_tokens,
        tokens_used: 0,
        seconds_max: args.max_seconds,
        call_max: args.provider.timeout,
        watch: place.clock.stopwatch(),
    };
    let mut sessions = 0;
    let mut last = None;
    let (end, fresh) = match place.stop.read()? {
        // It may be stopped because its questions, its corpus or its checkpoint cannot be read.
        Some(stopped) => (End::Stopped(stopped), place::questions(&args.fresh).ok()),
        None => {
            let fresh = place::questions(&args.fresh)?;
            let end = begin(args, model, &place, &fresh, &mut budget, &mut |done| {
                sessions += 1;
                last = Some(done.left.clone());
                print_session(out, args.place.json, done);
            })?;
            (end, Some(fresh))
        }
    };
    let summary = Summary::new(end, sessions, last, &budget, &place, fresh)?;
    match args.place.json {
        true => summary.print_json(out),
        false => summary.print(out, &place),
    }
    Ok(Exit::Done)
}

/// All sessions of the run, if there is work. Model and corpus are made ready only then: a tick with nothing to do needs neither, and a
/// damaged checkpoint is told before what is wrong with them.
fn begin(
    args: &RunArgs,
    model: Prepared<'_>,
    place: &Place,
    fresh: &[String],
    budget: &mut Budget,
    on_session: &mut dyn FnMut(&Worked),
) -> Result<End, CliError> {
    let mut trace = open_trace(args)?;
    let loaded = place.store.read()?;
    tell_of_start(args, place, loaded.as_ref(), fresh);
    let end = if loaded.as_ref().map_or(fresh, |loaded| &loaded.checkpoint.queue).is_empty() {
        session::start(&mut trace);
        Ok(End::Empty)
    } else {
        let mut session = Session {
            store: &*place.store,
            model: &*model.open()?,
            corpus: &place::corpus(args.corpus.as_deref())?,
            questions: fresh,
            log: &place.log,
            clock: place.clock,
            limits: Limits::default(),
        };
        let planned = if args.until_empty { u64::MAX } else { args.sessions.unwrap_or(1) };
        work(place, &mut session, planned, budget, &mut trace, on_session)
    };
    if let Some((path, error)) = trace.failure() {
        say(&format!("warning: {}: cannot write the trace: {error}", path.display()));
    }
    end
}

fn work(
    place: &Place,
    session: &mut Session<'_>,
    planned: u64,
    budget: &mut Budget,
    trace: &mut Trace,
    on_session: &mut dyn FnMut(&Worked),
) -> Result<End, CliError> {
    for number in 0..planned {
        if let Some(stopped) = place.stop.read()? {
            return Ok(End::Stopped(stopped));
        }
        let Some(limits) = budget.limits() else {
            return Ok(End::Seconds);
        };
        session.limits = limits;
        // That there is work for the first was just seen.
        let outcome = if number == 0 { session.run_at_once(trace) } else { session.run(trace) };
        place.warn_of_log();
        let outcome =
            outcome.map_err(|source| CliError::Session { path: place.path.clone(), source })?;
        match outcome {
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
fn tell_of_start(args: &RunArgs, place: &Place, loaded: Option<&Loaded>, fresh: &[String]) {
    let path = place.path.display();
    match loaded {
        None => {
            let sessions = history::sessions(&place.log.read().unwrap_or_default().entries);
            let recorded = sessions.iter().filter(|s| s.recorded()).count();
            if recorded > 0 {
                say(&format!(
                    "warning: {path}: there is no checkpoint, although its log tells of {} that recorded something; this starts a fresh queue",
                    counted(recorded, "session")
                ));
            }
        }
        Some(loaded) if args.fresh.given() => {
            let unknown = queue::count_unknown(&loaded.checkpoint, fresh);
            if unknown > 0 {
                say(&format!(
                    "warning: {path}: there is a checkpoint, so the questions given were not queued; {unknown} of them are not in it"
                ));
            }
        }
        Some(_) => {}
    }
}
