//! Overlap: several processes together, held and released at marks, against every order one after another.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use regex::bytes::Regex;

use super::cases::{Case, Evidence, said};
use super::stage::Stage;
use super::{LabError, check_interrupt};
use crate::fault::overlap::Turns;
use crate::judge::{
    Content, Follower, Image, Masks, OverlapCase, Promises, Serial, Side, Verdict, judge_overlap,
    orders, says_it, versions,
};
use crate::op::{Event, What};
use crate::recording::Trace;
use crate::scenario::{CommandLine, Turn};
use crate::subject::End;
use crate::trace::{Undisturbed, describe};
use crate::tree::Tree;

/// Contents that were a version of each file in some order one after another.
type Whole = BTreeMap<PathBuf, BTreeSet<Content>>;

/// An overlap that was run, with every order one after another beside it.
#[derive(Debug)]
pub struct Overlapped {
    id: String,
    /// Why it cannot be judged, if it cannot.
    unseen: Option<String>,
    commands: Vec<CommandLine>,
    before: Tree,
    sides: Vec<Side>,
    image: Image,
    serial: Vec<Serial>,
    whole: Whole,
    evidence: Evidence,
}

/// Runs the processes in the scenario's order of turns, and in every order one after another.
///
/// # Errors
///
/// As [`Stage::run`].
pub fn overlap(
    stage: &Stage<'_>,
    before: &Tree,
    name: &str,
    processes: &[(String, CommandLine)],
    order: &[Turn],
    says: &BTreeMap<String, String>,
) -> Result<Overlapped, LabError> {
    let (names, commands): (Vec<String>, Vec<CommandLine>) = processes.iter().cloned().unzip();
    let mut turns = Turns::new(&names, order);
    let (trace, after) = stage.run(&commands, before, true, &mut turns)?;
    let gap = trace.gaps.iter().find(|gap| gap.path.is_some());
    let changed = changed_state(stage, before, &trace.events);
    let side = |(program, name): (usize, &String)| {
        let end = &trace.ends[program];
        Ok(Side {
            name: name.clone(),
            exit: end.exit,
            changed_state: changed.contains(&program),
            refuses_again: false,
            unsaid: says.get(name).map(|says| unsaid(says, end)).transpose()?.flatten(),
        })
    };
    let sides: Vec<Side> = names.iter().enumerate().map(side).collect::<Result<_, LabError>>()?;
    // Who gives up before its mark has no turn to end there.
    let never = turns.never_reached().find(|(process, _)| !sides[*process].refused());
    let never = never.map(|(process, mark)| {
        format!("`{}` never came to the mark `{mark}` in its turn", names[process])
    });
    let unseen = never.or_else(|| gap.map(|gap| format!("the tracer could not see: {}", gap.what)));
    let mut whole = Whole::new();
    let serial = one_after_another(stage, before, &commands, &mut whole)?;
    let image = stage.state.image(&after);
    let evidence = evidence(before, after, &trace, &names);
    let (id, before) = (format!("overlap:{name}"), before.clone());
    Ok(Overlapped { id, unseen, commands, before, sides, image, serial, whole, evidence })
}

impl Overlapped {
    /// Runs one order once more, at least [`super::controls::CONTROLS_APART`] later, to learn what times do, and
    /// judges; gives the case, and what was masked, a line each.
    ///
    /// # Errors
    ///
    /// As [`Stage::run`].
    pub fn judge(self, stage: &Stage<'_>) -> Result<(Case, Vec<String>), LabError> {
        let mut masks = Masks::default();
        let all: Vec<usize> = (0..self.commands.len()).collect();
        let mut tree = self.before;
        for command in &self.commands {
            tree = stage.run(std::slice::from_ref(command), &tree, false, &mut Undisturbed)?.1;
        }
        if let Some(first) = self.serial.iter().find(|serial| serial.order == all) {
            masks.learn(&first.image, &stage.state.image(&tree));
        }
        let case = OverlapCase {
            sides: &self.sides,
            image: &self.image,
            told: &[],
            died: None,
            serial: &self.serial,
            whole: &self.whole,
            masks: &masks,
        };
        let verdict = match self.unseen {
            Some(why) => Verdict::not_measured(why),
            None => judge_overlap(&case),
        };
        let case = Case { id: self.id, verdict, warnings: Vec::new(), evidence: self.evidence };
        Ok((case, masks.lines()))
    }
}

/// Runs every order of every subset, each program alone and undisturbed.
fn one_after_another(
    stage: &Stage<'_>,
    before: &Tree,
    commands: &[CommandLine],
    whole: &mut Whole,
) -> Result<Vec<Serial>, LabError> {
    let mut ends: BTreeMap<Vec<usize>, Tree> = [(Vec::new(), before.clone())].into();
    let mut serial = Vec::new();
    // Shorter orders come first, so that each begins where the one without its last program ended.
    for order in orders(commands.len()) {
        check_interrupt()?;
        if let Some((last, first)) = order.split_last() {
            let start = ends[first].clone();
            let (trace, end) = stage.run(
                std::slice::from_ref(&commands[*last]),
                &start,
                false,
                &mut Undisturbed,
            )?;
            if let Ok(found) =
                versions(&start, &trace.events, &stage.state, &Promises::default(), None)
            {
                for (path, contents) in found.of_file {
                    whole.entry(path).or_default().extend(contents);
                }
            }
            ends.insert(order.clone(), end);
        }
        let image = stage.state.image(&ends[&order]);
        serial.push(Serial { image, order, told: Vec::new() });
    }
    Ok(serial)
}

/// What the program had to say, where none of its lines does.
fn unsaid(says: &str, end: &End) -> Result<Option<String>, LabError> {
    let wanted = Regex::new(says).map_err(|error| LabError::Scenario(error.to_string()))?;
    let said = says_it(&wanted, end);
    Ok((!said).then(|| says.to_owned()))
}

/// Which programs changed the bytes of a state file.
fn changed_state(stage: &Stage<'_>, before: &Tree, events: &[Event]) -> BTreeSet<usize> {
    let mut at = Follower::new(before, &stage.state);
    let mut changed = BTreeSet::new();
    for event in events {
        match at.apply(event) {
            Ok(touched) if touched.is_empty() => {}
            Ok(_) => _ = changed.insert(event.actor.program),
            Err(_) => break,
        }
    }
    changed
}

fn evidence(before: &Tree, after: Tree, trace: &Trace, names: &[String]) -> Evidence {
    let told =
        |event: &&Event| matches!(event.what, What::Op(_) | What::Mark(_) | What::Failed { .. });
    let named = |event: &Event| format!("{}: {}", names[event.actor.program], describe(event));
    let said = |(name, end): (&String, &End)| format!("{name}: {}\n{}", end.exit, said(end));
    Evidence {
        before: Some(Arc::new(before.clone())),
        ended: Some(Arc::new(after)),
        ops: trace.events.iter().filter(told).map(named).collect(),
        said: names.iter().zip(&trace.ends).map(said).collect(),
        ..Evidence::default()
    }
}
