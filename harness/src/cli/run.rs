//! `crashlab run`: all scenarios, told by a reporter.

use std::io::{IsTerminal, Write as _};
use std::path::Path;

use super::plan::RunPlan;
use super::progress::watched;
use super::{Code, Output};
use crate::report::{Json, Keep, Reporter, Strictness, Summary, Terminal};
use crate::run::{self, Plan, Settings};
use crate::wrap::counted;

/// Runs the plan and prints what it comes to.
pub(super) fn run(plan: &RunPlan, output: &mut Output<'_>) -> Code {
    if let Some(mistake) = plan.keep.as_deref().and_then(|folder| free_for_keeping(folder).err()) {
        super::output::complain(&mistake);
        return Code::Wrong;
    }
    super::interrupt::watch();
    let settings = Settings {
        jobs: plan.jobs,
        pin: plan.pin,
        live: plan.live,
        backtrace: plan.backtrace,
        build: plan.build,
        build_output: std::io::stderr().is_terminal(),
        ..plan.recoveries.applied(Settings::default())
    };
    let strictness = plan.strictness.clone();
    let summary = watched(&settings.progress, || {
        if plan.json {
            let mut reporter = Json::new(output, strictness.clone());
            kept(plan, &settings, &mut reporter);
            return reporter.summary;
        }
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let mut reporter = Terminal::new(output, colour, strictness.clone());
        kept(plan, &settings, &mut reporter);
        reporter.summary
    });
    code(&summary, &strictness)
}

/// A folder with something in it is left alone, and that is told before anything is run.
pub(super) fn free_for_keeping(folder: &Path) -> Result<(), String> {
    let mistake = |what: String| format!("--keep {}: {what}", folder.display());
    match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(mistake(error.to_string())),
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(mistake(
                "there is something in it; give a folder that is new or empty".to_owned(),
            )),
        },
    }
}

fn kept(plan: &RunPlan, settings: &Settings, reporter: &mut dyn Reporter) {
    match &plan.keep {
        None => run::run(&plan.scenarios, &Plan::All, settings, reporter),
        Some(folder) => {
            let mut keep = Keep::new(reporter, folder);
            run::run(&plan.scenarios, &Plan::All, settings, &mut keep);
            say_what_was_kept(&keep, folder);
        }
    }
}

/// On standard error, so that a report that goes to a file stays one.
pub(super) fn say_what_was_kept(keep: &Keep<'_>, folder: &Path) {
    keep.failures.iter().for_each(|failure| super::output::complain(failure));
    let what = match keep.kept {
        0 => "nothing was kept: no case was a fault".to_owned(),
        kept => format!("kept below {}: {}", folder.display(), counted(kept, "case")),
    };
    _ = writeln!(std::io::stderr(), "{what}");
}

/// The exit code that a summary asks for.
pub(super) fn code(summary: &Summary, strictness: &Strictness) -> Code {
    match summary.exit_code(strictness) {
        0 => Code::Held,
        1 => Code::Fault,
        2 => Code::Wrong,
        _ => Code::NotMeasured,
    }
}
