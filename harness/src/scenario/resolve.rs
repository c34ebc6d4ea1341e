//! From a file as it is written to a [`Scenario`]: fills in defaults, makes paths absolute, and checks what a schema
//! cannot say.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Mistake, ScenarioError};
use super::forms::{ALL_DISKS, WATCHED_PATH};
use super::nearest::nearest;
use super::raw::{Everything, RawBound, RawFault, RawPoint, RawScenario, RawSubject};
use super::{
    CommandLine, DamageFault, Fault, FaultKind, KillPoint, PowerFault, RaceFault, Recovery,
    Scenario, Subject, Turn,
};
use super::{conform, schema};
use crate::fault::power::{DiskModel, MODELS};
use crate::fault::race::explore::MOST_SIDES;
use crate::watched::Watched;
use crate::wrap::counted;
use Step::{Index, Key};

/// The scenario in the text of a file, or everything that is wrong with it. `name` is what the scenario is called.
pub(super) fn resolve(file: &Path, name: &str, text: &str) -> Result<Scenario, Vec<ScenarioError>> {
    read(file, name, text).map_err(|mistakes| {
        let in_file = |mistake: Mistake| mistake.in_file(file, text);
        mistakes.into_iter().map(in_file).collect()
    })
}

fn read(file: &Path, name: &str, text: &str) -> Result<Scenario, Vec<Mistake>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(errors.iter().map(bad_toml).collect());
    }
    let mistakes = conform::mistakes(&document, schema::schema());
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let raw: RawScenario = toml::from_str(text).map_err(|error| vec![bad_toml(&error)])?;
    let mut resolver = Resolver { document: document.get_ref(), text, mistakes: Vec::new() };
    let scenario = resolver.scenario(file, name, raw);
    resolver.mistakes.sort_by_key(|mistake| mistake.span.start);
    if resolver.mistakes.is_empty() { Ok(scenario) } else { Err(resolver.mistakes) }
}

/// What the TOML parser says, in our words where its own are hard to understand.
fn bad_toml(error: &toml::de::Error) -> Mistake {
    let span = error.span().unwrap_or_default();
    let message = error.message().replace('\n', ", ");
    let (found, expected) = match message.split_once(", expected ") {
        _ if message == "duplicate key" => {
            ("this key or table is here already", "each of them once")
        }
        Some(("string values must be quoted", _)) if span.is_empty() => {
            ("there is no value", "a value: a string in quotes, a number, an array")
        }
        Some((found, expected)) => (found, expected),
        None => (&*message, "a TOML document"),
    };
    Mistake::new(span, found, expected)
}

/// A step on the way to a value.
#[derive(Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

struct Resolver<'d> {
    document: &'d DeTable<'d>,
    text: &'d str,
    mistakes: Vec<Mistake>,
}

