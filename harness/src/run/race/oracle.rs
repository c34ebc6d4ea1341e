//! What is allowed: where the programs end one after another, in any order, all or some of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::super::stage::Stage;
use super::super::{LabError, check_interrupt};
use super::outcome::{Outcome, Processes, seen};
use crate::fault::race::explore::Side;
use crate::fault::race::steer::Ending;
use crate::judge::{
    Content, Image, Masks, OverlapCase, Promises, Serial, Verdict, Word, judge_overlap, orders,
    told, versions,
};
use crate::recording::Trace;
use crate::scenario::RaceFault;
use crate::subject::Exit;
use crate::trace::Undisturbed;
use crate::tree::Tree;

/// Where the programs end one after another.
#[derive(Debug)]
pub(super) struct Oracle {
    serial: Vec<Serial>,
    /// For each program that may die: the same with it cut short, or absent.
    cut: BTreeMap<Side, Vec<Serial>>,
    whole: BTreeMap<PathBuf, BTreeSet<Content>>,
}

/// Where some programs ended, one after another.
#[derive(Clone, Default)]
struct Place {
    tree: Tree,
    told: Vec<Image>,
    processes: Processes,
}

/// A program that has run alone.
struct Alone {
    tree: Tree,
    trace: Trace,
    told: Image,
    exit: Exit,
    /// What it saved on the way, its start and its end among them.
    saved: Vec<Image>,
}

impl Place {
    fn add(&mut self, alone: Alone, side: Side) {
        self.tree = alone.tree;
        self.told.push(alone.told);
        self.processes.add(&alone.trace, |_| side);
    }

    fn image(&self, stage: &Stage<'_>, fault: &RaceFault) -> Result<Image, LabError> {
        seen(stage, fault, &self.tree, &self.processes)
    }
}

impl Oracle {
    /// Runs every order of every subset.
    ///
    /// # Errors
    ///
    /// As [`Stage::run`]; [`LabError::Scenario`] where a program fails that runs alone, from the start.
    pub(super) fn ask(
        stage: &Stage<'_>,
        before: &Tree,
        fault: &RaceFault,
    ) -> Result<Oracle, LabError> {
        let mut oracle =
            Oracle { serial: Vec::new(), cut: BTreeMap::new(), whole: BTreeMap::new() };
        let start = Place { tree: before.clone(), ..Place::default() };
        let mut ends: BTreeMap<Vec<Side>, Place> = [(Vec::new(), start)].into();
        for order in orders(fault.processes.len()) {
            check_interrupt()?;
            if let Some((last, first)) = order.split_last() {
                let mut place = ends[first].clone();
                let alone = oracle.alone(stage, &place.tree, fault, *last)?;
                if first.is_empty() && !alone.exit.success() {
                    let (name, _) = &fault.processes[*last];
                    return Err(LabError::Scenario(format!(
                        "{}: `{name}` fails when it runs alone ({}): nothing can be said of how it fails beside others\n{}",
                        stage.scenario.file.display(),
                        alone.exit,
                        said(&alone.told)
                    )));
                }
                place.add(alone, *last);
                ends.insert(order.clone(), place);
            }
            let image = ends[&order].image(stage, fault)?;
            let told = ends[&order].told.clone();
            if fault.view.is_some() {
                for (path, content) in image.files.iter() {
                    oracle.whole.entry(path.clone()).or_default().insert(content.clone());
                }
            }
            oracle.serial.push(Serial { order, image, told });
        }
        if fault.kill_one {
            for side in 0..fault.processes.len() {
                let cut = oracle.cut_short(stage, fault, side, &ends)?;
                oracle.cut.insert(side, cut);
            }
        }
        Ok(oracle)
    }

    fn alone(
        &mut self,
        stage: &Stage<'_>,
        start: &Tree,
        fault: &RaceFault,
        side: Side,
    ) -> Result<Alone, LabError> {
        let (name, command) = &fault.processes[side];
        let command = std::slice::from_ref(command);
        let (trace, tree) = stage.run(command, start, false, &mut Undisturbed)?;
        let mut saved = vec![stage.state.image(start)];
        if let Ok(found) = versions(start, &trace.events, &stage.state, &Promises::default(), None)
        {
            saved.extend(found.all.into_iter().map(|version| version.image));
            for (path, contents) in found.of_file {
                self.whole.entry(path).or_default().extend(contents);
            }
        }
        saved.push(stage.state.image(&tree));
        saved.dedup();
        let (told, exit) = (told(name, &trace.ends[0]), trace.ends[0].exit);
        Ok(Alone { tree, trace, told, exit, saved })
    }

