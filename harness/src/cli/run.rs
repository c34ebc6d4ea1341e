//! `crashlab run`: all scenarios, told by a reporter.

use std::io::IsTerminal;

use super::plan::RunPlan;
use super::{Code, Output};
use crate::report::{Json, Keep, Reporter, Strictness, Summary, Terminal};
use crate::run::{self, Plan, Settings};

/// Runs the plan and prints what it comes to.
pub(super) fn run(plan: &RunPlan, output: &mut Output<'_>) -> Code {
    super::interrupt::watch();
    let settings = Settings {
        jobs: plan.jobs,
        pin: plan.pin,
        build: plan.build,
        build_output: std::io::stderr().is_terminal(),
        ..Settings::default()
    };
    let strictness =
        Strictness { deny: plan.deny.clone(), allow_not_measured: plan.allow_not_measured };
    let summary = if plan.json {
        let mut reporter = Json::new(output, strictness.clone());
        kept(plan, &settings, &mut reporter);
        reporter.summary
    } else {
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let mut reporter = Terminal::new(output, colour, strictness.clone());
        kept(plan, &settings, &mut reporter);
        reporter.summary
    };
    code(&summary, &strictness)
}

fn kept(plan: &RunPlan, settings: &Settings, reporter: &mut dyn Reporter) {
    match &plan.keep {
        None => run::run(&plan.scenarios, &Plan::All, settings, reporter),
        Some(folder) => {
            let mut keep = Keep::new(reporter, folder);
            run::run(&plan.scenarios, &Plan::All, settings, &mut keep);
            keep.failures.iter().for_each(|failure| super::output::complain(failure));
        }
    }
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
