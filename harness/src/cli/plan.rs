//! From arguments to what is to be done: scenarios loaded and selected, defaults filled in, contradictions refused.

use std::fmt;
use std::path::{Path, PathBuf};

use super::{ListArgs, RecordArgs, RecoveryArgs, ReplayArgs, RunArgs};
use crate::report::Strictness;
use crate::scenario::{self, Scenario, ScenarioError};

/// What `crashlab run` is to do.
#[derive(Debug)]
pub struct RunPlan {
    /// What to try, in this order; at least one.
    pub scenarios: Vec<Scenario>,
    /// How many cases run at once, at least 1.
    pub jobs: usize,
    /// Print events as JSON Lines.
    pub json: bool,
    /// What counts beside faults.
    pub strictness: Strictness,
    /// Run the scenarios' `build` commands.
    pub build: bool,
    /// Keep a traced program and its tracer on one processor.
    pub pin: bool,
    /// Make every kill for real.
    pub live: bool,
    /// Tell from where the ops were made.
    pub backtrace: bool,
    /// How recoveries are run.
    pub recoveries: RecoveryArgs,
    /// Keep the work folder of each finding here.
    pub keep: Option<PathBuf>,
}

/// What `crashlab list` is to do.
#[derive(Debug)]
pub struct ListPlan {
    /// What to list, in this order.
    pub scenarios: Vec<Scenario>,
    /// Print JSON.
    pub json: bool,
}

/// What `crashlab record` is to do.
#[derive(Debug)]
pub struct RecordPlan {
    /// Whose subject is recorded.
    pub scenario: Scenario,
    /// Print JSON.
    pub json: bool,
    /// Print reads too.
    pub reads: bool,
    /// Tell from where the ops were made.
    pub backtrace: bool,
    /// Keep the recording here.
    pub keep: Option<PathBuf>,
}

/// What `crashlab replay` is to do.
#[derive(Debug)]
pub struct ReplayPlan {
    /// Where the case belongs.
    pub of: ReplayOf,
    /// Its id, as it was given.
    pub case: String,
    /// Keep the work folder here.
    pub keep: Option<PathBuf>,
    /// Run the scenario's `build` command.
    pub build: bool,
    /// Make a kill for real.
    pub live: bool,
    /// Tell from where the ops were made.
    pub backtrace: bool,
    /// Open a shell in the work folder.
    pub shell: bool,
}

/// Where a case belongs.
#[derive(Debug)]
pub enum ReplayOf {
    /// A scenario, whose subject is run.
    Scenario(Box<Scenario>),
    /// The recording in this file.
    Recording(PathBuf),
}

/// The arguments cannot be made a plan. `Display` is for people, of 80 columns, and may have many lines.
#[derive(Debug)]
pub enum PlanError {
    /// Scenario files are wrong.
    Scenarios(Vec<ScenarioError>),
    /// `--only` leaves nothing.
    NothingSelected {
        /// The texts that were given.
        only: Vec<String>,
        /// The names of the scenarios that were found.
        names: Vec<String>,
    },
    /// One scenario is wanted, and the path stands for several.
    NotOne {
        /// The path.
        path: PathBuf,
        /// The files that it stands for.
        files: Vec<PathBuf>,
    },
    /// The arguments do not fit together.
    Arguments(String),
}

/// # Errors
///
/// [`PlanError`] where scenarios are wrong or none is selected.
pub fn run(args: &RunArgs) -> Result<RunPlan, PlanError> {
    Ok(RunPlan {
        scenarios: selected(load(&args.paths)?, &args.only)?,
        jobs: args.report.jobs(),
        json: args.report.json,
        strictness: args.report.strictness(),
        build: !args.no_build,
        pin: !args.no_pin,
        live: args.live,
        backtrace: args.backtrace,
        recoveries: args.recoveries.clone(),
        keep: args.report.keep.clone(),
    })
}

