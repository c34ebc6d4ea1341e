//! `crashlab check`: one program, as it is.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::{Parser, ValueEnum};

use super::progress::watched;
use super::recording::{Tried, tried};
use super::replay::show_cases;
use super::run::{code, free_for_keeping, say_what_was_kept};
use super::{CheckArgs, Code, FaultList, Output, ReportArgs, Victims, output};
use crate::fault::power::MODELS;
use crate::report::{Event, Json, Keep, Reporter, Summary, Terminal};
use crate::run::{self, LabError, Plan, ScenarioResult, Settings};
use crate::scenario::{
    CommandLine, DamageFault, Fault, FaultKind, KillPoint, PowerFault, Recovery, Scenario, Subject,
};
use crate::watched::Watched;
use crate::wrap::{heading, shell_word};

/// Tries the program and prints what it comes to.
pub(super) fn check(args: &CheckArgs, out: &mut Output<'_>) -> Code {
    if let Some(mistake) =
        args.report.keep.as_deref().and_then(|folder| free_for_keeping(folder).err())
    {
        output::complain(&mistake);
        return Code::Wrong;
    }
    let Tried { scenario, settings, mut source } = match tried(args, settings(args)) {
        Ok(tried) => tried,
        Err(mistake) => {
            output::complain(&mistake);
            return Code::Wrong;
        }
    };
    super::interrupt::watch();
    let result = watched(&settings.progress, || {
        run::check_from(&scenario, &settings, &mut source, &Plan::All)
    });
    let result = result.map(|result| ScenarioResult { replay: replay(args), ..result });
    match (&args.case, result) {
        (Some(case), Ok(result)) => one_case(args, case, &result, out),
        (_, result) => report(&args.report, &scenario, result, out),
    }
}

/// The scenario that the arguments stand for.
///
/// # Errors
///
/// What is wrong with them, in words.
pub(super) fn scenario(args: &CheckArgs) -> Result<Scenario, String> {
    let here = std::env::current_dir().map_err(|error| format!("the current folder: {error}"))?;
    if here.parent().is_none() {
        return Err("the current folder is `/`: go to the folder that holds the files".to_owned());
    }
    let watch =
        args.watch.iter().map(|folder| watched_folder(folder)).collect::<Result<Vec<_>, _>>()?;
    let watched = Watched::of(&here, &watch);
    let state = paths_in(&watched, &args.state, "--state")?;
    let volatile = paths_in(&watched, &args.volatile, "--volatile")?;
    must_be_acks(&args.ack)?;
    let command = CommandLine::Argv(args.command.clone());
    let recover = args.recover.clone().map(CommandLine::Shell);
    let faults = faults(args, args.faults.unwrap_or(FaultList::USUAL), &state)?;
    Ok(Scenario {
        file: PathBuf::from(heading(&shown(&args.command))),
        name: heading(&shown(&args.command)),
        title: String::new(),
        proves: String::new(),
        root: here.clone(),
        build: None,
        needs: Vec::new(),
        probe: None,
        path: Vec::new(),
        subject: Subject {
            command: command.clone(),
            state,
            env: Default::default(),
            files: None,
            folder: Some(here),
            watch,
            setup: Vec::new(),
            time_limit: args.time_limit.unwrap_or(10),
            pipe: args.pipe,
            network: args.network,
            volatile,
            ack: args.ack.clone(),
            effects: Vec::new(),
        },
        recovery: Recovery {
            command: recover.unwrap_or(command),
            check: args.check.clone().map(CommandLine::Shell),
            depth: args.depth.map_or(1, usize::from),
        },
        faults,
    })
}

