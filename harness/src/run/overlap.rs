//! Overlap: several processes together, held and released at marks, against every order one after another.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use super::cases::{Case, Evidence};
use super::stage::Stage;
use super::{LabError, check_interrupt};
use crate::fault::overlap::Turns;
use crate::judge::{
    Content, Image, Masks, OverlapCase, Promises, Serial, Side, Verdict, judge_overlap, orders, versions,
};
use crate::op::{Event, What};
use crate::scenario::{CommandLine, Turn};
use crate::trace::{Undisturbed, line};
use crate::tree::{Model, Tree};

/// Contents that were a version of each file in some order one after another.
type Whole = BTreeMap<PathBuf, BTreeSet<Content>>;

/// Runs the processes in the scenario's order and judges where they end.
///
/// # Errors
///
/// [`LabError::Scenario`] where a turn's mark never comes.
pub fn overlap(
    stage: &Stage<'_>,
    before: &Tree,
    name: &str,
    processes: &[(String, CommandLine)],
    order: &[Turn],
) -> Result<Case, LabError> {
    let (names, commands): (Vec<String>, Vec<CommandLine>) = processes.iter().cloned().unzip();
    let mut turns = Turns::new(&names, order);
    let (trace, after) = stage.run(&commands, before, true, &mut turns)?;
    let id = format!("overlap:{name}");
    let evidence = evidence(stage, before, &after, &trace.events, &trace.ends, &names);
    if let Some((process, mark)) = turns.never_reached() {
        let why = format!("`{}` never came to the mark `{mark}` in its turn", names[process]);
        return Ok(Case { id, verdict: Verdict::not_measured(why), warnings: Vec::new(), evidence });
    }
    if let Some(gap) = trace.gaps.iter().find(|gap| gap.path.is_some()) {
        let why = format!("the tracer could not see: {}", gap.what);
        return Ok(Case { id, verdict: Verdict::not_measured(why), warnings: Vec::new(), evidence });
    }
    let changed = changed_state(stage, before, &trace.events);
    let side = |(program, name): (usize, &String)| Side {
        name: name.clone(),
        exit: trace.ends[program].exit,
        changed_state: changed.contains(&program),
    };
    let sides: Vec<Side> = names.iter().enumerate().map(side).collect();
    let mut whole = Whole::new();
    let serial = one_after_another(stage, before, &commands, &mut whole)?;
    let image = stage.state.image(&after);
    let masks = Masks::default();
    let verdict = judge_overlap(&OverlapCase { sides: &sides, image: &image, serial: &serial, whole: &whole, masks: &masks });
    Ok(Case { id, verdict, warnings: Vec::new(), evidence })
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
            let (trace, end) = stage.run(std::slice::from_ref(&commands[*last]), &start, false, &mut Undisturbed)?;
            if let Ok(found) = versions(&start, &trace.events, &stage.state, &Promises::default(), true, false) {
                for (path, contents) in found.of_file {
                    whole.entry(path).or_default().extend(contents);
                }
            }
            ends.insert(order.clone(), end);
        }
        serial.push(Serial { image: stage.state.image(&ends[&order]), order });
    }
    Ok(serial)
}

/// Which programs changed the bytes of a state file.
fn changed_state(stage: &Stage<'_>, before: &Tree, events: &[Event]) -> BTreeSet<usize> {
    let mut model = Model::new(before);
    let mut image: Image = stage.state.image_of(&model);
    let mut changed = BTreeSet::new();
    for event in events {
        let is_change = matches!(&event.what, What::Op(op) if op.kind.changes());
        if model.apply(event).is_err() {
            break;
        }
        if is_change {
            let now = stage.state.image_of(&model);
            if now != image {
                changed.insert(event.actor.program);
                image = now;
            }
        }
    }
    changed
}

fn evidence(
    stage: &Stage<'_>,
    before: &Tree,
    after: &Tree,
    events: &[Event],
    ends: &[crate::subject::End],
    names: &[String],
) -> Evidence {
    let told = |event: &&Event| matches!(event.what, What::Op(_) | What::Mark(_) | What::Failed { .. });
    let named = |event: &Event| format!("{}: {}", names[event.actor.program], line::describe(event));
    let said = |(name, end): (&String, &crate::subject::End)| {
        let text = String::from_utf8_lossy(&[end.stderr.as_slice(), &end.stdout].concat()).into_owned();
        format!("{name}: {}\n{text}", end.exit)
    };
    Evidence {
        found: Some(Arc::new(after.clone())),
        wanted: Some(Arc::new(before.clone())),
        ops: events.iter().filter(told).map(named).collect(),
        said: names.iter().zip(ends).map(said).collect(),
        state: stage.state.paths.clone(),
    }
}
