//! A scenario file as it is written. These types are the file format: the JSON Schema is derived from them, and the
//! parser walks that schema. What each field means stands in their docs, which become the schema's descriptions.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::expect;
use super::forms::Form;
use super::{CommandLine, DamageFault, RaceFault};
use crate::fault::damage::Damage;
use crate::fault::power::MODELS;
use crate::judge::Word;

/// A scenario: who is tried, on what, what is done to it, and what must hold afterwards.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(title = "crashlab scenario")]
pub(super) struct RawScenario {
    /// One line: what happens.
    #[schemars(schema_with = "one_line")]
    pub title: String,
    /// One line: what it proves.
    #[schemars(schema_with = "one_line")]
    pub proves: String,
    /// The folder in which `build` runs and to which `path` is relative. Relative to this file.
    #[serde(default = "here")]
    #[schemars(schema_with = "folder")]
    pub root: String,
    /// Run once by `sh -c`, in `root`, before the subject.
    #[serde(default)]
    #[schemars(schema_with = "shell_line")]
    pub build: Option<String>,
    /// Folders that are put in front of `PATH`. Relative to `root`.
    #[serde(default)]
    #[schemars(schema_with = "folders")]
    pub path: Vec<String>,
    /// Programs without which nothing is tried, and the scenario is `skipped`: names that are looked up in `PATH`, or
    /// paths; `{root}` stands for the scenario's root. Looked up before the build.
    #[serde(default)]
    #[schemars(schema_with = "programs")]
    pub needs: Vec<String>,
    /// Run in an empty work folder, after the build and before all else. If it fails, nothing is tried, and the scenario
    /// is `skipped`.
    #[serde(default)]
    pub probe: Option<CommandLine>,
    /// Who is tried, and on what.
    pub subject: RawSubject,
    /// What a user would run next.
    #[serde(default)]
    pub recovery: RawRecovery,
    /// What is done to the subject; where nothing is said: kills at every place, and power cuts on ext4.
    #[serde(default)]
    pub fault: Vec<RawFault>,
}

/// Who is tried, and on what.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "Subject")]
pub(super) struct RawSubject {
    /// What to run. `{dir}` stands for the work folder, `{root}` for the scenario's root.
    pub command: CommandLine,
    /// Its state files or folders, which must agree with each other. Relative to the work folder.
    #[schemars(schema_with = "some_paths")]
    pub state: Vec<String>,
    /// Added to the environment.
    #[serde(default)]
    #[schemars(schema_with = "environment")]
    pub env: BTreeMap<String, String>,
    /// A folder that is copied into the work folder first. Relative to this file.
    #[serde(default)]
    #[schemars(schema_with = "folder")]
    pub files: Option<String>,
    /// The programs see the work folder at this folder's own path, so that they run as they are, absolute paths and all;
    /// it is a copy of it, unless `files` says what is in it. Relative to this file.
    #[serde(default)]
    #[schemars(schema_with = "folder")]
    pub folder: Option<String>,
    /// More folders that the subject writes into, beside `folder`: the programs see copies of them as well, each at its own
    /// path. State in them is named by an absolute path, or by one up from `folder` (`../data/state.json`). Relative to this
    /// file.
    #[serde(default)]
    #[schemars(schema_with = "folders")]
    pub watch: Vec<String>,
    /// Run in the work folder before the recording; each must succeed.
    #[serde(default)]
    pub setup: Vec<CommandLine>,
    /// For every single run of subject or recovery, in seconds.
    #[serde(default = "ten_seconds")]
    #[schemars(range(min = 1, max = 3600))]
    pub time_limit: u64,
    /// Standard output is a pipe, and not a pseudo-terminal.
    #[serde(default)]
    pub pipe: bool,
    /// The network may be used.
    #[serde(default)]
    pub network: bool,
    /// Files that may hold anything after a crash. Relative to the work folder.
    #[serde(default)]
    #[schemars(schema_with = "paths")]
    pub volatile: Vec<String>,
    /// What promises the next version: `mark:NAME`, or a regular expression for a line of output.
    #[serde(default)]
    #[schemars(schema_with = "acknowledgements")]
    pub ack: Vec<String>,
    /// Files whose lines are effects to be counted. Relative to the work folder.
    #[serde(default)]
    #[schemars(schema_with = "paths")]
    pub effects: Vec<String>,
}