impl Resolver<'_> {
    fn scenario(&mut self, file: &Path, name: &str, raw: RawScenario) -> Scenario {
        let home = home_of(file);
        let root = self.folder(&home, &raw.root, &[Key("root")]);
        let path = raw.path.iter().enumerate().map(|(index, folder)| {
            let at = [Key("path"), Index(index)];
            match &raw.build {
                Some(_) => clean(&root.join(folder)),
                None => self.folder(&root, folder, &at),
            }
        });
        let path = path.collect();
        if let Some(probe) = &raw.probe {
            self.command(probe, &[Key("probe")]);
        }
        self.command(&raw.subject.command, &[Key("subject"), Key("command")]);
        let recovery = Recovery {
            command: raw.recovery.command.unwrap_or_else(|| raw.subject.command.clone()),
            check: raw.recovery.check,
            depth: usize::try_from(raw.recovery.depth.max(1)).unwrap_or(1),
        };
        self.command(&recovery.command, &[Key("recovery"), Key("command")]);
        if let Some(check) = &recovery.check {
            self.command(check, &[Key("recovery"), Key("check")]);
        }
        let subject = self.subject(&home, raw.subject);
        Scenario {
            file: file.to_owned(),
            name: name.to_owned(),
            title: raw.title,
            proves: raw.proves,
            root,
            build: raw.build,
            path,
            needs: raw.needs,
            probe: raw.probe,
            faults: self.faults(raw.fault, &subject),
            subject,
            recovery,
        }
    }

    fn subject(&mut self, home: &Path, raw: RawSubject) -> Subject {
        for (index, command) in raw.setup.iter().enumerate() {
            self.command(command, &[Key("subject"), Key("setup"), Index(index)]);
        }
        let files = raw.files.as_deref();
        let folder = raw.folder.as_deref();
        let folder =
            folder.map(|folder| self.folder(home, folder, &[Key("subject"), Key("folder")]));
        let watch = self.watch(home, &raw.watch, folder.as_deref());
        let watched = folder.as_deref().map(|folder| Watched::of(folder, &watch));
        let mut paths = |texts, key| self.watched_paths(texts, watched.as_ref(), key);
        let (state, volatile, effects) = (
            paths(raw.state, "state"),
            paths(raw.volatile, "volatile"),
            paths(raw.effects, "effects"),
        );
        Subject {
            folder,
            watch,
            files: files.map(|folder| self.folder(home, folder, &[Key("subject"), Key("files")])),
            command: raw.command,
            state,
            env: raw.env,
            setup: raw.setup,
            time_limit: raw.time_limit,
            pipe: raw.pipe,
            network: raw.network,
            volatile,
            ack: raw.ack,
            effects,
        }
    }

    fn watch(&mut self, home: &Path, raw: &[String], folder: Option<&Path>) -> Vec<PathBuf> {
        if folder.is_none() && !raw.is_empty() {
            self.mistakes.push(Mistake::new(
                self.span(&[Key("subject"), Key("watch")]),
                "there is no `folder`, so that programs see none of the machine's folders changed",
                "`folder` as well: the folder in which the programs begin",
            ));
        }
        let at = |index| [Key("subject"), Key("watch"), Index(index)];
        let folders = raw.iter().enumerate();
        folders.map(|(index, folder)| self.folder(home, folder, &at(index))).collect()
    }

    /// Paths as they are watched: below the work folder, or in one of the folders of `watch`.
    fn watched_paths(
        &mut self,
        texts: Vec<String>,
        watched: Option<&Watched>,
        key: &'static str,
    ) -> Vec<PathBuf> {
        let path = |(index, text): (usize, String)| {
            let leaves = text.starts_with(['/']) || text.starts_with("../");
            let path = match watched {
                Some(watched) => watched.path_of(Path::new(&text)),
                None => (!leaves).then(|| PathBuf::from(&text)),
            };
            path.unwrap_or_else(|| {
                self.mistakes.push(Mistake::new(
                    self.span(&[Key("subject"), Key(key), Index(index)]),
                    format!("{text:?} does not lie in the work folder, nor in a folder of `watch`"),
                    WATCHED_PATH,
                ));
                PathBuf::from(text)
            })
        };
        texts.into_iter().enumerate().map(path).collect()
    }

    fn faults(&mut self, raw: Vec<RawFault>, subject: &Subject) -> Vec<Fault> {
        if raw.is_empty() {
            return Fault::usual();
        }
        let mut names: BTreeMap<String, usize> = BTreeMap::new();
        let faults = raw.into_iter().enumerate();
        faults
            .map(|(index, fault)| {
                let line = self.line_of(&[Key("fault"), Index(index)]);
                match &fault {
                    RawFault::Overlap { name, .. } | RawFault::Alert { name, .. } => {
                        self.unique(&mut names, name, index, line);
                    }
                    RawFault::Race { name, .. } => {
                        let name = name.clone().unwrap_or_default();
                        self.unique(&mut names, &format!("race {name}"), index, line);
                    }
                    _ => {}
                }
                let (kind, expect) = self.fault(fault, index, subject);
                Fault { kind, expect, line }
            })
            .collect()
    }

    /// Cases are told apart by these names.
    fn unique(
        &mut self,
        names: &mut BTreeMap<String, usize>,
        name: &str,
        index: usize,
        line: usize,
    ) {
        if let Some(first) = names.insert(name.to_owned(), line) {
            let span = self.span(&[Key("fault"), Index(index), Key("name")]);
            self.mistakes.push(Mistake::new(
                span,
                format!("the name {name:?} is taken by the fault on line {first}"),
                "a name that no other `overlap` or `alert` of this file has, since cases are told apart by it",
            ));
        }
    }

    fn fault(
        &mut self,
        raw: RawFault,
        index: usize,
        subject: &Subject,
    ) -> (FaultKind, Vec<crate::judge::Word>) {
        let at = [Key("fault"), Index(index)];
        match raw {
            RawFault::Kill { at: points, expect } => {
                let points = points.into_iter().enumerate();
                let parsed = points.filter_map(|(nth, point)| {
                    self.kill_point(point, &[at[0], at[1], Key("at"), Index(nth)])
                });
                let at = parsed.collect();
                (FaultKind::Kill { at }, expect)
            }
            RawFault::Power { model, states, seconds, seed, expect } => {
                let named = model.iter().enumerate().flat_map(|(nth, name)| {
                    self.disks(name, &[at[0], at[1], Key("model"), Index(nth)])
                });
                let models = named.collect();
                (FaultKind::Power(PowerFault { models, states, seconds, seed }), expect)
            }
            RawFault::Damage { file, damages, at_most, valid, expect } => {
                let file = self.damaged(file, subject, &[at[0], at[1], Key("file")]);
                let damages = damages.iter().enumerate().filter_map(|(nth, text)| {
                    self.parsed(text, &[at[0], at[1], Key("damages"), Index(nth)])
                });
                let damages = damages.collect();
                if let Some(valid) = &valid {
                    self.command(valid, &[at[0], at[1], Key("valid")]);
                }
                (FaultKind::Damage(DamageFault { file, damages, at_most, valid }), expect)
            }
            RawFault::Race {
                name,
                processes,
                times,
                preemptions,
                schedules,
                seed,
                kill_one,
                containers,
                view,
                expect,
            } => {
                let preemptions = match preemptions {
                    RawBound::Most(most) => Some(most),
                    RawBound::All(Everything::All) => None,
                };
                if processes.len() == 1 || processes.len() > MOST_SIDES {
                    self.mistakes.push(Mistake::new(
                        self.span(&[at[0], at[1], Key("processes")]),
                        format!("{} cannot race", counted(processes.len(), "program")),
                        format!(
                            "2 to {MOST_SIDES} processes, or none for the subject's command `times` times"
                        ),
                    ));
                }
                let race = match processes.is_empty() {
                    true => RaceFault::times(&subject.command, times),
                    false => RaceFault::of(self.processes(processes, index)),
                };
                let name = name.unwrap_or_default();
                (
                    FaultKind::Race(RaceFault {
                        name,
                        preemptions,
                        schedules,
                        seed,
                        kill_one,
                        containers,
                        view,
                        ..race
                    }),
                    expect,
                )
            }
            RawFault::Overlap { name, processes, order, says, expect } => {
                let processes = self.processes(processes, index);
                let order = self.order(&order, &processes, index);
                for process in says.keys() {
                    self.known(process, &processes, &[at[0], at[1], Key("says"), Key(process)]);
                }
                let kind = FaultKind::Overlap { name, processes, order, says };
                (kind, expect)
            }
            RawFault::Idle { never, expect } => (FaultKind::Idle { never }, expect),
            RawFault::Alert { name, command, says, expect } => {
                self.command(&command, &[at[0], at[1], Key("command")]);
                let kind = FaultKind::Alert { name, command, says };
                (kind, expect)
            }
        }
    }

    fn kill_point(&mut self, raw: RawPoint, at: &[Step<'_>]) -> Option<KillPoint> {
        match raw {
            RawPoint::Number(op) => Some(KillPoint::After(op)),
            RawPoint::Text(text) => self.parsed(&text, at),
        }
    }

    /// A text whose form the walk has checked already; should the two ever differ, it is a mistake like any other.
    fn parsed<T>(&mut self, text: &str, at: &[Step<'_>]) -> Option<T>
    where
        T: std::str::FromStr<Err: Into<super::FormError>>,
    {
        let wrong = |error: super::FormError| {
            Mistake::new(self.span(at), format!("{text:?}"), error.expected).or(error.nearest)
        };
        match text.parse() {
            Ok(parsed) => Some(parsed),
            Err(error) => {
                let mistake = wrong(error.into());
                self.mistakes.push(mistake);
                None
            }
        }
    }

    /// The file to damage must be state: damage elsewhere is nothing that a recovery has to notice.
    fn damaged(&mut self, file: Option<String>, subject: &Subject, at: &[Step<'_>]) -> PathBuf {
        let state = &subject.state;
        let Some(file) = file else {
            return state.first().cloned().unwrap_or_default();
        };
        let watched = subject.watched().and_then(|watched| watched.path_of(Path::new(&file)));
        let path = watched.unwrap_or_else(|| PathBuf::from(&file));
        if !state.iter().any(|state| path.starts_with(state)) {
            let known: Vec<&str> = state.iter().filter_map(|path| path.to_str()).collect();
            let mistake = Mistake::new(
                self.span(at),
                format!("{file:?} is no state file of the subject"),
                format!("one of `state`, or a file below one: {}", known.join(", ")),
            );
            self.mistakes.push(mistake.or(nearest(&file, known)));
        }
        path
    }

    /// The disk models of that name, or all.
    fn disks(&mut self, name: &str, at: &[Step<'_>]) -> Vec<&'static DiskModel> {
        match name {
            ALL_DISKS => MODELS.iter().collect(),
            _ => self.parsed(name, at).into_iter().collect(),
        }
    }

    /// The processes in the order of the file.
    fn processes(
        &mut self,
        raw: BTreeMap<String, CommandLine>,
        index: usize,
    ) -> Vec<(String, CommandLine)> {
        let at = [Key("fault"), Index(index), Key("processes")];
        let mut processes: Vec<(usize, String, CommandLine)> = Vec::new();
        for (name, command) in raw {
            let at = [at[0], at[1], at[2], Key(&name)];
            self.command(&command, &at);
            processes.push((self.span(&at).start, name, command));
        }
        processes.sort_by_key(|&(start, ..)| start);
        let named = |(_, name, command)| (name, command);
        processes.into_iter().map(named).collect()
    }

    /// The name must be that of a process.
    fn known(&mut self, process: &str, processes: &[(String, CommandLine)], at: &[Step<'_>]) {
        let names: Vec<&str> = processes.iter().map(|(name, _)| name.as_str()).collect();
        if names.contains(&process) {
            return;
        }
        let mistake = Mistake::new(
            self.span(at),
            format!("no process is named {process:?}"),
            format!("a name of `processes`: {}", names.join(", ")),
        );
        self.mistakes.push(mistake.or(nearest(process, names.iter().copied())));
    }

    fn order(
        &mut self,
        order: &[String],
        processes: &[(String, CommandLine)],
        index: usize,
    ) -> Vec<Turn> {
        let mut turns = Vec::new();
        for (nth, text) in order.iter().enumerate() {
            let at = [Key("fault"), Index(index), Key("order"), Index(nth)];
            let Some(turn) = self.parsed::<Turn>(text, &at) else {
                continue;
            };
            self.known(&turn.process, processes, &at);
            turns.push(turn);
        }
        turns
    }

    fn command(&mut self, command: &CommandLine, at: &[Step<'_>]) {
        if let CommandLine::Argv(argv) = command
            && argv.first().is_some_and(String::is_empty)
        {
            self.mistakes.push(Mistake::new(
                self.span(at),
                "the program's name is empty",
                "the name or path of a program as the first element",
            ));
        }
    }

    /// The absolute path of a folder that must exist.
    fn folder(&mut self, base: &Path, folder: &str, at: &[Step<'_>]) -> PathBuf {
        let path = clean(&base.join(folder));
        let found = match std::fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => return path,
            Ok(_) => format!("{} is no folder", path.display()),
            Err(error) => format!("cannot find {}: {error}", path.display()),
        };
        let expected = format!("a folder, relative to {}", base.display());
        self.mistakes.push(Mistake::new(self.span(at), found, expected));
        path
    }

    /// The bytes of the file that a value covers; of the nearest table around it, where it is not written out.
    fn span(&self, steps: &[Step<'_>]) -> Range<usize> {
        let mut table = Some(self.document);
        let mut value: Option<&Spanned<DeValue<'_>>> = None;
        for step in steps {
            let next = match step {
                Key(key) => table.and_then(|table| table.get(*key)),
                Index(index) => value
                    .and_then(|value| value.get_ref().as_array())
                    .and_then(|array| array.get(*index)),
            };
            let Some(next) = next else { break };
            table = next.get_ref().as_table();
            value = Some(next);
        }
        value.map_or(0..0, Spanned::span)
    }

    fn line_of(&self, steps: &[Step<'_>]) -> usize {
        self.text[..self.span(steps).start].matches('\n').count() + 1
    }
}

/// The absolute path of the folder that holds the file.
fn home_of(file: &Path) -> PathBuf {
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    absolute.parent().map(Path::to_owned).unwrap_or(absolute)
}

/// The path without `.` and `..`; through links, where they exist, as the kernel would go.
fn clean(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                clean.pop();
            }
            std::path::Component::CurDir => {}
            part => clean.push(part),
        }
    }
    clean
}
