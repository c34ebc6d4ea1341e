//! Kill for real: the subject runs again for a crash point and is ended there by SIGKILL.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::controls::FirstRound;
use super::kill::{Ground, Killed};
use super::{LabError, check_interrupt};
use crate::fault::kill::KillAt;
use crate::judge::{Image, Version, Versions, shape, versions};
use crate::op::{Event, OpKind, What};
use crate::recording::{Trace, marks};
use crate::scenario::KillPoint;
use crate::subject::Exit;
use crate::tree::{Tree, unaccounted};

impl Ground<'_> {
    /// Runs the subject, kills it at the place, and runs the recovery on what is left.
    ///
    /// # Errors
    ///
    /// As [`Stage::run`].
    pub fn kill(&self, point: &KillPoint, controls: &mut FirstRound) -> Result<Killed, LabError> {
        check_interrupt()?;
        let mut director = KillAt::new(point.clone());
        let (mut trace, left) = self.stage.run_subject(&self.recording.before, &mut director)?;
        trace.events.truncate(end_of_life(&trace.events, point));
        if matches!(point, KillPoint::Inside(..)) {
            forget_append(&mut trace.events);
        }
        let mut unseen = self.unseen(&trace, &left, director.reached);
        let own = versions(
            &self.recording.before,
            &trace.events,
            &self.stage.state,
            self.promises,
            Some(self.versions),
        )
        .map_err(|misfit| unseen.get_or_insert(misfit.to_string()).clone())
        .unwrap_or_default();
        let survivor = self.stage.state.image(&left);
        let versions = self.with_recorded(own, &trace, point, &survivor);
        controls.add(
            self.recoveries,
            &self.recording.before,
            &self.recording.after,
            &versions.all,
        )?;
        let (hash, left) = (left.hash(), Arc::new(left));
        let after = match unseen {
            None => Some(Arc::new(self.recover(hash, &left, &self.familiar()?)?)),
            Some(_) => None,
        };
        let marks = marks(&trace.events);
        let check_failed = match &after {
            Some(after) => self.recoveries.check(&after.outcome.end, &marks)?,
            None => None,
        };
        Ok(Killed {
            id: format!("kill@{point}"),
            point: point.clone(),
            unseen,
            of_recovery: false,
            others_hung: false,
            before: self.before.clone(),
            at: trace.events.len(),
            events: trace.events.len(),
            trace: Arc::new(trace),
            left,
            hash,
            survivor,
            promised: versions.promised,
            versions: Arc::new(versions),
            after,
            power: None,
            marks,
            check_failed,
        })
    }

    /// Where the killed run went as the recording did, what the recording came to later counts as well: the last
    /// write before a close is the whole file already, and a name given before the last write is none.
    fn with_recorded(
        &self,
        mut own: Versions,
        trace: &Trace,
        point: &KillPoint,
        survivor: &Image,
    ) -> Versions {
        let known = &self.versions.all;
        let alike = goes_alike(trace, &self.recording.trace);
        if alike {
            own.take_out_premature(&self.versions.premature);
        }
        // Where the bytes are this run's own, such as times, the recording tells that they are a version.
        let last = trace.ops().last().map_or(0, |op| op.number);
        let stood = known.iter().find(|version| version.after_op == last && last > 0);
        let stood = stood.filter(|_| alike && !matches!(point, KillPoint::Inside(..)));
        let image = self.stage.state.without_strangers(survivor, |path| own.shapes.contains(path));
        let is_new = own.all.iter().all(|own| own.image != image);
        if let Some(stood) = stood.filter(|stood| is_new && stood.image != image) {
            own.all.push(Version { image, ..stood.clone() });
        }
        self.go_on_as_recorded(&mut own);
        own
    }

    /// The versions of a run that came to those of the recording, as far as it went, and then to the others.
    pub(super) fn go_on_as_recorded(&self, own: &mut Versions) {
        let known = &self.versions.all;
        let same = own.all.len() <= known.len()
            && own.all.iter().zip(known).all(|(own, known)| own.image == known.image);
        if same {
            // What the recording came to at its end stands for certain, also where this run only closed it.
            for (own, known) in own.all.iter_mut().zip(known) {
                own.origin = known.origin;
            }
            own.all.extend(known[own.all.len()..].iter().cloned());
        }
        // Where no later version comes, a promise of the next one is a promise of the last.
        own.promised = own.promised.min(own.all.len().max(known.len()).saturating_sub(1));
        for (path, contents) in &self.versions.of_file {
            own.of_file.entry(path.clone()).or_default().extend(contents.iter().cloned());
        }
    }

    fn unseen(&self, trace: &Trace, left: &Tree, reached: bool) -> Option<String> {
        if !reached {
            let ended = trace.ends.first().map_or(Exit::Killed, |end| end.exit);
            return Some(format!(
                "the run did not come to this place ({ended}): it is not the same each time"
            ));
        }
        if let Some(gap) = trace.gaps.iter().find(|gap| gap.path.is_some()) {
            return Some(format!("the tracer could not see: {}", gap.what));
        }
        unaccounted(&self.recording.before, &trace.events, left)
    }
}

