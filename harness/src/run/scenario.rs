//! One scenario from its first command to its last verdict.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::cases::Case;
use super::confirm::Confirmation;
use super::controls::{CONTROLS_APART, FirstRound, more_versions};
use super::damage::{Damaged, damage};
use super::kill::{Ground, Killed};
use super::overlap::{Overlapped, overlap};
use super::plain::{alert, idle};
use super::stage::{Stage, show};
use super::{LabError, Settings, check_interrupt};
use crate::judge::{Content, Controls, Grade, Verdict, Version, Word, metadata_changes, versions};
use crate::recording::Recording;
use crate::recovery::Recoveries;
use crate::scenario::{Fault, FaultKind, KillPoint, Scenario};
use crate::tree::unaccounted;

/// Which cases of a scenario are wanted.
#[derive(Debug, Clone, Default)]
pub enum Plan {
    /// All.
    #[default]
    All,
    /// The one of this id.
    Case(String),
}

impl Plan {
    fn wants(&self, id: &str) -> bool {
        match self {
            Plan::All => true,
            Plan::Case(wanted) => wanted == id,
        }
    }
}

/// What one fault of a scenario came to.
#[derive(Debug, Clone)]
pub struct FaultResult {
    /// `kill`, `damage`, `overlap`, `idle` or `alert`.
    pub kind: &'static str,
    /// What was expected of it.
    pub expect: Vec<Word>,
    /// Not all of its cases were run, so that nothing can be missing.
    pub partial: bool,
    /// Its cases.
    pub cases: Vec<Case>,
    /// What real kills said of derived ones.
    pub confirmation: Confirmation,
}

impl FaultResult {
    /// Words that were expected and not found.
    pub fn missing(&self) -> Vec<Word> {
        if self.partial {
            return Vec::new();
        }
        let found = |word: &Word| {
            let verdict = self.cases.iter().any(|case| case.verdict.word == *word);
            verdict
                || self
                    .cases
                    .iter()
                    .any(|case| case.warnings.iter().any(|(warning, _)| warning == word))
        };
        self.expect.iter().copied().filter(|word| !found(word)).collect()
    }

    /// A fault that was not expected.
    pub fn is_unexpected(&self, case: &Case) -> bool {
        case.verdict.grade == Grade::Fault && !self.expect.contains(&case.verdict.word)
    }
}

/// What a scenario came to.
#[derive(Debug, Clone)]
pub struct ScenarioResult {
    /// Its name.
    pub name: String,
    /// Its file.
    pub file: std::path::PathBuf,
    /// What it came to, fault by fault.
    pub faults: Vec<FaultResult>,
    /// What differs between equal controls, and was masked.
    pub masks: Vec<String>,
    /// What the tracer could not see, where it touches no watched file.
    pub notes: Vec<String>,
    /// How long it took.
    pub elapsed: Duration,
}

impl ScenarioResult {
    /// For tests: passes if all that was expected held and everything was measured.
    ///
    /// # Panics
    ///
    /// Else, with the findings as the command prints them.
    pub fn assert_held(&self) {
        let bad = |fault: &FaultResult| {
            let unknown = |case: &Case| case.verdict.word == Word::NotMeasured;
            let bad = |case: &Case| fault.is_unexpected(case) || unknown(case);
            fault.cases.iter().any(bad) || !fault.missing().is_empty()
        };
        assert!(!self.faults.iter().any(bad), "{}", crate::report::tell_result(self));
    }

    /// How often each verdict and warning was found.
    pub fn counts(&self) -> BTreeMap<Word, usize> {
        let mut counts = BTreeMap::new();
        for case in self.faults.iter().flat_map(|fault| &fault.cases) {
            *counts.entry(case.verdict.word).or_default() += 1;
            for (word, _) in &case.warnings {
                *counts.entry(*word).or_default() += 1;
            }
        }
        counts
    }
}

/// Pauses that the lab needs while no program of its runs: equal controls are run more than a second apart.
pub trait Pause {
    /// Waits, and gives the processor to run on from now on.
    fn pause(&mut self, time: Duration) -> usize;
}

/// Runs one scenario, alone; its `build` too.
///
/// # Errors
///
/// [`LabError`], which names the scenario's file.
pub fn try_scenario(
    scenario: &Scenario,
    plan: &Plan,
    settings: &Settings,
) -> Result<ScenarioResult, LabError> {
    if settings.build {
        super::build(std::slice::from_ref(scenario), settings, &mut |_| {})?;
    }
    let processor = super::pool::processors()[0];
    let stage = Stage::new(scenario, settings, Some(processor))?;
    run_scenario(&stage, plan, settings.jobs, &mut Alone(processor))
}

