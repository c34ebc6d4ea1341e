//! `crashlab replay`: one case of a scenario again.

use std::path::Path;

use super::plan::ReplayPlan;
use super::{Code, Output, output};
use crate::fault::damage::{Damage, Wish};
use crate::judge::Grade;
use crate::report::{keep_case, tell_case};
use crate::run::{Plan, ScenarioResult, Settings, try_scenario};
use crate::scenario::{FaultKind, Scenario};

/// Runs the case and prints all that is known of it.
pub(super) fn replay(plan: &ReplayPlan, scenario: &Scenario, out: &mut Output<'_>) -> Code {
    super::interrupt::watch();
    let settings = Settings {
        build: plan.build,
        live: plan.live,
        backtrace: plan.backtrace,
        ..Settings::default()
    };
    // A kill of a recovery is known by the kill before it.
    let wanted = match plan.case.contains('/') && plan.case.starts_with("kill@") {
        true => Plan::All,
        false => Plan::Case(plan.case.clone()),
    };
    let result = match try_scenario(scenario, &wanted, &settings) {
        Ok(result) => result,
        Err(error) => {
            output::complain(&error.to_string());
            return error.into();
        }
    };
    let file = scenario.file.display().to_string();
    let shown = show_cases(&result, &plan.case, plan.keep.as_deref(), out);
    if plan.shell && shown.is_some() {
        out.flush();
        if let Err(mistake) = shell_in_case(&result, plan) {
            output::complain(&mistake);
            return Code::Wrong;
        }
    }
    shown.unwrap_or_else(|| {
        let misspelt =
            plan.case.strip_prefix("damage:").and_then(|name| name.parse::<Damage>().err());
        if let Some(error) = misspelt {
            output::complain(&format!("{file}: {error}"));
            return Code::Wrong;
        }
        output::complain(&format!(
            "{file}: there is no case `{}`; it has: {}",
            plan.case,
            forms(scenario).join(", ")
        ));
        Code::Wrong
    })
}

/// Prints all that is known of the cases of this id, and keeps their folders where that is wished. The worst of them is the
/// exit code; `None` where there is no such case.
pub(super) fn show_cases(
    result: &ScenarioResult,
    id: &str,
    keep: Option<&Path>,
    out: &mut Output<'_>,
) -> Option<Code> {
    let mut codes = Vec::new();
    for fault in &result.faults {
        for case in fault.cases.iter().filter(|case| case.id == id) {
            out.print(&tell_case(case, &result.replay));
            if let Some(folder) = keep {
                match keep_case(case, folder) {
                    Ok(kept) => out.line(&format!("    kept: {kept}")),
                    Err(error) => output::complain(&error.to_string()),
                }
            }
            codes.push(match case.verdict.grade {
                Grade::Unknown => Code::NotMeasured,
                _ if fault.is_unexpected(case) => Code::Fault,
                _ => Code::Held,
            });
        }
    }
    [Code::Fault, Code::NotMeasured, Code::Held].into_iter().find(|code| codes.contains(code))
}

/// Opens a shell in the folder of the plan's case, as the crash left it.
///
/// # Errors
///
/// Why that cannot be, in words.
pub(super) fn shell_in_case(result: &ScenarioResult, plan: &ReplayPlan) -> Result<(), String> {
    let mut cases = result.faults.iter().flat_map(|fault| &fault.cases);
    let case = cases.find(|case| case.id == plan.case);
    match case.and_then(|case| case.evidence.crashed.as_ref()) {
        Some(crashed) => super::shell::open(crashed, &plan.case, plan.keep.as_deref()),
        None => Err(format!("`{}` leaves no folder for a shell to be in", plan.case)),
    }
}

/// The ids that a scenario's cases can have.
fn forms(scenario: &Scenario) -> Vec<String> {
    let mut forms = Vec::new();
    for fault in &scenario.faults {
        match &fault.kind {
            FaultKind::Kill { .. } => forms.push(
                "kill@PLACE with an op's number (kill@12), an op of a kind (kill@rename#1), a mark \
                 (kill@mark:NAME), bytes of a write (kill@12+4096), one process alone (kill@process:2#5)"
                    .to_owned(),
            ),
            FaultKind::Power(_) => forms.push(
                "power@PLACE-OP-OP with the ops that are not on the disk, as `run` shows it (power@5-2)"
                    .to_owned(),
            ),
            FaultKind::Damage(fault) => forms.extend(fault.damages.iter().map(|wish| match wish {
                Wish::All => "damage:NAME with what `crashlab damage --list FILE` lists".to_owned(),
                other => format!("damage:{other}"),
            })),
            FaultKind::Race(race) => {
                let name = if race.name.is_empty() { String::new() } else { format!("{}/", race.name) };
                forms.push(format!(
                    "race:{name}SCHEDULE with who makes how many steps (race:{name}a3.b.a), as `run` shows it"
                ));
            }
            FaultKind::Overlap { name, .. } => forms.push(format!("overlap:{name}")),
            FaultKind::Alert { name, .. } => forms.push(format!("alert:{name}")),
            FaultKind::Idle { .. } => forms.push("idle".to_owned()),
        }
    }
    forms
}
