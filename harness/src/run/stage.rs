//! A stage: one sandbox in which a scenario's programs run, one run after another, always at the same path.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::heavy::heavy_folders;
use super::needs::{look_for_programs, search_path};
use super::{LabError, Settings, check_interrupt};
use crate::judge::{Outcome, Promises, State, overwritten_unread};
use crate::recording::{Recording, Trace};
use crate::sandbox::{Sandbox, SandboxOptions};
use crate::scenario::{CommandLine, Scenario};
use crate::subject::{End, Program};
use crate::trace::{Budget, Detail, Director, Options, TraceError, Undisturbed};
use crate::tree::{self, Tree};

/// A sandbox with the rules of one scenario. Clones share the sandbox.
#[derive(Debug, Clone)]
pub struct Stage<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// Its state files.
    pub state: State,
    /// Folders that are too large to be copied: programs see them as they are.
    shown: Vec<PathBuf>,
    sandbox: Arc<Sandbox>,
    settings: Settings,
    pin: Arc<Mutex<Option<usize>>>,
}

/// What stages are made of.
#[derive(Debug, Clone)]
pub struct Like<'a> {
    scenario: &'a Scenario,
    state: Vec<PathBuf>,
    settings: Settings,
    pin: bool,
}

impl<'a> Like<'a> {
    /// One more stage, on the processor of this number among those that the lab may use.
    ///
    /// # Errors
    ///
    /// As [`Stage::new`].
    pub fn another(&self, number: usize) -> Result<Stage<'a>, LabError> {
        let processors = super::pool::processors();
        let processor = processors[number % processors.len()];
        let stage = Stage::new(self.scenario, &self.settings, self.pin.then_some(processor))?;
        Ok(stage.with_state(self.state.clone()))
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
        let seen_at = scenario.subject.folder.clone();
        let mut keep_visible = folders_in_use(scenario);
        if let Some(folder) = &seen_at {
            // What lies in the folder, its copy shows.
            keep_visible.retain(|visible| !visible.starts_with(folder));
        }
        let network = scenario.subject.network;
        let shown = match (&seen_at, &scenario.subject.files) {
            (Some(folder), None) => heavy_folders(folder, &scenario.subject.state),
            _ => Vec::new(),
        };
        let plain = settings.plain;
        let options =
            SandboxOptions { seen_at, shown: shown.clone(), keep_visible, network, plain };
        let sandbox = Arc::new(Sandbox::new(&options)?);
        let state = State {
            paths: scenario.subject.state.clone(),
            seen: sandbox.seen().to_owned(),
            volatile: scenario.subject.volatile.clone(),
        };
        let pin = Arc::new(Mutex::new(pin.filter(|_| settings.pin)));
        Ok(Stage { scenario, shown, state, sandbox, settings: settings.clone(), pin })
    }

    /// The same sandbox with other state files.
    pub fn with_state(&self, paths: Vec<PathBuf>) -> Stage<'a> {
        Stage {
            scenario: self.scenario,
            shown: self.shown.clone(),
            state: State { paths, ..self.state.clone() },
            sandbox: self.sandbox.clone(),
            settings: self.settings.clone(),
            pin: self.pin.clone(),
        }
    }

    /// Its sandbox, with which [`moved`](Self::moved) makes a stage like it.
    pub(crate) fn sandbox(&self) -> Arc<Sandbox> {
        self.sandbox.clone()
    }

    /// The same in the sandbox of a stage like this one, on the processor of this number among those that the lab may use.
    pub(crate) fn moved(&self, sandbox: Arc<Sandbox>, number: usize) -> Stage<'a> {
        let processors = super::pool::processors();
        let pin = self.pin().map(|_| processors[number % processors.len()]);
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
            settings: self.settings.clone(),
            pin: self.pin().is_some(),
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

    /// The tree that every run begins with: the scenario's files, after its setup commands.
    ///
    /// # Errors
    ///
    /// [`LabError::Missing`] where the scenario's probe fails, [`LabError::Scenario`] where a setup command fails.
    pub fn prepare(&self) -> Result<Tree, LabError> {
        look_for_programs(self.scenario)?;
        self.probe()?;
        let subject = &self.scenario.subject;
        let mut tree = match subject.files.as_ref().or(subject.folder.as_ref()) {
            Some(folder) => as_ones_own(tree::read_around(folder, &self.shown)?),
            None => self.empty()?,
        };
        for command in &self.scenario.subject.setup {
            let (trace, after) =
                self.run(std::slice::from_ref(command), &tree, false, &mut Undisturbed)?;
            let end = &trace.ends[0];
            if !end.exit.success() {
                let what = format!("the setup {}", show(command));
                return Err(LabError::failed(&self.scenario.file, &what, end));
            }
            tree = after;
        }
        Ok(tree)
    }

    pub(super) fn empty(&self) -> Result<Tree, LabError> {
        self.sandbox.reset()?;
        Ok(self.sandbox.snapshot()?)
    }

    /// Runs commands together in the folder as `tree` has it; gives what they did and the tree that they left.
    ///
    /// # Errors
    ///
    /// [`LabError::Scenario`] where a program cannot be started, [`LabError::Lab`] where the lab fails.
    pub fn run(
        &self,
        commands: &[CommandLine],
        tree: &Tree,
        reads: bool,
        director: &mut dyn Director,
    ) -> Result<(Trace, Tree), LabError> {
        let detail = if reads { Detail::Reads } else { Detail::Changes };
        self.run_in(commands, tree, detail, director)
    }

    fn run_in(
        &self,
        commands: &[CommandLine],
        tree: &Tree,
        detail: Detail,
        director: &mut dyn Director,
    ) -> Result<(Trace, Tree), LabError> {
        check_interrupt()?;
        self.sandbox.fill(tree)?;
        let programs: Vec<Program> = commands.iter().map(|command| self.program(command)).collect();
        let time_limit = Duration::from_secs(self.scenario.subject.time_limit);
        let options = Options { time_limit, detail, budget: Budget::default(), pin: self.pin() };
        let trace = crate::trace::run(&programs, &self.sandbox, &options, director)
            .map_err(|error| self.named(error))?;
        check_interrupt()?;
        // What the run left alone is kept once, however many runs there are.
        Ok((trace, self.sandbox.snapshot()?.sharing(tree)))
    }

    /// An error of the tracer with the scenario's file, and with what to do where a program could not be started.
    fn named(&self, error: TraceError) -> LabError {
        let TraceError::Spawn { program, source, .. } = &error else {
            return error.into();
        };
        let hint = match (source.kind(), program.contains('/'), program.starts_with('/')) {
            (ErrorKind::NotFound, false, _) => "; it is in no folder of PATH",
            (ErrorKind::NotFound, true, false) => {
                "; a relative path is one of the work folder, which holds what `files` and `setup` put there: \
                 for a file of the project write {root}/PATH"
            }
            (ErrorKind::NotFound, true, true) => {
                "; it is not there (nor, for a script, the interpreter that its first line names)"
            }
            (ErrorKind::PermissionDenied, ..) => "; may it be executed?",
            _ => "",
        };
        LabError::Scenario(format!("{}: {error}{hint}", self.scenario.file.display()))
    }

    /// Records one undisturbed run of the subject.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn record(&self, before: &Tree, reads: bool) -> Result<Recording, LabError> {
        let (trace, after) = self.run(
            std::slice::from_ref(&self.scenario.subject.command),
            before,
            reads,
            &mut Undisturbed,
        )?;
        Ok(Recording { before: before.clone(), trace, after })
    }

    /// Runs a command undisturbed and takes down its outcome.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn outcome(&self, command: &CommandLine, start: &Arc<Tree>) -> Result<Outcome, LabError> {
        self.outcome_in(command, start, Detail::Reads, &mut Undisturbed)
    }

    pub(super) fn outcome_in(
        &self,
        command: &CommandLine,
        start: &Arc<Tree>,
        detail: Detail,
        director: &mut dyn Director,
    ) -> Result<Outcome, LabError> {
        let (mut trace, end) =
            self.run_in(std::slice::from_ref(command), start, detail, director)?;
        let finish = trace.ends.remove(0);
        Ok(self.looked_at(start.clone(), Arc::new(end), finish, Arc::new(trace)))
    }

    /// An outcome as this stage's state files show it.
    pub fn seen(&self, outcome: &Outcome) -> Outcome {
        let Outcome { start, end, finish, trace, .. } = outcome.clone();
        self.looked_at(start, end, finish, trace)
    }

    fn looked_at(
        &self,
        start: Arc<Tree>,
        end: Arc<Tree>,
        finish: End,
        trace: Arc<Trace>,
    ) -> Outcome {
        let unread = overwritten_unread(&start, &trace.events, &self.state);
        let image = self.state.image(&end);
        Outcome { start, end, image, finish, trace, unread }
    }

    /// As [`outcome`](Self::outcome), for a program that cannot override the modes of files, even as root.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn outcome_by_modes(
        &self,
        command: &CommandLine,
        start: &Arc<Tree>,
    ) -> Result<Outcome, LabError> {
        self.sandbox.obeying_modes(|| self.outcome(command, start))
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

    fn program(&self, command: &CommandLine) -> Program {
        let fill = |text: &String| {
            let text = text.replace("{dir}", &self.sandbox.seen().to_string_lossy());
            OsString::from(text.replace("{root}", &self.scenario.root.to_string_lossy()))
        };
        let argv = match command {
            CommandLine::Argv(words) => words.iter().map(fill).collect(),
            CommandLine::Shell(line) => vec!["/bin/sh".into(), "-c".into(), fill(line)],
        };
        Program {
            argv,
            env: self.environment(),
            stdin: Vec::new(),
            pipe: self.scenario.subject.pipe,
        }
    }

    /// The lab's own environment, with the scenario's folders in front of `PATH`, its variables, and the right `PWD`.
    fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut env: std::collections::BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        if let Ok(path) = std::env::join_paths(search_path(self.scenario)) {
            env.insert("PATH".into(), path);
        }
        env.insert("PWD".into(), self.sandbox.seen().into());
        env.extend(
            self.scenario.subject.env.iter().map(|(name, value)| (name.into(), value.into())),
        );
        env.into_iter().collect()
    }
}

/// An ordinary user cannot give files away: a copy of them is its own, as with `cp -r`.
fn as_ones_own(mut tree: Tree) -> Tree {
    let (uid, gid) = (nix::unistd::geteuid(), nix::unistd::getegid());
    if !uid.is_root() {
        tree.nodes.update_all(|_, node| (node.uid, node.gid) = (uid.as_raw(), gid.as_raw()));
    }
    tree
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

/// A command as a person would type it.
pub fn show(command: &CommandLine) -> String {
    match command {
        CommandLine::Argv(words) => format!("`{}`", words.join(" ")),
        CommandLine::Shell(line) => format!("`{line}`"),
    }
}
