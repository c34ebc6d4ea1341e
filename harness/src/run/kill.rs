//! Kills, whether derived or made, with what the recovery makes of what is left.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::LabError;
use super::cases::Case;
use super::derive::Run;
use super::stage::Stage;
use crate::fault::kill::points;
use crate::fault::power::{DiskModel, PowerState};
use crate::judge::{
    Controls, CrashCase, Ends, Image, Outcome, Promises, Shapes, Verdict, Versions, Word,
    judge_crash, metadata_changes,
};
use crate::op::{Data, Event};
use crate::recording::{Recording, Trace};
use crate::recovery::Recoveries;
use crate::scenario::KillPoint;
use crate::tree::{Model, NodeKind, Tree};

/// A kill, and what the recovery made of what was left.
#[derive(Debug, Clone)]
pub struct Killed {
    /// The case's id.
    pub(super) id: String,
    /// Where it came.
    pub(super) point: KillPoint,
    /// Why it cannot be judged, if it cannot.
    pub(super) unseen: Option<String>,
    /// It was the recovery that was killed, and not the subject.
    pub(super) of_recovery: bool,
    /// It was one process alone that was killed, and the others did not end.
    pub(super) others_hung: bool,
    /// The tree before the run that was killed.
    pub(super) before: Arc<Tree>,
    /// That run.
    pub(super) trace: Arc<Trace>,
    /// How many of its events came before the kill.
    pub(super) at: usize,
    /// How many came before the recovery: more, where one process was killed and the others went on.
    pub(super) events: usize,
    /// The tree after the kill, and its hash.
    pub(super) left: Arc<Tree>,
    pub(super) hash: [u8; 32],
    pub(super) survivor: Image,
    pub(super) versions: Arc<Versions>,
    pub(super) promised: usize,
    pub(super) after: Option<Arc<After>>,
    /// The marks that had been passed, also those of the runs before this one.
    pub(super) marks: Vec<String>,
    /// What the scenario's check said of what the recovery left, if it failed.
    pub(super) check_failed: Option<String>,
    /// The power failed, and it was no kill.
    pub(super) power: Option<PowerFailed>,
}

/// What a power cut left, beside the tree.
#[derive(Debug, Clone)]
pub struct PowerFailed {
    /// The disk models by whose rules the tree can be found.
    pub(super) disks: Vec<&'static DiskModel>,
    /// What is not on the disk, in words.
    pub(super) missing: Vec<String>,
    /// What is on it although that is not, in words.
    pub(super) although: Option<String>,
    /// The first of the ops that these are of.
    pub(super) ops: Vec<u32>,
    /// What is found.
    pub(super) state: PowerState,
}