/// What a user would run next.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "Recovery")]
pub(super) struct RawRecovery {
    /// What to run; the subject's command where this is not given.
    pub command: Option<CommandLine>,
    /// Run after the recovery, in what it left; a failure of it is a fault. The variable `CRASHLAB_MARKS` tells it the names of
    /// the marks that were passed before the crash, one a line, each as often as it was passed: what was announced as done
    /// must be there.
    pub check: Option<CommandLine>,
    /// How many kills in a row are tried: 2 kills the recovery of each state at each of its places as well.
    #[serde(default = "one_kill")]
    #[schemars(range(min = 1, max = 3))]
    pub depth: u64,
}

fn one_kill() -> u64 {
    1
}

/// What is done to the subject.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "kind", deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "Fault")]
pub(super) enum RawFault {
    /// SIGKILL for all processes of the subject, or for one of them alone, at chosen points.
    Kill {
        /// Where: `all`, an op's number (12), a place inside a write (`12+4096`), an op of a kind (`rename#1`), an
        /// output (`output#1`), a mark (`mark:model-called`, `mark:model-called#2`). Or one process alone, while the others
        /// go on: `process:*` for each after each of its ops, `process:2#5` for the second after its fifth (0 is its birth).
        #[serde(default = "everywhere")]
        #[schemars(schema_with = "kill_points")]
        at: Vec<RawPoint>,
        /// Faults and warnings that must be found at least once.
        #[serde(default)]
        #[schemars(schema_with = "expect::schema")]
        expect: Vec<Word>,
    },
    /// The power fails, at every op and after the end: whatever the disk may hold then is tried.
    Power {
        /// By the rules of which disk models (`crashlab models` tells them), or `all`.
        #[serde(default = "default_disk")]
        #[schemars(schema_with = "disks")]
        model: Vec<String>,
        /// So many different states at most, on each disk; 1000 where this is not given, and all of a run with few parts.
        #[serde(default)]
        #[schemars(schema_with = "states_at_most")]
        states: Option<usize>,
        /// So many seconds at most.
        #[serde(default)]
        #[schemars(schema_with = "seconds_at_most")]
        seconds: Option<u64>,
        /// What a sample is drawn by, where there are more states than are tried.
        #[serde(default)]
        #[schemars(range(min = 0, max = 4_294_967_295_u32))]
        seed: u64,
        /// Faults and warnings that must be found at least once.
        #[serde(default)]
        #[schemars(schema_with = "expect::schema")]
        expect: Vec<Word>,
    },
    /// A state file is damaged, then the recovery runs. It must refuse, name the file, and leave its bytes alone.
    Damage {
        /// Which state file; the first one where this is not given.
        #[serde(default)]
        #[schemars(schema_with = "watched_path")]
        file: Option<String>,
        /// Which damages: by name (`truncated`, `directory`), at a place (`truncated/57`, `bit-flip/100`,
        /// `missing/queue/0`), at every place (`bit-flip/*`), or `all` that apply. `crashlab damage --list FILE` lists
        /// them. The seven that are always faults where this is not given.
        #[serde(default = "seven_damages")]
        #[schemars(schema_with = "damages")]
        damages: Vec<String>,
        /// At how many places of each `NAME/*`, spread evenly.
        #[serde(default = "places_at_most", rename = "at-most")]
        #[schemars(range(min = 1, max = 1_000_000))]
        at_most: usize,
        /// Run in the work folder with the damage in it; succeeds where the state file is valid all the same. It should
        /// know nothing of the subject. Without it, most damages that the recovery takes for good are not measured.
        valid: Option<CommandLine>,
        /// Faults and warnings that must be found at least once.
        #[serde(default)]
        #[schemars(schema_with = "expect::schema")]
        expect: Vec<Word>,
    },
    /// Several processes at once, in every order of their steps on the watched files that matters: each must end as some
    /// order one after another does.
    Race {
        /// For the cases' ids, where a file has several races.
        #[serde(default)]
        #[schemars(schema_with = "optional_name")]
        name: Option<String>,
        /// The names of the processes, and what they run; the subject's command `times` times where this is not given.
        #[serde(default)]
        #[schemars(schema_with = "racers")]
        processes: BTreeMap<String, CommandLine>,
        /// How often the subject's command runs at once, where no `processes` are given.
        #[serde(default = "twice")]
        #[schemars(range(min = 2, max = 8))]
        times: usize,
        /// A schedule switches so often at most away from a process that could have gone on; `all` for any number.
        #[serde(default)]
        preemptions: RawBound,
        /// So many schedules are run at most; of what is beyond them, some by chance.
        #[serde(default = "schedules_at_most")]
        #[schemars(range(min = 1, max = 1_000_000))]
        schedules: usize,
        /// For what is chosen by chance.
        #[serde(default)]
        #[schemars(range(min = 0, max = 4_294_967_295_u32))]
        seed: u64,
        /// One process dies, at each step of each schedule, and the others go on.
        #[serde(default, rename = "kill-one")]
        kill_one: bool,
        /// Each process is process 1 of a process namespace of its own, as in a container: what is named by a process id then has
        /// the same name in all of them, and none sees whether another lives.
        #[serde(default)]
        containers: bool,
        /// Prints what the state files hold, where equal content can have other bytes, as in a database: what it prints is
        /// compared instead of the files.
        view: Option<CommandLine>,
        /// Faults and warnings that must be found at least once.
        #[serde(default)]
        #[schemars(schema_with = "expect::schema")]
        expect: Vec<Word>,
    },
    /// Several processes at once, held and released at marks.
    Overlap {
        /// For the case's id.
        #[schemars(schema_with = "name")]
        name: String,
        /// The names of the processes, and what they run.
        #[schemars(schema_with = "processes")]
        processes: BTreeMap<String, CommandLine>,
        /// Who goes how far: `a until mark:loaded`, `a until end`. At the end all go on until they end.
        #[schemars(schema_with = "turns")]
        order: Vec<String>,
        /// For a process, a regular expression that one of its lines must match: it has to be told why.
        #[serde(default)]
        #[schemars(schema_with = "sayings")]
        says: BTreeMap<String, String>,
        /// Faults and warnings that must be found at least once.
        #[serde(default)]
        #[schemars(schema_with = "expect::schema")]
        expect: Vec<Word>,
    },
    /// The subject's command once more after it ended: nothing is left to do, so nothing may change.
    Idle {
        /// Marks that it must not pass.
        #[serde(default)]
        #[schemars(schema_with = "marks")]
        never: Vec<String>,
        /// Faults and warnings that must be found at least once.
        #[serde(default)]
        #[schemars(schema_with = "expect::schema")]
        expect: Vec<Word>,
    },
    /// A state that somebody must be told of: the command must exit non-zero, leave the state
    /// as it is and say it.
    Alert {
        /// For the case's id.
        #[schemars(schema_with = "name")]
        name: String,
        /// What must notice.
        command: CommandLine,
        /// A regular expression that one of its lines must match.
        #[schemars(schema_with = "regex")]
        says: String,
        /// Faults and warnings that must be found at least once.
        #[serde(default)]
        #[schemars(schema_with = "expect::schema")]
        expect: Vec<Word>,
    },
}

