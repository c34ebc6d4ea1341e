//! A stage: one sandbox in which a scenario's programs run, one run after another, always at the same path.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::heavy::{heavy_folders, is_large};
use super::needs::{look_for_needs, no_containers, search_path};
use super::pool::processor_behind;
use super::{LabError, Settings, check_interrupt};
use crate::judge::{Outcome, Promises, State, overwritten_unread};
use crate::op::What;
use crate::recording::{Header, Recording, Spool, Trace};
use crate::sandbox::{self, Lower, Sandbox, SandboxOptions};
use crate::scenario::{CommandLine, Scenario};
use crate::subject::{End, Program};
use crate::trace::{self, Budget, Detail, Director, ForkServer, Options, TraceError, Undisturbed};
use crate::tree::{self, Tree};
use crate::watched::Watched;
use crate::wrap::heading;

/// Tells a check the names of the marks that the subject had passed before the crash, one a line, in their order, each as
/// often as it was passed.
const MARKS: &str = "CRASHLAB_MARKS";

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
            (Some(watched), None) => shown(scenario, watched),
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

    /// The tree that every run begins with: the scenario's files, after its setup commands.
    ///
    /// # Errors
    ///
    /// [`LabError::Missing`] where the scenario's probe fails, [`LabError::Scenario`] where a setup command fails.
    pub fn prepare(&self) -> Result<Tree, LabError> {
        look_for_needs(self.scenario)?;
        self.probe()?;
        if let Some(lower) = &self.over {
            return self.changed_part(lower);
        }
        let subject = &self.scenario.subject;
        self.set_up(match (&subject.files, subject.watched()) {
            (files, Some(watched)) => self.copy_of(files.as_deref(), &watched)?,
            (Some(files), None) => as_ones_own(tree::read(files)?),
            (None, None) => self.empty()?,
        })
    }

    fn set_up(&self, mut tree: Tree) -> Result<Tree, LabError> {
        for command in &self.scenario.subject.setup {
            let (trace, after) =
                self.run(std::slice::from_ref(command), &tree, false, &mut Undisturbed)?;
            if !trace.ends[0].exit.success() {
                let what = format!("the setup {}", show(command));
                return Err(LabError::failed_in(&self.scenario.file, &what, &trace));
            }
            tree = after;
        }
        Ok(tree)
    }

    /// The watched folders with what they hold now; `files`, if they are given, in the place of where programs begin.
    fn copy_of(&self, files: Option<&Path>, watched: &Watched) -> Result<Tree, LabError> {
        let mut tree = self.empty()?;
        for part in &watched.parts {
            let begins_here = *part == watched.current;
            let (folder, shown) = match files {
                Some(files) if begins_here => (files.to_owned(), Vec::new()),
                _ => (watched.base.join(part), below(&self.shown, part)),
            };
            tree.graft(part, as_ones_own(tree::read_around(&folder, &shown)?));
        }
        Ok(tree)
    }

    /// Of a large folder, what the subject changes.
    fn changed_part(&self, lower: &Lower) -> Result<Tree, LabError> {
        let command = std::slice::from_ref(&self.scenario.subject.command);
        self.until_known(|| {
            let tree = self.set_up(as_ones_own(lower.tree()?))?;
            self.run(command, &tree, false, &mut Undisturbed)?;
            Ok(tree)
        })
    }

    /// Does the work, and again whenever it comes upon more of a large folder than its trees hold so far.
    pub(super) fn until_known<T>(
        &self,
        mut work: impl FnMut() -> Result<T, LabError>,
    ) -> Result<T, LabError> {
        loop {
            let known = self.generation();
            let result = work();
            if known == self.generation() {
                return result;
            }
        }
    }

    fn generation(&self) -> u64 {
        self.over.as_ref().map_or(0, |lower| lower.generation())
    }

    /// A run in a large folder that came upon more of it than its trees hold is not to be compared with others.
    fn must_be_known(&self, lower: &Lower, trace: &Trace, known: u64) -> Result<(), LabError> {
        for event in &trace.events {
            // An overlay cannot rename a folder that lies below it.
            if let What::Failed { path: Some(path), errno: libc::EXDEV, .. } = &event.what {
                lower.copy_whole(path);
            }
        }
        match lower.generation() == known {
            true => Ok(()),
            false => Err(LabError::Lab(format!(
                "{}: the program changes more of {} than its first run did",
                self.scenario.file.display(),
                lower.folder().display()
            ))),
        }
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
        let programs: Vec<Program> = commands.iter().map(|command| self.program(command)).collect();
        let detail = if reads { Detail::Reads } else { Detail::Changes };
        self.run_programs(&programs, tree, detail, false, director)
    }

    /// As [`run`](Self::run), of the subject, for its own log: with call stacks, where they are asked for.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub(super) fn run_subject(
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
    pub(super) fn run_with(
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
    pub(super) fn fork_server(
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
    pub(super) fn outcome_forked(
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
        let detail = if reads { Detail::Reads } else { Detail::Changes };
        let backtrace = self.settings.backtrace;
        let (trace, after) =
            self.run_until_stopped(&subject, before, detail, backtrace, &mut Undisturbed, spool)?;
        Ok(Recording { before: before.clone(), trace, after })
    }

    /// What is to be known of this stage's scenario where a recording of it is read.
    pub fn header(&self) -> Header {
        Header { partial: self.over.is_some(), ..Header::of(self.scenario, &self.shown) }
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

/// The folders that are too large to be copied, relative to what holds all that is watched.
fn shown(scenario: &Scenario, watched: &Watched) -> Vec<PathBuf> {
    let subject = &scenario.subject;
    let is_copied = |part: &&PathBuf| subject.files.is_none() || **part != watched.current;
    let heavy = |part: &PathBuf| {
        let found = heavy_folders(&watched.base.join(part), &below(&subject.state, part));
        found.into_iter().map(|folder| part.join(folder)).collect::<Vec<_>>()
    };
    watched.parts.iter().filter(is_copied).flat_map(heavy).collect()
}

/// Those of the paths that lie in a folder, relative to it.
fn below(paths: &[PathBuf], folder: &Path) -> Vec<PathBuf> {
    paths.iter().filter_map(|path| path.strip_prefix(folder).ok()).map(Path::to_owned).collect()
}

/// An ordinary user cannot give files away, and root in a container none to who is not there: a copy of them is its own,
/// as with `cp -r`.
fn as_ones_own(mut tree: Tree) -> Tree {
    let (uid, gid) = (nix::unistd::geteuid(), nix::unistd::getegid());
    let known = |map: &str| std::fs::read_to_string(map).unwrap_or_default();
    let (users, groups) = (known("/proc/self/uid_map"), known("/proc/self/gid_map"));
    tree.nodes.update_all(|_, node| {
        if !uid.is_root() || !is_mapped(&users, node.uid) || !is_mapped(&groups, node.gid) {
            (node.uid, node.gid) = (uid.as_raw(), gid.as_raw());
        }
    });
    tree
}

/// Whether a user namespace has this id, by its map: a line for each range, with the first id inside, the first outside, and
/// how many there are.
fn is_mapped(map: &str, id: u32) -> bool {
    map.lines().any(|line| {
        let mut numbers = line.split_whitespace().filter_map(|number| number.parse::<u64>().ok());
        let (first, _, count) = (numbers.next(), numbers.next(), numbers.next());
        let (first, id) = (first.unwrap_or(0), u64::from(id));
        (first..first + count.unwrap_or(0)).contains(&id)
    })
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
