//! `crashlab list`.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::plan::ListPlan;
use super::{Code, Output};
use crate::fault::damage::{Damage, Wish};
use crate::judge::Word;
use crate::run::show;
use crate::scenario::{DamageFault, Fault, FaultKind, KillPoint, Scenario};
use crate::wrap::wrapped;

const COLUMNS: usize = 80;

/// One scenario, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Listed<'a> {
    name: &'a str,
    file: &'a Path,
    title: &'a str,
    proves: &'a str,
    needs: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    probe: Option<String>,
    state: &'a [PathBuf],
    faults: Vec<ListedFault>,
}

#[derive(Debug, Serialize)]
struct ListedFault {
    kind: &'static str,
    what: String,
    expect: Vec<Word>,
    line: usize,
}

/// Prints the scenarios.
pub(super) fn list(plan: &ListPlan, output: &mut Output<'_>) -> Code {
    if plan.json {
        let listed: Vec<Listed<'_>> = plan.scenarios.iter().map(listed).collect();
        match serde_json::to_string_pretty(&listed) {
            Ok(json) => output.line(&json),
            Err(error) => {
                super::output::complain(&format!("cannot print the list as JSON: {error}"));
                return Code::NotMeasured;
            }
        }
        return Code::Held;
    }
    for scenario in &plan.scenarios {
        output.print(&entry(scenario));
        output.line("");
    }
    let plural = if plan.scenarios.len() == 1 { "" } else { "s" };
    output.line(&format!("{} scenario{plural}", plan.scenarios.len()));
    Code::Held
}

/// A scenario for people.
fn entry(scenario: &Scenario) -> String {
    let mut entry = format!("{}\n", scenario.name);
    entry += &wrapped("  proves  ", &scenario.proves, COLUMNS);
    if let Some(needs) = needs(scenario) {
        entry += &wrapped("  needs   ", &needs, COLUMNS);
    }
    for (index, fault) in scenario.faults.iter().enumerate() {
        let label = if index == 0 { "  faults  " } else { "          " };
        entry += &wrapped(label, &described(fault), COLUMNS);
    }
    entry
}

/// What must be on the machine for the scenario to be tried.
fn needs(scenario: &Scenario) -> Option<String> {
    let probe = scenario.probe.iter().map(|probe| format!("that {} succeeds", show(probe)));
    let all: Vec<String> = scenario.needs.iter().cloned().chain(probe).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

fn listed(scenario: &Scenario) -> Listed<'_> {
    let fault = |fault: &'_ Fault| ListedFault {
        kind: fault.kind.word(),
        what: what(&fault.kind),
        expect: fault.expect.clone(),
        line: fault.line,
    };
    Listed {
        name: &scenario.name,
        file: &scenario.file,
        title: &scenario.title,
        proves: &scenario.proves,
        needs: &scenario.needs,
        probe: scenario.probe.as_ref().map(show),
        state: &scenario.subject.state,
        faults: scenario.faults.iter().map(fault).collect(),
    }
}

fn described(fault: &Fault) -> String {
    let mut text = format!("{} {}", fault.kind.word(), what(&fault.kind));
    if !fault.expect.is_empty() {
        let words: Vec<String> = fault.expect.iter().map(word).collect();
        text = format!("{}; expects {}", text.trim_end(), words.join(", "));
    }
    text.trim_end().to_owned()
}

/// What distinguishes a fault from others of its kind.
fn what(kind: &FaultKind) -> String {
    match kind {
        FaultKind::Kill { at } if at[..] == [KillPoint::All] => "everywhere".into(),
        FaultKind::Kill { at } => {
            let points: Vec<String> = at.iter().map(KillPoint::to_string).collect();
            format!("at {}", points.join(", "))
        }
        FaultKind::Power(fault) => {
            let disks: Vec<&str> = fault.models.iter().map(|model| model.name).collect();
            format!("on {}", disks.join(", "))
        }
        FaultKind::Damage(fault) => damages(fault),
        FaultKind::Race(race) => {
            let names: Vec<&str> = race.processes.iter().map(|(name, _)| name.as_str()).collect();
            format!("{} {}", race.name, names.join(" and ")).trim().to_owned()
        }
        FaultKind::Overlap { name, .. } | FaultKind::Alert { name, .. } => name.clone(),
        FaultKind::Idle { never } if never.is_empty() => String::new(),
        FaultKind::Idle { never } => format!("never {}", never.join(", ")),
    }
}

/// All seven together are not worth their names.
fn damages(fault: &DamageFault) -> String {
    let file = fault.file.display();
    if fault.damages == Damage::SEVEN.map(Wish::One) {
        return format!("{file}, all {} ways", Damage::SEVEN.len());
    }
    let wishes: Vec<String> = fault.damages.iter().map(Wish::to_string).collect();
    format!("{file}: {}", wishes.join(", "))
}

/// A word as scenarios write it.
fn word(word: &Word) -> String {
    let json = serde_json::to_value(word).unwrap_or_default();
    json.as_str().unwrap_or_default().to_owned()
}
