//! A stage: one sandbox in which a scenario's programs run, one run after another, always at the same path.

use std::cell::Cell;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{LabError, Settings, check_interrupt};
use crate::judge::{Outcome, Promises, State, reads_first};
use crate::recording::{Recording, Trace};
use crate::sandbox::{Sandbox, SandboxOptions};
use crate::scenario::{CommandLine, Scenario};
use crate::subject::Program;
use crate::trace::{Budget, Director, Options, TraceError, Undisturbed};
use crate::tree::{self, Tree};

/// A sandbox with the rules of one scenario.
#[derive(Debug)]
pub struct Stage<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// Its state files.
    pub state: State,
    sandbox: Sandbox,
    pin: Cell<Option<usize>>,
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
        let keep_visible = folders_in_use(scenario);
        let network = scenario.subject.network;
        let options =
            SandboxOptions { seen_at: None, keep_visible, network, plain: settings.plain };
        let sandbox = Sandbox::new(&options)?;
        let state = State {
            paths: scenario.subject.state.clone(),
            seen: sandbox.seen().to_owned(),
            volatile: scenario.subject.volatile.clone(),
        };
        let pin = Cell::new(pin.filter(|_| settings.pin));
        Ok(Stage { scenario, state, sandbox, pin })
    }

    /// What the sandbox cannot do on this machine, a line each.
    pub fn shortcomings(&self) -> Vec<String> {
        self.sandbox.shortcomings()
    }

    /// Runs on another processor from now on.
    pub fn pin_to(&self, processor: usize) {
        self.pin.set(self.pin.get().map(|_| processor));
    }

    /// The tree that every run begins with: the scenario's files, after its setup commands.
    ///
    /// # Errors
    ///
    /// [`LabError::Scenario`] where a setup command fails.
    pub fn prepare(&self) -> Result<Tree, LabError> {
        let mut tree = match &self.scenario.subject.files {
            Some(folder) => as_ones_own(tree::read(folder)?),
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

    fn empty(&self) -> Result<Tree, LabError> {
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
        check_interrupt()?;
        self.sandbox.fill(tree)?;
        let programs: Vec<Program> = commands.iter().map(|command| self.program(command)).collect();
        let time_limit = Duration::from_secs(self.scenario.subject.time_limit);
        let options = Options { time_limit, reads, budget: Budget::default(), pin: self.pin.get() };
        let trace = crate::trace::run(&programs, &self.sandbox, &options, director)
            .map_err(|error| self.named(error))?;
        check_interrupt()?;
        Ok((trace, self.sandbox.snapshot()?))
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
        let (mut trace, end) =
            self.run(std::slice::from_ref(command), start, true, &mut Undisturbed)?;
        let finish = trace.ends.remove(0);
        let reads_first = reads_first(start, &trace.events, &self.state);
        let image = self.state.image(&end);
        Ok(Outcome {
            start: start.clone(),
            end: Arc::new(end),
            image,
            finish,
            trace: Arc::new(trace),
            reads_first,
        })
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
        let path = env
            .get(&OsString::from("PATH"))
            .cloned()
            .unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        let folders = self
            .scenario
            .path
            .iter()
            .cloned()
            .chain(std::env::split_paths(&path))
            .collect::<Vec<PathBuf>>();
        if let Ok(path) = std::env::join_paths(folders) {
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
        for node in tree.nodes.values_mut() {
            (node.uid, node.gid) = (uid.as_raw(), gid.as_raw());
        }
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
    folders.extend(scenario.file.parent().map(Path::to_owned));
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
