//! The command line, as clap reads it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{
    NonEmptyStringValueParser, PathBufValueParser, PossibleValue, TypedValueParser,
};
use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use jiff::{Span, SpanRelativeTo};

use super::error::CliError;
use crate::model::ModelSpec;
use crate::model::remote::RETRIES;
use crate::store::StoreKind;

const EXIT_CODES: &str = "\
Exit codes:
  0   done, or nothing to do
  1   the work failed, a threshold was passed, a note drifted, a file cannot be read or written
  2   the command line is wrong, or the model's key is missing
  65  the checkpoint is damaged, or was damaged meanwhile
  75  another session holds the checkpoint, or changed, deleted or created it meanwhile: try again";

const HAS_WORK_EXIT_CODES: &str = "\
Exit codes, as ExecCondition= of systemd reads them:
  0    there is work
  1    there is none, or the queue is stopped
  255  this cannot be told: the checkpoint is damaged or cannot be read, or the command line is wrong";

const PROVIDERS: &str =
    "Providers (keys: ANTHROPIC_API_KEY, OPENAI_API_KEY; OLLAMA_API_KEY where needed)";

/// Works through a queue of questions, one in each session, with one checkpoint file between them that survives every crash.
#[derive(Debug, Parser)]
#[command(name = "long-horizon", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(super) struct Args {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Work the next question of the queue, or more
    Run(RunArgs),
    /// Show how the queue stands; alert where it stands badly
    Status(StatusArgs),
    /// List the questions that wait for a person
    Pending(PlaceArgs),
    /// Decide a question that waits for a person
    Resolve(ResolveArgs),
    /// Show what happened, session by session
    Timeline(PlaceArgs),
    /// Let no further session start, until `resume`
    Stop(StopArgs),
    /// Let sessions start again
    Resume(StopArgs),
    /// Load the checkpoint and say what is in it; write nothing
    Verify(VerifyArgs),
    /// Print the checkpoint in the reference's JSON format
    Export(ExportArgs),
    /// Make a checkpoint of a file in the reference's JSON format
    Import(ImportArgs),
    /// Tell by the exit code whether there is work
    #[command(after_help = HAS_WORK_EXIT_CODES)]
    HasWork(HasWorkArgs),
    /// Print the script by which a shell completes this command
    Completions(CompletionsArgs),
    /// Print the manual page, or write all pages into a folder
    Man(ManArgs),
}

/// Which checkpoint, and how to print.
#[derive(Debug, clap::Args)]
pub(super) struct PlaceArgs {
    /// The checkpoint, or STORE:FILE; lock, log and stop file sit beside what it leads to [default: long-horizon.json; with `sqlite`
    /// long-horizon.db]
    #[arg(long, value_name = "FILE", value_parser = PathBufValueParser::new().map(StateArg::from))]
    pub(super) state: Option<StateArg>,
    /// How the checkpoint is kept [default: json]
    #[arg(long, value_name = "STORE")]
    pub(super) store: Option<StoreKind>,
    /// Print JSON, one document a line
    #[arg(long)]
    pub(super) json: bool,
}

impl PlaceArgs {
    /// Which kind of store, and which file.
    ///
    /// # Errors
    ///
    /// Both were told, and they contradict each other.
    pub(super) fn resolve(&self) -> Result<(StoreKind, PathBuf), CliError> {
        let named = self.state.as_ref().and_then(|state| state.kind);
        let kind = match (named, self.store) {
            (Some(named), Some(store)) if named != store => {
                return Err(CliError::TwoStores { named, store });
            }
            (named, store) => named.or(store).unwrap_or_default(),
        };
        let path = match &self.state {
            Some(state) => state.path.clone(),
            None if kind == StoreKind::Sqlite => "long-horizon.db".into(),
            None => "long-horizon.json".into(),
        };
        Ok((kind, path))
    }
}

/// A file, perhaps with the name of a store and a colon before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StateArg {
    kind: Option<StoreKind>,
    path: PathBuf,
}

impl From<PathBuf> for StateArg {
    fn from(given: PathBuf) -> Self {
        let bytes = given.as_os_str().as_bytes();
        let named = StoreKind::ALL.into_iter().find_map(|kind| {
            let path = bytes.strip_prefix(kind.name().as_bytes())?.strip_prefix(b":")?;
            Some((kind, PathBuf::from(OsStr::from_bytes(path))))
        });
        match named {
            Some((kind, path)) => StateArg { kind: Some(kind), path },
            None => StateArg { kind: None, path: given },
        }
    }
}

