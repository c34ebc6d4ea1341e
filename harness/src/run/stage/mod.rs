//! A stage: one sandbox in which a scenario's programs run, one run after another, always at the same path.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::heavy::is_large;
use super::needs::no_containers;
use super::pool::processor_behind;
use super::{LabError, Settings};
use crate::judge::{Promises, State};
use crate::recording::Header;
use crate::sandbox::{self, Lower, Sandbox, SandboxOptions};
use crate::scenario::{CommandLine, Scenario};
use crate::wrap::heading;

mod runs;
mod start;

/// A sandbox with the rules of one scenario. Clones share the sandbox.
#[derive(Debug, Clone)]
pub struct Stage<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// Its state files.
    pub state: State,
    /// Folders that are too large to be copied: programs see them as they are.
    shown: Vec<PathBuf>,
    /// The folder that its sandbox lies over, where that is too large to be copied.
    over: Option<Arc<Lower>>,
    sandbox: Arc<Sandbox>,
    settings: Settings,
    pin: Arc<Mutex<Option<usize>>>,
    /// Each program is process 1 of a namespace of its own.
    containers: bool,
}

/// What stages are made of.
#[derive(Debug, Clone)]
pub struct Like<'a> {
    scenario: &'a Scenario,
    state: Vec<PathBuf>,
    over: Option<Arc<Lower>>,
    settings: Settings,
    pin: Option<usize>,
    containers: bool,
}

impl<'a> Like<'a> {
    /// One more stage, on the processor so many behind that of the first.
    ///
    /// # Errors
    ///
    /// As [`Stage::new`].
    pub fn another(&self, number: usize) -> Result<Stage<'a>, LabError> {
        let pin = self.pin.map(|first| processor_behind(first, number));
        let stage = Stage::over(self.scenario, &self.settings, pin, self.over.clone())?;
        Ok(Stage { containers: self.containers, ..stage.with_state(self.state.clone()) })
    }
}

