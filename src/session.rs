//! One session: take the first question, let the model decide once, leave a checkpoint for the next session.

use std::time::{Duration, Instant};

use crate::checkpoint::Checkpoint;
use crate::choice::{BadReply, Choice};
use crate::clock::Clock;
use crate::corpus::{Corpus, Section};
use crate::log::{Cited, End, Ending, Event, Log, Start};
use crate::model::{Message, Model, ModelError, Reply, Request};
use crate::queue::StepError;
use crate::store::{Applied, Claim, ClaimError, Loaded, Store, StoreError, Terms, mark};
use crate::trace::{Actor, Step, Trace};
use crate::words::{counted, questions};
use crate::{prompt, retrieval};

/// How much longer than its model call a session may take before its question can be given to another.
const LEASE_MARGIN: Duration = Duration::from_secs(60);

/// Everything that a session works with.
#[derive(Debug, Clone, Copy)]
pub struct Session<'a> {
    /// Where the checkpoint is.
    pub store: &'a dyn Store,
    /// Who decides.
    pub model: &'a dyn Model,
    /// What answers come from.
    pub corpus: &'a Corpus,
    /// The queue where there is no checkpoint yet.
    pub questions: &'a [String],
    /// Where it is recorded.
    pub log: &'a Log,
    /// The time.
    pub clock: Clock,
    /// What it may spend.
    pub limits: Limits,
}

/// What a session may spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Tokens that the reply may have.
    pub tokens_out: u32,
    /// Tokens that request and reply may have together; `None`: no limit. The session does not begin its call if they could be more.
    pub tokens: Option<u64>,
    /// How long to wait for the model.
    pub call: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { tokens_out: 300, tokens: None, call: Duration::from_secs(120) }
    }
}

/// How a session ended that did not fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The queue is empty; nothing was called or written.
    Empty,
    /// The call could have cost `needed` tokens, more than [`Limits::tokens`]; nothing was called or written.
    OverBudget {
        /// Tokens of the request, and the most that the reply may have.
        needed: u64,
    },
    /// A question was worked, and the checkpoint is on disk.
    Worked(Worked),
}

/// What a session did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worked {
    /// Which session it was: `sessions_run` now, unless sessions that began later were quicker.
    pub session: u64,
    /// The question.
    pub question: String,
    /// What the model decided.
    pub choice: Choice,
    /// Questions still in the queue.
    pub open: usize,
    /// What it left, whatever others have done to that since.
    pub left: Left,
    /// Tokens of the request.
    pub tokens_in: u64,
    /// Tokens of the reply.
    pub tokens_out: u64,
    /// Milliseconds of the model call.
    pub ms: u64,
}

/// What a session left in the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Left {
    /// Questions in the queue.
    pub queue: Vec<String>,
    /// How many are answered.
    pub answers: usize,
    /// How many wait for a person.
    pub pending: usize,
}

impl Left {
    /// What is in this checkpoint.
    pub fn of(checkpoint: &Checkpoint) -> Left {
        Left {
            queue: checkpoint.queue.clone(),
            answers: checkpoint.answers.len(),
            pending: checkpoint.pending.len(),
        }
    }
}

/// Why a session failed. Nothing was recorded, unless the store says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The store refused, or could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no reply.
    #[error("`{question}`: {source}; nothing was written, and the question stays in the queue")]
    Model {
        /// The question.
        question: String,
        /// Why.
        source: ModelError,
    },
    /// The reply is no decision.
    #[error("`{question}`: {source}; nothing was written, and the question stays in the queue")]
    Reply {
        /// The question.
        question: String,
        /// Why.
        source: BadReply,
    },
    /// The decision cannot be applied.
    #[error("{0}; nothing was written")]
    Step(#[from] StepError),
}

impl From<ClaimError> for SessionError {
    fn from(error: ClaimError) -> Self {
        match error {
            ClaimError::Store(error) => SessionError::Store(error),
            ClaimError::Step(error) => SessionError::Step(error),
        }
    }
}

