//! What is allowed: where the programs end one after another, in any order, all or some of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::super::stage::Stage;
use super::super::{LabError, check_interrupt};
use super::outcome::Outcome;
use crate::fault::race::explore::Side;
use crate::fault::race::steer::Ending;
use crate::judge::{
    Content, Image, Masks, OverlapCase, Promises, Serial, Verdict, Word, judge_overlap, orders,
    told, versions,
};
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

/// A program that has run alone.
struct Alone {
    tree: Tree,
    told: Image,
    exit: Exit,
    /// What it saved on the way, its start and its end among them.
    saved: Vec<Image>,
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
        let mut ends: BTreeMap<Vec<Side>, (Tree, Vec<Image>)> =
            [(Vec::new(), (before.clone(), Vec::new()))].into();
        for order in orders(fault.processes.len()) {
            check_interrupt()?;
            if let Some((last, first)) = order.split_last() {
                let (start, mut all_told) = ends[first].clone();
                let alone = oracle.alone(stage, &start, fault, *last)?;
                if first.is_empty() && !alone.exit.success() {
                    let (name, _) = &fault.processes[*last];
                    return Err(LabError::Scenario(format!(
                        "{}: `{name}` fails when it runs alone ({}): nothing can be said of how it fails beside others\n{}",
                        stage.scenario.file.display(),
                        alone.exit,
                        said(&alone.told)
                    )));
                }
                all_told.push(alone.told);
                ends.insert(order.clone(), (alone.tree, all_told));
            }
            let (tree, told) = &ends[&order];
            let (image, told) = (stage.state.image(tree), told.clone());
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
        if let Ok(found) = versions(start, &trace.events, &stage.state, &Promises::default(), None) {
            saved.extend(found.all.into_iter().map(|version| version.image));
            for (path, contents) in found.of_file {
                self.whole.entry(path).or_default().extend(contents);
            }
        }
        saved.push(stage.state.image(&tree));
        saved.dedup();
        Ok(Alone { tree, told: told(name, &trace.ends[0]), exit: trace.ends[0].exit, saved })
    }

    /// Every order of the others, with this one before, between or after them, cut short at each of its saves.
    fn cut_short(
        &mut self,
        stage: &Stage<'_>,
        fault: &RaceFault,
        side: Side,
        ends: &BTreeMap<Vec<Side>, (Tree, Vec<Image>)>,
    ) -> Result<Vec<Serial>, LabError> {
        let mut cut = Vec::new();
        let with = ends.keys().filter(|order| order.contains(&side));
        for order in with {
            let place = order.iter().position(|one| *one == side).unwrap_or(0);
            let (first, rest) = (&order[..place], &order[place + 1..]);
            let (start, told_before) = &ends[first];
            let alone = self.alone(stage, start, fault, side)?;
            let mut saves = alone.saved;
            saves.dedup();
            for save in saves {
                check_interrupt()?;
                let mut tree = stage.state.put(&save, start, &alone.tree);
                let mut all_told = told_before.clone();
                for other in rest {
                    let alone = self.alone(stage, &tree, fault, *other)?;
                    all_told.push(alone.told);
                    tree = alone.tree;
                }
                let order = first.iter().chain(rest).copied().collect();
                cut.push(Serial { order, image: stage.state.image(&tree), told: all_told });
            }
        }
        Ok(cut)
    }

    /// What differs when the same order runs again, later.
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
        let all: Vec<Side> = (0..fault.processes.len()).collect();
        let Some(first) = self.serial.iter().find(|serial| serial.order == all) else {
            return Ok(masks);
        };
        let mut tree = before.clone();
        for (side, (name, command)) in fault.processes.iter().enumerate() {
            let command = std::slice::from_ref(command);
            let (trace, after) = stage.run(command, &tree, false, &mut Undisturbed)?;
            masks.learn(&first.told[side], &told(name, &trace.ends[0]));
            tree = after;
        }
        masks.learn(&first.image, &stage.state.image(&tree));
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
                changed_state: outcome.changed[side],
                unsaid: None,
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
