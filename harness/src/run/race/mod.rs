//! Races: two or more programs at once, in every order of their steps that matters, against one after another.
//!
//! Every schedule is a run from the beginning. To hold a program's state and go on from there several times would need it
//! copied with its files, threads and locks, which no kernel does for a program that does not help; and a run of two small
//! programs costs less than such a copy.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cases::{Case, Evidence};
use super::stage::Stage;
use super::{LabError, check_interrupt};
use crate::fault::race::explore::{Counts, Side, interleavings};
use crate::fault::race::fewest::fewest_switches;
use crate::fault::race::schedule::{Block, Schedule, Taken};
use crate::fault::race::steer::{Contested, Ending, Follow, Guide, Made};
use crate::judge::{Masks, Verdict};
use crate::scenario::RaceFault;
use crate::tree::Tree;
use crate::wrap::{counted, thousands};

mod alone;
mod columns;
mod explore;
mod one_dies;
mod oracle;
mod outcome;

pub use alone::race_alone;
use columns::columns;
use explore::explore;
use oracle::Oracle;
use outcome::{Outcome, Ran};

/// Runs that ended alike.
#[derive(Debug)]
struct Class {
    /// How.
    outcome: Outcome,
    /// The one with the fewest switches.
    best: Ran,
    /// All of them.
    schedules: Vec<Schedule>,
}

/// A race that was run; it waits for the second round of its controls.
#[derive(Debug)]
pub(super) struct Raced {
    /// The one case that it was asked for.
    id: Option<String>,
    contested: Contested,
    name: String,
    before: Tree,
    names: Vec<String>,
    classes: Vec<Class>,
    oracle: Oracle,
    notes: Vec<String>,
}

/// Runs the programs in every order that matters within the fault's bounds, or in the one order that is named.
///
/// # Errors
///
/// As [`Stage::run`], and where the programs do not run alone, one after another.
pub(super) fn race(
    stage: &Stage<'_>,
    before: &Tree,
    fault: &RaceFault,
    only: Option<(Schedule, &str)>,
    jobs: usize,
) -> Result<Raced, LabError> {
    let stage = &stage.clone();
    let oracle = Oracle::ask(stage, before, fault)?;
    let mut classes: Vec<Class> = Vec::new();
    let mut notes = Vec::new();
    let mut contested = learn(stage, before, fault)?;
    let id = only.as_ref().map(|(_, id)| (*id).to_owned());
    match only {
        Some((schedule, _)) => {
            let guide = Guide::Follow(Follow::new(schedule));
            add(&mut classes, outcome::run(stage, before, fault, guide, &contested)?);
        }
        None => {
            let mut explored = explore(stage, before, fault, jobs, &mut contested)?;
            notes.push(explored.told(fault));
            if fault.kill_one {
                let (deaths, note) =
                    one_dies::each(stage, before, fault, &explored.runs, jobs, &contested)?;
                explored.runs.extend(deaths);
                notes.push(note);
            }
            // Whoever was quicker: of those that are equally short, always the same is shown.
            explored.runs.sort_by_cached_key(|ran| (ran.size(), ran.schedule().blocks));
            explored.runs.into_iter().for_each(|ran| add(&mut classes, ran));
        }
    }
    let names = fault.processes.iter().map(|(name, _)| name.clone()).collect();
    Ok(Raced {
        id,
        contested,
        name: fault.name.clone(),
        before: before.clone(),
        names,
        classes,
        oracle,
        notes,
    })
}

/// What the programs change, in runs where one goes after another, each of them first once.
fn learn(stage: &Stage<'_>, before: &Tree, fault: &RaceFault) -> Result<Contested, LabError> {
    let mut contested = Contested::default();
    let count = fault.processes.len();
    for first in 0..count {
        let order = (0..count).map(|side| (first + side) % count);
        let blocks = order.map(|side| Block { side, steps: None, dies: false }).collect();
        let follow = Follow::new(Schedule { blocks, signs: String::new() });
        let nothing = Contested::default();
        let ran = outcome::run(stage, before, fault, Guide::Follow(follow), &nothing)?;
        contested.learn(&ran.touched);
    }
    Ok(contested)
}

fn add(classes: &mut Vec<Class>, ran: Ran) {
    let schedule = ran.schedule();
    match classes.iter_mut().find(|class| class.outcome == ran.outcome) {
        Some(class) => {
            class.schedules.push(schedule);
            if ran.size() < class.best.size() {
                class.best = ran;
            }
        }
        None => {
            let outcome = ran.outcome.clone();
            classes.push(Class { outcome, best: ran, schedules: vec![schedule] });
        }
    }
}