/// # Errors
///
/// [`PlanError`] where scenarios are wrong.
pub fn list(args: &ListArgs) -> Result<ListPlan, PlanError> {
    Ok(ListPlan { scenarios: load(&args.paths)?, json: args.json })
}

/// # Errors
///
/// [`PlanError`] where the scenario is wrong, or more than one.
pub fn record(args: &RecordArgs) -> Result<RecordPlan, PlanError> {
    let scenario = match &args.scenario {
        Some(path) => one(path)?,
        None => super::recording::to_record(args).map_err(PlanError::Arguments)?,
    };
    let RecordArgs { json, reads, backtrace, .. } = *args;
    Ok(RecordPlan { scenario, json, reads, backtrace, keep: args.output.clone() })
}

/// # Errors
///
/// [`PlanError`] where the scenario is wrong, or more than one.
pub fn replay(args: &ReplayArgs) -> Result<ReplayPlan, PlanError> {
    let (of, case) = match (&args.scenario, &args.case, &args.recording) {
        (case, None, Some(file)) => (ReplayOf::Recording(file.clone()), case),
        (scenario, Some(case), None) => {
            (ReplayOf::Scenario(Box::new(one(Path::new(scenario))?)), case)
        }
        (_, Some(_), Some(_)) => {
            let what = "with --recording there is no scenario: give the id of one case";
            return Err(PlanError::Arguments(what.to_owned()));
        }
        (_, None, None) => {
            let what = "give a scenario file and the id of one of its cases, or --recording";
            return Err(PlanError::Arguments(what.to_owned()));
        }
    };
    Ok(ReplayPlan {
        of,
        case: case.clone(),
        keep: args.keep.clone(),
        build: !args.no_build,
        live: args.live,
        backtrace: args.backtrace,
        shell: args.shell,
    })
}

fn load(paths: &[PathBuf]) -> Result<Vec<Scenario>, PlanError> {
    scenario::load(paths).map_err(PlanError::Scenarios)
}

/// The scenario that the path stands for: a file, or a folder with one in it.
fn one(path: &Path) -> Result<Scenario, PlanError> {
    let mut scenarios = load(&[path.to_owned()])?;
    match (scenarios.pop(), scenarios.is_empty()) {
        (Some(only), true) => Ok(only),
        (last, _) => {
            scenarios.extend(last);
            Err(PlanError::NotOne {
                path: path.to_owned(),
                files: scenarios.into_iter().map(|scenario| scenario.file).collect(),
            })
        }
    }
}

/// The scenarios whose names hold one of the texts; all of them where there is no text.
fn selected(scenarios: Vec<Scenario>, only: &[String]) -> Result<Vec<Scenario>, PlanError> {
    let names: Vec<String> = scenarios.iter().map(|one| one.name.clone()).collect();
    let wanted = |scenario: &Scenario| {
        only.is_empty() || only.iter().any(|text| scenario.name.contains(text))
    };
    let selected: Vec<Scenario> = scenarios.into_iter().filter(wanted).collect();
    if selected.is_empty() {
        let only = only.to_vec();
        return Err(PlanError::NothingSelected { only, names });
    }
    Ok(selected)
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::Arguments(what) => f.write_str(what),
            PlanError::Scenarios(errors) => {
                for error in errors {
                    writeln!(f, "{}", error.render(80))?;
                }
                let plural = if errors.len() == 1 { "" } else { "s" };
                write!(f, "{} mistake{plural} found; nothing was run", errors.len())
            }
            PlanError::NothingSelected { only, names } => {
                writeln!(f, "no scenario has {} in its name", only.join(" or "))?;
                write!(f, "there are:")?;
                names.iter().try_for_each(|name| write!(f, "\n  {name}"))
            }
            PlanError::NotOne { path, files } => {
                let (path, count) = (path.display(), files.len());
                write!(f, "{path} holds {count} scenarios, and one is wanted:")?;
                files.iter().try_for_each(|file| write!(f, "\n  {}", file.display()))
            }
        }
    }
}

impl std::error::Error for PlanError {}
