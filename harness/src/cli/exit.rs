//! Exit codes.

use std::process::ExitCode;

/// What the exit code of `crashlab` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// 0: all that was expected held. Warnings do not count unless `--deny` names them.
    Held = 0,
    /// 1: an unexpected fault, or an expected one that was not found.
    Fault = 1,
    /// 2: the command line, a scenario or a control is wrong.
    Wrong = 2,
    /// 3: something selected was not measured, or the lab cannot do its work here at all.
    NotMeasured = 3,
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> ExitCode {
        ExitCode::from(code as u8)
    }
}

impl From<crate::run::LabError> for Code {
    fn from(error: crate::run::LabError) -> Code {
        match error {
            crate::run::LabError::Scenario(_) => Code::Wrong,
            crate::run::LabError::Missing(_)
            | crate::run::LabError::Lab(_)
            | crate::run::LabError::Interrupted => Code::NotMeasured,
        }
    }
}
