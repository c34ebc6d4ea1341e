//! What can be said on the command line. The docs of the fields are the help.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::fault::power::{DiskModel, MODELS, NoSuchModel};
use crate::judge::Word;
use crate::report::Strictness;
use crate::run::Settings;
use crate::scenario::RaceFault;

/// Finds out what the state files of a program look like after every kill, damage and overlap.
///
/// A scenario is a TOML file: it says which program is tried, what its state files are, what is done to it, and what is
/// expected. The program may be written in any language. It runs in a sandbox; your files are never changed.
#[derive(Debug, Parser)]
#[command(name = "crashlab", version, max_term_width = 80, after_help = EXAMPLES, after_long_help = LONG_EXAMPLES)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  crashlab check -- ./my-program        try a program, in the current folder
  crashlab race -- ./my-program         try it with another at the same time
  crashlab init -o mine.toml            a scenario to start from
  crashlab run mine.toml                try it
  crashlab replay mine.toml kill@12     one case of it again
  crashlab doctor                       what this machine can do";

const LONG_EXAMPLES: &str = "\
Examples:
  crashlab check -- ./my-program        try a program, in the current folder
  crashlab race -- ./my-program         try it with another at the same time
  crashlab init -o mine.toml            a scenario to start from
  crashlab run mine.toml                try it
  crashlab replay mine.toml kill@12     one case of it again
  crashlab doctor                       what this machine can do

Exit codes:
  0  all that was expected held; warnings do not count unless --deny names them
  1  an unexpected fault, or an expected one that was not found
  2  the command line, a scenario or a control is wrong
  3  something selected was not measured, or the lab cannot work here";

const SCHEMA_EXAMPLE: &str = "\
Editors that know TOML (Taplo, Even Better TOML) check a scenario against it and
complete its keys when its first line names the file:
  crashlab schema > scenario.schema.json
  #:schema ./scenario.schema.json";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Try a program as it is, without a scenario, and report what survived
    Check(Box<CheckArgs>),
    /// Run programs at once, in every order of their steps that matters, and report what gets lost
    Race(RaceArgs),
    /// Try scenarios, and report what survived
    Run(RunArgs),
    /// List scenarios: their faults, and what they prove
    List(ListArgs),
    /// Run a program or a scenario's subject undisturbed, and print or keep its op log
    Record(RecordArgs),
    /// Run one case of a scenario again, or make what a recorded one leaves
    Replay(ReplayArgs),
    /// Print what each disk model guarantees after a power cut, with the sources
    Models(ModelsArgs),
    /// Write a damaged copy of a state file, or list how it can be damaged
    Damage(DamageArgs),
    /// Write a commented scenario to start from
    Init(InitArgs),
    /// Print the JSON Schema of scenario files, for editors
    #[command(after_help = SCHEMA_EXAMPLE)]
    Schema,
    /// Say what this machine can do, and what to do about what it cannot
    Doctor(DoctorArgs),
    /// Print the script by which a shell completes this command
    Completions(CompletionsArgs),
    /// Print the manual page, or write all pages into a folder
    Man(ManArgs),
}

const CHECK_EXAMPLES: &str = "\
Examples:
  crashlab check --state state.json -- python3 save.py state.json
  crashlab check --recover './job --resume' --check './job --verify' -- ./job
  crashlab check --case kill@3 --keep kept -- ./job
  crashlab check --recording job.crashlab --recover './job --resume'

The program runs in a copy of the current folder, which it sees at its own path;
the folder itself is never changed. So it is with folders given with --watch.
Everything else is read-only.";

