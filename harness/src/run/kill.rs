//! Kill for real: the subject runs again for each crash point and is ended there by SIGKILL.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::cases::{Case, Evidence, said};
use super::controls::FirstRound;
use super::stage::Stage;
use super::{LabError, check_interrupt};
use crate::fault::kill::{KillAt, points};
use crate::judge::{
    Controls, CrashCase, Image, Outcome, Promises, Shapes, Verdict, Version, Versions, Word,
    judge_crash, metadata_changes, shape, versions,
};
use crate::op::{Event, OpKind, What};
use crate::recording::{Recording, Trace};
use crate::recovery::Recoveries;
use crate::scenario::KillPoint;
use crate::subject::Exit;
use crate::trace::describe;
use crate::tree::{Model, NodeKind, Tree, unaccounted};

/// How many events before the crash point are told.
const EVENTS_TOLD: usize = 8;

/// A kill that was made, and what the recovery made of what was left.
#[derive(Debug)]
pub struct Killed {
    point: KillPoint,
    /// Why it cannot be judged, if it cannot.
    unseen: Option<String>,
    trace: Trace,
    left: Arc<Tree>,
    survivor: Image,
    versions: Versions,
    after: Option<After>,
}

#[derive(Debug)]
struct After {
    outcome: Outcome,
    check_failed: Option<String>,
    leftovers: Vec<PathBuf>,
    metadata: Vec<String>,
}

/// What every kill of one scenario needs.
#[derive(Debug)]
pub struct Ground<'a> {
    /// Where it runs.
    pub stage: &'a Stage<'a>,
    /// The undisturbed run.
    pub recording: &'a Recording,
    /// Its versions.
    pub versions: &'a Versions,
    /// Its promises.
    pub promises: &'a Promises,
    /// Recoveries that have been run.
    pub recoveries: &'a Recoveries<'a>,
}

impl Ground<'_> {
    /// Every place that the wishes stand for, once each, in the order of the wishes.
    ///
    /// # Errors
    ///
    /// [`LabError::Scenario`] for a place that the recording does not have.
    pub fn places(&self, at: &[KillPoint]) -> Result<Vec<KillPoint>, LabError> {
        let mut places = Vec::new();
        for wish in at {
            let file = self.stage.scenario.file.display();
            let (events, promising) = (&self.recording.trace.events, &self.versions.promising);
            let found = points(events, promising, wish).map_err(|what| {
                LabError::Scenario(format!("{file}: no kill at `{wish}`: {what}"))
            })?;
            places.extend(
                found.into_iter().filter(|place| !places.contains(place)).collect::<Vec<_>>(),
            );
        }
        Ok(places)
    }

    /// Runs the subject, kills it at the place, and runs the recovery on what is left.
    ///
    /// # Errors
    ///
    /// As [`Stage::run`].
    pub fn kill(&self, point: &KillPoint, controls: &mut FirstRound) -> Result<Killed, LabError> {
        check_interrupt()?;
        let mut director = KillAt::new(point.clone());
        let subject = std::slice::from_ref(&self.stage.scenario.subject.command);
        let (mut trace, left) =
            self.stage.run(subject, &self.recording.before, false, &mut director)?;
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
        controls.add(self.recoveries, self.recording, &versions)?;
        let left = Arc::new(left);
        let after = match unseen {
            None => Some(self.recover(&left)?),
            Some(_) => None,
        };
        Ok(Killed { point: point.clone(), unseen, trace, left, survivor, versions, after })
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
        own
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

    fn recover(&self, left: &Arc<Tree>) -> Result<After, LabError> {
        let outcome = self.recoveries.on(left)?;
        let check_failed = self.recoveries.check(&outcome.end)?;
        let leftovers = self.leftovers(&outcome)?;
        let metadata = metadata_changes(&self.recording.before, &outcome.end, &self.stage.state);
        Ok(After { outcome, check_failed, leftovers, metadata })
    }

    /// Files that the recovery and one more run of it leave, and no undisturbed run does.
    fn leftovers(&self, outcome: &Outcome) -> Result<Vec<PathBuf>, LabError> {
        let after_start = self.recoveries.on(&self.recording.before)?;
        let after_end = self.recoveries.on(&self.recording.after)?;
        let trees =
            [&self.recording.before, &self.recording.after, &*after_start.end, &*after_end.end];
        let mut known = Shapes::default();
        known.learn(trees.iter().flat_map(|tree| tree.nodes.keys()));
        let extra = |tree: &Tree| -> Vec<PathBuf> {
            tree.nodes.keys().filter(|path| !known.contains(path)).cloned().collect()
        };
        if !outcome.success() || extra(&outcome.end).is_empty() {
            return Ok(Vec::new());
        }
        let again = self.recoveries.on(&outcome.end)?;
        Ok(extra(&again.end)
            .into_iter()
            .filter(|path| outcome.start.nodes.contains_key(path))
            .collect())
    }
}

/// Every op of a run that was cut is of the kind, and on the file, of the recording's.
fn goes_alike(cut: &Trace, recorded: &Trace) -> bool {
    let mut recorded = recorded.ops();
    cut.ops().all(|op| {
        let like = recorded.next();
        like.is_some_and(|like| {
            like.kind.word() == op.kind.word()
                && like.kind.path().map(shape) == op.kind.path().map(shape)
        })
    })
}

