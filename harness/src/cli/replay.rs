//! `crashlab replay`: one case of a scenario again.

use super::plan::ReplayPlan;
use super::{Code, Output, output};
use crate::judge::Grade;
use crate::report::{keep_case, tell_case};
use crate::run::{Plan, Settings, try_scenario};

/// Runs the case and prints all that is known of it.
pub(super) fn replay(plan: &ReplayPlan, out: &mut Output<'_>) -> Code {
    super::interrupt::watch();
    let wanted = Plan::Case(plan.case.clone());
    let result = match try_scenario(&plan.scenario, &wanted, &Settings::default()) {
        Ok(result) => result,
        Err(error) => {
            output::complain(&error.to_string());
            return error.into();
        }
    };
    let file = plan.scenario.file.display().to_string();
    let mut code = None;
    for fault in &result.faults {
        for case in &fault.cases {
            out.print(&tell_case(case, &file));
            if let Some(folder) = &plan.keep {
                match keep_case(case, folder) {
                    Ok(kept) => out.line(&format!("    kept: {kept}")),
                    Err(error) => output::complain(&error.to_string()),
                }
            }
            code = Some(match case.verdict.grade {
                Grade::Unknown => Code::NotMeasured,
                _ if fault.is_unexpected(case) => Code::Fault,
                _ => Code::Held,
            });
        }
    }
    code.unwrap_or_else(|| {
        output::complain(&format!(
            "{file}: there is no case `{}`; `crashlab run {file} --json` lists all",
            plan.case
        ));
        Code::Wrong
    })
}
