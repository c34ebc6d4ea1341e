//! Scenarios: TOML files that say who is tried, on what, and what must hold afterwards.
//!
//! A file goes through four steps, one module each: its text is parsed with the places of all keys and values; the
//! document is walked along the JSON Schema ([`schema_text`]), which is derived from the types that then read it, so that
//! parser and schema cannot drift apart; what is left to check is what a schema cannot say (a turn of a process that does
//! not exist, a folder that is not there); the result is a [`Scenario`] with all defaults filled in. Every mistake on the
//! way is a [`ScenarioError`] with its line, what was expected there, and the nearest right name.
//!
//! [`load`] finds the files. Nothing is read but them, and nothing is looked up but whether the folders that they name exist.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::fault::damage::{Damage, Wish};
use crate::fault::power::{DiskModel, MODELS};
use crate::judge::Word;
use crate::watched::Watched;

mod conform;
mod error;
mod expect;
mod forms;
mod load;
mod nearest;
mod new;
mod point;
mod raw;
mod resolve;
mod schema;

pub use error::ScenarioError;
pub(crate) use expect::meanings;
pub use load::load;
pub(crate) use nearest::nearest;
pub use point::FormError;
pub use schema::schema_text;

/// A command line: an argument vector, or one string for `sh -c`.
#[derive(
    Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(untagged)]