    /// Every order of the others, with this one before, between or after them, cut short at each of its saves.
    fn cut_short(
        &mut self,
        stage: &Stage<'_>,
        fault: &RaceFault,
        side: Side,
        ends: &BTreeMap<Vec<Side>, Place>,
    ) -> Result<Vec<Serial>, LabError> {
        let mut cut = Vec::new();
        let with = ends.keys().filter(|order| order.contains(&side));
        for order in with {
            let place = order.iter().position(|one| *one == side).unwrap_or(0);
            let (first, rest) = (&order[..place], &order[place + 1..]);
            let start = &ends[first];
            let alone = self.alone(stage, &start.tree, fault, side)?;
            let mut saves = alone.saved;
            saves.dedup();
            for save in saves {
                check_interrupt()?;
                let mut place = start.clone();
                place.tree = stage.state.put(&save, &start.tree, &alone.tree);
                place.processes.add(&alone.trace, |_| side);
                for other in rest {
                    let alone = self.alone(stage, &place.tree, fault, *other)?;
                    place.add(alone, *other);
                }
                let order = first.iter().chain(rest).copied().collect();
                let image = place.image(stage, fault)?;
                cut.push(Serial { order, image, told: place.told });
            }
        }
        Ok(cut)
    }

    /// What differs when the same orders run again, later.
    ///
    /// # Errors
    ///
    /// As [`Stage::run`].
    pub(super) fn masks(
        &self,
        stage: &Stage<'_>,
        before: &Tree,
        fault: &RaceFault,
    ) -> Result<Masks, LabError> {
        let mut masks = Masks::default();
        let mut places: BTreeMap<Vec<Side>, Place> = BTreeMap::new();
        let start = Place { tree: before.clone(), ..Place::default() };
        places.insert(Vec::new(), start);
        // Shorter orders come first, so that each begins where the one without its last program ended.
        for serial in self.serial.iter().filter(|serial| !serial.order.is_empty()) {
            check_interrupt()?;
            let Some((last, first)) = serial.order.split_last() else { continue };
            let mut place = places.get(first).cloned().unwrap_or_default();
            let (name, command) = &fault.processes[*last];
            let command = std::slice::from_ref(command);
            let (trace, tree) = stage.run(command, &place.tree, false, &mut Undisturbed)?;
            let told = told(name, &trace.ends[0]);
            if let Some(known) = serial.told.last() {
                masks.learn(known, &told);
            }
            place.tree = tree;
            place.told.push(told);
            place.processes.add(&trace, |_| *last);
            masks.learn(&serial.image, &place.image(stage, fault)?);
            places.insert(serial.order.clone(), place);
        }
        Ok(masks)
    }

    /// Judges by the first verdict that fits.
    pub(super) fn judge(&self, outcome: &Outcome, names: &[String], masks: &Masks) -> Verdict {
        match &outcome.ending {
            Ending::Departed(what) => {
                return Verdict::not_measured(format!("the run is not the same each time: {what}"));
            }
            Ending::TooLong => return Verdict::not_measured("the run has too many steps"),
            Ending::Deadlock(told) => {
                return Verdict::new(Word::Hung, format!("nobody can go on: {told}"));
            }
            Ending::Livelock(told) => return Verdict::new(Word::Hung, told.clone()),
            Ending::Complete | Ending::Known => {}
        }
        if let Some(gap) = &outcome.gap {
            return Verdict::not_measured(format!("the tracer could not see: {gap}"));
        }
        let sides: Vec<crate::judge::Side> = names
            .iter()
            .enumerate()
            .map(|(side, name)| crate::judge::Side {
                name: name.clone(),
                exit: outcome.exits[side],
                // Whatever it did meanwhile: what is left is compared with what is left without it.
                changed_state: false,
                unsaid: None,
                refuses_again: outcome.refuses_again[side],
            })
            .collect();
        let serial = outcome.died.and_then(|side| self.cut.get(&side));
        let case = OverlapCase {
            sides: &sides,
            image: &outcome.image,
            told: &outcome.told,
            serial: serial.unwrap_or(&self.serial),
            whole: &self.whole,
            masks,
            died: outcome.died,
        };
        judge_overlap(&case)
    }
}

fn said(told: &Image) -> String {
    let texts = told.files.iter().filter_map(|(_, content)| content.bytes());
    texts.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect()
}
