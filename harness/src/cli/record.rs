//! `crashlab record`: the op log of an undisturbed run, printed and perhaps kept.

use std::path::Path;

use super::plan::RecordPlan;
use super::recording::{is_read, must_be_new};
use super::{Code, Output, output};
use crate::op::Event;
use crate::recording::{Calls, Recording};
use crate::report::stack;
use crate::run::{LabError, Settings, Stage, build, keep_recording};
use crate::trace::describe_call;
use crate::tree::unaccounted;

/// Records the subject and prints what it did, an event a line.
pub(super) fn record(plan: &RecordPlan, out: &mut Output<'_>) -> Code {
    super::interrupt::watch();
    match recordings(plan) {
        Ok(recordings) => {
            let headings = ["1: from nothing", "2: over what the first run left"];
            let mut code = Code::Held;
            for (number, recording) in recordings.iter().enumerate() {
                if recordings.len() > 1 {
                    heading(plan, number + 1, headings[number.min(1)], out);
                }
                let one = print(plan, recording, out);
                code = if one == Code::Held { code } else { one };
            }
            code
        }
        Err(error) => {
            output::complain(&error.to_string());
            error.into()
        }
    }
}

fn heading(plan: &RecordPlan, number: usize, text: &str, out: &mut Output<'_>) {
    match plan.json {
        true => out.line(&serde_json::json!({ "run": number }).to_string()),
        false => out.line(text),
    }
}

fn recordings(plan: &RecordPlan) -> Result<Vec<Recording>, LabError> {
    let settings = Settings { backtrace: plan.backtrace, ..Settings::default() };
    if let Some(file) = &plan.keep {
        must_be_new(file).map_err(LabError::Scenario)?;
    }
    build(std::slice::from_ref(&plan.scenario), &settings, &mut |_| {})?;
    if let Some(file) = &plan.keep {
        return keep_recording(&plan.scenario, &settings, file);
    }
    let stage = Stage::new(&plan.scenario, &settings, None)?;
    let before = stage.prepare()?;
    Ok(vec![stage.record(&before, plan.reads)?])
}

/// An event as JSON, an op with its stack, where that is known.
fn as_json(event: &Event, calls: &Calls) -> serde_json::Value {
    let mut told = serde_json::json!(event);
    if let Some(of) = event.op().and_then(|op| calls.stack(op.number)) {
        told["stack"] = stack(of);
    }
    told
}

fn print(plan: &RecordPlan, recording: &Recording, out: &mut Output<'_>) -> Code {
    let told = |event: &&Event| plan.reads || !is_read(event);
    for event in recording.trace.events.iter().filter(told) {
        let calls = &recording.trace.calls;
        match plan.json {
            true => out.line(&as_json(event, calls).to_string()),
            false => out.line(&describe_call(event, calls)),
        }
    }
    // Before all else: a gap can be why the run ended as it did.
    for gap in &recording.trace.gaps {
        let whole = Path::new("");
        let path = gap.path.as_deref().filter(|path| *path != whole);
        let path = path.map(|path| format!(" ({})", path.display())).unwrap_or_default();
        output::complain(&format!("not seen: {}{path}", gap.what));
    }
    let unseen = unaccounted(&recording.before, &recording.trace.events, &recording.after);
    if let Some(what) = &unseen {
        output::complain(what);
    }
    let end = &recording.trace.ends[0];
    if crate::interrupt::is_requested() {
        output::complain(&format!("{}: this is what it did until then", LabError::Interrupted));
        return LabError::Interrupted.into();
    }
    if !end.exit.success() {
        output::complain(&format!("the subject ended with {}", end.exit));
        return Code::Wrong;
    }
    if unseen.is_some() { Code::NotMeasured } else { Code::Held }
}
