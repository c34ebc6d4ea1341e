//! Running programs on a stage, and taking down what they came to.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::super::needs::search_path;
use super::super::{LabError, check_interrupt};
use super::Stage;
use crate::judge::{Outcome, overwritten_unread};
use crate::recording::{Recording, Spool, Trace};
use crate::scenario::CommandLine;
use crate::subject::{End, Program};
use crate::trace::{self, Budget, Detail, Director, ForkServer, Options, TraceError, Undisturbed};
use crate::tree::Tree;

/// Tells a check the names of the marks that the subject had passed before the crash, one a line, in their order, each as
/// often as it was passed.
const MARKS: &str = "CRASHLAB_MARKS";

/// What is told of a run.
fn detail(reads: bool) -> Detail {
    if reads { Detail::Reads } else { Detail::Changes }
}

impl Stage<'_> {
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
        self.run_with(commands, tree, detail(reads), director)
    }

    /// As [`run`](Self::run), of the subject, for its own log: with call stacks, where they are asked for.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub(in crate::run) fn run_subject(
        &self,
        tree: &Tree,
        director: &mut dyn Director,
    ) -> Result<(Trace, Tree), LabError> {
        let subject = [self.program(&self.scenario.subject.command)];
        self.run_programs(&subject, tree, Detail::Changes, self.settings.backtrace, director)
    }

    /// As [`run`](Self::run), with any detail.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub(in crate::run) fn run_with(
        &self,
        commands: &[CommandLine],
        tree: &Tree,
        detail: Detail,
        director: &mut dyn Director,
    ) -> Result<(Trace, Tree), LabError> {
        let programs: Vec<Program> = commands.iter().map(|command| self.program(command)).collect();
        self.run_programs(&programs, tree, detail, false, director)
    }

    fn run_programs(
        &self,
        programs: &[Program],
        tree: &Tree,
        detail: Detail,
        backtrace: bool,
        director: &mut dyn Director,
    ) -> Result<(Trace, Tree), LabError> {
        let spool = Spool::default();
        let ran = self.run_until_stopped(programs, tree, detail, backtrace, director, &spool)?;
        check_interrupt()?;
        Ok(ran)
    }

    /// The same, but a run that was told to stop gives what it did until then.
    fn run_until_stopped(
        &self,
        programs: &[Program],
        tree: &Tree,
        detail: Detail,
        backtrace: bool,
        director: &mut dyn Director,
        spool: &Spool,
    ) -> Result<(Trace, Tree), LabError> {
        check_interrupt()?;
        let known = self.generation();
        self.sandbox.fill(tree)?;
        let options = self.options(detail, backtrace);
        let trace = trace::run_into(programs, &self.sandbox, &options, director, spool)
            .map_err(|error| self.named(error))?;
        // What the run left alone is kept once, however many runs there are.
        let after = self.sandbox.snapshot()?.sharing(tree);
        if let Some(lower) = &self.over {
            self.must_be_known(lower, &trace, known)?;
        }
        Ok((trace, after))
    }

    fn options(&self, detail: Detail, backtrace: bool) -> Options {
        let time_limit = Duration::from_secs(self.scenario.subject.time_limit);
        let (budget, pin, containers) = (Budget::default(), self.pin(), self.containers);
        Options { time_limit, detail, budget, pin, backtrace, containers }
    }

    /// Brings the command to where copies of it can begin, before it looks at the tree; `None` where there is no such place.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub(in crate::run) fn fork_server(
        &self,
        command: &CommandLine,
        tree: &Tree,
        detail: Detail,
        is_same: &dyn Fn(&Path) -> bool,
    ) -> Result<Option<ForkServer>, LabError> {
        check_interrupt()?;
        self.sandbox.fill(tree)?;
        let options = self.options(detail, self.takes_stacks(detail));
        let server = ForkServer::start(&self.program(command), &self.sandbox, &options, is_same);
        server.map_err(|error| self.named(error))
    }

    /// As [`outcome`](Self::outcome), by a copy of the program that the server has; `None` where it can make none that is
    /// like the first.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub(in crate::run) fn outcome_forked(
        &self,
        server: &mut ForkServer,
        start: &Arc<Tree>,
        detail: Detail,
    ) -> Result<Option<Outcome>, LabError> {
        check_interrupt()?;
        self.sandbox.fill(start)?;
        if !server.is_as_it_was(&self.sandbox, detail) {
            return Ok(None);
        }
        let options = self.options(detail, self.takes_stacks(detail));
        let (director, spool) = (&mut Undisturbed, Spool::default());
        let trace = trace::run_forked(server, &self.sandbox, &options, director, &spool)
            .map_err(|error| self.named(error))?;
        let Some(mut trace) = trace else { return Ok(None) };
        let end = self.sandbox.snapshot()?.sharing(start);
        check_interrupt()?;
        let finish = trace.ends.remove(0);
        let outcome = self.looked_at(start.clone(), Arc::new(end), finish, Arc::new(trace));
        Ok(Some(Outcome { forked: true, ..outcome }))
    }

    /// Only what is killed in its turn is told of op by op.
    fn takes_stacks(&self, detail: Detail) -> bool {
        let is_told = self.scenario.recovery.depth > 1 && detail != Detail::Overwrites;
        self.settings.backtrace && is_told
    }

    /// An error of the tracer with the scenario's file, and with what to do where a program could not be started.
    fn named(&self, error: TraceError) -> LabError {
        let TraceError::Spawn { program, source, .. } = &error else {
            return error.into();
        };
        let is_missing = matches!(source.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied);
        if is_missing && self.settings.is_recorded() {
            return LabError::Scenario(format!(
                "{}: {error}; it need not be here for a recording of it: give what a user would run next by --recover",
                self.scenario.file.display()
            ));
        }
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

    /// Records one undisturbed run of the subject, or as much of it as there is when it is told to stop.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn record(&self, before: &Tree, reads: bool) -> Result<Recording, LabError> {
        self.record_into(before, reads, &Spool::default())
    }

    /// The same, with a spool that takes in the run while it goes on.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn record_into(
        &self,
        before: &Tree,
        reads: bool,
        spool: &Spool,
    ) -> Result<Recording, LabError> {
        let subject = [self.program(&self.scenario.subject.command)];
        let detail = detail(reads);
        let backtrace = self.settings.backtrace;
        let (trace, after) =
            self.run_until_stopped(&subject, before, detail, backtrace, &mut Undisturbed, spool)?;
        Ok(Recording { before: before.clone(), trace, after })
    }

    /// Runs a command undisturbed and takes down its outcome.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn outcome(&self, command: &CommandLine, start: &Arc<Tree>) -> Result<Outcome, LabError> {
        self.outcome_of(self.program(command), start, Detail::Reads, &mut Undisturbed)
    }

    /// As [`outcome`](Self::outcome), for a command that is told which marks were passed, a line each, in `CRASHLAB_MARKS`.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn outcome_knowing(
        &self,
        command: &CommandLine,
        start: &Arc<Tree>,
        marks: &[String],
    ) -> Result<Outcome, LabError> {
        let mut program = self.program(command);
        let lines: String = marks.iter().map(|mark| format!("{mark}\n")).collect();
        program.env.push((MARKS.into(), lines.into()));
        self.outcome_of(program, start, Detail::Reads, &mut Undisturbed)
    }

    /// As [`outcome`](Self::outcome), traced in any detail, by any director.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub(crate) fn outcome_in(
        &self,
        command: &CommandLine,
        start: &Arc<Tree>,
        detail: Detail,
        director: &mut dyn Director,
    ) -> Result<Outcome, LabError> {
        self.outcome_of(self.program(command), start, detail, director)
    }

    fn outcome_of(
        &self,
        program: Program,
        start: &Arc<Tree>,
        detail: Detail,
        director: &mut dyn Director,
    ) -> Result<Outcome, LabError> {
        let backtrace = self.takes_stacks(detail);
        let (mut trace, end) = self.run_programs(&[program], start, detail, backtrace, director)?;
        let finish = trace.ends.remove(0);
        Ok(self.looked_at(start.clone(), Arc::new(end), finish, Arc::new(trace)))
    }

    /// An outcome as this stage's state files show it.
    pub fn seen(&self, outcome: &Outcome) -> Outcome {
        let Outcome { start, end, finish, trace, forked, .. } = outcome.clone();
        Outcome { forked, ..self.looked_at(start, end, finish, trace) }
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
        Outcome { start, end, image, finish, trace, unread, forked: false }
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

    fn program(&self, command: &CommandLine) -> Program {
        let fill = |text: &String| {
            let text = text.replace("{dir}", &self.sandbox.current().to_string_lossy());
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
        // Only a check is told of marks, and of those of its own case.
        env.remove(std::ffi::OsStr::new(MARKS));
        env.insert("PWD".into(), self.sandbox.current().into());
        env.extend(
            self.scenario.subject.env.iter().map(|(name, value)| (name.into(), value.into())),
        );
        env.into_iter().collect()
    }
}
