//! What a run may spend, and what is left of it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::clock::Stopwatch;
use crate::session::Limits;

/// The limits that the user gave, and what was spent.
#[derive(Debug)]
pub(super) struct Budget {
    pub(super) tokens_max: Option<u64>,
    pub(super) tokens_used: u64,
    pub(super) seconds_max: Option<u64>,
    /// For each session, whatever is left.
    pub(super) call_max: Duration,
    pub(super) watch: Stopwatch,
}

impl Budget {
    fn tokens_left(&self) -> Option<u64> {
        self.tokens_max.map(|max| max.saturating_sub(self.tokens_used))
    }

    fn time_left(&self) -> Option<Duration> {
        self.seconds_max.map(|max| Duration::from_secs(max).saturating_sub(self.watch.elapsed()))
    }

    /// What the next session may spend; `None`: there is no time left.
    pub(super) fn limits(&self) -> Option<Limits> {
        let limits =
            Limits { tokens: self.tokens_left(), call: self.call_max, ..Limits::default() };
        match self.time_left() {
            Some(Duration::ZERO) => None,
            Some(left) => Some(Limits { call: limits.call.min(left), ..limits }),
            None => Some(limits),
        }
    }

    /// What is left, in words; nothing where there is no limit.
    pub(super) fn words(&self) -> Option<String> {
        let tokens = self
            .tokens_max
            .zip(self.tokens_left())
            .map(|(max, left)| format!("{left} of {max} tokens left"));
        let seconds = self
            .seconds_max
            .zip(self.time_left())
            .map(|(max, left)| format!("{} of {max} seconds left", left.as_secs()));
        let words: Vec<String> = tokens.into_iter().chain(seconds).collect();
        (!words.is_empty()).then(|| words.join(", "))
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "tokens": self.tokens_max.map(|max| {
                json!({"max": max, "used": self.tokens_used, "left": self.tokens_left()})
            }),
            "seconds": self.seconds_max.map(|max| {
                json!({"max": max, "left": self.time_left().map(|left| left.as_secs())})
            }),
        })
    }
}
