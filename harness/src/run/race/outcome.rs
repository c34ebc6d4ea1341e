//! One run of a race, and what it came to.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::LabError;
use super::super::stage::Stage;
use crate::fault::race::explore::Side;
use crate::fault::race::schedule::{Schedule, Taken, letter};
use crate::fault::race::steer::{Contested, Ending, Guide, Made, Steer, Touched};
use crate::judge::{Image, told};
use crate::op::What;
use crate::recording::Trace;
use crate::scenario::{CommandLine, RaceFault};
use crate::subject::{End, Exit};
use crate::trace::{Detail, Undisturbed};
use crate::tree::Tree;

/// What a run came to: equal outcomes are one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outcome {
    /// The state files; numbers of processes in their names are told as `PID`.
    pub(super) image: Image,
    /// How each program ended, and what it printed.
    pub(super) told: Vec<Image>,
    /// The exits alone.
    pub(super) exits: Vec<Exit>,
    /// Which programs failed beside one that died, and fail alone on what it left.
    pub(super) refuses_again: Vec<bool>,
    /// How the schedule ended.
    pub(super) ending: Ending,
    /// Who died, and before which step.
    pub(super) died: Option<Side>,
    /// What the tracer could not see.
    pub(super) gap: Option<String>,
}

/// A run.
#[derive(Debug)]
pub(super) struct Ran {
    /// What it came to.
    pub(super) outcome: Outcome,
    /// Its steps.
    pub(super) made: Vec<Made>,
    /// Who died, before which of them.
    died: Option<(usize, Side)>,
    /// What it changed and looked at.
    pub(super) touched: Touched,
    /// The tree that it left.
    pub(super) after: Arc<Tree>,
    ends: Vec<End>,
    /// What the fault's view said of that tree; empty without one.
    pub(super) view: String,
    /// The guide, for who explores.
    pub(super) steer: Option<Steer>,
}

impl Ran {
    pub(super) fn schedule(&self) -> Schedule {
        let taken: Vec<Taken> = self.made.iter().map(|made| made.taken.clone()).collect();
        Schedule::of(&taken, self.died)
    }

    /// What the programs said, each with its end.
    pub(super) fn said(&self, names: &[String]) -> String {
        let said = |(name, end): (&String, &End)| {
            let said = super::super::cases::said(end);
            let end_of_line = if said.is_empty() || said.ends_with('\n') { "" } else { "\n" };
            format!("{name}: {}\n{said}{end_of_line}", end.exit)
        };
        names.iter().zip(&self.ends).map(said).collect()
    }
}

/// How often another goes on, and how many steps there are.
pub(super) fn size(made: &[Made]) -> (usize, usize) {
    let pairs = made.windows(2);
    let switches = pairs.filter(|pair| pair[0].taken.side != pair[1].taken.side).count();
    (switches, made.len())
}

/// Makes one run; once more where a program was still running when its time was over. On a machine that is busy with other
/// things that happens to a program that waits for nobody, and seldom twice in the same order.
///
/// # Errors
///
/// As [`Stage::run`].
pub(super) fn run(
    stage: &Stage<'_>,
    before: &Tree,
    fault: &RaceFault,
    guide: Guide,
    contested: &Contested,
) -> Result<Ran, LabError> {
    let ran = run_once(stage, before, fault, guide.clone(), contested)?;
    if !ran.outcome.exits.contains(&Exit::TimedOut) {
        return Ok(ran);
    }
    run_once(stage, before, fault, guide, contested)
}

fn run_once(
    stage: &Stage<'_>,
    before: &Tree,
    fault: &RaceFault,
    guide: Guide,
    contested: &Contested,
) -> Result<Ran, LabError> {
    let programs = &fault.processes;
    let commands: Vec<CommandLine> = programs.iter().map(|(_, command)| command.clone()).collect();
    let mut steer = Steer::new(guide, commands.len(), contested.clone());
    let (trace, after) = stage.run_with(&commands, before, Detail::Steps, &mut steer)?;
    let names: Vec<&str> = programs.iter().map(|(name, _)| name.as_str()).collect();
    let gap = trace.gaps.iter().find(|gap| gap.path.is_some()).map(|gap| {
        let path = gap.path.as_deref().unwrap_or(std::path::Path::new(""));
        format!("{}: {}", path.display(), gap.what)
    });
    let mut processes = Processes::default();
    processes.add(&trace, |program| program);
    let outcome = Outcome {
        image: seen(stage, fault, &after, &processes)?,
        told: names.iter().zip(&trace.ends).map(|(name, end)| told(name, end)).collect(),
        exits: trace.ends.iter().map(|end| end.exit).collect(),
        refuses_again: refuses_again(stage, fault, &steer, &trace, &after)?,
        ending: steer.ending.clone(),
        died: steer.died.map(|(_, side)| side),
        gap,
    };
    let made = steer.made.clone();
    let died = steer.died;
    let view = fault.view.as_ref().map(|_| in_words(&outcome.image)).unwrap_or_default();
    let after = Arc::new(after);
    let touched = steer.touched().clone();
    Ok(Ran { outcome, made, died, touched, after, view, ends: trace.ends, steer: Some(steer) })
}

