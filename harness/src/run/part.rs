//! A part: one recording with the state files that are judged together, and all faults on it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use super::LabError;
use super::cases::Case;
use super::confirm::Confirmation;
use super::controls::FirstRound;
use super::damage::{Damaged, damage};
use super::derive::Run;
use super::disks::DiskResult;
use super::in_turn::{judge_kills, judge_power};
use super::kill::{Ground, Killed};
use super::overlap::{Overlapped, overlap};
use super::plain::{alert, idle};
use super::power::{PowerCut, Wanted};
use super::race::{Raced, race};
use super::scenario::{FaultResult, Plan, crossed};
use super::stage::Stage;
use crate::fault::damage::Damage;
use crate::fault::kill::{PLACES_IN_WRITE_MAX, bounded};
use crate::interrupt::is_requested;
use crate::judge::{Content, Controls, Promises, Version, Versions, metadata_changes, versions};
use crate::op::Event;
use crate::recording::Recording;
use crate::recovery::Recoveries;
use crate::scenario::{DamageFault, Fault, FaultKind, KillPoint, PowerFault};
use crate::tree::Tree;
use crate::wrap::thousands;

/// One recording, and what was run on its state files; it waits for the second round of controls.
pub(super) struct Part<'a> {
    /// What the report calls it; empty where there is only one.
    pub(super) about: String,
    /// Put in front of the ids of its cases.
    pub(super) prefix: String,
    /// When its first round of controls was over.
    pub(super) controlled: Instant,
    stage: Stage<'a>,
    recording: Rc<Recording>,
    before: Arc<Tree>,
    versions: Versions,
    run: Run,
    promises: Promises,
    recoveries: Recoveries<'a>,
    controls: Option<FirstRound>,
    pending: Vec<Pending>,
    notes: Vec<String>,
}

/// What a part came to: its faults, what was masked, and what else a reader should know.
type Finished = (Vec<FaultResult>, Vec<String>, Vec<String>);

impl<'a> Part<'a> {
    /// Runs the first round of controls, and every fault of the scenario.
    ///
    /// # Errors
    ///
    /// [`LabError`], which names the scenario's file.
    pub(super) fn begin(
        stage: &Stage<'a>,
        recording: Rc<Recording>,
        recoveries: Recoveries<'a>,
        plan: &Plan,
        jobs: usize,
    ) -> Result<Part<'a>, LabError> {
        let scenario = stage.scenario;
        let recoveries = recoveries.with_jobs(jobs);
        let promises = stage.promises()?;
        let events = &recording.trace.events;
        let versions = versions(&recording.before, events, &stage.state, &promises, None)
            .map_err(|misfit| LabError::Lab(format!("{}: {misfit}", scenario.file.display())))?;
        let mut controls = None;
        if scenario.faults.iter().any(needs_controls) {
            controls = Some(FirstRound::run(&recoveries, &recording, &versions)?);
        }
        let before = Arc::new(recording.before.clone());
        let mut part = Part {
            about: String::new(),
            prefix: String::new(),
            controlled: Instant::now(),
            stage: stage.clone(),
            before: before.clone(),
            notes: notes(&recording, stage),
            run: Run::of_subject(before, recording.trace.clone(), versions.clone()),
            recording,
            versions,
            promises,
            recoveries,
            controls,
            pending: Vec::new(),
        };
        let (mut controls, mut notes) = (part.controls.take(), std::mem::take(&mut part.notes));
        for fault in &scenario.faults {
            if is_requested() {
                break;
            }
            let tried = try_fault(&part.ground(), fault, plan, controls.as_mut(), &mut notes)?;
            part.pending.push(tried);
        }
        Ok(Part { controls, notes, ..part })
    }

    fn ground(&self) -> Ground<'_> {
        Ground {
            stage: &self.stage,
            recording: &self.recording,
            run: &self.run,
            before: self.before.clone(),
            versions: &self.versions,
            promises: &self.promises,
            recoveries: &self.recoveries,
        }
    }

    /// Some case cannot be judged before the second round of controls.
    pub(super) fn waits(&self) -> bool {
        self.pending.iter().any(Pending::waits)
    }

    /// Runs the second round of controls, and judges.
    ///
    /// # Errors
    ///
    /// As [`Stage::run`].
    pub(super) fn finish(mut self, plan: &Plan) -> Result<Finished, LabError> {
        let pending = std::mem::take(&mut self.pending);
        let controls = self.controls.take();
        let mut controls = controls.map(|first| first.finish(&self.recoveries)).transpose()?;
        let mut masks = controls.as_ref().map(|all| all.masks.lines()).unwrap_or_default();
        let ground = self.ground();
        let (mut faults, mut told) = (Vec::new(), Vec::new());
        for (fault, pending) in self.stage.scenario.faults.iter().zip(pending) {
            let Judged { mut cases, mut confirmation, disks, notes } =
                judge(&ground, pending, fault, &mut controls, &mut masks)?;
            let ids = cases.iter_mut().map(|case| &mut case.id);
            let differing = confirmation.differing.iter_mut().map(|(id, _)| id);
            ids.chain(differing).for_each(|id| id.insert_str(0, &self.prefix));
            told.extend(notes);
            faults.push(FaultResult {
                kind: fault.kind.word(),
                about: self.about.clone(),
                expect: fault.expect.clone(),
                partial: !matches!(plan, Plan::All) || is_requested(),
                containers: fault.kind.in_containers(),
                cases,
                confirmation,
                disks,
            });
        }
        drop(ground);
        let confirmed = faults.iter().flat_map(|fault| fault.confirmation.notes());
        self.notes.extend(told.into_iter().chain(confirmed));
        Ok((faults, masks, self.notes))
    }
}

