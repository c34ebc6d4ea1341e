//! Recoveries that begin as copies of one that stands before its first look at the tree.
//!
//! A copy's word is taken only where a run of its own would have to be very unlike it to say anything else: once a state has been
//! recovered from in both ways, and they went the same way; where it succeeded; and, later, where the verdict is good. All
//! else is run once more from the beginning.

use std::mem::discriminant;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use super::LabError;
use super::stage::Stage;
use crate::judge::{Outcome, State};
use crate::op::{Event, What};
use crate::recording::Trace;
use crate::scenario::CommandLine;
use crate::trace::{Detail, ForkServer, Undisturbed};
use crate::tree::{NodeKind, Tree};

/// A worker of which so many copies had to be run again, and most of all, makes no more.
const AGAIN_MAX: usize = 4;

/// What is known of a command's copies.
#[derive(Debug, Default)]
pub(crate) struct Trust(AtomicU8);

// Whatever comes later in this order stays.
const UNTRIED: u8 = 0;
const TRUSTED: u8 = 1;
const OFF: u8 = 2;

impl Trust {
    /// No copies.
    pub(crate) fn off() -> Trust {
        Trust(AtomicU8::new(OFF))
    }

    pub(crate) fn is_off(&self) -> bool {
        self.0.load(Ordering::Relaxed) == OFF
    }

    fn is_untried(&self) -> bool {
        self.0.load(Ordering::Relaxed) == UNTRIED
    }

    fn is_now(&self, state: u8) {
        // What one worker has found out to be unlike stays so.
        self.0.fetch_max(state, Ordering::Relaxed);
    }
}

/// One worker's copies.
pub(crate) struct Forks<'f> {
    trust: &'f Trust,
    alike: &'f Alike<'f>,
    /// A recovery that was run from its beginning, and how it was traced.
    known: Option<&'f (Outcome, Detail)>,
    server: Option<ForkServer>,
    made: usize,
    again: usize,
}

impl<'f> Forks<'f> {
    /// None yet. The first is held against what is `known`, if that was traced alike, and else against another run.
    pub(crate) fn new(
        trust: &'f Trust,
        alike: &'f Alike<'f>,
        known: Option<&'f (Outcome, Detail)>,
    ) -> Forks<'f> {
        Forks { trust, alike, known, server: None, made: 0, again: 0 }
    }

    /// As [`Stage::outcome_in`], by a copy if that will do.
    ///
    /// # Errors
    ///
    /// As [`Stage::run`].
    pub(crate) fn outcome(
        &mut self,
        stage: &Stage<'_>,
        command: &CommandLine,
        start: &Arc<Tree>,
        detail: Detail,
    ) -> Result<Outcome, LabError> {
        if let Some((known, _)) =
            self.known.filter(|(_, of)| *of == detail && self.trust.is_untried())
            && let Some(copied) = self.copied(stage, command, &known.start, detail)?
        {
            self.compare(known, &copied);
        }
        let copied = self.copied(stage, command, start, detail)?;
        let is_clear = |copied: &Outcome| copied.success() && copied.trace.gaps.is_empty();
        self.made += usize::from(copied.is_some());
        self.again += usize::from(copied.as_ref().is_some_and(|copied| !is_clear(copied)));
        match copied {
            Some(copied) if is_clear(&copied) && !self.trust.is_untried() => Ok(copied),
            copied => {
                let own = stage.outcome_in(command, start, detail, &mut Undisturbed)?;
                if let Some(copied) = copied.filter(|_| self.trust.is_untried()) {
                    self.compare(&own, &copied);
                }
                Ok(own)
            }
        }
    }

    /// Both began with the same tree.
    fn compare(&self, own: &Outcome, copied: &Outcome) {
        let alike = own.finish.exit == copied.finish.exit
            && went_alike(&own.trace, &copied.trace, self.alike);
        self.trust.is_now(if alike { TRUSTED } else { OFF });
    }

    fn copied(
        &mut self,
        stage: &Stage<'_>,
        command: &CommandLine,
        start: &Arc<Tree>,
        detail: Detail,
    ) -> Result<Option<Outcome>, LabError> {
        let is_vain = self.again >= AGAIN_MAX && self.again * 2 > self.made;
        if self.trust.is_off() || is_vain {
            self.server = None;
            return Ok(None);
        }
        if let Some(server) = &mut self.server {
            if let Some(outcome) = stage.outcome_forked(server, start, detail)? {
                return Ok(Some(outcome));
            }
            self.server = None;
        }
        let is_same = |path: &Path| self.alike.is_same(path);
        let server = stage.fork_server(command, start, detail, &is_same)?;
        let Some(server) = server else {
            self.trust.is_now(OFF);
            return Ok(None);
        };
        let server = self.server.insert(server);
        let outcome = stage.outcome_forked(server, start, detail)?;
        if outcome.is_none() {
            self.trust.is_now(OFF);
        }
        Ok(outcome)
    }
}

