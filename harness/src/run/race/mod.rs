//! Races: two or more programs at once, in every order of their steps that matters, against one after another.
//!
//! Every schedule is a run from the beginning. To hold a program's state and go on from there several times would need it
//! copied with its files, threads and locks, which no kernel does for a program that does not help; and a run of two small
//! programs costs less than such a copy.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::LabError;
use super::cases::{Case, Evidence};
use super::stage::Stage;
use crate::fault::race::explore::{Alike, Counts, Side, interleavings};
use crate::fault::race::fewest::fewest_switches;
use crate::fault::race::schedule::{Block, Schedule, Taken};
use crate::fault::race::steer::{Contested, Ending, Follow, Guide, Made};
use crate::judge::{Grade, Masks, Verdict, Word};
use crate::sandbox;
use crate::scenario::RaceFault;
use crate::tree::Tree;
use crate::wrap::{counted, thousands};

mod alone;
mod classes;
mod columns;
mod explore;
mod one_dies;
mod oracle;
mod outcome;
mod second_round;

pub use alone::race_alone;
use classes::{Classes, Rank, key};
use columns::columns;
use explore::{Runs, explore};
use oracle::Oracle;
use outcome::Ran;
use second_round::SecondRound;

/// Runs that ended alike.
#[derive(Debug)]
struct Class {
    /// The one with the fewest switches; they all ended like it, but for what is masked.
    best: Ran,
    /// How easy that one is to read.
    rank: Rank,
    /// The orders of all of them.
    schedules: Vec<Vec<Block>>,
    /// The verdict is good, and is known.
    is_good: bool,
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
    /// Those of runs before the exploration began again.
    earlier: Vec<Class>,
    oracle: Oracle,
    /// What differs between equal orders, where there was time to learn it.
    masks: Option<Masks>,
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
    let stage = &stage.in_containers(fault.containers)?;
    let oracle = Oracle::ask(stage, before, fault)?;
    let second = SecondRound::later(&oracle, before, fault);
    let mut notes: Vec<String> = containers(fault).into_iter().collect();
    let mut contested = learn(stage, before, fault)?;
    let names: Vec<String> = fault.processes.iter().map(|(name, _)| name.clone()).collect();
    let id = only.as_ref().map(|(_, id)| (*id).to_owned());
    let mut earlier = Vec::new();
    let classes = match only {
        Some((schedule, _)) => {
            let ran = follow(stage, before, fault, &schedule, &mut contested)?;
            let mut classes = Classes::new(&oracle, &names, contested.clone(), false);
            classes.add(ran, &second);
            classes
        }
        None => {
            let of_none = |contested: &Contested| {
                Classes::new(&oracle, &names, contested.clone(), fault.kill_one)
            };
            let explored =
                explore(stage, before, fault, (jobs, &second), &mut contested, &of_none)?;
            notes.push(explored.told(fault));
            earlier = explored.earlier.classes;
            let mut classes = explored.classes;
            if let Some(made) = classes.made.take() {
                let runs = Runs { jobs, contested: &contested, second: &second };
                notes.push(one_dies::each(stage, before, fault, made, &runs, &mut classes)?);
            }
            classes
        }
    };
    let classes = classes.sorted();
    let masks = second.masks();
    Ok(Raced {
        id,
        masks,
        contested,
        name: fault.name.clone(),
        before: before.clone(),
        names,
        classes,
        earlier,
        oracle,
        notes,
    })
}

/// Makes the run of a schedule. Where it departs from that and shows more to be contested, the programs are held for that as well, as
/// they were when the schedule was found.
fn follow(
    stage: &Stage<'_>,
    before: &Tree,
    fault: &RaceFault,
    schedule: &Schedule,
    contested: &mut Contested,
) -> Result<Ran, LabError> {
    loop {
        let guide = Guide::Follow(Follow::new(schedule.clone()));
        let ran = outcome::run(stage, before, fault, guide, contested)?;
        let departed = matches!(ran.outcome.ending, Ending::Departed(_));
        if !departed || !contested.learn(&ran.touched) {
            return Ok(ran);
        }
    }
}

/// Which of the programs have one command.
fn alike(fault: &RaceFault) -> Alike {
    Alike::of(&fault.processes.iter().map(|(_, command)| command).collect::<Vec<_>>())
}

/// What the programs change and look at, in runs where one goes after another, each of those that differ first once; and then,
/// held where they are held in a race, how often they do the same.
fn learn(stage: &Stage<'_>, before: &Tree, fault: &RaceFault) -> Result<Contested, LabError> {
    let (count, alike) = (fault.processes.len(), alike(fault));
    let firsts = || (0..count).filter(|side| alike.before(*side).is_none());
    let run = |first: Side, contested: &Contested| {
        let order = (0..count).map(|side| (first + side) % count);
        let blocks = order.map(|side| Block { side, steps: None, dies: false }).collect();
        let follow = Follow::new(Schedule { blocks, signs: String::new() });
        outcome::run(stage, before, fault, Guide::Follow(follow), contested)
    };
    let mut contested = Contested::default();
    for first in firsts() {
        contested.learn(&run(first, &Contested::default())?.touched);
    }
    let mut alone = Vec::new();
    for first in firsts() {
        alone.push(run(first, &contested)?.touched);
    }
    alone.iter().for_each(|run| contested.learn_alone(run));
    Ok(contested)
}

/// What a race came to: its cases, what was masked, and notes.
type Judged = (Vec<Case>, Vec<String>, Vec<String>);