/// What a fault came to.
#[derive(Default)]
struct Judged {
    cases: Vec<Case>,
    confirmation: Confirmation,
    disks: Vec<DiskResult>,
    notes: Vec<String>,
}

fn judge(
    ground: &Ground<'_>,
    pending: Pending,
    fault: &Fault,
    controls: &mut Option<Controls>,
    masks: &mut Vec<String>,
) -> Result<Judged, LabError> {
    match (pending, controls) {
        (Pending::Kills(kills), Some(controls)) => {
            let (cases, confirmation) = judge_kills(ground, kills, controls)?;
            Ok(Judged { cases, confirmation, ..Judged::default() })
        }
        (Pending::Power(cut), Some(controls)) => {
            let FaultKind::Power(power) = &fault.kind else { return Err(without_controls()) };
            let wanted = wanted(power, ground).until(cut.until);
            let (cases, disks) = judge_power(ground, *cut, wanted, controls, &fault.expect)?;
            Ok(Judged { cases, disks, ..Judged::default() })
        }
        (Pending::Kills(_) | Pending::Power(_), None) => Err(without_controls()),
        (Pending::Cases(cases), controls) => {
            let mut judged = Judged::default();
            for case in cases {
                match (case, &fault.kind) {
                    (Waiting::Raced(raced), FaultKind::Race(fault)) => {
                        let (cases, masked, told) = raced.judge(ground.stage, fault)?;
                        judged.cases.extend(cases);
                        masks.extend(masked);
                        judged.notes.extend(told);
                    }
                    (case, _) => judged.cases.push(case.judge(ground, controls.as_ref(), masks)?),
                }
            }
            Ok(judged)
        }
    }
}

pub(super) fn needs_controls(fault: &Fault) -> bool {
    matches!(fault.kind, FaultKind::Kill { .. } | FaultKind::Power(_) | FaultKind::Damage(_))
}

/// The cases of one fault, which have been run and wait for the controls to be complete.
enum Pending {
    Kills(Vec<Killed>),
    Power(Box<PowerCut>),
    Cases(Vec<Waiting>),
}