/// Both made the same calls, of what the log tells, in the same order; but for what a program does before it is copied.
fn went_alike(one: &Trace, other: &Trace, alike: &Alike<'_>) -> bool {
    let is_later = |event: &&Event| match &event.what {
        What::Executed { .. } => false,
        What::Read { path, .. } | What::Open { path, writable: false, .. } => !alike.is_same(path),
        _ => true,
    };
    let kind = |event: &Event| match &event.what {
        What::Op(op) => (discriminant(&event.what), Some(discriminant(&op.kind))),
        what => (discriminant(what), None),
    };
    let kinds = |trace: &Trace| trace.events.iter().filter(is_later).map(kind).collect::<Vec<_>>();
    one.gaps.len() == other.gaps.len() && kinds(one) == kinds(other)
}

/// The trees that copies begin with: what is the same in all of them a program may read before it is copied.
pub(crate) struct Alike<'t> {
    trees: Vec<&'t Tree>,
    state: &'t State,
}

impl<'t> Alike<'t> {
    pub(crate) fn new(trees: Vec<&'t Tree>, state: &'t State) -> Alike<'t> {
        Alike { trees, state }
    }

    /// A regular file beside the state, which all trees have as it is in the first, with the folders on the way to it.
    fn is_same(&self, path: &Path) -> bool {
        let Some((first, others)) = self.trees.split_first() else { return false };
        let is_file = matches!(first.get(path).map(|node| &node.kind), Some(NodeKind::File(_)));
        let is_state = self.state.paths.iter().any(|state| path.starts_with(state));
        is_file
            && !is_state
            && path.ancestors().all(|part| {
                let node = first.get(part);
                others.iter().all(|tree| tree.get(part) == node)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Settings;
    use crate::scenario::Scenario;

    const LINE: &str = "read n < s; echo $((n + 1)) > t; mv t s";

    /// What a worker makes of several runs from one tree, each traced in this detail: which were copies, and the server's
    /// process after each.
    fn made(details: &[Detail]) -> Vec<(bool, Option<i32>)> {
        let scenario = Scenario::new("counts", &["/bin/sh", "-c", LINE], "s").setup("echo 5 > s");
        let stage = Stage::new(&scenario, &Settings::default(), None).expect("a sandbox");
        let tree = Arc::new(stage.prepare().expect("the setup"));
        let (trust, alike) = (Trust::default(), Alike::new(vec![&tree], &stage.state));
        let mut forks = Forks::new(&trust, &alike, None);
        let mut run = |detail: &Detail| {
            let outcome = forks.outcome(&stage, &scenario.recovery.command, &tree, *detail);
            let outcome = outcome.expect("a run");
            assert!(outcome.success(), "{outcome:?}");
            (outcome.forked, forks.server.as_ref().map(ForkServer::pid))
        };
        details.iter().map(&mut run).collect()
    }

    #[test]
    fn one_server_makes_all_copies() {
        let made = made(&[Detail::Reads; 6]);
        // The first is held against a run of its own, which is what is told of it.
        assert_eq!(made.iter().map(|(forked, _)| *forked).collect::<Vec<_>>()[..2], [false, true]);
        assert!(made[1..].iter().all(|(forked, _)| *forked));
        assert!(made[0].1.is_some() && made.iter().all(|(_, server)| *server == made[0].1));
    }

    #[test]
    fn a_shell_is_passed_that_becomes_the_program() {
        let line = "exec /bin/cat s";
        let scenario = Scenario::new("becomes", &["/bin/sh", "-c", line], "s").setup("echo 5 > s");
        let stage = Stage::new(&scenario, &Settings::default(), None).expect("a sandbox");
        let tree = Arc::new(stage.prepare().expect("the setup"));
        let (trust, alike) = (Trust::default(), Alike::new(vec![&tree], &stage.state));
        let mut forks = Forks::new(&trust, &alike, None);
        let mut run = || forks.outcome(&stage, &scenario.recovery.command, &tree, Detail::Reads);
        let (_, copy) = (run().expect("a run"), run().expect("a copy"));
        let executed = copy.trace.events.iter().filter_map(|event| match &event.what {
            What::Executed { path } => path.file_name(),
            _ => None,
        });
        // The shell is not in it any more.
        assert!(copy.forked && executed.eq(["cat"]), "{copy:?}");
    }

    #[test]
    fn who_is_traced_otherwise_has_another_server() {
        let made = made(&[Detail::Reads, Detail::Reads, Detail::Overwrites, Detail::Overwrites]);
        assert!(made[1..].iter().all(|(forked, _)| *forked));
        assert_ne!(made[1].1, made[2].1);
        assert_eq!(made[2].1, made[3].1);
    }

    #[test]
    fn without_trust_there_are_no_copies() {
        let trust = Trust::default();
        trust.is_now(OFF);
        // What another worker has found out stays.
        trust.is_now(TRUSTED);
        assert!(trust.is_off());
        let trust = Trust::default();
        trust.is_now(TRUSTED);
        trust.is_now(OFF);
        assert!(trust.is_off());
    }
}