pub enum CommandLine {
    /// Program and arguments, no shell.
    Argv(#[schemars(schema_with = "raw::arguments")] Vec<String>),
    /// For `sh -c`.
    Shell(#[schemars(schema_with = "raw::shell_line")] String),
}

/// A scenario as its file says it, checked, with defaults filled in. Times are in seconds.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The file.
    pub file: PathBuf,
    /// A short name: the file's path below the folder that was given, without its ending.
    pub name: String,
    /// One line: what happens.
    pub title: String,
    /// One line: what it proves.
    pub proves: String,
    /// Folder (absolute) in which `build` runs and to which `path` is relative. In the file: relative to the file.
    pub root: PathBuf,
    /// Run once by `sh -c` before the subjects; equal commands in equal roots run once for all scenarios.
    pub build: Option<String>,
    /// Folders (absolute) put in front of `PATH`. In the file: relative to `root`.
    pub path: Vec<PathBuf>,
    /// Programs without which nothing is tried: names that are looked up in `PATH`, or paths.
    pub needs: Vec<String>,
    /// Must succeed in an empty work folder, or nothing is tried.
    pub probe: Option<CommandLine>,
    /// Who is tried.
    pub subject: Subject,
    /// What a user would run next; the subject's command again where the file does not say.
    pub recovery: Recovery,
    /// What is done to it.
    pub faults: Vec<Fault>,
}

/// Who is tried, and on what.
#[derive(Debug, Clone)]
pub struct Subject {
    /// What to run. `{dir}` stands for the work folder, `{root}` for the scenario's root.
    pub command: CommandLine,
    /// State files or folders, relative to the work folder (where there is `watch`, to the folder that holds it and all of
    /// these, see [`watched`](Self::watched)), which must agree with each other.
    pub state: Vec<PathBuf>,
    /// Added to the environment.
    pub env: BTreeMap<String, String>,
    /// A folder (absolute) that is copied into the work folder first. In the file: relative to the file.
    pub files: Option<PathBuf>,
    /// A folder (absolute) at whose path the programs see the work folder, which is a copy of it unless there are `files`. In
    /// the file: relative to the file.
    pub folder: Option<PathBuf>,
    /// More folders (absolute) of which the programs see copies at their own paths. In the file: relative to the file.
    pub watch: Vec<PathBuf>,
    /// Run in the work folder before the recording; each must succeed.
    pub setup: Vec<CommandLine>,
    /// For every single run of subject or recovery.
    pub time_limit: u64,
    /// Standard output is a pipe.
    pub pipe: bool,
    /// The network may be used.
    pub network: bool,
    /// Files that may hold anything after a crash.
    pub volatile: Vec<PathBuf>,
    /// `mark:NAME` or a regular expression for a line of output: each promises the next version.
    pub ack: Vec<String>,
    /// Files whose lines are effects to be counted.
    pub effects: Vec<PathBuf>,
}

impl Subject {
    /// What is watched of the file system as it is, where the programs see the work folder at a folder's own path.
    pub fn watched(&self) -> Option<Watched> {
        Some(Watched::of(self.folder.as_deref()?, &self.watch))
    }
}

/// What a user would run next.
#[derive(Debug, Clone)]
pub struct Recovery {
    /// The command.
    pub command: CommandLine,
    /// Run after the recovery; a failure is a fault.
    pub check: Option<CommandLine>,
    /// How many kills in a row are tried; from 2 on the recoveries are killed as well.
    pub depth: usize,
}

/// A fault, and what is expected of it.
#[derive(Debug, Clone)]
pub struct Fault {
    /// Which.
    pub kind: FaultKind,
    /// Verdicts and warnings that must be found at least once (`torn`, `leftover`); any other fault is a failure.
    pub expect: Vec<Word>,
    /// The line of its `[[fault]]` in the file, from 1; 0 where the file says nothing of faults.
    pub line: usize,
}

impl Fault {
    /// What is tried where nothing is said: kills at every place, and power cuts on the disk model that comes first.
    pub fn usual() -> Vec<Fault> {
        let kill = FaultKind::Kill { at: vec![KillPoint::All] };
        let power = FaultKind::Power(PowerFault::on(vec![&MODELS[0]]));
        let fault = |kind| Fault { kind, expect: Vec::new(), line: 0 };
        [kill, power].map(fault).to_vec()
    }
}

/// The faults of this lab.
#[derive(Debug, Clone)]
pub enum FaultKind {
    /// SIGKILL for all processes of the subject at these points, or for one while the others go on.
    Kill {
        /// Where.
        at: Vec<KillPoint>,
    },
    /// The power fails, at every op and after the end.
    Power(PowerFault),
    /// A state file is damaged, then the recovery runs.
    Damage(DamageFault),
    /// Several processes at once, in every order of their steps that matters.
    Race(RaceFault),
    /// Several processes at once, held and released at marks.
    Overlap {
        /// For the case's id.
        name: String,
        /// Process names and what they run, in their order.
        processes: Vec<(String, CommandLine)>,
        /// Who goes how far, in this order. At the end all go on until they end.
        order: Vec<Turn>,
        /// For a process by its name, a regular expression that one of its lines must match.
        says: BTreeMap<String, String>,
    },
    /// The subject's command is run once more after it ended: nothing is left to do, so nothing may change.
    Idle {
        /// Marks that it must not pass.
        never: Vec<String>,
    },
    /// A state that somebody must be told of: the command must exit non-zero, leave the state
    /// as it is and say it.
    Alert {
        /// For the case's id.
        name: String,
        /// What must notice.
        command: CommandLine,
        /// A regular expression that one of its lines must match.
        says: String,
    },
}

/// The power fails, at every op and after the end.
#[derive(Debug, Clone)]
pub struct PowerFault {
    /// The disks that it is tried on.
    pub models: Vec<&'static DiskModel>,
    /// So many different states at most, on each of them; the usual bound where nothing is said, and of a run with few
    /// parts all.
    pub states: Option<usize>,
    /// So many seconds at most.
    pub seconds: Option<u64>,
    /// What a sample is drawn by, where there are more states than are tried.
    pub seed: u64,
}

impl PowerFault {
    /// So many states at most, unless a scenario says otherwise.
    pub const STATES: usize = 1000;

    /// On these disks, with the usual bound.
    pub fn on(models: Vec<&'static DiskModel>) -> PowerFault {
        PowerFault { models, states: None, seconds: None, seed: 0 }
    }
}

/// Several processes at once, in every order of their steps that matters.
#[derive(Debug, Clone)]
pub struct RaceFault {
    /// For the ids of its cases; can be empty.
    pub name: String,
    /// Process names and what they run, in their order.
    pub processes: Vec<(String, CommandLine)>,
    /// Schedules switch away so often at most from a process that could have gone on; any number where there is none.
    pub preemptions: Option<u32>,
    /// So many schedules are run at most, of each kind.
    pub schedules: usize,
    /// For what is chosen by chance.
    pub seed: u64,
    /// One process dies, at each step of each schedule.
    pub kill_one: bool,
    /// Each is process 1 of a process namespace of its own, as in a container.
    pub containers: bool,
    /// Prints what the state files hold, where equal content can have other bytes: that is compared instead of them.
    pub view: Option<CommandLine>,
}

impl RaceFault {
    /// So many preemptions, unless a scenario says otherwise.
    pub const PREEMPTIONS: u32 = 2;
    /// So many schedules at most, unless a scenario says otherwise.
    pub const SCHEDULES: usize = 2000;

