//! Recordings on the command line: what is recorded, what is read from a file, and one state of it made again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Parser;

use super::plan::ReplayPlan;
use super::replay::{shell_in_case, show_cases};
use super::{CheckArgs, Code, Output, RecordArgs, output};
use crate::fault::crash_state::crash_states;
use crate::fault::kill::points;
use crate::judge::State;
use crate::op::Event;
use crate::recording::{self, Calls, Recorded, Recording};
use crate::report::keep_trees;
use crate::run::{self, Plan, ScenarioResult, Settings, Source, is_telling};
use crate::scenario::{CommandLine, FaultKind, KillPoint, Scenario};
use crate::trace::describe_call;
use crate::tree::{Tree, difference};
use crate::watched::Watched;
use crate::wrap::shell_word;

/// So many events before a kill are told.
const EVENTS_TOLD: usize = 12;
/// So many entries that differ are shown.
const DIFFERENCES_MAX: usize = 6;

/// The scenario of a program that is to be recorded: the one that `check` would use.
///
/// # Errors
///
/// What is wrong with the arguments, in words.
pub(super) fn to_record(args: &RecordArgs) -> Result<Scenario, String> {
    let mut words = vec!["crashlab".to_owned(), "check".to_owned()];
    words.extend(args.time_limit.map(|seconds| format!("--time-limit={seconds}")));
    words.extend(args.pipe.then(|| "--pipe".to_owned()));
    words.extend(args.network.then(|| "--network".to_owned()));
    words.push("--".to_owned());
    words.extend(args.command.iter().cloned());
    match super::Args::try_parse_from(words).map(|args| args.command) {
        Ok(super::Command::Check(args)) => super::check::scenario(&args),
        Ok(_) => Err("no program was named".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// What `check` tries: a scenario, where its runs come from, and how.
pub(super) struct Tried {
    pub(super) scenario: Scenario,
    pub(super) settings: Settings,
    pub(super) source: Source,
}

/// What `check` is to try.
///
/// # Errors
///
/// What is wrong with the arguments or the recording, in words.
pub(super) fn tried(args: &CheckArgs, settings: Settings) -> Result<Tried, String> {
    let Some(file) = &args.recording else {
        let scenario = super::check::scenario(args)?;
        let source = match &args.output {
            Some(file) => {
                must_be_new(file)?;
                Source::ToKeep(file.clone())
            }
            None => Source::Live,
        };
        return Ok(Tried { scenario, settings, source });
    };
    let recorded = read(file)?;
    let mut scenario = recorded.header.scenario();
    put_over(&mut scenario, args)?;
    let settings = Settings { confirms: args.confirm.is_some(), ..settings };
    Ok(of_recorded(recorded, scenario, settings))
}

/// A file that is there is left alone, and that is told before anything is run.
///
/// # Errors
///
/// In words, also where there is no folder for it.
pub(super) fn must_be_new(file: &Path) -> Result<(), String> {
    let folder = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let wrong = |what: &str| Err(format!("-o {}: {what}", file.display()));
    match file.symlink_metadata() {
        Ok(_) => wrong("there is a file already, which is left alone; give another name"),
        Err(_) if !folder.is_dir() => wrong("there is no such folder; make it, or give another"),
        Err(_) => Ok(()),
    }
}

fn read(file: &Path) -> Result<Recorded, String> {
    recording::read(file).map(Recorded::as_ours).map_err(|error| error.to_string())
}

fn of_recorded(recorded: Recorded, scenario: Scenario, settings: Settings) -> Tried {
    let (shown, partial) = (Some(recorded.header.shown), recorded.header.partial);
    let settings = Settings { shown, partial, ..settings };
    Tried { scenario, settings, source: Source::Recorded(recorded.runs, 0) }
}

/// What the arguments say goes before what the recording says.
fn put_over(scenario: &mut Scenario, args: &CheckArgs) -> Result<(), String> {
    let subject = &mut scenario.subject;
    let watched = subject.watched();
    let below = |paths: &[PathBuf], option| in_recorded(watched.as_ref(), paths, option);
    if !args.state.is_empty() {
        subject.state = below(&args.state, "--state")?;
    }
    if !args.volatile.is_empty() {
        subject.volatile = below(&args.volatile, "--volatile")?;
    }
    super::check::must_be_acks(&args.ack)?;
    if !args.ack.is_empty() {
        subject.ack = args.ack.clone();
    }
    subject.time_limit = args.time_limit.unwrap_or(subject.time_limit);
    subject.pipe |= args.pipe;
    subject.network |= args.network;
    if let Some(list) = args.faults {
        scenario.faults = super::check::faults(args, list, &subject.state)?;
    }
    for fault in &mut scenario.faults {
        if let FaultKind::Power(power) = &mut fault.kind {
            super::check::put_over_power(power, args);
        }
    }
    if let Some(line) = &args.recover {
        scenario.recovery.command = CommandLine::Shell(line.clone());
    }
    if let Some(line) = &args.check {
        scenario.recovery.check = Some(CommandLine::Shell(line.clone()));
    }
    scenario.recovery.depth = args.depth.map_or(scenario.recovery.depth, usize::from);
    Ok(())
}

/// The paths relative to what holds the recorded folders, which need not be here: relative ones begin where the program did.
fn in_recorded(
    watched: Option<&Watched>,
    paths: &[PathBuf],
    option: &str,
) -> Result<Vec<PathBuf>, String> {
    let alone = Watched::alone(Path::new("/"));
    let watched = watched.unwrap_or(&alone);
    let relative = |path: &PathBuf| {
        watched.path_of(path).ok_or_else(|| {
            let place = watched.base.join(&watched.current);
            format!(
                "{option} {} does not lie below {}, the folder that was recorded",
                path.display(),
                place.display()
            )
        })
    };
    paths.iter().map(relative).collect()
}

/// Makes the state of a case again from a recording, and prints what is known of it.
pub(super) fn replay(plan: &ReplayPlan, file: &Path, out: &mut Output<'_>) -> Code {
    match replayed(plan, file, out) {
        Ok(code) => code,
        Err(mistake) => {
            output::complain(&mistake);
            Code::Wrong
        }
    }
}

fn replayed(plan: &ReplayPlan, file: &Path, out: &mut Output<'_>) -> Result<Code, String> {
    let recorded = read(file)?;
    if let Some((number, point)) = derivable(&plan.case).filter(|_| !plan.live) {
        let of_several = number.is_none() && recorded.runs.len() > 1;
        let run = recorded.runs.get(number.unwrap_or(1).wrapping_sub(1)).filter(|_| !of_several);
        let run = run.ok_or_else(|| which_run(&plan.case, recorded.runs.len()))?;
        return show_state(plan, file, run, &point, out);
    }
    judged(plan, file, recorded, out)
}

/// The run and the point of a kill of the subject; `None` for what needs a recovery to be run.
fn derivable(case: &str) -> Option<(Option<usize>, KillPoint)> {
    let (number, kill) = match case.split_once(':') {
        Some((number, rest)) if rest.starts_with("kill@") => (Some(number.parse().ok()?), rest),
        _ => (None, case),
    };
    let point: KillPoint = kill.strip_prefix("kill@")?.parse().ok()?;
    let needs_runs =
        matches!(point, KillPoint::All | KillPoint::EachProcess | KillPoint::Process(..));
    (!needs_runs).then_some((number, point))
}

fn which_run(case: &str, runs: usize) -> String {
    match runs {
        1 => format!("`{case}`: the recording holds one run: give the id without a number"),
        _ => format!(
            "`{case}`: the recording holds {runs} runs: give the id as 1:kill@PLACE (from nothing) or 2:kill@PLACE"
        ),
    }
}

/// What the kill leaves, made from the log alone.
fn show_state(
    plan: &ReplayPlan,
    file: &Path,
    run: &Recording,
    point: &KillPoint,
    out: &mut Output<'_>,
) -> Result<Code, String> {
    let id = &plan.case;
    let events = &run.trace.events;
    points(events, &BTreeSet::new(), point).map_err(|what| format!("`{id}`: {what}"))?;
    let no_state = State { paths: Vec::new(), seen: PathBuf::new(), volatile: Vec::new() };
    let state = crash_states(&run.before, events, &no_state, vec![point.clone()]).next();
    let state = state.ok_or_else(|| format!("`{id}`: the recording has no such place"))?;
    let state = state.map_err(|misfit| format!("{}: {misfit}", file.display()))?;
    out.line(&format!("{id}: the last of what the program did before:"));
    tell_events(&events[..state.events], &run.trace.calls, out);
    tell_difference(&run.before, &state.tree, out);
    if let Some(folder) = &plan.keep {
        let trees = [Some(&run.before), Some(&state.tree), None];
        let kept = keep_trees(id, trees, folder).map_err(|error| error.to_string())?;
        out.line(&format!("  kept: {kept}"));
    }
    let shown = shell_word(&file.to_string_lossy());
    out.line(&format!("  judge it: crashlab check --recording {shown} --case {}", shell_word(id)));
    if plan.shell {
        out.flush();
        super::shell::open(&state.tree, id, plan.keep.as_deref())?;
    }
    Ok(Code::Held)
}

fn tell_events(events: &[Event], calls: &Calls, out: &mut Output<'_>) {
    let telling = events.iter().filter(|event| is_telling(event) && !is_read(event));
    let lines: Vec<String> = telling.map(|event| describe_call(event, calls)).collect();
    let from = lines.len().saturating_sub(EVENTS_TOLD);
    lines[from..].iter().for_each(|line| out.line(&format!("    {line}")));
}

/// An event that only reads tell of.
pub(super) fn is_read(event: &Event) -> bool {
    use crate::op::What;
    matches!(event.what, What::Read { .. } | What::Open { writable: false, .. })
}

fn tell_difference(before: &Tree, left: &Tree, out: &mut Output<'_>) {
    let all = difference(before, left);
    out.line(match all.is_empty() {
        true => "  the folder is as it was before the run",
        false => "  what survived, against the folder before the run:",
    });
    for one in all.iter().take(DIFFERENCES_MAX) {
        one.to_string().lines().for_each(|line| out.line(&format!("    {line}")));
    }
    if all.len() > DIFFERENCES_MAX {
        out.line(&format!("    and {} more", all.len() - DIFFERENCES_MAX));
    }
}

/// A case that needs programs to be run: the recovery, or for a live kill the subject.
fn judged(
    plan: &ReplayPlan,
    file: &Path,
    recorded: Recorded,
    out: &mut Output<'_>,
) -> Result<Code, String> {
    super::interrupt::watch();
    let scenario = recorded.header.scenario();
    let settings = Settings { confirms: false, live: plan.live, ..Settings::default() };
    let mut tried = of_recorded(recorded, scenario, settings);
    // A kill of a recovery is known by the kill before it.
    let wanted = match derivable(&plan.case) {
        Some(_) => Plan::Case(plan.case.clone()),
        None => Plan::All,
    };
    let result = run::check_from(&tried.scenario, &tried.settings, &mut tried.source, &wanted);
    let result = match result {
        Ok(result) => ScenarioResult { replay: replay_line(file), ..result },
        Err(error) => {
            output::complain(&error.to_string());
            return Ok(error.into());
        }
    };
    let shown = show_cases(&result, &plan.case, plan.keep.as_deref(), out);
    let code = shown.ok_or_else(|| {
        format!(
            "{}: there is no case `{}`; `crashlab check --recording {}` shows them",
            file.display(),
            plan.case,
            shell_word(&file.to_string_lossy())
        )
    })?;
    if plan.shell {
        out.flush();
        shell_in_case(&result, plan)?;
    }
    Ok(code)
}

/// The command that tries one case of a recording again.
fn replay_line(file: &Path) -> String {
    format!("crashlab replay --recording {} {{case}}", shell_word(&file.to_string_lossy()))
}
