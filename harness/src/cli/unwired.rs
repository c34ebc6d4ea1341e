//! Commands whose bodies are not part of this build.

use super::plan::{RecordPlan, ReplayPlan, RunPlan};
use super::{Code, DamageArgs, DoctorArgs, Output, output};

fn missing(command: &str) -> Code {
    output::complain(&format!("`crashlab {command}` is not part of this build"));
    Code::NotMeasured
}

pub(super) fn run(_: &RunPlan, _: &mut Output<'_>) -> Code {
    missing("run")
}

pub(super) fn record(_: &RecordPlan, _: &mut Output<'_>) -> Code {
    missing("record")
}

pub(super) fn replay(_: &ReplayPlan, _: &mut Output<'_>) -> Code {
    missing("replay")
}

pub(super) fn damage(_: &DamageArgs, _: &mut Output<'_>) -> Code {
    missing("damage")
}

pub(super) fn doctor(_: &DoctorArgs, _: &mut Output<'_>) -> Code {
    missing("doctor")
}