enum Waiting {
    Raced(Box<Raced>),
    Damaged(Box<Damaged>),
    Overlapped(Box<Overlapped>),
    Judged(Box<Case>),
}

impl Pending {
    fn none() -> Pending {
        Pending::Cases(Vec::new())
    }

    fn judged(case: Case) -> Pending {
        Pending::Cases(vec![Waiting::Judged(Box::new(case))])
    }

    fn waits(&self) -> bool {
        match self {
            Pending::Kills(kills) => !kills.is_empty(),
            Pending::Power(cut) => !cut.killed.is_empty(),
            Pending::Cases(cases) => cases.iter().any(|case| !matches!(case, Waiting::Judged(_))),
        }
    }
}

impl Waiting {
    fn judge(
        self,
        ground: &Ground<'_>,
        controls: Option<&Controls>,
        masks: &mut Vec<String>,
    ) -> Result<Case, LabError> {
        match (self, controls) {
            (Waiting::Judged(case), _) => Ok(*case),
            (Waiting::Overlapped(overlapped), _) => {
                let (case, masked) = overlapped.judge(ground.stage)?;
                masks.extend(masked.into_iter().map(|line| format!("{}: {line}", case.id)));
                Ok(case)
            }
            (Waiting::Damaged(damaged), Some(controls)) => {
                Ok(damaged.judge(ground.stage, controls))
            }
            (Waiting::Damaged(_), None) => Err(without_controls()),
            (Waiting::Raced(_), _) => Err(LabError::Lab("a race has no fault".to_owned())),
        }
    }
}

fn without_controls() -> LabError {
    LabError::Lab("a case was run without its controls".to_owned())
}

fn try_fault(
    ground: &Ground<'_>,
    fault: &Fault,
    plan: &Plan,
    controls: Option<&mut FirstRound>,
    notes: &mut Vec<String>,
) -> Result<Pending, LabError> {
    let (stage, recording) = (ground.stage, ground.recording);
    match (&fault.kind, controls) {
        (FaultKind::Kill { at }, Some(controls)) => {
            must_change(ground, fault)?;
            let wanted = wished(at, plan);
            let places = ground.places(&wanted)?;
            let places = places.into_iter().filter(|place| plan.wants(&format!("kill@{place}")));
            let (alone, together): (Vec<_>, Vec<_>) =
                places.partition(|place| matches!(place, KillPoint::Process(..)));
            let mut kills = match stage.settings().live {
                true => together
                    .iter()
                    .map(|place| ground.kill(place, controls))
                    .collect::<Result<Vec<_>, _>>()?,
                false => ground.derive(ground.run(), together, &mut HashSet::new())?,
            };
            kills.extend(ground.kill_each(&alone, controls)?);
            if at.contains(&KillPoint::All) && matches!(plan, Plan::All) {
                notes.extend(bound(&recording.trace.events));
            }
            Ok(Pending::Kills(kills))
        }
        (FaultKind::Power(power), Some(_)) => {
            must_change(ground, fault)?;
            // A cut of a recovery is known by the cut before it.
            let wants = |id: &str| match plan {
                Plan::All => true,
                Plan::Case(wanted) => wanted
                    .strip_prefix(id)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
            };
            let wanted = wanted(power, ground);
            let mut known = HashSet::new();
            let cut = ground.power(ground.run(), &power.models, wanted, &mut known, wants)?;
            Ok(Pending::Power(Box::new(cut)))
        }
        (FaultKind::Damage(fault), _) => try_damage(ground, fault, plan, notes),
        (FaultKind::Race(fault), _) => {
            let only = match plan {
                Plan::All => None,
                Plan::Case(id) => match fault.schedule_of(id) {
                    Some(schedule) => Some((schedule, id.as_str())),
                    None => return Ok(Pending::none()),
                },
            };
            let raced = race(stage, &recording.before, fault, only, ground.recoveries.jobs())?;
            Ok(Pending::Cases(vec![Waiting::Raced(Box::new(raced))]))
        }
        (FaultKind::Overlap { name, processes, order, says }, _)
            if plan.wants(&format!("overlap:{name}")) =>
        {
            let ran = overlap(stage, &recording.before, name, processes, order, says)?;
            Ok(Pending::Cases(vec![Waiting::Overlapped(Box::new(ran))]))
        }
        (FaultKind::Idle { never }, _) if plan.wants("idle") => {
            idle(stage, recording, never).map(Pending::judged)
        }
        (FaultKind::Alert { name, command, says }, _) if plan.wants(&format!("alert:{name}")) => {
            alert(stage, recording, name, command, says).map(Pending::judged)
        }
        _ => Ok(Pending::none()),
    }
}