impl Killed {
    /// Judges it, now that the controls are complete.
    pub fn judge(self, ground: &Ground<'_>, controls: &Controls) -> Case {
        let id = format!("kill@{}", self.point);
        let evidence = self.evidence(ground);
        let Some(after) = &self.after else {
            let why = self.unseen.unwrap_or_else(|| "no recovery was run".to_owned());
            return Case {
                id,
                verdict: Verdict::not_measured(why),
                warnings: Vec::new(),
                evidence,
            };
        };
        let effect = self.repeated_effect(ground, controls, &after.outcome);
        let verdict = judge_crash(&CrashCase {
            versions: &self.versions,
            controls,
            survivor: &self.survivor,
            stepped_on: self.stepped_on(),
            outcome: &after.outcome,
            check_failed: after.check_failed.as_deref(),
            effect_repeated: effect.as_deref(),
            state: &ground.stage.state,
        });
        let leftovers =
            after.leftovers.iter().map(|path| (Word::Leftover, path.display().to_string()));
        let metadata = after.metadata.iter().map(|what| (Word::Metadata, what.clone()));
        let warnings = leftovers.chain(metadata).collect();
        Case { id, verdict, warnings, evidence }
    }

    /// More lines in a counted file than after any undisturbed run, and than stood there with the version that
    /// survived together with those that the recovery adds to it undisturbed.
    fn repeated_effect(
        &self,
        ground: &Ground<'_>,
        controls: &Controls,
        outcome: &Outcome,
    ) -> Option<String> {
        let (before, after) = (&ground.recording.before, &ground.recording.after);
        ground.stage.scenario.subject.effects.iter().find_map(|path| {
            let undisturbed = controls.of_version.values().map(|outcome| lines(&outcome.end, path));
            let with_version =
                self.tree_of_version(before).zip(controls.of_version.get(&self.survivor));
            let with_version = with_version.map(|(tree, control)| {
                lines(&tree, path) + lines(&control.end, path).saturating_sub(lines(before, path))
            });
            let most = undisturbed.chain([lines(after, path)]).chain(with_version).max()?;
            let now = lines(&outcome.end, path);
            (now > most).then(|| {
                format!("{now} lines in {}, and at most {most} without a fault", path.display())
            })
        })
    }

    /// The tree when the version that survived began to stand; at the end's version all that was done belongs to it.
    fn tree_of_version(&self, before: &Tree) -> Option<Tree> {
        let stood = self.versions.all.iter().rposition(|version| version.image == self.survivor)?;
        if stood + 1 == self.versions.all.len() {
            return Some(Tree::clone(&self.left));
        }
        let at = self.versions.all[stood].at_event.min(self.trace.events.len());
        let mut model = Model::new(before);
        self.trace.events[..at].iter().try_for_each(|event| model.apply(event)).ok()?;
        Some(model.tree())
    }

    fn stepped_on(&self) -> bool {
        let stood = self.versions.all.iter().rev().find(|version| version.image == self.survivor);
        let since = stood.map_or(0, |version| version.after_op);
        self.trace.ops().any(|op| op.number > since && op.kind.changes())
    }

    fn evidence(&self, ground: &Ground<'_>) -> Evidence {
        let events = &self.trace.events;
        let told: Vec<&Event> = events.iter().filter(|event| is_telling(event)).collect();
        let from = told.len().saturating_sub(EVENTS_TOLD);
        let outcome = self.after.as_ref().map(|after| &after.outcome);
        Evidence {
            before: Some(Arc::new(ground.recording.before.clone())),
            crashed: Some(self.left.clone()),
            ended: outcome.map(|outcome| outcome.end.clone()),
            ops: told[from..].iter().map(|event| describe(event)).collect(),
            said: outcome.map(|outcome| said(&outcome.finish)).unwrap_or_default(),
        }
    }
}

/// How many events came before the kill. What the tracer wrote down of the end itself, such as the closing of
/// descriptors, was not the subject's doing: it makes no version.
fn end_of_life(events: &[Event], point: &KillPoint) -> usize {
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

/// Of the events before a crash point, those that tell a reader where it lies.
fn is_telling(event: &Event) -> bool {
    !matches!(
        event.what,
        What::Spawned { .. } | What::Executed { .. } | What::Ended { .. } | What::Read { .. }
    )
}

/// The lines of a file.
fn lines(tree: &Tree, path: &Path) -> usize {
    match tree.get(path).map(|node| &node.kind) {
        Some(NodeKind::File(bytes)) => bytes.split_inclusive(|byte| *byte == b'\n').count(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Grade;
    use crate::op::{Actor, Op};
    use crate::run::Settings;
    use crate::run::controls::FirstRound;
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
        let mut controls = FirstRound::run(&recoveries, &recording, &found).expect("controls");
        let ground = Ground {
            stage: &stage,
            recording: &recording,
            versions: &found,
            promises: &promises,
            recoveries: &recoveries,
        };
        let killed = ground.kill(&KillPoint::After(number), &mut controls).expect("a kill");
        let case = killed.judge(&ground, &controls.finish(&recoveries).expect("controls"));
        assert_eq!((case.verdict.word, case.verdict.grade), (Word::NotMeasured, Grade::Unknown));
        assert!(case.verdict.why.contains("did not come to this place"), "{}", case.verdict.why);
    }
}