impl Raced {
    /// Learns what times do, if that is not known yet: runs the orders once more, at least
    /// [`super::controls::CONTROLS_APART`] later; and judges.
    ///
    /// # Errors
    ///
    /// As [`Stage::run`].
    pub(super) fn judge(self, stage: &Stage<'_>, fault: &RaceFault) -> Result<Judged, LabError> {
        let stage = &stage.in_containers(fault.containers)?;
        let masks = match &self.masks {
            Some(known) => Some(known.clone()),
            None => unless_stopped(self.oracle.masks(stage, &self.before, fault))?,
        };
        let is_sure = masks.is_some();
        let masks = masks.unwrap_or_default();
        let mut cases = Vec::new();
        let earlier = self.found_only_earlier(&masks);
        let classes = self.classes.iter().map(|class| (class, true));
        for (class, is_last) in classes.chain(earlier.into_iter().map(|class| (class, false))) {
            let verdict = self.oracle.judge(&class.best.outcome, &self.names, &masks);
            let verdict = if is_sure { verdict } else { unsure(verdict) };
            let is_fault = verdict.grade != Grade::Good;
            let shortens = is_last && class.best.outcome.died.is_none() && self.id.is_none();
            let best = match is_fault && shortens {
                true => self.shortest(stage, fault, class, &verdict, &masks)?,
                false => None,
            };
            let best = best.as_ref().unwrap_or(&class.best);
            let first = best.schedule();
            let others = class.schedules.iter().filter(|other| **other != first.blocks);
            let evidence = if is_fault || self.id.is_some() {
                self.evidence(best)
            } else {
                Evidence::default()
            };
            cases.push(self.case(&first, &verdict, evidence, is_fault));
            let alike = |blocks: &Vec<Block>| {
                let other = Schedule { blocks: blocks.clone(), signs: String::new() };
                self.case(&other, &verdict, Evidence::default(), false)
            };
            // The representative stands for one of those that were run.
            cases.extend(others.take(class.schedules.len() - 1).map(alike));
        }
        cases.sort_by_key(|case| (case.evidence.schedule.is_empty(), case.evidence.schedule.len()));
        let masked = masks.lines().into_iter().map(|line| format!("race{}: {line}", self.prefix()));
        Ok((cases, masked.collect(), self.notes))
    }

    /// What runs came to that were made before the exploration began again, and none after: only what is no good.
    fn found_only_earlier(&self, masks: &Masks) -> Vec<&Class> {
        let key = |class: &Class| key(&class.best.outcome, Some(masks));
        let mut known: HashSet<_> = self.classes.iter().map(key).collect();
        let is_good = |class: &Class| {
            self.oracle.judge(&class.best.outcome, &self.names, masks).grade == Grade::Good
        };
        self.earlier.iter().filter(|class| !is_good(class) && known.insert(key(class))).collect()
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
        let Some(order) = fewest_switches(&class.best.made) else { return Ok(None) };
        let schedule = in_order(&class.best.made, &order);
        if schedule.switches() >= class.best.schedule().switches() {
            return Ok(None);
        }
        let guide = Guide::Follow(Follow::new(schedule));
        let ran = outcome::run(stage, &self.before, fault, guide, &self.contested);
        let Some(ran) = unless_stopped(ran)? else { return Ok(None) };
        let same = self.oracle.judge(&ran.outcome, &self.names, masks);
        Ok((same.word == verdict.word).then_some(ran))
    }

    fn evidence(&self, best: &Ran) -> Evidence {
        Evidence {
            before: Some(Arc::new(self.before.clone())),
            ended: Some(best.after.clone()),
            schedule: columns(&self.names, &best.made, best.outcome.died),
            view: best.view.clone(),
            said: best.said(&self.names),
            ..Evidence::default()
        }
    }
}

/// What a run told, or nothing where it was told to stop: what is known by then is told all the same.
fn unless_stopped<T>(result: Result<T, LabError>) -> Result<Option<T>, LabError> {
    match result {
        Ok(told) => Ok(Some(told)),
        Err(LabError::Interrupted) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The verdict where nobody knows what equal orders differ in: only what is equal is sure, and who waits for whom.
fn unsure(verdict: Verdict) -> Verdict {
    match verdict.word {
        word if word.grade() != Grade::Fault || word == Word::Hung => verdict,
        word => Verdict::not_measured(format!(
            "interrupted before it was known what differs between equal runs; if nothing does, {word}: {}",
            verdict.why
        )),
    }
}

/// What is to be known of the containers that the programs run in.
fn containers(fault: &RaceFault) -> Option<String> {
    let found = sandbox::containers().as_ref().ok().filter(|_| fault.containers)?;
    let name = if fault.name.is_empty() { String::new() } else { format!(" {}", fault.name) };
    let mut text =
        format!("race{name}: each program is process 1 of a process namespace of its own");
    if let Some(why) = &found.proc_is_shared {
        text += &format!(", but sees the machine's /proc ({why})");
    }
    Some(text)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_second_round_only_what_is_equal_is_sure() {
        let verdict = |word| unsure(Verdict::new(word, "so it is"));
        for word in [Word::Serial, Word::Hung, Word::NotMeasured] {
            assert_eq!(verdict(word).word, word);
        }
        for word in [Word::Lost, Word::Torn, Word::Diverged, Word::Refused] {
            let verdict = verdict(word);
            assert_eq!(verdict.word, Word::NotMeasured);
            let why = format!("if nothing does, {word}: so it is");
            assert!(verdict.why.contains(&why), "{}", verdict.why);
        }
    }

    #[test]
    fn who_is_told_to_stop_tells_nothing_and_fails_not() {
        assert!(matches!(unless_stopped(Ok(1)), Ok(Some(1))));
        assert!(matches!(unless_stopped::<()>(Err(LabError::Interrupted)), Ok(None)));
        assert!(unless_stopped::<()>(Err(LabError::Lab(String::new()))).is_err());
    }
}