/// The faults that a list names.
///
/// # Errors
///
/// Where it is not said which file is to be damaged.
pub(super) fn faults(
    args: &CheckArgs,
    list: FaultList,
    state: &[PathBuf],
) -> Result<Vec<Fault>, String> {
    let mut kinds = Vec::new();
    if list.kill {
        let point = |victims: &Victims| match victims {
            Victims::All => KillPoint::All,
            Victims::Process => KillPoint::EachProcess,
        };
        kinds.push(FaultKind::Kill { at: args.kill.iter().map(point).collect() });
    }
    if list.power {
        let mut power = PowerFault::on(vec![&MODELS[0]]);
        put_over_power(&mut power, args);
        kinds.push(FaultKind::Power(power));
    }
    if list.damage {
        let Some(file) = state.first().cloned() else {
            return Err("--faults damage: say by --state which file is to be damaged".to_owned());
        };
        kinds.push(FaultKind::Damage(DamageFault::seven(file)));
    }
    let fault = |kind| Fault { kind, expect: Vec::new(), line: 0 };
    Ok(kinds.into_iter().map(fault).collect())
}

/// What the arguments say of power cuts goes before what is known of them.
pub(super) fn put_over_power(power: &mut PowerFault, args: &CheckArgs) {
    if let Some(disks) = &args.model {
        power.models = disks.0.clone();
    }
    power.states = args.states.or(power.states);
    power.seconds = args.seconds.or(power.seconds);
    power.seed = args.seed.unwrap_or(power.seed);
}

/// # Errors
///
/// Where what is to be a regular expression is none.
pub(super) fn must_be_acks(acks: &[String]) -> Result<(), String> {
    for ack in acks.iter().filter(|ack| !ack.starts_with("mark:")) {
        regex::bytes::Regex::new(ack).map_err(|error| format!("--ack {ack}: {error}"))?;
    }
    Ok(())
}