/// `crashlab check`.
#[derive(Debug, clap::Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub struct CheckArgs {
    /// A file or folder that must survive, in a watched folder; several must agree with each other [default: each file that
    /// the program changes, by itself]
    #[arg(long, value_name = "PATH")]
    pub state: Vec<PathBuf>,
    /// A folder that the program writes into, beside the current one, which is always watched; may be given several times
    #[arg(long, value_name = "FOLDER")]
    pub watch: Vec<PathBuf>,
    /// What a user would run next, for `sh -c` [default: the program again]
    #[arg(long, value_name = "CMD")]
    pub recover: Option<String>,
    /// Must succeed after each recovery, for `sh -c`; `CRASHLAB_MARKS` tells it the marks that were passed before the crash,
    /// one a line
    #[arg(long, value_name = "CMD")]
    pub check: Option<String>,
    /// What to try, parted by commas: kill, power, damage [default: kill,power]
    #[arg(long, value_name = "LIST", value_parser = fault_list, overrides_with = "faults")]
    pub faults: Option<FaultList>,
    /// The disks on which the power fails, parted by commas, or `all` (see `crashlab models`)
    #[arg(long, value_name = "LIST", value_parser = disk_list, help = disks_help())]
    pub model: Option<DiskList>,
    /// So many different states at most, on each disk [default: 1000, and all of a run with few parts]
    #[arg(long, value_name = "N", value_parser = states)]
    pub states: Option<usize>,
    /// So many seconds at most for power cuts [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: Option<u64>,
    /// What a sample of the states is drawn by, where there are more than are tried [default: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=4_294_967_295))]
    pub seed: Option<u64>,
    /// Who is killed, parted by commas: `all` processes at once, or each `process` alone, while the others go on (a run for
    /// each place: after each of its ops)
    #[arg(long, value_name = "WHO", default_value = "all", value_delimiter = ',')]
    pub kill: Vec<Victims>,
    /// A mark (`mark:NAME`) or a regular expression for a line of output that promises what is saved next
    #[arg(long, value_name = "WHAT")]
    pub ack: Vec<String>,
    /// A file that may hold anything after a crash
    #[arg(long, value_name = "PATH")]
    pub volatile: Vec<PathBuf>,
    /// How many kills in a row: 2 kills the recovery as well, at each of its places [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=3))]
    pub depth: Option<u8>,
    /// How many kills are made for real as well, beside one for each kind of fault: a number, or `all` [default: 4; none
    /// with --recording]
    #[arg(long, value_name = "N", value_parser = confirmations)]
    pub confirm: Option<usize>,
    /// Seconds that one run may take [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub time_limit: Option<u64>,
    /// Standard output is a pipe, and not a terminal
    #[arg(long)]
    pub pipe: bool,
    /// The program may use the network
    #[arg(long)]
    pub network: bool,
    /// Tell from where in the program its operations were made: the line of the source, or the function, by the program's unwind tables or
    /// frame pointers and its symbols
    #[arg(long, conflicts_with = "recording")]
    pub backtrace: bool,
    /// Only the case of this id
    #[arg(long, value_name = "ID")]
    pub case: Option<String>,
    /// Keep the recording in this new file
    #[arg(short, long, value_name = "FILE", conflicts_with = "recording")]
    pub output: Option<PathBuf>,
    /// Try what was recorded in this file, perhaps on another machine, instead of running the program. Recoveries are run; what
    /// other options say goes before what the recording says
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub recording: Option<PathBuf>,
    /// How recoveries are run.
    #[command(flatten)]
    pub recoveries: RecoveryArgs,
    /// How it is done and told.
    #[command(flatten)]
    pub report: ReportArgs,
    /// The program and its arguments
    #[arg(last = true, required_unless_present = "recording", value_name = "CMD")]
    pub command: Vec<String>,
}

const RACE_EXAMPLES: &str = "\
Examples:
  crashlab race --state s.json -- python3 bump.py s.json
  crashlab race --preemptions all -- ./job --and ./job --resolve q3
  crashlab race --kill-one -- ./job
  crashlab race --containers -- ./job
  crashlab race --case race:a3.b.a -- ./job

Each program is held before each of its file operations in a copy of the current
folder, and the lab says who goes on. An outcome (the state files byte for byte,
exit codes, standard output) must be one that some order one after another gives
as well, or one in which a program refused and the rest went on without it.
What programs do through memory that they share, over the network, or in folders
that are not watched is in no schedule.";

