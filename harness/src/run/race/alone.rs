//! A race of programs as they are, without a scenario file.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Instant;

use super::super::check::{changes_nothing, found_in};
use super::super::controls::CONTROLS_APART;
use super::super::{FaultResult, LabError, ScenarioResult, Settings};
use super::*;
use crate::fault::race::schedule::NoSchedule;
use crate::interrupt::is_requested;
use crate::run::Confirmation;
use crate::scenario::{FaultKind, Scenario};

/// Runs the scenario's one race, or one case of it. Where it names no state, what the programs change is the state, each
/// of them alone, from the start.
///
/// # Errors
///
/// [`LabError`] where a program fails alone, or changes nothing, and where the case is none of a race.
pub fn race_alone(
    scenario: &Scenario,
    settings: &Settings,
    case: Option<&str>,
) -> Result<ScenarioResult, LabError> {
    let processor = super::super::pool::own_processor();
    let stage = Stage::new(scenario, settings, Some(processor))?;
    settings.progress.begin(1);
    stage.until_known(|| {
        let begun = Instant::now();
        let before = stage.prepare()?;
        let race_fault = scenario.faults.iter().find_map(|fault| match &fault.kind {
            FaultKind::Race(race) => Some((fault, race)),
            _ => None,
        });
        let (fault, race) =
            race_fault.ok_or_else(|| LabError::Scenario("there is no race in it".to_owned()))?;
        let wrong = || LabError::Scenario(NoSchedule.to_string());
        let only = match case {
            Some(id) => Some((race.schedule_of(id).ok_or_else(wrong)?, id)),
            None => None,
        };
        let stage = stage.in_containers(race.containers)?;
        let stage = match scenario.subject.state.is_empty() {
            true => stage.with_state(state_of(&stage, &before, race)?),
            false => stage.clone(),
        };
        let list: Vec<String> =
            stage.state.paths.iter().map(|path| path.display().to_string()).collect();
        let mut notes = stage.shortcomings();
        notes.push(format!("state: {}", list.join(", ")));
        let raced = super::race(&stage, &before, race, only, settings.jobs)?;
        if !is_requested() {
            std::thread::sleep(CONTROLS_APART.saturating_sub(begun.elapsed()));
        }
        let (cases, masks, told) = raced.judge(&stage, race)?;
        notes.extend(told);
        let faults = vec![FaultResult {
            kind: fault.kind.word(),
            about: String::new(),
            expect: fault.expect.clone(),
            partial: case.is_some() || is_requested(),
            containers: race.containers,
            cases,
            confirmation: Confirmation::default(),
            disks: Vec::new(),
        }];
        let (name, file) = (scenario.name.clone(), scenario.file.clone());
        let replay = String::new();
        Ok(ScenarioResult { name, file, replay, faults, masks, notes, elapsed: begun.elapsed() })
    })
}

/// What the programs change, each alone.
fn state_of(stage: &Stage<'_>, before: &Tree, race: &RaceFault) -> Result<Vec<PathBuf>, LabError> {
    let mut state: BTreeSet<PathBuf> = BTreeSet::new();
    let mut asked: Vec<&crate::scenario::CommandLine> = Vec::new();
    for (_, command) in &race.processes {
        if asked.contains(&command) {
            continue;
        }
        asked.push(command);
        let command = std::slice::from_ref(command);
        let undisturbed = &mut crate::trace::Undisturbed;
        let (trace, after) = stage.run(command, before, true, undisturbed)?;
        let recording = crate::recording::Recording { before: before.clone(), trace, after };
        state.extend(found_in(stage, &recording)?.state);
    }
    match state.is_empty() {
        true => Err(LabError::Scenario(changes_nothing(stage.scenario))),
        false => Ok(state.into_iter().collect()),
    }
}
