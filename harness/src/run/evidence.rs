//! What a person needs to see of a kill: the ops around it, and the state files before, after and as they were found.

use super::cases::{Around, Called, Cause, Evidence, said};
use super::kill::{Ground, Killed};
use super::process::called;
use crate::judge::shape;
use crate::op::{Event, Op, What};
use crate::recording::Calls;
use crate::scenario::KillPoint;
use crate::trace::describe_call;

/// How many events before and after the crash point are told.
const EVENTS_TOLD: usize = 6;
/// After it fewer: most often the next one tells.
const EVENTS_TOLD_AFTER: usize = 3;

impl Killed {
    pub(super) fn evidence(&self, ground: &Ground<'_>) -> Evidence {
        let done = &self.trace.events[..self.at];
        let (rest, calls_of_rest) = self.rest(ground);
        let own = &self.trace.calls;
        let told = done.iter().rev().filter(|event| is_telling(event)).take(EVENTS_TOLD);
        let mut ops: Vec<String> = told.map(|event| describe_call(event, own)).collect();
        ops.reverse();
        let after = rest.iter().filter(|event| is_telling(event)).take(match self.point {
            // They happened.
            KillPoint::Process(..) => EVENTS_TOLD,
            _ => EVENTS_TOLD_AFTER,
        });
        let outcome = self.after.as_ref().map(|after| &after.outcome);
        Evidence {
            before: Some(ground.before.clone()),
            crashed: Some(self.left.clone()),
            ended: outcome.map(|outcome| outcome.end.clone()),
            ops,
            ops_after: after.map(|event| describe_call(event, calls_of_rest)).collect(),
            cause: Some(self.cause(ground, done, rest)),
            calls: self.calls([(done, own), (rest, calls_of_rest)]),
            around: self.around(),
            schedule: Vec::new(),
            view: String::new(),
            said: outcome.map(|outcome| said(&outcome.finish)).unwrap_or_default(),
            forked: self.is_by_copy(),
        }
    }

    /// What came after the kill, or would have come. A run that was really killed whole has nothing more: then the
    /// recording tells. With it the call sites of that run.
    fn rest<'a>(&'a self, ground: &'a Ground<'_>) -> (&'a [Event], &'a Calls) {
        let own = &self.trace.events[self.at..];
        if !own.is_empty() || self.of_recovery || matches!(self.point, KillPoint::Process(..)) {
            return (own, &self.trace.calls);
        }
        let last = self.trace.ops().last().map_or(0, |op| op.number);
        let recorded = &ground.recording.trace.events;
        let done =
            recorded.iter().rposition(|event| event.op().is_some_and(|op| op.number <= last));
        let rest = &recorded[done.map_or(0, |position| position + 1)..];
        (rest, &ground.recording.trace.calls)
    }

    /// From where the ops were made that it hangs on: of a kill the next one that changes something, or the one that it fell
    /// into; of one process's death the last before it; of a power cut what is not on the disk, and what is although.
    fn calls(&self, runs: [(&[Event], &Calls); 2]) -> Vec<Called> {
        if runs.iter().all(|(_, calls)| calls.is_empty()) {
            return Vec::new();
        }
        let [(done, _), (rest, _)] = runs;
        let last = || done.iter().filter_map(Event::op).next_back().map(|op| op.number);
        let next = || {
            let op = rest.iter().filter_map(Event::op).find(|op| op.kind.changes());
            op.map(|op| op.number)
        };
        let numbers: Vec<u32> = match (&self.power, &self.point) {
            (Some(power), _) => power.ops.clone(),
            (None, KillPoint::Inside(..) | KillPoint::Process(..)) => last().into_iter().collect(),
            (None, _) => next().into_iter().collect(),
        };
        let called = |number: u32| {
            runs.iter().find_map(|(events, calls)| {
                let op = events.iter().filter_map(Event::op).find(|op| op.number == number)?;
                let stack = calls.stack(number)?.clone();
                Some(Called { op: number, what: named(op), stack })
            })
        };
        numbers.into_iter().filter_map(called).collect()
    }

    fn cause(&self, ground: &Ground<'_>, done: &[Event], rest: &[Event]) -> Cause {
        let mut last = done.iter().filter_map(Event::op).next_back();
        let mut next = rest.iter().filter_map(Event::op).find(|op| op.kind.changes());
        let mut who = String::new();
        match self.point {
            // The op at which it lies was done in part.
            KillPoint::Inside(..) => {
                next = last;
                last = done.iter().filter_map(Event::op).rev().nth(1);
            }
            KillPoint::Process(number, nth) => {
                who = called(&ground.recording.trace.events, number, nth);
                next = None;
            }
            _ if self.power.is_some() => who = "the power".to_owned(),
            _ if self.of_recovery => who = "the recovery".to_owned(),
            _ => {}
        }
        let words = |op: &Op| format!("op {} ({})", op.number, named(op));
        // Not the ops' numbers: what is written in pieces is of one cause.
        let of_op = |op: &Op| match op.kind.path() {
            Some(path) => format!("{} {}", op.kind.word(), shape(path)),
            None => op.kind.word().to_owned(),
        };
        let kind = match self.point {
            // Whoever it was that died there, that is what had been done.
            KillPoint::Process(..) => format!("one {}", last.map(of_op).unwrap_or_default()),
            _ => format!("{who} {}", next.map(of_op).unwrap_or_default()),
        };
        let (after, before) = (last.map(words), next.map(words));
        Cause { kind, who, after, before }
    }

    /// The versions around the kill.
    fn around(&self) -> Option<Around> {
        let all = &self.versions.all;
        let stood = all.iter().rposition(|version| version.at_event <= self.at)?;
        let after = all[stood..].iter().find(|next| next.image != all[stood].image);
        Some(Around {
            before: all[stood].image.clone(),
            after: after.map(|after| after.image.clone()),
            found: self.survivor.clone(),
        })
    }
}

/// `write s.json`.
fn named(op: &Op) -> String {
    match op.kind.path() {
        Some(path) if !path.as_os_str().is_empty() => {
            format!("{} {}", op.kind.word(), path.display())
        }
        _ => op.kind.word().to_owned(),
    }
}

/// Of the events around a crash point, those that tell a reader where it lies.
pub(crate) fn is_telling(event: &Event) -> bool {
    !matches!(
        event.what,
        What::Spawned { .. } | What::Executed { .. } | What::Ended { .. } | What::Read { .. }
    )
}
