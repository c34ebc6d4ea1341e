//! Undisturbed runs with something to prove: a trigger with nothing to do, and an alarm that must be raised.

use std::sync::Arc;

use super::LabError;
use super::cases::{Case, Evidence, said};
use super::stage::Stage;
use crate::judge::{Outcome, Verdict, judge_alert, judge_idle};
use crate::recording::Recording;
use crate::scenario::CommandLine;
use crate::trace::describe;

/// Runs the subject's command once more on what it left.
///
/// # Errors
///
/// As [`Stage::run`].
pub fn idle(stage: &Stage<'_>, recording: &Recording, never: &[String]) -> Result<Case, LabError> {
    let outcome =
        stage.outcome(&stage.scenario.subject.command, &Arc::new(recording.after.clone()))?;
    Ok(case("idle".to_owned(), judge_idle(&outcome, never), &outcome))
}

/// Runs a command that must raise the alarm.
///
/// # Errors
///
/// [`LabError::Scenario`] for a bad regular expression, else as [`Stage::run`].
pub fn alert(
    stage: &Stage<'_>,
    recording: &Recording,
    name: &str,
    command: &CommandLine,
    says: &str,
) -> Result<Case, LabError> {
    let says =
        regex::bytes::Regex::new(says).map_err(|error| LabError::Scenario(error.to_string()))?;
    let outcome = stage.outcome(command, &Arc::new(recording.before.clone()))?;
    let before = stage.state.image(&recording.before);
    Ok(case(format!("alert:{name}"), judge_alert(&outcome, &before, &says), &outcome))
}

fn case(id: String, verdict: Verdict, outcome: &Outcome) -> Case {
    let evidence = Evidence {
        before: Some(outcome.start.clone()),
        crashed: None,
        ended: Some(outcome.end.clone()),
        ops: outcome.trace.events.iter().map(describe).collect(),
        said: said(&outcome.finish),
        ..Evidence::default()
    };
    Case { id, verdict, warnings: Vec::new(), evidence }
}
