//! A program without a scenario: its state is found, and where it began with nothing, a second run is tried as well.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

use super::part::Part;
use super::pool;
use super::scenario::{Alone, Plan, ScenarioResult, finish, record};
use super::source::Source;
use super::stage::{Stage, show};
use super::{LabError, Settings};
use crate::judge::{Content, Follower, State};
use crate::op::{OpKind, What};
use crate::recording::Recording;
use crate::recovery::Recoveries;
use crate::scenario::Scenario;
use crate::watched::Watched;

/// What a program's state was found to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Files that a run changes, and that are there before or after it.
    pub state: Vec<PathBuf>,
    /// Files like these, that are only locked and never read: they count for leftovers alone.
    pub locks: Vec<PathBuf>,
}

impl Found {
    /// The run changes this file, or one in this folder.
    fn has_below(&self, path: &Path) -> bool {
        self.state.iter().chain(&self.locks).any(|changed| changed.starts_with(path))
    }
}

/// Tries a program. A scenario that names no state has it found: then each of its files is judged by itself, while those
/// that are named must agree. Where none of them is there before the run, a second run over what the first one left is
/// tried as well, and the ids of the cases begin with `1:` and `2:`.
///
/// # Errors
///
/// [`LabError`]; [`LabError::Scenario`] also where the program changes no file.
pub fn check(scenario: &Scenario, settings: &Settings) -> Result<ScenarioResult, LabError> {
    check_from(scenario, settings, &mut Source::Live, &Plan::All)
}

/// As [`check`], of what the plan wants, with runs from this source. Where they were recorded, the subject is not run, but for
/// kills that are to be made for real.
///
/// # Errors
///
/// As [`check`].
pub fn check_from(
    scenario: &Scenario,
    settings: &Settings,
    source: &mut Source,
    plan: &Plan,
) -> Result<ScenarioResult, LabError> {
    let processor = pool::own_processor();
    let stage = Stage::new(scenario, settings, Some(processor))?;
    settings.progress.begin(1);
    stage.until_known(|| {
        source.again();
        check_on(&stage, processor, source, plan)
    })
}

fn check_on(
    stage: &Stage<'_>,
    processor: usize,
    source: &mut Source,
    plan: &Plan,
) -> Result<ScenarioResult, LabError> {
    let begun = Instant::now();
    let (scenario, settings) = (stage.scenario, stage.settings());
    let given = !scenario.subject.state.is_empty();
    let is_recorded = source.is_recorded();
    let recoveries = Recoveries::new(stage).with_jobs(settings.jobs);
    let Runs { runs, is_fresh } = runs(stage, source, &recoveries)?;
    let mut notes = Vec::from_iter(paths_begin_at(scenario));
    let (first_found, mut how) = (runs[0].1.clone(), if given { How::Given } else { How::Singly });
    if is_recorded {
        notes.extend(told_of_recorded(settings, is_fresh && runs.len() == 1));
    }
    let mut parts = Vec::new();
    for (number, (run, found)) in (1..).zip(&runs) {
        let groups = match given {
            true => vec![scenario.subject.state.clone()],
            false => found.state.iter().map(|path| vec![path.clone()]).collect(),
        };
        if number > 1 && !groups.iter().flatten().any(|path| found.has_below(path)) {
            notes.push(
                "the second run changes nothing, so no kill of it can show anything".to_owned(),
            );
            continue;
        }
        let prefix = if is_fresh { format!("{number}:") } else { String::new() };
        let plan = &of_part(plan, &prefix);
        let judged = |group: Vec<PathBuf>| {
            let stage = stage.with_state(group.clone());
            let recoveries = recoveries.seen_by(&stage);
            let mut part = Part::begin(&stage, run.clone(), recoveries, plan, settings.jobs)?;
            part.about = about(number, is_fresh, given, &group);
            part.prefix = prefix.clone();
            Ok(part)
        };
        let earlier = parts.len();
        for group in groups {
            match judged(group) {
                // What came before it is known.
                Err(LabError::Interrupted) if !parts.is_empty() => break,
                // One of them is perhaps nothing without the others, such as an index and what it is of.
                Err(LabError::Scenario(why)) if !given && found.state.len() > 1 => {
                    let set = judged(found.state.clone());
                    parts.truncate(earlier);
                    parts.push(set.map_err(|_| LabError::Scenario(why))?);
                    how = How::Together;
                    break;
                }
                part => parts.push(part?),
            }
        }
    }
    let mut finished = finish(stage, parts, plan, &mut Alone(processor))?;
    notes.insert(0, told(&first_found, how, scenario));
    finished.add_notes(notes);
    Ok(finished.result(scenario, begun.elapsed()))
}