/// Every op of a run that was cut is of the kind, and on the file, of the recording's. Files that the run made itself may
/// have other names, as with `mkstemp`.
pub(super) fn goes_alike(cut: &Trace, recorded: &Trace) -> bool {
    let mut recorded = recorded.ops();
    let mut names: HashMap<&Path, &Path> = HashMap::new();
    cut.ops().all(|op| {
        let like = recorded.next();
        like.is_some_and(|like| {
            like.kind.word() == op.kind.word()
                && match (like.kind.path(), op.kind.path()) {
                    (Some(known), Some(own)) => match names.get(known) {
                        Some(name) => *name == own,
                        None if shape(known) == shape(own) => true,
                        None if is_made(&op.kind) && known.parent() == own.parent() => {
                            names.insert(known, own).is_none()
                        }
                        None => false,
                    },
                    (known, own) => known.is_none() && own.is_none(),
                }
        })
    })
}

/// The op makes something new at its path.
fn is_made(kind: &OpKind) -> bool {
    matches!(kind, OpKind::Create { .. } | OpKind::Mkdir { .. } | OpKind::Symlink { .. })
}

/// How many events came before the kill. What the tracer wrote down of the end itself, such as the closing of
/// descriptors, was not the subject's doing: it makes no version.
pub(super) fn end_of_life(events: &[Event], point: &KillPoint) -> usize {
    let is_last = |event: &Event| match point {
        KillPoint::After(0) => false,
        KillPoint::Mark(..) => matches!(event.what, What::Mark(_)),
        KillPoint::Output(_) => matches!(event.what, What::Output { .. }),
        _ => matches!(event.what, What::Op(_)),
    };
    events.iter().rposition(is_last).map_or(0, |last| last + 1)
}

/// A write that was cut in two is no whole append.
fn forget_append(events: &mut [Event]) {
    if let Some(What::Op(op)) = events.last_mut().map(|event| &mut event.what)
        && let OpKind::Write { append, .. } = &mut op.kind
    {
        *append = false;
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::judge::{Grade, Promises, Word};
    use crate::op::{Actor, Op};
    use crate::recovery::Recoveries;
    use crate::run::derive::Run;
    use crate::run::{Settings, Stage};
    use crate::scenario::Scenario;

    /// A recording with an op that no other run does: nothing is known of a kill there, which is no pass.
    #[test]
    fn a_place_that_a_run_does_not_come_to_is_not_measured() {
        let line = "echo two > t; mv t s";
        let scenario = Scenario::new("shorter", &["/bin/sh", "-c", line], "s");
        let stage = Stage::new(&scenario, &Settings::default(), None).expect("a sandbox");
        let before = stage.prepare().expect("an empty folder");
        let mut recording = stage.record(&before, false).expect("a run");
        let number = recording.trace.ops().count() as u32 + 1;
        let path = PathBuf::from("more");
        let kind = OpKind::Mkdir { path, mode: 0o755, owner: (0, 0) };
        let what = What::Op(Op { number, call: "mkdir".into(), kind });
        recording.trace.events.push(Event { actor: Actor { program: 0, pid: 1, tid: 1 }, what });
        let promises = Promises::default();
        let events = &recording.trace.events;
        let found = versions(&before, events, &stage.state, &promises, None).expect("it fits");
        let recoveries = Recoveries::new(&stage);
        let run = Run::of_subject(
            Arc::new(before.clone()),
            recording.trace.clone(),
            Versions::clone(&found),
        );
        let mut controls = FirstRound::run(&recoveries, &recording, &found).expect("controls");
        let ground = Ground {
            stage: &stage,
            recording: &recording,
            run: &run,
            before: Arc::new(before.clone()),
            versions: &found,
            promises: &promises,
            recoveries: &recoveries,
        };
        let killed = ground.kill(&KillPoint::After(number), &mut controls).expect("a kill");
        let controls = controls.finish(&recoveries).expect("controls");
        let case = killed.judge(&ground, &controls, &controls.ends(&killed.versions), &[]);
        assert_eq!((case.verdict.word, case.verdict.grade), (Word::NotMeasured, Grade::Unknown));
        assert!(case.verdict.why.contains("did not come to this place"), "{}", case.verdict.why);
    }
}