/// Who failed beside one that died: whether it fails again alone, on what all left.
fn refuses_again(
    stage: &Stage<'_>,
    fault: &RaceFault,
    steer: &Steer,
    trace: &Trace,
    after: &Tree,
) -> Result<Vec<bool>, LabError> {
    let mut again = vec![false; fault.processes.len()];
    let Some((_, died)) = steer.died else { return Ok(again) };
    for (side, (_, command)) in fault.processes.iter().enumerate() {
        let failed = matches!(trace.ends[side].exit, Exit::Code(code) if code != 0);
        if side != died && failed {
            let command = std::slice::from_ref(command);
            let (trace, _) = stage.run(command, after, false, &mut Undisturbed)?;
            again[side] = !trace.ends[0].exit.success();
        }
    }
    Ok(again)
}

/// What a tree holds: its state files, or what the fault's view says of them.
///
/// # Errors
///
/// As [`Stage::run`].
pub(super) fn seen(
    stage: &Stage<'_>,
    fault: &RaceFault,
    tree: &Tree,
    processes: &Processes,
) -> Result<Image, LabError> {
    let Some(view) = &fault.view else {
        let image = stage.state.image(tree);
        // In a container process ids are the same in each run, and not those that the lab knows.
        return Ok(if fault.containers { image } else { processes.hidden_in(&image) });
    };
    let view = std::slice::from_ref(view);
    let (trace, _) = stage.run(view, tree, false, &mut Undisturbed)?;
    Ok(told("the view", &trace.ends[0]))
}

/// What a view said.
fn in_words(image: &Image) -> String {
    let parts = image.files.iter().filter_map(|(_, content)| content.bytes());
    let texts = parts.map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned());
    texts.collect::<Vec<_>>().join("\n")
}

/// The processes of a run by their numbers, each with a name that it has in every run: `PIDa1` is the first of the first
/// program.
#[derive(Debug, Clone, Default)]
pub(super) struct Processes(Vec<(String, String)>);

impl Processes {
    /// Takes in the processes of a run; `side` tells which program is which.
    pub(super) fn add(&mut self, trace: &Trace, side: impl Fn(usize) -> Side) {
        for event in &trace.events {
            let pid = match event.what {
                What::Executed { .. } => event.actor.pid,
                What::Spawned { child } => child,
                _ => continue,
            };
            let pid = pid.to_string();
            if self.0.iter().any(|(known, _)| *known == pid) {
                continue;
            }
            let program = format!("PID{}", letter(side(event.actor.program)));
            let before = self.0.iter().filter(|(_, name)| name.starts_with(&program)).count();
            self.0.push((pid, format!("{program}{}", before + 1)));
        }
    }

    /// Names of temporary files often hold a process id, which is another in each run.
    pub(super) fn hidden_in(&self, image: &Image) -> Image {
        let files = image.files.iter();
        Image {
            files: files.map(|(path, content)| (self.renamed(path), content.clone())).collect(),
        }
    }

    fn renamed(&self, path: &Path) -> PathBuf {
        let text = path.to_string_lossy();
        let is_digit = |letter: char| letter.is_ascii_digit();
        let numbers = text.split(|letter: char| !is_digit(letter)).filter(|part| !part.is_empty());
        let known = |number: &str| self.0.iter().find(|(pid, _)| pid == number);
        let mut renamed = text.clone().into_owned();
        for (pid, name) in numbers.filter_map(known) {
            renamed = renamed.replace(pid.as_str(), name);
        }
        renamed.into()
    }
}