/// How many preemptions.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Bound")]
#[serde(untagged)]
pub(super) enum RawBound {
    /// So many at most.
    Most(#[schemars(range(max = 1000))] u32),
    /// Any number.
    All(Everything),
}

/// The word for it.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) enum Everything {
    /// All.
    #[serde(rename = "all")]
    All,
}

impl Default for RawBound {
    fn default() -> RawBound {
        RawBound::Most(RaceFault::PREEMPTIONS)
    }
}

fn twice() -> usize {
    2
}

fn schedules_at_most() -> usize {
    RaceFault::SCHEDULES
}

/// A kill point: the number of an op may be written as a number.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum RawPoint {
    Number(u32),
    Text(String),
}

fn here() -> String {
    ".".into()
}

fn ten_seconds() -> u64 {
    10
}

fn seven_damages() -> Vec<String> {
    Damage::SEVEN.map(|damage| damage.to_string()).to_vec()
}

fn places_at_most() -> usize {
    DamageFault::AT_MOST
}

fn default_disk() -> Vec<String> {
    vec![MODELS[0].name.to_owned()]
}

fn everywhere() -> Vec<RawPoint> {
    vec![RawPoint::Text("all".into())]
}

fn one_line(_: &mut SchemaGenerator) -> Schema {
    Form::OneLine.schema()
}