impl Session<'_> {
    /// Runs it.
    ///
    /// # Errors
    ///
    /// [`SessionError`].
    pub fn run(&self, trace: &mut Trace) -> Result<Outcome, SessionError> {
        start(trace);
        // Without the lock: a tick with nothing to do must cost nothing and leave nothing behind.
        if self.checkpoint(self.store.read()?.as_ref()).queue.is_empty() {
            return Ok(Outcome::Empty);
        }
        self.claim_and_work(trace)
    }

    /// As [`run`](Self::run), where the caller has just seen that there is work: nothing is looked at before a question is claimed.
    ///
    /// # Errors
    ///
    /// [`SessionError`].
    pub fn run_at_once(&self, trace: &mut Trace) -> Result<Outcome, SessionError> {
        start(trace);
        self.claim_and_work(trace)
    }

    fn claim_and_work(&self, trace: &mut Trace) -> Result<Outcome, SessionError> {
        let terms =
            Terms { fresh: self.questions, lease: self.limits.call.saturating_add(LEASE_MARGIN) };
        // It may have become empty since.
        let Some(mut claim) = self.store.claim(&terms)? else {
            return Ok(Outcome::Empty);
        };
        let checkpoint = self.checkpoint(claim.loaded());
        let messages = self.messages(&checkpoint, claim.question(), trace);
        let needed = self.model.count_tokens(&messages, &prompt::tools())
            + u64::from(self.limits.tokens_out);
        if self.limits.tokens.is_some_and(|left| needed > left) {
            return Ok(Outcome::OverBudget { needed });
        }
        self.work(&messages, &mut *claim, trace).map(Outcome::Worked)
    }

    fn checkpoint(&self, loaded: Option<&Loaded>) -> Checkpoint {
        match loaded {
            Some(loaded) => loaded.checkpoint.clone(),
            None => Checkpoint::fresh(self.questions.to_vec()),
        }
    }

    fn messages(&self, checkpoint: &Checkpoint, question: &str, trace: &mut Trace) -> Vec<Message> {
        let sources = retrieval::search(self.corpus.sections(), question, retrieval::SOURCES);
        let cites: Vec<String> = sources.iter().map(|s| s.cite()).collect();
        trace.record(Step::code(
            "Find sources for the first question in the queue",
            if cites.is_empty() { "none".to_owned() } else { cites.join(", ") },
        ));
        trace.record(Step::code(
            "Build the context from notes, not from a transcript",
            format!(
                "{} from earlier sessions, none of their messages",
                counted(checkpoint.notes.len(), "note")
            ),
        ));
        prompt::messages(&checkpoint.notes, &sources, question)
    }

    /// From the model call to the save, with its start and its end in the log. Start and decision are logged while no other can change the
    /// checkpoint, so that the log is in the order of the checkpoints.
    fn work(
        &self,
        messages: &[Message],
        claim: &mut dyn Claim,
        trace: &mut Trace,
    ) -> Result<Worked, SessionError> {
        let watch = self.clock.stopwatch();
        let start = Start {
            session: claim.session(),
            pid: std::process::id(),
            claim: claim.number(),
            question: claim.question().to_owned(),
            before: claim.before().map(str::to_owned),
        };
        self.log.record(Event::Start(start.clone()));
        claim.announced();
        let mut end = end_of(start);
        let result = self.decide(messages, claim, trace, &mut end);
        end.ms = watch.elapsed_ms();
        // Where the new checkpoint is in place all the same, the log must tell what it holds.
        if let Err(error) = &result
            && end.after.is_none()
        {
            end.choice = Ending::Failed;
            end.reason = Some(error.to_string());
        }
        self.log.record(Event::End(end));
        result
    }

    fn decide(
        &self,
        messages: &[Message],
        claim: &mut dyn Claim,
        trace: &mut Trace,
        end: &mut End,
    ) -> Result<Worked, SessionError> {
        let question = claim.question().to_owned();
        let (reply, ms) = self
            .call(messages)
            .map_err(|source| SessionError::Model { question: question.clone(), source })?;
        mark("model-called");
        trace.record(model_step(&reply, ms));
        (end.tokens_in, end.tokens_out) = (reply.tokens_in, reply.tokens_out);
        let choice = Choice::from_reply(&reply)
            .map_err(|source| SessionError::Reply { question: question.clone(), source })?;
        let applied = claim.apply(&choice)?;
        let left = Left::of(&applied.next);
        let open = left.queue.len();
        let decision = self.decision(end, &choice, applied);
        trace.record(choice_step(&choice));
        trace.record(Step::code(
            "Write the checkpoint to disk",
            format!("{} left in the queue, session {}", questions(open), end.session),
        ));
        self.log.record(Event::Decision(decision.clone()));
        let saved = claim.commit();
        if matches!(saved, Ok(_) | Err(StoreError::Unsynced { .. })) {
            *end = decision;
        }
        saved?;
        Ok(Worked {
            session: end.session,
            question,
            choice,
            open,
            left,
            tokens_in: reply.tokens_in,
            tokens_out: reply.tokens_out,
            ms,
        })
    }

    /// What the end will say if the save succeeds.
    fn decision(&self, end: &End, choice: &Choice, applied: &Applied) -> End {
        let (ending, reason) = match choice {
            Choice::Answer { .. } => (Ending::Answer, None),
            Choice::Flag { reason } => (Ending::Flag, Some(reason.clone())),
        };
        End {
            before: applied.before.clone(),
            after: Some(applied.after.clone()),
            choice: ending,
            reason,
            cited: self.cited(choice),
            ..end.clone()
        }
    }

    fn call(&self, messages: &[Message]) -> Result<(Reply, u64), ModelError> {
        let watch = self.clock.stopwatch();
        let reply = self.model.complete(&Request {
            messages,
            tools: &prompt::tools(),
            max_tokens: self.limits.tokens_out,
            deadline: Instant::now() + self.limits.call,
        })?;
        Ok((reply, watch.elapsed_ms()))
    }

    fn cited(&self, choice: &Choice) -> Vec<Cited> {
        choice
            .citations()
            .iter()
            .map(|cite| Cited {
                section: cite.clone(),
                sha256: self.corpus.get(cite).map(Section::sha256),
            })
            .collect()
    }
}

