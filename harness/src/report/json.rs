//! For programs: a JSON object a line, one for each scenario and a last one that sums up.

use std::io::Write;

use serde_json::{Value, json};

use super::summary::{Strictness, Summary};
use super::{Event, Reporter};
use crate::recording::Stack;
use crate::run::{Called, Case, DiskResult, FaultResult, LabError, Repaired, ScenarioResult};

/// Prints JSON Lines.
#[derive(Debug)]
pub struct Json<W> {
    out: W,
    strictness: Strictness,
    /// So far.
    pub summary: Summary,
}

impl<W: Write> Json<W> {
    /// A reporter that writes to `out`.
    pub fn new(out: W, strictness: Strictness) -> Json<W> {
        Json { out, strictness, summary: Summary::default() }
    }

    fn print(&mut self, value: &Value) {
        // A reader that went away ends the report, not the run.
        _ = writeln!(self.out, "{value}");
    }
}

impl<W: Write> Reporter for Json<W> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Building { command } => {
                self.print(&json!({"event": "building", "command": command}))
            }
            Event::Begun { scenarios } => {
                self.print(&json!({"event": "begun", "scenarios": scenarios}))
            }
            Event::Ended { result, .. } => {
                let holds = self.summary.add(result, &self.strictness);
                self.print(&scenario(result, holds));
            }
            Event::Failed { scenario: Some(scenario), error: error @ LabError::Missing(why) } => {
                self.summary.add_error(error, &self.strictness);
                let (name, file) = (&scenario.name, &scenario.file);
                self.print(
                    &json!({"event": "skipped", "scenario": name, "file": file, "reason": why}),
                );
            }
            Event::Failed { scenario, error } => {
                self.summary.add_error(error, &self.strictness);
                let name = scenario.map(|scenario| scenario.name.as_str());
                self.print(
                    &json!({"event": "failed", "scenario": name, "error": error.to_string()}),
                );
            }
            Event::Done => {
                let summary = self.summary.clone();
                self.print(&json!({
                    "event": "done",
                    "held": summary.held,
                    "failed": summary.failed,
                    "cases": summary.cases,
                    "found": summary.found,
                    "warnings": summary.warnings,
                    "not_measured": summary.not_measured,
                    "skipped": summary.skipped,
                    "scenarios_skipped": summary.untried,
                    "confirmed": summary.confirmed,
                    "confirmed_but_for_chance": summary.but_for_chance,
                    "tried_for_real": summary.tried,
                    "wrong": summary.broken,
                    "unable": summary.unable,
                    "interrupted": summary.interrupted,
                    "exit_code": summary.exit_code(&self.strictness),
                }));
            }
        }
    }
}

fn scenario(result: &ScenarioResult, holds: bool) -> Value {
    let cases = result.faults.iter().flat_map(|fault| &fault.cases);
    json!({
        "event": "scenario",
        "name": result.name,
        "file": result.file,
        "held": holds,
        "milliseconds": result.elapsed.as_millis() as u64,
        "recovered_by_copies": cases.filter(|case| case.evidence.forked).count(),
        "masks": result.masks,
        "notes": result.notes,
        "faults": result.faults.iter().map(fault).collect::<Vec<_>>(),
    })
}

/// What power cuts came to on one disk.
fn disk(disk: &DiskResult) -> Value {
    let repair = match &disk.repair {
        Repaired::NoNeed => json!([]),
        Repaired::By(repairs) => json!(repairs),
        Repaired::ByNoSync => Value::Null,
    };
    json!({
        "model": disk.model,
        "verdicts": disk.counts,
        "tried": disk.tried,
        "complete": disk.complete,
        "legal_at_most_log2": disk.at_most,
        "seed": disk.seed,
        "time_was_up": disk.late,
        "mended_by": repair,
    })
}

fn called(call: &Called) -> Value {
    json!({ "op": call.op, "what": call.what, "stack": stack(&call.stack) })
}

/// A stack: its call site that is told (in words, and by its place among the frames, from 0), whether it was followed to its
/// outermost frame, and all frames from the call outwards.
pub(crate) fn stack(stack: &Stack) -> Value {
    let frames: Vec<Value> = stack.sites.iter().map(|site| json!(**site)).collect();
    json!({
        "at": stack.site().map(ToString::to_string),
        "told": stack.told,
        "whole": stack.whole,
        "frames": frames,
    })
}

fn fault(fault: &FaultResult) -> Value {
    let case = |case: &Case| {
        let warnings: Vec<Value> =
            case.warnings.iter().map(|(word, what)| json!({"word": word, "what": what})).collect();
        let mut told = json!({
            "id": case.id,
            "verdict": case.verdict.word,
            "grade": case.verdict.grade,
            "why": case.verdict.why,
            "schedule": case.evidence.schedule,
            "after": case.evidence.cause.as_ref().and_then(|cause| cause.after.as_deref()),
            "before": case.evidence.cause.as_ref().and_then(|cause| cause.before.as_deref()),
            "expected": !fault.is_unexpected(case),
            "warnings": warnings,
        });
        if !case.evidence.view.is_empty() {
            told["view"] = json!(case.evidence.view);
        }
        if !case.evidence.calls.is_empty() {
            told["calls"] = case.evidence.calls.iter().map(called).collect();
        }
        told
    };
    json!({
        "kind": fault.kind,
        "containers": fault.containers,
        "expect": fault.expect,
        "missing": fault.missing(),
        "confirmation": {
            "tried": fault.confirmation.tried,
            "confirmed": fault.confirmation.confirmed,
            "but_for_chance": fault.confirmation.but_for_chance,
            "differing": fault.confirmation.differing.iter()
                .map(|(id, how)| json!({"id": id, "how": how})).collect::<Vec<_>>(),
        },
        "disks": fault.disks.iter().map(disk).collect::<Vec<_>>(),
        "cases": fault.cases.iter().map(case).collect::<Vec<_>>(),
    })
}