fn folder(_: &mut SchemaGenerator) -> Schema {
    Form::Folder.schema()
}

fn folders(_: &mut SchemaGenerator) -> Schema {
    Form::Folder.list(0)
}

fn programs(_: &mut SchemaGenerator) -> Schema {
    Form::Program.list(0)
}

pub(super) fn shell_line(_: &mut SchemaGenerator) -> Schema {
    Form::ShellLine.schema()
}

pub(super) fn arguments(_: &mut SchemaGenerator) -> Schema {
    Form::Argument.list(1)
}

fn watched_path(_: &mut SchemaGenerator) -> Schema {
    Form::Watched.schema()
}

fn paths(_: &mut SchemaGenerator) -> Schema {
    Form::Watched.list(0)
}

fn some_paths(_: &mut SchemaGenerator) -> Schema {
    Form::Watched.list(1)
}

fn acknowledgements(_: &mut SchemaGenerator) -> Schema {
    Form::Acknowledgement.list(0)
}

fn marks(_: &mut SchemaGenerator) -> Schema {
    Form::Mark.list(0)
}

fn name(_: &mut SchemaGenerator) -> Schema {
    Form::Name.schema()
}

fn optional_name(generator: &mut SchemaGenerator) -> Schema {
    name(generator)
}

fn racers(generator: &mut SchemaGenerator) -> Schema {
    let command = generator.subschema_for::<CommandLine>();
    json_schema!({
        "type": "object",
        "propertyNames": Form::Name.schema(),
        "additionalProperties": command,
    })
}

fn regex(_: &mut SchemaGenerator) -> Schema {
    Form::Regex.schema()
}

fn turns(_: &mut SchemaGenerator) -> Schema {
    Form::Turn.list(1)
}

fn damages(_: &mut SchemaGenerator) -> Schema {
    Form::Damage.list(1)
}

fn disks(_: &mut SchemaGenerator) -> Schema {
    Form::Disk.list(1)
}

fn states_at_most(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": 1, "maximum": 1_000_000 })
}

fn seconds_at_most(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": 1, "maximum": 86_400 })
}

fn environment(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "propertyNames": Form::Variable.schema(),
        "additionalProperties": Form::Argument.schema(),
    })
}

fn processes(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "propertyNames": Form::Name.schema(),
        "additionalProperties": generator.subschema_for::<CommandLine>(),
        "minProperties": 2,
    })
}

fn sayings(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "propertyNames": Form::Name.schema(),
        "additionalProperties": Form::Regex.schema(),
    })
}

fn kill_points(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": { "anyOf": [
            Form::KillPoint.schema(),
            { "type": "integer", "minimum": 0, "maximum": u32::MAX },
        ] },
        "minItems": 1,
        "default": ["all"],
    })
}