/// `crashlab race`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "crashlab race [OPTIONS] -- CMD [ARGS]... [--and CMD2 [ARGS]...]...",
    after_help = RACE_EXAMPLES
)]
pub struct RaceArgs {
    /// A file or folder that must not lose anything, in a watched folder [default: what the programs change]
    #[arg(long, value_name = "PATH")]
    pub state: Vec<PathBuf>,
    /// A folder that the programs write into, beside the current one, which is always watched; may be given several times
    #[arg(long, value_name = "FOLDER")]
    pub watch: Vec<PathBuf>,
    /// How often each command runs at the same time [default: 2, or 1 where there is --and]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=8))]
    pub times: Option<u8>,
    /// A schedule switches so often at most away from a program that could have gone on; `all` for any number
    #[arg(long, value_name = "N", default_value = "2", value_parser = bound)]
    pub preemptions: Bound,
    /// So many schedules are run at most; of what is beyond them, a quarter as many by chance
    #[arg(long, value_name = "N", default_value_t = RaceFault::SCHEDULES, value_parser = states)]
    pub schedules: usize,
    /// For what is chosen by chance
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// At each step of each schedule, the program that was to make it dies, and the others go on
    #[arg(long)]
    pub kill_one: bool,
    /// Each program is process 1 of a process namespace of its own, as in two containers with one volume: temporary files and locks
    /// that go by the process id then collide
    #[arg(long)]
    pub containers: bool,
    /// Prints what the state holds, for `sh -c`: that is compared instead of the bytes, which in a database can differ where
    /// the content does not
    #[arg(long, value_name = "CMD")]
    pub view: Option<String>,
    /// A file that may hold anything
    #[arg(long, value_name = "PATH")]
    pub volatile: Vec<PathBuf>,
    /// Seconds that one run may take [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub time_limit: Option<u64>,
    /// Standard output is a pipe, and not a terminal
    #[arg(long)]
    pub pipe: bool,
    /// The programs may use the network
    #[arg(long)]
    pub network: bool,
    /// Only the schedule of this id, as a report prints it
    #[arg(long, value_name = "ID")]
    pub case: Option<String>,
    /// How it is done and told.
    #[command(flatten)]
    pub report: ReportArgs,
    /// Told where it is put before the first command.
    #[arg(long = "and", hide = true, value_name = "CMD", value_parser = misplaced_and)]
    _and: Option<String>,
    /// The programs and their arguments, with `--and` between them
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<String>,
}

fn misplaced_and(_: &str) -> Result<String, String> {
    Err("it stands behind the first command: crashlab race [OPTIONS] -- CMD --and CMD2".to_owned())
}

/// What `--preemptions` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound(pub Option<u32>);

fn bound(text: &str) -> Result<Bound, String> {
    match text {
        "all" => Ok(Bound(None)),
        _ => {
            let most = text.parse().map_err(|_| "expected a number, or `all`".to_owned())?;
            Ok(Bound(Some(most)))
        }
    }
}

/// What `--kill` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Victims {
    /// Every process at once
    All,
    /// One process at a time
    Process,
}

/// What `--faults` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultList {
    /// Kill it everywhere.
    pub kill: bool,
    /// Have the power fail everywhere.
    pub power: bool,
    /// Damage its state.
    pub damage: bool,
}

/// What `--model` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskList(pub Vec<&'static DiskModel>);

fn disk_list(text: &str) -> Result<DiskList, String> {
    if text == "all" {
        return Ok(DiskList(MODELS.iter().collect()));
    }
    let named = text
        .split(',')
        .map(|name| name.trim().parse().map_err(|error: NoSuchModel| error.to_string()));
    named.collect::<Result<_, _>>().map(DiskList)
}

fn disks_help() -> String {
    let first = MODELS[0].name;
    format!(
        "The disks on which the power fails, parted by commas, or `all` (see `crashlab models`) [default: {first}]"
    )
}

fn states(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=1_000_000) => Ok(count),
        _ => Err("expected a number from 1 to 1000000".to_owned()),
    }
}

impl FaultList {
    /// What is tried where nothing is said.
    pub const USUAL: FaultList = FaultList { kill: true, power: true, damage: false };
}

fn fault_list(text: &str) -> Result<FaultList, String> {
    let mut list = FaultList { kill: false, power: false, damage: false };
    for word in text.split(',').map(str::trim) {
        match word {
            "kill" => list.kill = true,
            "power" => list.power = true,
            "damage" => list.damage = true,
            other => return Err(format!("`{other}` is none of kill, power, damage")),
        }
    }
    Ok(list)
}

fn confirmations(text: &str) -> Result<usize, String> {
    match text {
        "all" => Ok(usize::MAX),
        _ => text.parse().map_err(|_| "expected a number, or `all`".to_owned()),
    }
}

/// `crashlab models`.
#[derive(Debug, clap::Args)]
pub struct ModelsArgs {
    /// As JSON, a model a line
    #[arg(long)]
    pub json: bool,
}

const RUN_EXAMPLES: &str = "\
Examples:
  crashlab run scenarios
  crashlab run scenarios --only half-written --only two-sessions
  crashlab run scenarios --deny leftover,metadata --json > report.jsonl";

/// The examples, and what the report's words mean.
fn run_help() -> String {
    let mut text = format!(
        "{RUN_EXAMPLES}\n\n\
         The report counts verdicts: `old 3, torn 4*` are three cases in which the old\n\
         state survived, and four faults that the scenario expects (a planted fault must\n\
         be found). The words:\n"
    );
    for (word, meaning) in crate::scenario::meanings() {
        text += &crate::wrap::wrapped(&format!("  {word:12}  "), &meaning, 80);
    }
    text.trim_end().to_owned()
}

