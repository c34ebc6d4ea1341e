//! One scenario from its first command to its last verdict.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::cases::Case;
use super::confirm::Confirmation;
use super::controls::CONTROLS_APART;
use super::disks::DiskResult;
use super::part::{Part, needs_controls};
use super::stage::{Stage, show};
use super::{LabError, Settings, check_interrupt};
use crate::judge::{Grade, Word};
use crate::op::{Event, What};
use crate::recording::Recording;
use crate::recovery::Recoveries;
use crate::scenario::Scenario;
use crate::tree::{Tree, unaccounted};
use crate::wrap::shell_word;

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
    pub(super) fn wants(&self, id: &str) -> bool {
        match self {
            Plan::All => true,
            Plan::Case(wanted) => wanted == id,
        }
    }
}

/// What one fault of a scenario came to.
#[derive(Debug, Clone)]
pub struct FaultResult {
    /// `kill`, `power`, `damage`, `race`, `overlap`, `idle` or `alert`.
    pub kind: &'static str,
    /// The run and the state file that it is about, where there are several that are judged by themselves.
    pub about: String,
    /// What was expected of it.
    pub expect: Vec<Word>,
    /// Not all of its cases were run, so that nothing can be missing.
    pub partial: bool,
    /// Its programs were each process 1 of a process namespace of its own.
    pub containers: bool,
    /// Its cases.
    pub cases: Vec<Case>,
    /// What real kills said of derived ones.
    pub confirmation: Confirmation,
    /// For power cuts, what they came to on each disk.
    pub disks: Vec<DiskResult>,
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
    /// The command that tries one of its cases again, with `{case}` for the id.
    pub replay: String,
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
    let processor = super::pool::own_processor();
    let stage = Stage::new(scenario, settings, Some(processor))?;
    run_scenario(&stage, plan, settings.jobs, &mut Alone(processor))
}

/// Nobody else wants the processor meanwhile.
pub(super) struct Alone(pub(super) usize);

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
    stage.until_known(|| {
        let begun = Instant::now();
        let before = stage.prepare()?;
        let recoveries = Recoveries::new(stage).with_jobs(jobs);
        let record = || record(stage, &before, false);
        // Where there are controls, the first of them needs no recording.
        let recording = match stage.scenario.faults.iter().any(needs_controls) {
            true => recoveries.beside(&before, record)?,
            false => record()?,
        };
        let recording = Rc::new(recording);
        let part = Part::begin(stage, recording, recoveries, plan, jobs)?;
        let finished = finish(stage, vec![part], plan, pause)?;
        Ok(finished.result(stage.scenario, begun.elapsed()))
    })
}

/// What parts came to, one after another.
#[derive(Debug, Default)]
pub(super) struct Finished {
    faults: Vec<FaultResult>,
    masks: Vec<String>,
    notes: Vec<String>,
}

impl Finished {
    /// Takes in notes, each once.
    pub(super) fn add_notes(&mut self, notes: Vec<String>) {
        for note in notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }

    pub(super) fn result(self, scenario: &Scenario, elapsed: Duration) -> ScenarioResult {
        let Finished { faults, masks, notes } = self;
        let (name, file) = (scenario.name.clone(), scenario.file.clone());
        let replay = format!("crashlab replay {} {{case}}", shell_word(&file.to_string_lossy()));
        ScenarioResult { name, file, replay, faults, masks, notes, elapsed }
    }
}

/// Waits until the second round of controls may run, then judges.
///
/// # Errors
///
/// As [`Stage::run`].
pub(super) fn finish(
    stage: &Stage<'_>,
    parts: Vec<Part<'_>>,
    plan: &Plan,
    pause: &mut dyn Pause,
) -> Result<Finished, LabError> {
    let waiting = parts.iter().filter(|part| part.waits());
    let last = waiting.map(|part| part.controlled).max();
    if let Some(last) = last.filter(|_| !crate::interrupt::is_requested()) {
        stage.pin_to(pause.pause(CONTROLS_APART.saturating_sub(last.elapsed())));
    }
    let mut finished = Finished::default();
    for part in parts {
        let (faults, masks, notes) = part.finish(plan)?;
        finished.faults.extend(faults);
        finished.masks.extend(masks);
        finished.add_notes(notes);
    }
    Ok(finished)
}

pub(super) fn record(stage: &Stage<'_>, before: &Tree, reads: bool) -> Result<Recording, LabError> {
    must_be_good(stage.record(before, reads)?, stage)
}

/// A run that kills can be derived from: it succeeded, and all that it did was seen.
pub(super) fn must_be_good(recording: Recording, stage: &Stage<'_>) -> Result<Recording, LabError> {
    check_interrupt()?;
    let trace = &recording.trace;
    if !trace.ends[0].exit.success() {
        let what = format!("the subject {}", show(&stage.scenario.subject.command));
        let failed = LabError::failed_in(&stage.scenario.file, &what, trace);
        return Err(match crossed(&recording, stage) {
            Some(why) => LabError::Scenario(format!("{failed}\n{why}")),
            None => failed,
        });
    }
    must_account(&recording, stage)?;
    must_be_watched(&recording, stage)?;
    Ok(recording)
}

/// What the user's machine would perhaps have done, and the lab could not.
pub(super) fn crossed(recording: &Recording, stage: &Stage<'_>) -> Option<String> {
    let several = stage.scenario.subject.watched().is_some_and(|watched| watched.parts.len() > 1);
    let refused = |event: &Event| match &event.what {
        What::Failed { call, path, errno: libc::EXDEV } => {
            let path = path.as_deref().unwrap_or(Path::new("")).display();
            Some(format!(
                "{call} of {path} was refused with EXDEV: the lab shows each watched folder as a file system of its \
                 own; where it is not, watch one folder that holds both"
            ))
        }
        _ => None,
    };
    recording.trace.events.iter().find_map(refused).filter(|_| several)
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