/// The first step of every session, also of one that finds nothing to do.
pub fn start(trace: &mut Trace) {
    mark("session-started");
    trace.record(Step::code("A trigger starts a session", "nobody asked for this run"));
}

/// An end that has nothing to tell yet.
fn end_of(start: Start) -> End {
    End {
        session: start.session,
        pid: start.pid,
        claim: start.claim,
        question: start.question,
        before: start.before,
        after: None,
        choice: Ending::Answer,
        reason: None,
        cited: Vec::new(),
        tokens_in: 0,
        tokens_out: 0,
        ms: 0,
    }
}

fn model_step(reply: &Reply, ms: u64) -> Step {
    let calls: Vec<String> =
        reply.calls.iter().map(|call| format!("{}({})", call.name, call.arguments)).collect();
    Step {
        kind: Actor::Model,
        decided_by: Actor::Model,
        title: "The model answers the question or flags it",
        detail: if calls.is_empty() { "no tool call".to_owned() } else { calls.join(", ") },
        tokens_in: reply.tokens_in,
        tokens_out: reply.tokens_out,
        ms,
    }
}

fn choice_step(choice: &Choice) -> Step {
    const SHOWN_CODE_POINTS: usize = 120;
    match choice {
        Choice::Flag { reason } => Step::code("A person gets the question", reason.clone()),
        Choice::Answer { text, .. } => Step::code(
            "Record the answer and keep a short note of it",
            text.chars().take(SHOWN_CODE_POINTS).collect::<String>(),
        ),
    }
}