/// Nobody else wants the processor meanwhile.
struct Alone(usize);

impl Pause for Alone {
    fn pause(&mut self, time: Duration) -> usize {
        std::thread::sleep(time);
        self.0
    }
}

/// Runs what the plan wants of a scenario, with as many recoveries at once as `jobs` says.
///
/// # Errors
///
/// [`LabError`], which names the scenario's file.
pub fn run_scenario(
    stage: &Stage<'_>,
    plan: &Plan,
    jobs: usize,
    pause: &mut dyn Pause,
) -> Result<ScenarioResult, LabError> {
    let begun = Instant::now();
    let scenario = stage.scenario;
    let before = stage.prepare()?;
    let recording = record(stage, &before)?;
    must_be_watched(&recording, stage)?;
    let promises = stage.promises()?;
    let found = versions(&recording.before, &recording.trace.events, &stage.state, &promises, None)
        .map_err(|misfit| LabError::Lab(format!("{}: {misfit}", scenario.file.display())))?;
    let recoveries = Recoveries::new(stage);
    let mut pending = Vec::new();
    let mut controls = None;
    if scenario.faults.iter().any(needs_controls) {
        controls = Some(FirstRound::run(&recoveries, &recording, &found)?);
    }
    let ground = Ground {
        stage,
        recording: &recording,
        before: Arc::new(before),
        versions: &found,
        promises: &promises,
        recoveries: &recoveries,
        jobs,
    };
    let controlled = Instant::now();
    for fault in &scenario.faults {
        check_interrupt()?;
        pending.push(try_fault(&ground, fault, plan, controls.as_mut())?);
    }
    if pending.iter().any(Pending::waits) {
        stage.pin_to(pause.pause(CONTROLS_APART.saturating_sub(controlled.elapsed())));
    }
    let mut controls = controls.map(|first| first.finish(&recoveries)).transpose()?;
    let mut masks = controls.as_ref().map(|controls| controls.masks.lines()).unwrap_or_default();
    let mut faults = Vec::new();
    for (fault, pending) in scenario.faults.iter().zip(pending) {
        let (expect, partial) = (fault.expect.clone(), !matches!(plan, Plan::All));
        let mut confirmation = Confirmation::default();
        let cases = match (pending, &mut controls) {
            (Pending::Kills(kills), Some(controls)) => {
                let (cases, said) = judge_kills(&ground, kills, controls)?;
                confirmation = said;
                cases
            }
            (Pending::Cases(cases), controls) => {
                let judge = |case: Waiting| case.judge(&ground, controls.as_ref(), &mut masks);
                cases.into_iter().map(judge).collect::<Result<_, _>>()?
            }
            (Pending::Kills(_), None) => return Err(without_controls()),
        };
        let kind = fault.kind.word();
        faults.push(FaultResult { kind, expect, partial, cases, confirmation });
    }
    let mut notes = notes(&recording, stage);
    notes.extend(faults.iter().flat_map(|fault| fault.confirmation.notes()));
    let (name, file) = (scenario.name.clone(), scenario.file.clone());
    Ok(ScenarioResult { name, file, faults, masks, notes, elapsed: begun.elapsed() })
}

fn record(stage: &Stage<'_>, before: &crate::tree::Tree) -> Result<Recording, LabError> {
    let recording = stage.record(before, false)?;
    let end = &recording.trace.ends[0];
    if !end.exit.success() {
        let what = format!("the subject {}", show(&stage.scenario.subject.command));
        return Err(LabError::failed(&stage.scenario.file, &what, end));
    }
    must_account(&recording, stage)?;
    Ok(recording)
}

/// Every change that the run left must be in its log: what the tracer did not see is no pass.
fn must_account(recording: &Recording, stage: &Stage<'_>) -> Result<(), LabError> {
    let Some(what) = unaccounted(&recording.before, &recording.trace.events, &recording.after)
    else {
        return Ok(());
    };
    let gaps: Vec<&str> = recording.trace.gaps.iter().map(|gap| gap.what.as_str()).collect();
    let gaps = if gaps.is_empty() { String::new() } else { format!(" ({})", gaps.join("; ")) };
    Err(LabError::Lab(format!("{}: {what}{gaps}", stage.scenario.file.display())))
}

