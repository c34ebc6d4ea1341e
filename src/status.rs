//! How the queue stands, and what should alarm a person. Pure.

use std::time::Duration;

use jiff::Timestamp;

use crate::checkpoint::Checkpoint;
use crate::clock::age;
use crate::control::Stopped;
use crate::history;
use crate::log::Entry;
use crate::store::Holder;
use crate::words::{counted, humane, questions};

/// All that a status is made from.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The checkpoint; `None`: there is no file.
    pub checkpoint: Option<&'a Checkpoint>,
    /// The log, settled.
    pub log: &'a [Entry],
    /// Who works on the checkpoint.
    pub holders: &'a [Holder],
    /// Whether it is stopped.
    pub stopped: Option<Stopped>,
    /// The time.
    pub now: Timestamp,
}

/// How the queue stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Whether there is a checkpoint.
    pub exists: bool,
    /// Questions to be worked.
    pub queue: usize,
    /// Questions answered.
    pub answers: usize,
    /// Questions that wait for a person.
    pub pending: Vec<Pending>,
    /// Sessions that changed the checkpoint.
    pub sessions_run: u64,
    /// The question at the head of the queue, and how often in a row it was begun and not recorded.
    pub retries: Option<(String, usize)>,
    /// Time since a question was last answered, flagged or resolved; `None`: the log does not tell.
    pub idle: Option<Duration>,
    /// Who works on it now.
    pub running: Vec<Holder>,
    /// Whether it is stopped.
    pub stopped: Option<Stopped>,
    /// Sessions that recorded something, as far as the log tells.
    pub recorded_sessions: usize,
}

/// A question that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// The question.
    pub question: String,
    /// Why.
    pub reason: String,
    /// Since when; `None`: the log does not tell.
    pub since: Option<Timestamp>,
    /// For how long.
    pub age: Option<Duration>,
}

/// What the caller finds alarming. Each is passed by a value greater than it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Thresholds {
    /// Questions in the queue.
    pub max_queue: Option<usize>,
    /// Age of the oldest pending question.
    pub max_pending_age: Option<Duration>,
    /// Sessions in a row that did not get the first question recorded.
    pub max_retries: Option<usize>,
    /// Time without progress while there is a queue.
    pub max_idle: Option<Duration>,
}

/// Everything that waits for a person, in the order of the checkpoint.
pub fn pending(checkpoint: &Checkpoint, log: &[Entry], now: Timestamp) -> Vec<Pending> {
    let waiting_since = history::waiting_since(log);
    checkpoint
        .pending
        .iter()
        .map(|(question, reason)| {
            let since = waiting_since.get(question.as_str()).copied();
            Pending {
                question: question.clone(),
                reason: reason.clone(),
                since,
                age: since.map(|since| age(now, since)),
            }
        })
        .collect()
}

impl Status {
    /// Puts the facts together.
    pub fn new(facts: Facts<'_>) -> Self {
        let empty = Checkpoint::default();
        let checkpoint = facts.checkpoint.unwrap_or(&empty);
        let entries = facts.log;
        let sessions = history::sessions(entries);
        Status {
            exists: facts.checkpoint.is_some(),
            queue: checkpoint.queue.len(),
            answers: checkpoint.answers.len(),
            pending: pending(checkpoint, facts.log, facts.now),
            sessions_run: checkpoint.sessions_run,
            retries: checkpoint.queue.first().map(|head| {
                let retries = history::forced_retries(&sessions, head, facts.holders);
                (head.clone(), retries)
            }),
            idle: history::last_progress(entries).map(|then| age(facts.now, then)),
            running: facts.holders.to_vec(),
            stopped: facts.stopped,
            recorded_sessions: sessions.iter().filter(|s| s.recorded()).count(),
        }
    }

    /// Whether there is no checkpoint, although the log tells of sessions that recorded something.
    pub fn is_lost(&self) -> bool {
        !self.exists && self.recorded_sessions > 0
    }

    /// The oldest of the pending questions whose age is known.
    pub fn oldest_pending(&self) -> Option<Duration> {
        self.pending.iter().filter_map(|p| p.age).max()
    }

    /// Pending questions of unknown age.
    pub fn pending_of_unknown_age(&self) -> usize {
        self.pending.iter().filter(|p| p.age.is_none()).count()
    }

    /// The thresholds that are passed, a line each. What cannot be told counts as passed: an alert must not depend on the log's health.
    pub fn alerts(&self, thresholds: &Thresholds) -> Vec<String> {
        let mut alerts = Vec::new();
        if *thresholds != Thresholds::default() && self.is_lost() {
            alerts.push(format!(
                "there is no checkpoint, although the log tells of {} that recorded something",
                counted(self.recorded_sessions, "session")
            ));
        }
        if let Some(max) = thresholds.max_queue.filter(|max| self.queue > *max) {
            alerts.push(format!("{} in the queue, more than {max}", questions(self.queue)));
        }
        if let Some(max) = thresholds.max_pending_age {
            alerts.extend(self.pending_alerts(max));
        }
        if let (Some(max), Some((question, retries))) = (thresholds.max_retries, &self.retries)
            && *retries > max
        {
            alerts.push(format!(
                "{retries} sessions in a row did not get `{question}` recorded, more than {max}"
            ));
        }
        if let Some(max) = thresholds.max_idle.filter(|_| self.queue > 0) {
            alerts.extend(self.idle_alert(max));
        }
        alerts
    }

    fn pending_alerts(&self, max: Duration) -> Vec<String> {
        let mut alerts = Vec::new();
        let oldest = self
            .pending
            .iter()
            .filter_map(|p| Some((p.age?, p)))
            .max_by_key(|(age, _)| *age)
            .filter(|(age, _)| *age > max);
        if let Some((age, oldest)) = oldest {
            alerts.push(format!(
                "`{}` has waited {} for a person, longer than {}",
                oldest.question,
                humane(age),
                humane(max)
            ));
        }
        let unknown = self.pending_of_unknown_age();
        if unknown > 0 {
            alerts.push(format!(
                "{} for a person since a time that the log does not tell, so perhaps longer than {}",
                if unknown == 1 { "1 question waits".to_owned() } else { format!("{unknown} questions wait") },
                humane(max)
            ));
        }
        alerts
    }

    fn idle_alert(&self, max: Duration) -> Option<String> {
        let stopped = if self.stopped.is_some() { "; it is stopped" } else { "" };
        let waiting = format!("with {} in the queue{stopped}", questions(self.queue));
        match self.idle {
            Some(idle) if idle <= max => None,
            Some(idle) => Some(format!(
                "no progress for {}, longer than {}, {waiting}",
                humane(idle),
                humane(max)
            )),
            None => Some(format!(
                "the log tells of no progress, so perhaps none for longer than {}, {waiting}",
                humane(max)
            )),
        }
    }
}
