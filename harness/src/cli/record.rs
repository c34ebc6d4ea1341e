//! `crashlab record`: the op log of one undisturbed run.

use std::path::Path;

use super::plan::RecordPlan;
use super::{Code, Output, output};
use crate::recording::Recording;
use crate::run::{LabError, Settings, Stage, build};
use crate::trace::describe;
use crate::tree::unaccounted;

/// Records the scenario's subject and prints what it did, an event a line.
pub(super) fn record(plan: &RecordPlan, out: &mut Output<'_>) -> Code {
    super::interrupt::watch();
    match recording(plan) {
        Ok(recording) => print(plan, &recording, out),
        Err(error) => {
            output::complain(&error.to_string());
            error.into()
        }
    }
}

fn recording(plan: &RecordPlan) -> Result<Recording, LabError> {
    let settings = Settings::default();
    build(std::slice::from_ref(&plan.scenario), &settings, &mut |_| {})?;
    let stage = Stage::new(&plan.scenario, &settings, None)?;
    let before = stage.prepare()?;
    stage.record(&before, plan.reads)
}

fn print(plan: &RecordPlan, recording: &Recording, out: &mut Output<'_>) -> Code {
    for event in &recording.trace.events {
        match plan.json {
            true => out.line(&serde_json::json!(event).to_string()),
            false => out.line(&describe(event)),
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