/// Kills of every place leave what is found where the power fails and everything is on the disk.
fn wanted<'w>(power: &'w PowerFault, ground: &Ground<'_>) -> Wanted<'w> {
    let is_all = |fault: &Fault| matches!(&fault.kind, FaultKind::Kill { at } if at.contains(&KillPoint::All));
    Wanted::of(power, ground.stage.scenario.faults.iter().any(is_all))
}

/// So many writes are told of by name.
const BOUNDED_TOLD: usize = 3;

/// Which places inside writes were left out.
fn bound(events: &[Event]) -> Option<String> {
    let bounded = bounded(events);
    let skipped: usize = bounded.iter().map(|one| one.places - PLACES_IN_WRITE_MAX).sum();
    let told = bounded.iter().take(BOUNDED_TOLD).map(|one| {
        let (number, path) = (one.op.number, one.op.kind.path().unwrap_or(Path::new("")));
        let places = thousands(one.places);
        format!("op {number} ({}) was cut at {PLACES_IN_WRITE_MAX} of {places}", path.display())
    });
    let mut told: Vec<String> = told.collect();
    if bounded.len() > BOUNDED_TOLD {
        told.push(format!("and {} more writes alike", bounded.len() - BOUNDED_TOLD));
    }
    (skipped > 0).then(|| {
        format!(
            "{} places inside writes were skipped, {PLACES_IN_WRITE_MAX} in one write being the most: {}",
            thousands(skipped),
            told.join(", ")
        )
    })
}

/// A case that was asked for by its id need not be among the scenario's own places: then every damaged file has it.
fn try_damage(
    ground: &Ground<'_>,
    fault: &DamageFault,
    plan: &Plan,
    notes: &mut Vec<String>,
) -> Result<Pending, LabError> {
    let one = match plan {
        Plan::All => None,
        Plan::Case(id) => {
            let named = id.strip_prefix("damage:").and_then(|name| name.parse::<Damage>().ok());
            match named.filter(|damage| is_of(fault, damage, &ground.stage.scenario.faults)) {
                Some(damage) => Some(damage),
                None => return Ok(Pending::none()),
            }
        }
    };
    let tried = damage(ground, fault, one.as_ref())?;
    notes.extend(tried.note);
    let damaged = tried.damaged.into_iter().map(|damaged| Waiting::Damaged(Box::new(damaged)));
    let skipped = tried.skipped.into_iter().map(|case| Waiting::Judged(Box::new(case)));
    Ok(Pending::Cases(damaged.chain(skipped).collect()))
}

/// The fault has this damage, or no fault of the scenario has it.
fn is_of(fault: &DamageFault, damage: &Damage, faults: &[Fault]) -> bool {
    let covers = |fault: &DamageFault| fault.damages.iter().any(|wish| wish.covers(damage));
    let others = faults.iter().filter_map(|fault| match &fault.kind {
        FaultKind::Damage(other) => Some(other),
        _ => None,
    });
    covers(fault) || !others.into_iter().any(covers)
}