/// What a fresh queue is made of.
#[derive(Debug, clap::Args)]
pub(super) struct FreshArgs {
    /// Questions of a fresh queue, one a line, each once; used only where there is no checkpoint [default: twelve built-in ones]
    #[arg(long, value_name = "FILE")]
    pub(super) queue: Option<PathBuf>,
    /// A question of a fresh queue, after those of --queue; may be repeated
    #[arg(long, value_name = "Q", value_parser = NonEmptyStringValueParser::new())]
    pub(super) question: Vec<String>,
}

impl FreshArgs {
    /// Whether the user gave any.
    pub(super) fn given(&self) -> bool {
        self.queue.is_some() || !self.question.is_empty()
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct RunArgs {
    /// Work up to N questions, each in a session of its own [default: 1]
    #[arg(long, value_name = "N", conflicts_with = "until_empty")]
    pub(super) sessions: Option<u64>,
    /// Work until the queue is empty
    #[arg(long)]
    pub(super) until_empty: bool,
    #[command(flatten)]
    pub(super) fresh: FreshArgs,
    /// Folder of Markdown files with sections `## N. Title` [default: a built-in one]
    #[arg(long, value_name = "DIR")]
    pub(super) corpus: Option<PathBuf>,
    /// Who decides: `anthropic:ID`, `openai:ID` (there, or at any server with the same API), `ollama:TAG`, `stub` (the first source is the
    /// answer), `stub:scripted` (a built-in script) or `stub:scripted=FILE`
    #[arg(long, value_name = "MODEL", default_value = "stub")]
    pub(super) model: ModelSpec,
    #[command(flatten)]
    pub(super) provider: ProviderArgs,
    /// Append the steps of each session to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub(super) trace: Option<PathBuf>,
    /// Budget: start no session whose request and longest reply do not fit into what is left of N tokens
    #[arg(long, value_name = "N")]
    pub(super) max_tokens: Option<u64>,
    /// Budget: start no session after N seconds, and wait for the model no longer than what is left
    #[arg(long, value_name = "N")]
    pub(super) max_seconds: Option<u64>,
    #[command(flatten)]
    pub(super) place: PlaceArgs,
}

/// How the server of a provider is called. Its key is no argument, since everyone can read those.
#[derive(Debug, clap::Args)]
pub(super) struct ProviderArgs {
    /// The server [default: https://api.anthropic.com, https://api.openai.com/v1 or http://127.0.0.1:11434]
    #[arg(long, value_name = "URL", help_heading = PROVIDERS)]
    pub(super) base_url: Option<String>,
    /// Wait no longer for the model in each session, retries and all
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = seconds, help_heading = PROVIDERS)]
    pub(super) timeout: Duration,
    /// Try again up to N times after status 429 or 5xx and broken connections
    #[arg(long, value_name = "N", default_value_t = RETRIES, help_heading = PROVIDERS)]
    pub(super) retries: u32,
}