/// The scenario of a command with nothing else said but which folders are watched as well.
///
/// # Errors
///
/// As [`scenario`].
pub(super) fn of_command(command: &[String], watch: &[PathBuf]) -> Result<Scenario, String> {
    let words = ["crashlab", "check"].map(OsString::from).into_iter();
    let watch = watch.iter().flat_map(|folder| ["--watch".into(), folder.into()]);
    let command = std::iter::once("--".into()).chain(command.iter().map(OsString::from));
    let args = super::Args::try_parse_from(words.chain(watch).chain(command));
    match args.map(|args| args.command) {
        Ok(super::Command::Check(args)) => scenario(&args),
        Ok(_) => Err("no program was named".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn settings(args: &CheckArgs) -> Settings {
    let settings = args.recoveries.applied(Settings::default());
    Settings {
        jobs: args.report.jobs(),
        backtrace: args.backtrace,
        confirm: args.confirm.unwrap_or(settings.confirm),
        ..settings
    }
}

/// The absolute path of a folder that must exist.
fn watched_folder(folder: &Path) -> Result<PathBuf, String> {
    let found = folder.canonicalize().map_err(|error| error.to_string());
    match found {
        Ok(path) if path.parent().is_none() => {
            Err("the whole file system cannot be copied".to_owned())
        }
        Ok(path) if path.is_dir() => Ok(path),
        Ok(_) => {
            Err("it is no folder; give the one that holds it, and --state for the file".to_owned())
        }
        Err(error) => Err(error),
    }
    .map_err(|what| format!("--watch {}: {what}", folder.display()))
}

/// The paths as they are watched: relative to what holds all watched folders.
pub(super) fn paths_in(
    watched: &Watched,
    paths: &[PathBuf],
    option: &str,
) -> Result<Vec<PathBuf>, String> {
    let relative = |path: &PathBuf| {
        watched.path_of(path).ok_or_else(|| {
            format!(
                "{option} {} does not lie below the current folder {}: go to the folder that holds it, \
                 or name that one by --watch",
                path.display(),
                watched.base.join(&watched.current).display()
            )
        })
    };
    paths.iter().map(relative).collect()
}

pub(super) fn shown(command: &[String]) -> String {
    command.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}

/// The command that tries one case again.
fn replay(args: &CheckArgs) -> String {
    let mut words = vec!["crashlab check".to_owned()];
    let mut say = |option: &str, value: &str| words.push(format!("{option} {}", shell_word(value)));
    args.recording.iter().for_each(|file| say("--recording", &file.to_string_lossy()));
    args.state.iter().for_each(|path| say("--state", &path.to_string_lossy()));
    args.watch.iter().for_each(|path| say("--watch", &path.to_string_lossy()));
    args.recover.iter().for_each(|line| say("--recover", line));
    args.check.iter().for_each(|line| say("--check", line));
    args.ack.iter().for_each(|what| say("--ack", what));
    args.volatile.iter().for_each(|path| say("--volatile", &path.to_string_lossy()));
    if let Some(FaultList { kill, power, damage }) = args.faults {
        let named = [("kill", kill), ("power", power), ("damage", damage)];
        let list: Vec<&str> = named.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
        say("--faults", &list.join(","));
    }
    if let Some(disks) = &args.model {
        let models: Vec<&str> = disks.0.iter().map(|model| model.name).collect();
        let is_all = models.len() == MODELS.len();
        say("--model", &if is_all { "all".to_owned() } else { models.join(",") });
    }
    args.states.iter().for_each(|states| say("--states", &states.to_string()));
    args.seconds.iter().for_each(|seconds| say("--seconds", &seconds.to_string()));
    args.seed.iter().for_each(|seed| say("--seed", &seed.to_string()));
    let who = args.kill.iter().filter_map(ValueEnum::to_possible_value);
    let who = who.map(|who| who.get_name().to_owned()).collect::<Vec<_>>().join(",");
    if who != "all" {
        say("--kill", &who);
    }
    args.depth.iter().for_each(|depth| say("--depth", &depth.to_string()));
    if args.pipe {
        words.push("--pipe".to_owned());
    }
    if args.network {
        words.push("--network".to_owned());
    }
    if args.backtrace {
        words.push("--backtrace".to_owned());
    }
    words.push("--case {case}".to_owned());
    if args.recording.is_none() {
        words.push(format!("-- {}", shown(&args.command)));
    }
    words.join(" ")
}

/// Prints what a program came to.
pub(super) fn report(
    args: &ReportArgs,
    scenario: &Scenario,
    result: Result<ScenarioResult, LabError>,
    out: &mut Output<'_>,
) -> Code {
    let strictness = args.strictness();
    let summary = if args.json {
        let mut reporter = Json::new(out, strictness.clone());
        tell(args, scenario, &result, &mut reporter);
        reporter.summary
    } else if let Err(error) = &result {
        output::complain(&error.to_string());
        let mut summary = Summary::default();
        summary.add_error(error, &strictness);
        summary
    } else {
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let mut reporter = Terminal::of_one_program(out, colour, strictness.clone());
        tell(args, scenario, &result, &mut reporter);
        reporter.summary
    };
    code(&summary, &strictness)
}

fn tell(
    args: &ReportArgs,
    scenario: &Scenario,
    result: &Result<ScenarioResult, LabError>,
    reporter: &mut dyn Reporter,
) {
    let all = |reporter: &mut dyn Reporter| {
        reporter.event(Event::Begun { scenarios: 1 });
        match result {
            Ok(result) => {
                reporter.event(Event::Ended { scenario, result });
                if crate::interrupt::is_requested() {
                    let error = &LabError::Interrupted;
                    reporter.event(Event::Failed { scenario: Some(scenario), error });
                }
            }
            Err(error) => reporter.event(Event::Failed { scenario: Some(scenario), error }),
        }
        reporter.event(Event::Done);
    };
    match &args.keep {
        None => all(reporter),
        Some(folder) => {
            let mut keep = Keep::new(reporter, folder);
            all(&mut keep);
            say_what_was_kept(&keep, folder);
        }
    }
}

/// One case needs the others: what its states are called depends on the runs before it.
fn one_case(args: &CheckArgs, id: &str, result: &ScenarioResult, out: &mut Output<'_>) -> Code {
    show_cases(result, id, args.report.keep.as_deref(), out).unwrap_or_else(|| {
        output::complain(&format!("there is no case `{id}`; run without --case to see them"));
        Code::Wrong
    })
}