impl<'a> Stage<'a> {
    /// Sets up the sandbox.
    ///
    /// # Errors
    ///
    /// [`LabError::Lab`] where no sandbox can be made.
    pub fn new(
        scenario: &'a Scenario,
        settings: &Settings,
        pin: Option<usize>,
    ) -> Result<Stage<'a>, LabError> {
        let subject = &scenario.subject;
        let large = subject.folder.as_deref().filter(|folder| {
            subject.files.is_none()
                && subject.watch.is_empty()
                && !settings.is_recorded()
                && !settings.plain
                && is_large(folder)
                && !sandbox::holds_mounts(folder)
                && sandbox::overlay().is_ok()
        });
        let over = large.map(|folder| Arc::new(Lower::new(folder, &subject.state)));
        Stage::over(scenario, settings, pin, over)
    }

    fn over(
        scenario: &'a Scenario,
        settings: &Settings,
        pin: Option<usize>,
        over: Option<Arc<Lower>>,
    ) -> Result<Stage<'a>, LabError> {
        let watched = scenario.subject.watched();
        let mut keep_visible = folders_in_use(scenario);
        if let Some(watched) = &watched {
            // What lies in these folders, their copies show.
            keep_visible.retain(|visible| watched.relative(visible).is_none());
        }
        let plain = settings.plain;
        let is_plain = plain || sandbox::capabilities().way == sandbox::Way::Plain;
        let shown = match (&watched, &settings.shown) {
            _ if over.is_some() || is_plain => Vec::new(),
            (Some(watched), Some(shown)) => {
                let is_here = |below: &&PathBuf| watched.base.join(below).is_dir();
                shown.iter().filter(is_here).cloned().collect()
            }
            (Some(watched), None) => start::shown(scenario, watched),
            (None, _) => Vec::new(),
        };
        let watched = watched.unwrap_or_default();
        let several = watched.parts.iter().any(|part| !part.as_os_str().is_empty());
        let options = SandboxOptions {
            seen_at: scenario.subject.folder.is_some().then_some(watched.base),
            parts: if several { watched.parts } else { Vec::new() },
            current: watched.current,
            shown: shown.clone(),
            over: over.clone(),
            keep_visible,
            network: scenario.subject.network,
            plain,
        };
        let sandbox = Arc::new(Sandbox::new(&options)?);
        let state = State {
            paths: scenario.subject.state.clone(),
            seen: sandbox.seen().to_owned(),
            volatile: scenario.subject.volatile.clone(),
        };
        let pin = Arc::new(Mutex::new(pin.filter(|_| settings.pin)));
        let settings = settings.clone();
        Ok(Stage { scenario, shown, over, state, sandbox, settings, pin, containers: false })
    }

    /// The same sandbox with other state files.
    pub fn with_state(&self, paths: Vec<PathBuf>) -> Stage<'a> {
        Stage { state: State { paths, ..self.state.clone() }, ..self.clone() }
    }

    /// The same sandbox, in which each program is process 1 of a process namespace of its own, if that is wished.
    ///
    /// # Errors
    ///
    /// [`LabError::Missing`] where that cannot be had.
    pub(super) fn in_containers(&self, wished: bool) -> Result<Stage<'a>, LabError> {
        if wished {
            self.sandbox.container().map_err(|why| no_containers(&why))?;
        }
        Ok(Stage { containers: wished, ..self.clone() })
    }

    /// Its sandbox, with which [`moved`](Self::moved) makes a stage like it.
    pub(crate) fn sandbox(&self) -> Arc<Sandbox> {
        self.sandbox.clone()
    }

    /// The same in the sandbox of a stage like this one, on the processor so many behind this one's.
    pub(crate) fn moved(&self, sandbox: Arc<Sandbox>, number: usize) -> Stage<'a> {
        let pin = self.pin().map(|first| processor_behind(first, number));
        Stage { sandbox, pin: Arc::new(Mutex::new(pin)), ..self.clone() }
    }

    /// How to run.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Programs see their folder at the same path in every sandbox: there may be several at once.
    pub fn has_fixed_place(&self) -> bool {
        self.sandbox.seen() != self.sandbox.work()
    }

    /// What another stage like this one is made of; it may cross threads.
    pub fn like(&self) -> Like<'a> {
        Like {
            scenario: self.scenario,
            state: self.state.paths.clone(),
            over: self.over.clone(),
            settings: self.settings.clone(),
            pin: self.pin(),
            containers: self.containers,
        }
    }

    /// What the sandbox cannot do on this machine, a line each.
    pub fn shortcomings(&self) -> Vec<String> {
        let shown = self.shown.iter().map(|folder| {
            format!(
                "{} is large: the program sees it as it is, read-only, and not as a part of the copy",
                folder.display()
            )
        });
        self.sandbox.shortcomings().into_iter().chain(shown).collect()
    }

    /// Runs on another processor from now on.
    pub fn pin_to(&self, processor: usize) {
        let mut pin = self.pin.lock().unwrap_or_else(PoisonError::into_inner);
        *pin = pin.map(|_| processor);
    }

    fn pin(&self) -> Option<usize> {
        *self.pin.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be known of this stage's scenario where a recording of it is read.
    pub fn header(&self) -> Header {
        Header { partial: self.over.is_some(), ..Header::of(self.scenario, &self.shown) }
    }

    /// What the scenario lets a mark or a line promise.
    ///
    /// # Errors
    ///
    /// [`LabError::Scenario`] for a bad regular expression.
    pub fn promises(&self) -> Result<Promises, LabError> {
        let mut promises = Promises::default();
        for ack in &self.scenario.subject.ack {
            match ack.strip_prefix("mark:") {
                Some(mark) => promises.marks.push(mark.to_owned()),
                None => promises.lines.push(
                    regex::bytes::Regex::new(ack)
                        .map_err(|error| LabError::Scenario(error.to_string()))?,
                ),
            }
        }
        Ok(promises)
    }
}

/// Folders that must not be hidden from the programs: the scenario's own, and those that they are started from.
fn folders_in_use(scenario: &Scenario) -> Vec<PathBuf> {
    let program = |command: &CommandLine| match command {
        CommandLine::Argv(words) => {
            words.first().and_then(|word| Some(Path::new(word).parent()?.to_owned()))
        }
        CommandLine::Shell(_) => None,
    };
    let mut folders = vec![scenario.root.clone()];
    folders.extend(scenario.file.parent().and_then(|folder| folder.canonicalize().ok()));
    folders.extend(scenario.path.iter().cloned());
    folders.extend(program(&scenario.subject.command));
    folders.extend(program(&scenario.recovery.command));
    folders.retain(|folder| folder.is_absolute() && folder.is_dir() && folder.parent().is_some());
    folders
}

/// A command as a person would type it, on one line.
pub fn show(command: &CommandLine) -> String {
    match command {
        CommandLine::Argv(words) => format!("`{}`", heading(&words.join(" "))),
        CommandLine::Shell(line) => format!("`{}`", heading(line)),
    }
}