/// What a race came to: its cases, what was masked, and notes.
type Judged = (Vec<Case>, Vec<String>, Vec<String>);

impl Raced {
    /// Runs one order once more, at least [`super::controls::CONTROLS_APART`] later, to learn what times do, and judges.
    ///
    /// # Errors
    ///
    /// As [`Stage::run`].
    pub(super) fn judge(self, stage: &Stage<'_>, fault: &RaceFault) -> Result<Judged, LabError> {
        let masks = self.oracle.masks(stage, &self.before, fault)?;
        let mut cases = Vec::new();
        for class in &self.classes {
            let verdict = self.oracle.judge(&class.outcome, &self.names, &masks);
            let is_fault = verdict.grade != crate::judge::Grade::Good;
            let best = match is_fault && class.best.outcome.died.is_none() && self.id.is_none() {
                true => self.shortest(stage, fault, class, &verdict, &masks)?,
                false => None,
            };
            let best = best.as_ref().unwrap_or(&class.best);
            let first = best.schedule();
            let others = class.schedules.iter().filter(|other| other.blocks != first.blocks);
            let evidence = if is_fault || self.id.is_some() {
                self.evidence(best)
            } else {
                Evidence::default()
            };
            cases.push(self.case(&first, &verdict, evidence, is_fault));
            let alike = |other| self.case(other, &verdict, Evidence::default(), false);
            // The representative stands for one of those that were run.
            cases.extend(others.take(class.schedules.len() - 1).map(alike));
        }
        cases.sort_by_key(|case| (case.evidence.schedule.is_empty(), case.evidence.schedule.len()));
        let masked = masks.lines().into_iter().map(|line| format!("race{}: {line}", self.prefix()));
        Ok((cases, masked.collect(), self.notes))
    }

    fn prefix(&self) -> String {
        if self.name.is_empty() { String::new() } else { format!(" {}", self.name) }
    }

    fn case(
        &self,
        schedule: &Schedule,
        verdict: &Verdict,
        evidence: Evidence,
        signed: bool,
    ) -> Case {
        let schedule = if signed { schedule.to_string() } else { schedule.name() };
        let id = match (&self.id, self.name.as_str()) {
            (Some(id), _) => id.clone(),
            (None, "") => format!("race:{schedule}"),
            (None, name) => format!("race:{name}/{schedule}"),
        };
        Case { id, verdict: verdict.clone(), warnings: Vec::new(), evidence }
    }

    /// The same finding with fewer switches, where that is another order of the same steps; it is run to see that.
    fn shortest(
        &self,
        stage: &Stage<'_>,
        fault: &RaceFault,
        class: &Class,
        verdict: &Verdict,
        masks: &Masks,
    ) -> Result<Option<Ran>, LabError> {
        check_interrupt()?;
        let Some(order) = fewest_switches(&class.best.made) else { return Ok(None) };
        let schedule = in_order(&class.best.made, &order);
        if schedule.switches() >= class.best.schedule().switches() {
            return Ok(None);
        }
        let guide = Guide::Follow(Follow::new(schedule));
        let ran = outcome::run(stage, &self.before, fault, guide, &self.contested)?;
        let same = self.oracle.judge(&ran.outcome, &self.names, masks);
        Ok((same.word == verdict.word).then_some(ran))
    }

    fn evidence(&self, best: &Ran) -> Evidence {
        Evidence {
            before: Some(Arc::new(self.before.clone())),
            ended: Some(best.after.clone()),
            schedule: columns(&self.names, &best.made, best.outcome.died),
            said: best.said(&self.names),
            ..Evidence::default()
        }
    }
}

/// The schedule of the same steps made in this order.
fn in_order(made: &[Made], order: &[Side]) -> Schedule {
    let mut next: BTreeMap<Side, std::vec::IntoIter<&Made>> = BTreeMap::new();
    for side in order {
        next.entry(*side).or_insert_with(|| {
            made.iter().filter(|made| made.taken.side == *side).collect::<Vec<_>>().into_iter()
        });
    }
    let mut left: BTreeMap<Side, usize> = BTreeMap::new();
    order.iter().for_each(|side| *left.entry(*side).or_default() += 1);
    let mut taken = Vec::new();
    for side in order {
        let Some(made) = next.get_mut(side).and_then(Iterator::next) else { continue };
        // Whoever has steps left could have gone on: its steps are counted.
        let enabled = left.iter().filter(|(_, count)| **count > 0).map(|(side, _)| *side).collect();
        left.entry(*side).and_modify(|count| *count -= 1);
        taken.push(Taken { side: *side, enabled, text: made.taken.text.clone() });
    }
    Schedule::of(&taken, None)
}
