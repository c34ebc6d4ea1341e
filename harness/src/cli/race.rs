//! `crashlab race`: programs at once, as they are, in every order of their steps that matters.

use super::check::{of_command, paths_in, report, shown};
use super::progress::watched;
use super::replay::show_cases;
use super::run::free_for_keeping;
use super::{Code, Output, RaceArgs, output};
use crate::run::{LabError, ScenarioResult, Settings, race_alone};
use crate::scenario::{CommandLine, Fault, FaultKind, RaceFault, Scenario};
use crate::wrap::{counted, shell_word};

/// Parts the commands on the command line.
const AND: &str = "--and";

/// Runs the race and prints what it comes to.
pub(super) fn race(args: &RaceArgs, out: &mut Output<'_>) -> Code {
    let keep = args.report.keep.as_deref();
    if let Some(mistake) = keep.and_then(|folder| free_for_keeping(folder).err()) {
        output::complain(&mistake);
        return Code::Wrong;
    }
    let scenario = match scenario(args) {
        Ok(scenario) => scenario,
        Err(mistake) => {
            output::complain(&mistake);
            return Code::Wrong;
        }
    };
    super::interrupt::watch();
    let settings = Settings { jobs: args.report.jobs(), ..Settings::default() };
    let result =
        watched(&settings.progress, || race_alone(&scenario, &settings, args.case.as_deref()));
    let result = result.map(|result| ScenarioResult { replay: replay(args), ..result });
    // Where scenarios are run others are tried; here nothing else was asked for.
    let result = result.map_err(|error| match &error {
        LabError::Missing(_) => LabError::Lab(error.to_string()),
        _ => error,
    });
    match (&args.case, result) {
        (Some(case), Ok(result)) => show_cases(&result, case, keep, out).unwrap_or(Code::Wrong),
        (_, result) => report(&args.report, &scenario, result, out),
    }
}

/// The commands, parted by `--and`.
fn commands(args: &RaceArgs) -> Result<Vec<Vec<String>>, String> {
    let commands: Vec<Vec<String>> =
        args.command.split(|word| word == AND).map(<[String]>::to_vec).collect();
    if commands.iter().any(Vec::is_empty) {
        return Err(format!("each {AND} stands between two commands: -- CMD ARGS {AND} CMD2 ARGS"));
    }
    Ok(commands)
}

/// # Errors
///
/// What is wrong with the arguments, in words.
fn scenario(args: &RaceArgs) -> Result<Scenario, String> {
    let commands = commands(args)?;
    let mut scenario = of_command(&commands[0], &args.watch)?;
    let watched = scenario.subject.watched().unwrap_or_default();
    let times = usize::from(args.times.unwrap_or(if commands.len() == 1 { 2 } else { 1 }));
    let count = commands.len() * times;
    let most = crate::fault::race::explore::MOST_SIDES;
    if !(2..=most).contains(&count) {
        return Err(format!(
            "{} cannot race: 2 to {most} can; --times says how often each command runs",
            counted(count, "program")
        ));
    }
    let letter = |side| crate::fault::race::schedule::letter(side).to_string();
    let processes = (0..count)
        .map(|side| (letter(side), CommandLine::Argv(commands[side % commands.len()].clone())));
    let race = RaceFault {
        preemptions: args.preemptions.0,
        schedules: args.schedules,
        seed: args.seed,
        kill_one: args.kill_one,
        containers: args.containers,
        view: args.view.clone().map(CommandLine::Shell),
        ..RaceFault::of(processes.collect())
    };
    scenario.name = commands.iter().map(|one| shown(one)).collect::<Vec<_>>().join(" and ");
    scenario.name = crate::wrap::heading(&scenario.name);
    scenario.file = scenario.name.clone().into();
    let subject = &mut scenario.subject;
    subject.state = paths_in(&watched, &args.state, "--state")?;
    subject.volatile = paths_in(&watched, &args.volatile, "--volatile")?;
    subject.time_limit = args.time_limit.unwrap_or(subject.time_limit);
    (subject.pipe, subject.network) = (args.pipe, args.network);
    scenario.faults = vec![Fault { kind: FaultKind::Race(race), expect: Vec::new(), line: 0 }];
    Ok(scenario)
}

/// The command that runs one schedule again.
fn replay(args: &RaceArgs) -> String {
    let mut words = vec!["crashlab race".to_owned()];
    let mut say = |option: &str, value: &str| words.push(format!("{option} {}", shell_word(value)));
    args.state.iter().for_each(|path| say("--state", &path.to_string_lossy()));
    args.watch.iter().for_each(|path| say("--watch", &path.to_string_lossy()));
    args.volatile.iter().for_each(|path| say("--volatile", &path.to_string_lossy()));
    args.view.iter().for_each(|view| say("--view", view));
    args.times.iter().for_each(|times| say("--times", &times.to_string()));
    args.time_limit.iter().for_each(|limit| say("--time-limit", &limit.to_string()));
    for (flag, on) in [
        ("--kill-one", args.kill_one),
        ("--containers", args.containers),
        ("--pipe", args.pipe),
        ("--network", args.network),
    ] {
        if on {
            words.push(flag.to_owned());
        }
    }
    words.push(format!("--case {{case}} -- {}", shown(&args.command)));
    words.join(" ")
}
