//! Kill for real: the subject runs again for each crash point and is ended there by SIGKILL.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::cases::{Case, Evidence, said};
use super::controls::FirstRound;
use super::stage::Stage;
use super::{LabError, check_interrupt};
use crate::fault::kill::{KillAt, points};
use crate::judge::{
    Controls, CrashCase, Image, Outcome, Promises, Verdict, Versions, Word, judge_crash,
    metadata_changes, versions,
};
use crate::op::{Event, OpKind, What};
use crate::recording::{Recording, Trace};
use crate::recovery::Recoveries;
use crate::scenario::KillPoint;
use crate::subject::Exit;
use crate::trace::describe;
use crate::tree::{Tree, unaccounted};

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
            let found = points(&self.recording.trace.events, wish).map_err(|what| {
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
        let versions = self.with_future(own);
        controls.add(self.recoveries, self.recording, &versions)?;
        let survivor = self.stage.state.image(&left);
        let left = Arc::new(left);
        let after = match unseen {
            None => Some(self.recover(&left)?),
            Some(_) => None,
        };
        Ok(Killed { point: point.clone(), unseen, trace, left, survivor, versions, after })
    }

    /// Where the killed run went as the recording did, what the recording came to later counts as well: the last
    /// write before a close is the whole file already.
    fn with_future(&self, mut own: Versions) -> Versions {
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
        let known: BTreeSet<String> =
            trees.iter().flat_map(|tree| tree.nodes.keys()).map(|path| shape(path)).collect();
        let extra = |tree: &Tree| -> Vec<PathBuf> {
            tree.nodes.keys().filter(|path| !known.contains(&shape(path))).cloned().collect()
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

/// A path with each number in it as one sign: names with a process id in them are alike.
fn shape(path: &std::path::Path) -> String {
    let mut shape = String::new();
    for letter in path.to_string_lossy().chars() {
        let letter = if letter.is_ascii_digit() { '#' } else { letter };
        if letter != '#' || !shape.ends_with('#') {
            shape.push(letter);
        }
    }
    shape
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
        let effect = repeated_effect(ground, controls, &after.outcome);
        let verdict = judge_crash(&CrashCase {
            versions: &self.versions,
            controls,
            survivor: &self.survivor,
            stepped_on: self.stepped_on(),
            outcome: &after.outcome,
            check_failed: after.check_failed.as_deref(),
            effect_repeated: effect.as_deref(),
            files: &ground.stage.state.paths,
        });
        let leftovers =
            after.leftovers.iter().map(|path| (Word::Leftover, path.display().to_string()));
        let metadata = after.metadata.iter().map(|what| (Word::Metadata, what.clone()));
        let warnings = leftovers.chain(metadata).collect();
        Case { id, verdict, warnings, evidence }
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

/// More lines in a counted file than after any undisturbed run.
fn repeated_effect(ground: &Ground<'_>, controls: &Controls, outcome: &Outcome) -> Option<String> {
    let count = |tree: &Tree, path: &std::path::Path| match tree.get(path).map(|node| &node.kind) {
        Some(crate::tree::NodeKind::File(bytes)) => {
            bytes.split_inclusive(|byte| *byte == b'\n').count()
        }
        _ => 0,
    };
    ground.stage.scenario.subject.effects.iter().find_map(|path| {
        let undisturbed = controls.of_version.values().map(|outcome| count(&outcome.end, path));
        let most = undisturbed.chain([count(&ground.recording.after, path)]).max().unwrap_or(0);
        let now = count(&outcome.end, path);
        (now > most).then(|| {
            format!("{now} lines in {}, and at most {most} without a fault", path.display())
        })
    })
}