/// The runs of a subject that are tried, each with what was found to be its state.
struct Runs {
    runs: Vec<(Rc<Recording>, Found)>,
    /// The first began without any state; the second is one over its result.
    is_fresh: bool,
}

fn runs(
    stage: &Stage<'_>,
    source: &mut Source,
    recoveries: &Recoveries<'_>,
) -> Result<Runs, LabError> {
    let scenario = stage.scenario;
    let before = source.before(stage)?;
    let given = !scenario.subject.state.is_empty();
    // Only reads tell a lock file from one that holds something.
    let first = match source.is_recorded() {
        true => source.next_good(stage, &before, !given)?,
        false => recoveries.beside(&before, || source.next_good(stage, &before, !given))?,
    };
    let first = Rc::new(first.ok_or_else(|| LabError::Lab("nothing was recorded".to_owned()))?);
    let found = found_in(stage, &first)?;
    let state = if given { scenario.subject.state.clone() } else { found.state.clone() };
    if state.is_empty() {
        return Err(LabError::Scenario(changes_nothing(scenario)));
    }
    let is_fresh = stage.with_state(state).state.image(&before).is_nothing();
    let mut runs = vec![(first, found)];
    if is_fresh {
        match source.next_good(stage, &runs[0].0.after, !given) {
            Err(LabError::Interrupted) | Ok(None) => {}
            Ok(Some(second)) => {
                let found = found_in(stage, &second)?;
                runs.push((Rc::new(second), found));
            }
            Err(error) => return Err(error),
        }
    }
    source.finish()?;
    Ok(Runs { runs, is_fresh })
}

/// Records what [`check`] would try, whatever becomes of it, and gives the runs: one, or where that begins without any state, one
/// more over its result.
///
/// # Errors
///
/// As [`Stage::run`]; [`LabError::Lab`] where the recording cannot be written.
pub fn keep_recording(
    scenario: &Scenario,
    settings: &Settings,
    file: &Path,
) -> Result<Vec<Recording>, LabError> {
    let mut source = Source::ToKeep(file.to_owned());
    let stage = Stage::new(scenario, settings, None)?;
    let before = source.before(&stage)?;
    let mut runs: Vec<Recording> = source.next(&stage, &before, true)?.into_iter().collect();
    if let Some(first) = runs.first()
        && begins_with_nothing(first, &stage)
    {
        runs.extend(source.next(&stage, &first.after, true)?);
    }
    source.finish()?;
    Ok(runs)
}

/// The run came to its end, and began without any of its state.
fn begins_with_nothing(run: &Recording, stage: &Stage<'_>) -> bool {
    let given = &stage.scenario.subject.state;
    let found = || found_in(stage, run).map(|found| found.state).unwrap_or_default();
    let state = if given.is_empty() { found() } else { given.clone() };
    let ended_well = run.trace.ends.iter().all(|end| end.exit.success());
    ended_well && !state.is_empty() && stage.with_state(state).state.image(&run.before).is_nothing()
}

/// What a reader should know of a report on runs that were made before.
fn told_of_recorded(settings: &Settings, lacks_second: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if !settings.confirms && !settings.live {
        notes.push(
            "the runs are those of the recording; no kill was made for real (--confirm N does it, where the program is)"
                .to_owned(),
        );
    }
    if settings.partial {
        notes.push(
            "the recording holds only what the program touches of its folder, which was too large to be copied: a recovery that needs more of it fails"
                .to_owned(),
        );
    }
    if lacks_second {
        notes.push(
            "the recording begins without this state and holds no second run over the first one's result, so that was not tried"
                .to_owned(),
        );
    }
    notes
}

/// What a plan for all runs wants of the run whose ids begin so.
fn of_part(plan: &Plan, prefix: &str) -> Plan {
    match plan {
        Plan::All => Plan::All,
        // The ids of its own cases never begin like those of others.
        Plan::Case(id) => Plan::Case(id.strip_prefix(prefix).unwrap_or(id).to_owned()),
    }
}