#[derive(Debug, clap::Args)]
pub(super) struct StatusArgs {
    /// Alert if more than N questions are in the queue
    #[arg(long, value_name = "N", help_heading = "Alerts")]
    pub(super) max_queue: Option<usize>,
    /// Alert if a question has waited longer than this for a person, or since a time that the log does not tell
    #[arg(long, value_name = "DURATION", value_parser = duration, help_heading = "Alerts")]
    pub(super) max_pending_age: Option<Duration>,
    /// Alert if more than N sessions in a row did not get the first question recorded
    #[arg(long, value_name = "N", help_heading = "Alerts")]
    pub(super) max_retries: Option<usize>,
    /// Alert if there is a queue and nothing was recorded for longer than this, or the log does not tell
    #[arg(long, value_name = "DURATION", value_parser = duration, help_heading = "Alerts")]
    pub(super) max_idle: Option<Duration>,
    #[command(flatten)]
    pub(super) place: PlaceArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct ResolveArgs {
    /// The question, exactly as `pending` shows it
    #[arg(value_name = "QUESTION")]
    pub(super) question: String,
    /// What you decided; it becomes the answer
    #[arg(long, value_name = "NOTE", value_parser = NonEmptyStringValueParser::new(), allow_hyphen_values = true)]
    pub(super) note: String,
    /// Who you are; it goes into the log
    #[arg(long, value_name = "WHO", value_parser = NonEmptyStringValueParser::new())]
    pub(super) by: String,
    #[command(flatten)]
    pub(super) place: PlaceArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct StopArgs {
    /// Who you are; it goes into the log
    #[arg(long, value_name = "WHO", value_parser = NonEmptyStringValueParser::new())]
    pub(super) by: Option<String>,
    /// Why; it goes into the log
    #[arg(long, value_name = "WHY", value_parser = NonEmptyStringValueParser::new())]
    pub(super) reason: Option<String>,
    #[command(flatten)]
    pub(super) place: PlaceArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct VerifyArgs {
    /// Also check each note against its recorded answer, the sections it cites and the log
    #[arg(long)]
    pub(super) notes: bool,
    /// The corpus for --notes [default: the built-in one]
    #[arg(long, value_name = "DIR", requires = "notes")]
    pub(super) corpus: Option<PathBuf>,
    #[command(flatten)]
    pub(super) place: PlaceArgs,
}

/// Which checkpoint; it is printed as it is, whatever `--json` says.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  long-horizon export --state sqlite:queue.db > queue.json")]
pub(super) struct ExportArgs {
    #[command(flatten)]
    pub(super) place: PlaceArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  long-horizon import queue.json --state sqlite:queue.db")]
pub(super) struct ImportArgs {
    /// The file; it stays as it is
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    #[command(flatten)]
    pub(super) place: PlaceArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct HasWorkArgs {
    #[command(flatten)]
    pub(super) fresh: FreshArgs,
    #[command(flatten)]
    pub(super) place: PlaceArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  source <(long-horizon completions bash)")]
pub(super) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(super) shell: Shell,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  long-horizon man | man -l -
  long-horizon man --dir ~/.local/share/man/man1")]
pub(super) struct ManArgs {
    /// Write a page for each command into this folder, which is made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(super) dir: Option<PathBuf>,
}

impl ValueEnum for StoreKind {
    fn value_variants<'a>() -> &'a [Self] {
        &StoreKind::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).help(match self {
            StoreKind::Json => "locked, checked and durable",
            StoreKind::Reference => {
                "check, then replace; no lock, no fsync: for study, not for work"
            }
            StoreKind::Sqlite => "a database; sessions work side by side, each on its own question",
        }))
    }
}

/// Reads a time limit: whole seconds, at least one.
fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        // Moments further away than that cannot be told.
        Ok(seconds @ 1..=4_294_967_295) => Ok(Duration::from_secs(seconds)),
        _ => Err("expected seconds, from 1 to 4294967295".to_owned()),
    }
}

/// Reads `90m`, `7d`, `1h 30m`; a day has 24 hours.
fn duration(text: &str) -> Result<Duration, String> {
    let span: Span =
        text.parse().map_err(|_| "expected a duration such as `90m`, `12h` or `7d`".to_owned())?;
    let exact = span
        .to_duration(SpanRelativeTo::days_are_24_hours())
        .map_err(|_| "months and years have no fixed length; say it in days".to_owned())?;
    Duration::try_from(exact).map_err(|_| "a duration cannot be negative".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clap_finds_no_contradiction() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }

    #[test]
    fn a_store_may_stand_before_the_file() {
        let read = |text: &str| StateArg::from(PathBuf::from(text));
        let state = |kind, path: &str| StateArg { kind, path: path.into() };
        assert_eq!(read("sqlite:q.db"), state(Some(StoreKind::Sqlite), "q.db"));
        assert_eq!(read("reference:a:b"), state(Some(StoreKind::Reference), "a:b"));
        for plain in ["q.db", "./sqlite:q.db", "sqlite", "Sqlite:q.db", "file:q.db"] {
            assert_eq!(read(plain), state(None, plain), "{plain}");
        }
    }

    #[test]
    fn durations_are_read_and_others_refused() {
        assert_eq!(duration("90m"), Ok(Duration::from_secs(5_400)));
        assert_eq!(duration("7d"), Ok(Duration::from_secs(7 * 86_400)));
        assert_eq!(duration("1h 30m"), Ok(Duration::from_secs(5_400)));
        assert_eq!(duration("0s"), Ok(Duration::ZERO));
        for wrong in ["", "7", "soon", "1 month", "-1h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
