//! Commands whose bodies are not part of this build.

use super::{Code, DamageArgs, DoctorArgs, Output, output};

fn missing(command: &str) -> Code {
    output::complain(&format!("`crashlab {command}` is not part of this build"));
    Code::NotMeasured
}

pub(super) fn damage(_: &DamageArgs, _: &mut Output<'_>) -> Code {
    missing("damage")
}

pub(super) fn doctor(_: &DoctorArgs, _: &mut Output<'_>) -> Code {
    missing("doctor")
}