/// `crashlab run`.
#[derive(Debug, clap::Args)]
#[command(after_help = run_help())]
pub struct RunArgs {
    /// Scenario files, and folders that are searched for them
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Only scenarios whose name holds this text; may be given several times
    #[arg(long, value_name = "TEXT")]
    pub only: Vec<String>,
    /// Do not run the scenarios' `build` commands
    #[arg(long)]
    pub no_build: bool,
    /// Do not keep a traced program and its tracer on one processor
    #[arg(long)]
    pub no_pin: bool,
    /// Make every kill for real, in a run of its own, instead of deriving it from one recording
    #[arg(long)]
    pub live: bool,
    /// Tell from where in a program its operations were made (see `crashlab check --help`)
    #[arg(long)]
    pub backtrace: bool,
    /// How recoveries are run.
    #[command(flatten)]
    pub recoveries: RecoveryArgs,
    /// How it is done and told.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// How recoveries are run.
#[derive(Debug, Clone, clap::Args)]
pub struct RecoveryArgs {
    /// Run every recovery from its beginning: let none begin as a copy of one that stands before its first look at the state
    #[arg(long)]
    pub no_fork_server: bool,
}

impl RecoveryArgs {
    /// These settings with what is said here.
    pub fn applied(&self, settings: Settings) -> Settings {
        let copies_from = settings.copies_from.filter(|_| !self.no_fork_server);
        Settings { copies_from, ..settings }
    }
}

/// What all that try something have in common.
#[derive(Debug, clap::Args)]
pub struct ReportArgs {
    /// How many cases run at once [default: one for each processor]
    #[arg(short, long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<u16>,
    /// Print events as JSON Lines instead of a report
    #[arg(long)]
    pub json: bool,
    /// Let these warnings count as faults, parted by commas: leftover, metadata, skipped
    #[arg(long, value_name = "WORDS", value_parser = denied)]
    pub deny: Vec<Denied>,
    /// Do not exit with 3 where something was not measured
    #[arg(long)]
    pub allow_not_measured: bool,
    /// Keep the folders of each finding in this folder
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

impl ReportArgs {
    /// How many cases run at once, at least 1.
    pub fn jobs(&self) -> usize {
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        self.jobs.map_or_else(processors, usize::from)
    }

    /// What counts beside faults.
    pub fn strictness(&self) -> Strictness {
        let deny = self.deny.iter().flat_map(|denied| &denied.0).map(|deny| deny.word()).collect();
        Strictness { deny, allow_not_measured: self.allow_not_measured }
    }
}

fn jobs(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(0) => Err("nothing runs with no job; give 1 or more".to_owned()),
        Ok(jobs) => Ok(jobs),
        Err(_) => Err("expected a whole number from 1".to_owned()),
    }
}

/// The words of one `--deny`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied(pub Vec<Deny>);

fn denied(text: &str) -> Result<Denied, String> {
    let known = || Deny::value_variants().iter().filter_map(|deny| deny.to_possible_value());
    let word = |word: &str| {
        Deny::from_str(word.trim(), true).map_err(|_| {
            let known: Vec<String> = known().map(|known| known.get_name().to_owned()).collect();
            format!("`{}` is none of {}", word.trim(), known.join(", "))
        })
    };
    text.split(',').map(word).collect::<Result<_, _>>().map(Denied)
}

/// What `--deny` can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Deny {
    /// A file that nobody removes
    Leftover,
    /// A link, a mode or an owner that was not kept
    Metadata,
    /// A case that was not tried
    Skipped,
}

impl Deny {
    /// The word that reports use for it.
    pub fn word(self) -> Word {
        match self {
            Deny::Leftover => Word::Leftover,
            Deny::Metadata => Word::Metadata,
            Deny::Skipped => Word::Skipped,
        }
    }
}

/// `crashlab list`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  crashlab list scenarios
  crashlab list scenarios --json | jq -r '.[].name'")]