    /// The same command so many times at once.
    pub fn times(command: &CommandLine, times: usize) -> RaceFault {
        let letter = |side| crate::fault::race::schedule::letter(side).to_string();
        RaceFault::of((0..times).map(|side| (letter(side), command.clone())).collect())
    }

    /// These processes, with the usual bounds.
    pub fn of(processes: Vec<(String, CommandLine)>) -> RaceFault {
        RaceFault {
            name: String::new(),
            processes,
            preemptions: Some(RaceFault::PREEMPTIONS),
            schedules: RaceFault::SCHEDULES,
            seed: 0,
            kill_one: false,
            containers: false,
            view: None,
        }
    }

    /// The schedule of a case of this race, by the case's id.
    pub fn schedule_of(&self, id: &str) -> Option<crate::fault::race::schedule::Schedule> {
        let rest = id.strip_prefix("race:")?;
        let (name, schedule) = rest.split_once('/').unwrap_or(("", rest));
        if name != self.name { None } else { schedule.parse().ok() }
    }
}

/// A state file is damaged, then the recovery runs.
#[derive(Debug, Clone)]
pub struct DamageFault {
    /// The file; the first state file where the scenario does not say.
    pub file: PathBuf,
    /// In which ways.
    pub damages: Vec<Wish>,
    /// At so many places of each family at most.
    pub at_most: usize,
    /// Succeeds where the file is valid, whatever the subject says of it.
    pub valid: Option<CommandLine>,
}

impl DamageFault {
    /// At so many places of each family at most, unless a scenario says otherwise.
    pub const AT_MOST: usize = 64;

    /// The seven damages of a file.
    pub fn seven(file: PathBuf) -> DamageFault {
        let damages = Damage::SEVEN.map(Wish::One).to_vec();
        DamageFault { file, damages, at_most: DamageFault::AT_MOST, valid: None }
    }
}

impl FaultKind {
    /// The kind, as scenarios write it.
    pub fn word(&self) -> &'static str {
        match self {
            FaultKind::Kill { .. } => "kill",
            FaultKind::Power(_) => "power",
            FaultKind::Damage(_) => "damage",
            FaultKind::Race(_) => "race",
            FaultKind::Overlap { .. } => "overlap",
            FaultKind::Idle { .. } => "idle",
            FaultKind::Alert { .. } => "alert",
        }
    }

    /// Each of its programs is process 1 of a process namespace of its own.
    pub fn in_containers(&self) -> bool {
        matches!(self, FaultKind::Race(race) if race.containers)
    }
}

/// A turn in an overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The process's name.
    pub process: String,
    /// How far it goes.
    pub until: Until,
}

/// How far a turn goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Until {
    /// To this mark.
    Mark(String),
    /// Until it ended, or waits for a lock.
    End,
}

/// A place at which a subject is killed, as a scenario or a case id writes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KillPoint {
    /// `all`: every op, every place inside a write, every mark, every output that promises more than before.
    All,
    /// `12`: after op 12; 0 is before all.
    After(u32),
    /// `12+4096`: inside op 12, after that many bytes.
    Inside(u32, u64),
    /// `rename#1`: after the first op of that word.
    Kind(String, u32),
    /// `output#1`: after the first output.
    Output(u32),
    /// `mark:NAME`, with `#2` for its second time.
    Mark(String, u32),
    /// `process:*`: one process alone, the others go on; after each of its ops and at its birth, each process in its turn.
    EachProcess,
    /// `process:2#5`: the second process alone, after the fifth of its own ops; `#0` is at its birth.
    Process(u32, u32),
}