/// What came of one tree.
#[derive(Debug)]
pub struct After {
    pub(super) outcome: Outcome,
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
    /// The same as one whose every kill state is known.
    pub run: &'a Run,
    /// The tree before it.
    pub before: Arc<Tree>,
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
        let file = self.stage.scenario.file.display();
        let (events, promising) = (&self.recording.trace.events, self.versions.promising_outputs());
        let (mut places, mut known) = (Vec::new(), HashSet::new());
        for wish in at {
            let found = points(events, &promising, wish).map_err(|what| {
                LabError::Scenario(format!("{file}: no kill at `{wish}`: {what}"))
            })?;
            places.extend(found.into_iter().filter(|place| known.insert(place.clone())));
        }
        Ok(places)
    }

    /// Runs the recovery, and looks at what it left beside what undisturbed runs leave (see [`familiar`](Self::familiar)).
    pub(super) fn recover(
        &self,
        hash: [u8; 32],
        left: &Arc<Tree>,
        familiar: &Shapes,
    ) -> Result<After, LabError> {
        let outcome = self.recoveries.on_known(hash, left)?;
        let leftovers = self.leftovers(&outcome, familiar)?;
        let metadata = metadata_changes(&self.recording.before, &outcome.end, &self.stage.state);
        Ok(After { outcome, leftovers, metadata })
    }

    /// The paths that undisturbed runs begin with or leave.
    pub(super) fn familiar(&self) -> Result<Shapes, LabError> {
        let after_start = self.recoveries.on(&self.recording.before)?;
        let after_end = self.recoveries.on(&self.recording.after)?;
        let trees =
            [&self.recording.before, &self.recording.after, &*after_start.end, &*after_end.end];
        let mut known = Shapes::default();
        known.learn(trees.iter().flat_map(|tree| tree.nodes.keys()));
        Ok(known)
    }

    /// Files that the recovery and one more run of it leave, and no undisturbed run does.
    fn leftovers(&self, outcome: &Outcome, familiar: &Shapes) -> Result<Vec<PathBuf>, LabError> {
        let extra = |tree: &Tree| -> Vec<PathBuf> {
            tree.nodes.keys().filter(|path| !familiar.contains(path)).cloned().collect()
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

impl Killed {
    /// It was the power that failed.
    pub(super) fn by_power(self, power: PowerFailed) -> Killed {
        Killed { power: Some(power), ..self }
    }

    /// What is known of its recovery a copy has told.
    pub(super) fn is_by_copy(&self) -> bool {
        self.after.as_ref().is_some_and(|after| after.outcome.forked)
    }

    /// Judges it, now that the controls are complete; `ends` are those from this run's versions.
    pub fn judge(
        &self,
        ground: &Ground<'_>,
        controls: &Controls,
        ends: &Ends,
        vouched: &[Outcome],
    ) -> Case {
        let id = self.id.clone();
        let evidence = self.evidence(ground);
        let Some(after) = &self.after else {
            let why = self.unseen.clone().unwrap_or_else(|| "no recovery was run".to_owned());
            return Case {
                id,
                verdict: Verdict::not_measured(why),
                warnings: Vec::new(),
                evidence,
            };
        };
        if self.others_hung {
            let verdict = Verdict::hung("the other processes did not end when this one had died");
            return Case { id, verdict, warnings: Vec::new(), evidence };
        }
        let effect = self.repeated_effect(ground, controls, &after.outcome);
        let verdict = judge_crash(&CrashCase {
            versions: &self.versions,
            promised: self.promised,
            controls,
            ends,
            survivor: &self.survivor,
            stepped_on: self.stepped_on(),
            outcome: &after.outcome,
            check_failed: self.check_failed.as_deref(),
            effect_repeated: effect.as_deref(),
            vouched,
            state: &ground.stage.state,
        });
        let leftovers =
            after.leftovers.iter().map(|path| (Word::Leftover, path.display().to_string()));
        let metadata = after.metadata.iter().map(|what| (Word::Metadata, what.clone()));
        let warnings = leftovers.chain(metadata).collect();
        Case { id, verdict: self.on_disks(verdict), warnings, evidence }
    }

    /// The verdict with the disks on which it is so.
    fn on_disks(&self, verdict: Verdict) -> Verdict {
        let Some(power) = &self.power else {
            return verdict;
        };
        let missing = match power.missing.is_empty() {
            true => "everything is on the disk".to_owned(),
            false => format!("not on the disk: {}", power.missing.join(", ")),
        };
        let although = power.although.iter().map(|although| format!(", {although}"));
        let although: String = although.collect();
        let disks: Vec<&str> = power.disks.iter().map(|disk| disk.name).collect();
        let why = format!("on {}: {}; {missing}{although}", disks.join(", "), verdict.why);
        Verdict { why, ..verdict }
    }

    /// More lines in a counted file than after any undisturbed run, and than stood there with the version that
    /// survived together with those that the recovery adds to it undisturbed.
    fn repeated_effect(
        &self,
        ground: &Ground<'_>,
        controls: &Controls,
        outcome: &Outcome,
    ) -> Option<String> {
        let (before, after) = (&*self.before, &ground.recording.after);
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
        let at = self.versions.all[stood].at_event.min(self.events);
        let mut model = Model::new(before);
        self.trace.events[..at].iter().try_for_each(|event| model.apply(event)).ok()?;
        Some(model.tree())
    }

    fn stepped_on(&self) -> bool {
        let stood = self.versions.all.iter().rev().find(|version| version.image == self.survivor);
        let since = stood.map_or(0, |version| version.after_op);
        let ops = self.trace.events[..self.events].iter().rev().filter_map(Event::op);
        ops.take_while(|op| op.number > since).any(|op| op.kind.changes())
    }
}

/// The lines of a file, the last one also where it does not end.
fn lines(tree: &Tree, path: &Path) -> usize {
    let Some(NodeKind::File(content)) = tree.get(path).map(|node| &node.kind) else {
        return 0;
    };
    let newlines = |piece: Data| piece.iter().filter(|byte| **byte == b'\n').count();
    let ends: usize = content.pieces().map(|(_, piece)| newlines(piece)).sum();
    ends + usize::from(content.last().is_some_and(|last| last != b'\n'))
}