pub struct ListArgs {
    /// Scenario files, and folders that are searched for them
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `crashlab record`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The numbers of the ops are the places at which `kill@N` kills.

Examples:
  crashlab record mine.toml
  crashlab record -o job.crashlab -- ./job
  crashlab check --recording job.crashlab

A recording holds the bytes of the folder that the program ran in, and what
it wrote: whoever gets the file can read them.")]
pub struct RecordArgs {
    /// A scenario file
    #[arg(
        value_name = "SCENARIO",
        required_unless_present = "command",
        conflicts_with = "command"
    )]
    pub scenario: Option<PathBuf>,
    /// Keep the recording in this new file, for `check --recording` and `replay --recording`. What begins with nothing is
    /// recorded once more, over its own result
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Print reads of the watched files too
    #[arg(long)]
    pub reads: bool,
    /// Tell from where in the program its operations were made: the line of the source, or the function, by the program's unwind tables or
    /// frame pointers and its symbols
    #[arg(long)]
    pub backtrace: bool,
    /// Seconds that the run of a program may take [default: 10]
    #[arg(long, value_name = "SECONDS", conflicts_with = "scenario", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub time_limit: Option<u64>,
    /// The program's standard output is a pipe, and not a terminal
    #[arg(long, conflicts_with = "scenario")]
    pub pipe: bool,
    /// The program may use the network
    #[arg(long, conflicts_with = "scenario")]
    pub network: bool,
    /// A program and its arguments, instead of a scenario: it runs in a copy of the current folder
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<String>,
}

/// `crashlab replay`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "crashlab replay [OPTIONS] SCENARIO CASE\n       crashlab replay [OPTIONS] --recording FILE CASE",
    after_help = "\
Examples:
  crashlab replay mine.toml kill@12
  crashlab replay mine.toml kill@mark:model-called --keep kept
  crashlab replay --recording job.crashlab kill@12 --shell

What a kill leaves is made from a recording alone: neither the program nor a
recovery is run."
)]
pub struct ReplayArgs {
    /// A scenario file; not with --recording
    #[arg(value_name = "SCENARIO", required = true)]
    pub scenario: String,
    /// The id of the case, as a report prints it
    #[arg(value_name = "CASE")]
    pub case: Option<String>,
    /// The case is one of this recording
    #[arg(long, value_name = "FILE")]
    pub recording: Option<PathBuf>,
    /// Keep the work folder in this folder
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Open a shell ($SHELL) in the work folder as the crash left it; the folder goes when the shell ends, unless --keep
    /// keeps it
    #[arg(long)]
    pub shell: bool,
    /// Do not run the scenario's `build` command
    #[arg(long)]
    pub no_build: bool,
    /// Make a kill for real, in a run of its own, instead of deriving it from the recording
    #[arg(long)]
    pub live: bool,
    /// Tell from where in the program its operations were made; a recording tells what it holds of that
    #[arg(long, conflicts_with = "recording")]
    pub backtrace: bool,
}

/// `crashlab damage`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "crashlab damage NAME FILE [-o OUT]\n       crashlab damage --list FILE [--json]",
    after_help = "\
Names with a place: truncated/N (bytes), bit-flip/N, zeroed-block/N (512 bytes),
wrong-type/POINTER, missing/POINTER, extra/POINTER (JSON pointers, RFC 6901).
The damage older-version needs the run of a scenario.

Examples:
  crashlab damage --list state.json
  crashlab damage truncated state.json -o damaged.json
  crashlab damage missing/queue/0 state.json
  crashlab damage fifo state.json"
)]
pub struct DamageArgs {
    /// The damage
    #[arg(value_name = "NAME", required_unless_present = "list")]
    pub name: Option<String>,
    /// The file; it is only read
    #[arg(value_name = "FILE", required_unless_present = "list")]
    pub file: Option<PathBuf>,
    /// Where to write the copy; what exists is left alone [default: FILE.NAME]
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// List the damages that apply to a file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["name", "file", "output"])]
    pub list: Option<PathBuf>,
    /// Print the list as JSON
    #[arg(long, requires = "list")]
    pub json: bool,
}

/// `crashlab init`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  crashlab init -o mine.toml
  crashlab init -o mine.toml -- python3 save.py state.json")]
pub struct InitArgs {
    /// Where to write it; an existing file is left alone [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// A folder that the program writes into, beside the current one; may be given several times
    #[arg(long, value_name = "FOLDER", requires = "command")]
    pub watch: Vec<PathBuf>,
    /// A program and its arguments: it is run once in a copy of the current folder, and the scenario is the one that
    /// `check` would use
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<String>,
}

/// `crashlab doctor`.
#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `crashlab completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  source <(crashlab completions bash)")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// `crashlab man`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  crashlab man | man -l -
  crashlab man --dir ~/.local/share/man/man1")]
pub struct ManArgs {
    /// Write a page for each command into this folder, which is made if it is not there
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}