/// The state that a run of the program was found to have.
///
/// # Errors
///
/// As [`check`].
pub fn find_state(scenario: &Scenario, settings: &Settings) -> Result<Found, LabError> {
    let stage = Stage::new(scenario, settings, None)?;
    let before = stage.prepare()?;
    let recording = record(&stage, &before, true)?;
    let found = found_in(&stage, &recording)?;
    match found.state.is_empty() {
        true => Err(LabError::Scenario(changes_nothing(scenario))),
        false => Ok(found),
    }
}

pub(super) fn changes_nothing(scenario: &Scenario) -> String {
    let watched = scenario.subject.watched().unwrap_or_else(|| Watched::alone(&scenario.root));
    let folders: Vec<PathBuf> = watched.folders().collect();
    format!(
        "{} changes no file below {}, so there is nothing that a crash could cost; \
         run the lab in the folder that holds what it writes, or name that folder by --watch",
        show(&scenario.subject.command),
        list(&folders)
    )
}

/// What a reader must know to find the files of a report.
fn paths_begin_at(scenario: &Scenario) -> Option<String> {
    let watched = scenario.subject.watched()?;
    let differs = !watched.current.as_os_str().is_empty();
    differs.then(|| format!("paths are told from {} on", watched.base.display()))
}

pub(super) fn found_in(stage: &Stage<'_>, recording: &Recording) -> Result<Found, LabError> {
    let whole = State { paths: vec![PathBuf::new()], ..stage.state.clone() };
    let mut at = Follower::new(&recording.before, &whole);
    let begun = at.image.clone();
    let mut changed = BTreeSet::new();
    let (mut locked, mut used) = (BTreeSet::new(), BTreeSet::new());
    for event in &recording.trace.events {
        let touched = at.apply(event).map_err(|misfit| LabError::Lab(misfit.to_string()))?;
        let path = |file| at.model.inode(file).map(|inode| at.paths_of(inode));
        match &event.what {
            What::Op(op) => match &op.kind {
                OpKind::Lock { file, .. } => locked.extend(path(*file).into_iter().flatten()),
                OpKind::Rename { .. } | OpKind::Link { .. } => used.extend(touched.iter().cloned()),
                _ => {}
            },
            What::Read { file, .. } => used.extend(path(*file).into_iter().flatten()),
            _ => {}
        }
        changed.extend(touched);
    }
    let stands = |path: &PathBuf| {
        let is_there = |content: Option<&Content>| content.is_some_and(|it| *it != Content::Absent);
        is_there(begun.files.get(path)) || is_there(at.image.files.get(path))
    };
    changed.retain(stands);
    let is_lock = |path: &PathBuf| locked.contains(path) && !used.contains(path);
    let (locks, state) = changed.into_iter().partition(is_lock);
    Ok(Found { state, locks })
}

fn about(number: usize, is_fresh: bool, given: bool, group: &[PathBuf]) -> String {
    let run = match (is_fresh, number) {
        (false, _) => "",
        (true, 1) => "1: from nothing",
        (true, _) => "2: over what the first run left",
    };
    let file = if given { String::new() } else { list(group) };
    match (run.is_empty(), file.is_empty()) {
        (false, false) => format!("{run}: {file}"),
        _ => format!("{run}{file}"),
    }
}

/// How the state files are judged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Given,
    Singly,
    Together,
}

fn told(found: &Found, how: How, scenario: &Scenario) -> String {
    let mut text = match how {
        How::Given => format!("state, as given: {}", list(&scenario.subject.state)),
        How::Singly => format!("state, each judged by itself: {}", list(&found.state)),
        How::Together => format!(
            "state, judged together since the program cannot use one without the others: {}",
            list(&found.state)
        ),
    };
    let others: Vec<PathBuf> = found
        .state
        .iter()
        .chain(&found.locks)
        .filter(|path| match how == How::Given {
            true => !scenario.subject.state.iter().any(|state| path.starts_with(state)),
            false => found.locks.contains(path),
        })
        .cloned()
        .collect();
    if !others.is_empty() {
        text += &format!("; changed as well, and looked at for leftovers only: {}", list(&others));
    }
    text
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