/// What a link out of the work folder leads to is not watched, so that nothing could be said of it.
fn must_be_watched(recording: &Recording, stage: &Stage<'_>) -> Result<(), LabError> {
    let trees = [&recording.before, &recording.after];
    match trees.into_iter().find_map(|tree| stage.state.unwatched(tree)) {
        None => Ok(()),
        Some(path) => Err(LabError::Scenario(format!(
            "{}: the state `{}` leads out of the work folder, or round in circles: nothing is known of what is there; \
             let the scenario put the file into the work folder, and a link to it by a relative path",
            stage.scenario.file.display(),
            path.display()
        ))),
    }
}

fn needs_controls(fault: &Fault) -> bool {
    matches!(fault.kind, FaultKind::Kill { .. } | FaultKind::Damage { .. })
}

/// The cases of one fault, which have been run and wait for the controls to be complete.
enum Pending {
    Kills(Vec<Killed>),
    Cases(Vec<Waiting>),
}

enum Waiting {
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
        }
    }
}

fn without_controls() -> LabError {
    LabError::Lab("a case was run without its controls".to_owned())
}

/// Judges kills, then those of their recoveries as deep as the settings say, and makes some of all these for real.
fn judge_kills(
    ground: &Ground<'_>,
    kills: Vec<Killed>,
    controls: &mut Controls,
) -> Result<(Vec<Case>, Confirmation), LabError> {
    let settings = ground.stage.settings();
    let vouched = ground.vouched()?;
    let mut known: HashSet<[u8; 32]> = kills.iter().map(|kill| kill.hash).collect();
    let mut cases = Vec::new();
    let mut judged: Vec<(Killed, Verdict)> = Vec::new();
    let mut level = kills;
    for depth in 1.. {
        let mut grades = Vec::new();
        for kill in level {
            let case = kill.judge(ground, controls, &vouched);
            grades.push((kill.clone(), case.verdict.grade));
            judged.push((kill, case.verdict.clone()));
            cases.push(case);
        }
        if depth >= settings.depth {
            break;
        }
        level = Vec::new();
        for run in ground.recoveries_of(&grades)? {
            let (before, like) = (run.before(), &ground.recording.after);
            more_versions(controls, ground.recoveries, before, like, run.own_versions())?;
            level.extend(ground.derive(&run, ground.every_place(&run)?, &mut known)?);
        }
    }
    let confirmation = match settings.live {
        true => Confirmation::default(),
        false => ground.confirm(&judged, settings.confirm)?,
    };
    Ok((cases, confirmation))
}

fn try_fault(
    ground: &Ground<'_>,
    fault: &Fault,
    plan: &Plan,
    controls: Option<&mut FirstRound>,
) -> Result<Pending, LabError> {
    let (stage, recording) = (ground.stage, ground.recording);
    match (&fault.kind, controls) {
        (FaultKind::Kill { at }, Some(controls)) => {
            must_change(ground, fault)?;
            let wanted = wished(at, plan);
            let places = ground.places(&wanted)?;
            let places = places.into_iter().filter(|place| plan.wants(&format!("kill@{place}")));
            let kills = match stage.settings().live {
                true => places.map(|place| ground.kill(&place, controls)).collect::<Result<_, _>>(),
                false => ground.derive(&ground.run(), places.collect(), &mut HashSet::new()),
            };
            kills.map(Pending::Kills)
        }
        (FaultKind::Damage { file, damages }, _) => {
            let damages = damages.iter().filter(|name| plan.wants(&format!("damage:{name}")));
            let cases = damages.map(|name| try_damage(ground, file, name));
            cases.collect::<Result<_, _>>().map(Pending::Cases)
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

/// A damage that does not fit the file is skipped, with the reason; it is no pass.
fn try_damage(ground: &Ground<'_>, file: &Path, name: &str) -> Result<Waiting, LabError> {
    let before = &ground.recording.before;
    Ok(match damage(ground.stage, ground.recoveries, before, file, name)? {
        Ok(damaged) => Waiting::Damaged(Box::new(damaged)),
        Err(why) => Waiting::Judged(Box::new(Case {
            id: format!("damage:{name}"),
            verdict: Verdict::skipped(why.to_string()),
            warnings: Vec::new(),
            evidence: Default::default(),
        })),
    })
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
    let is_kill = |fault: &Fault| matches!(fault.kind, FaultKind::Kill { .. });
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