/// A kill of a run that leaves its state alone tries nothing, which must not look like a pass.
fn must_change(ground: &Ground<'_>, fault: &Fault) -> Result<(), LabError> {
    must_exist(ground)?;
    if !ground.versions.changed.is_empty() || !fault.expect.is_empty() {
        return Ok(());
    }
    let list = |paths: &mut dyn Iterator<Item = String>| paths.collect::<Vec<_>>().join(", ");
    let state = list(&mut ground.stage.state.paths.iter().map(|path| path.display().to_string()));
    let (before, after) = (&ground.recording.before, &ground.recording.after);
    let changed = after.nodes.iter().filter(|(path, node)| before.nodes.get(*path) != Some(*node));
    let wrote = list(&mut changed.map(|(path, _)| path.display().to_string()));
    let wrote = if wrote.is_empty() { "nothing".to_owned() } else { wrote };
    Err(LabError::Scenario(format!(
        "{}: the undisturbed run never changes its state ({state}), so no kill of it can show \
         anything; it changes: {wrote}; is `state` spelled as the program spells it?",
        ground.stage.scenario.file.display()
    )))
}

/// A state path at which there is never anything is misspelt.
fn must_exist(ground: &Ground<'_>) -> Result<(), LabError> {
    let stage = ground.stage;
    let is_there = |path: &PathBuf| {
        let below = |known: &PathBuf, content: &Content| {
            known.starts_with(path) && *content != Content::Absent
        };
        let stands = |version: &Version| {
            version.image.files.iter().any(|(known, content)| below(known, content))
        };
        ground.versions.all.iter().any(stands) || ground.versions.changed.contains(path)
    };
    let optional = |path: &PathBuf| stage.state.volatile.contains(path);
    match stage.state.paths.iter().find(|path| !is_there(path) && !optional(path)) {
        // Where there is never any state, the run is told of as one that changes none.
        Some(path) if stage.state.paths.len() > 1 => Err(LabError::Scenario(format!(
            "{}: there is never anything at the state `{}`; is it spelled as the program spells it?",
            stage.scenario.file.display(),
            path.display()
        ))),
        _ => Ok(()),
    }
}

/// A case that was asked for by its id need not be among the scenario's own places.
fn wished(at: &[KillPoint], plan: &Plan) -> Vec<KillPoint> {
    match plan {
        Plan::All => at.to_vec(),
        Plan::Case(id) => {
            id.strip_prefix("kill@").and_then(|point| point.parse().ok()).into_iter().collect()
        }
    }
}

/// What a reader of the report should know though it is no finding.
fn notes(recording: &Recording, stage: &Stage<'_>) -> Vec<String> {
    let gaps = recording.trace.gaps.iter().map(|gap| format!("not seen: {}", gap.what));
    let is_kill =
        |fault: &Fault| matches!(fault.kind, FaultKind::Kill { .. } | FaultKind::Power(_));
    // A kill says it of each case, as a warning.
    let kept = match stage.scenario.faults.iter().any(is_kill) {
        true => Vec::new(),
        false => metadata_changes(&recording.before, &recording.after, &stage.state),
    };
    let kept = kept.into_iter().map(|what| format!("without any fault: {what}"));
    stage
        .shortcomings()
        .into_iter()
        .chain(gaps)
        .chain(kept)
        .chain(crossed(recording, stage))
        .chain(unmatched(recording, stage))
        .collect()
}

/// Paths that the scenario names and at which nothing ever stands: they are perhaps misspelt.
fn unmatched(recording: &Recording, stage: &Stage<'_>) -> Vec<String> {
    let subject = &stage.scenario.subject;
    let is_there = |path: &Path| {
        [&recording.before, &recording.after].iter().any(|tree| tree.get(path).is_some())
            || recording.trace.ops().any(|op| op.kind.path() == Some(path))
    };
    let of = |key: &'static str, paths: &'_ [PathBuf]| -> Vec<String> {
        let missing = paths.iter().filter(|path| !is_there(path));
        missing
            .map(|path| format!("nothing stands at `{}` ({key}) at any time", path.display()))
            .collect()
    };
    [of("effects", &subject.effects), of("volatile", &subject.volatile)].concat()
}
