//! Counting: what a run came to as a whole, and its exit code.

use crate::judge::{Grade, Word};
use crate::run::{LabError, ScenarioResult};

/// What counts as a failure beside faults.
#[derive(Debug, Clone, Default)]
pub struct Strictness {
    /// Words that count though they are only warnings, or were skipped.
    pub deny: Vec<Word>,
    /// What could not be measured is no failure.
    pub allow_not_measured: bool,
}

/// What a run came to as a whole.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// Scenarios in which all that was expected held.
    pub held: usize,
    /// Scenarios with a fault that was not expected, or without one that was.
    pub failed: usize,
    /// Cases.
    pub cases: usize,
    /// Planted faults that were found.
    pub found: usize,
    /// Warnings that nobody expected.
    pub warnings: usize,
    /// Cases that could not be measured.
    pub not_measured: usize,
    /// Scenarios or builds that are wrong themselves.
    pub broken: usize,
    /// Scenarios for which the lab cannot run here.
    pub unable: usize,
    /// It was told to stop.
    pub interrupted: bool,
    /// Words that were denied and came up.
    pub denied: usize,
}

impl Summary {
    /// Takes in a scenario's result; true if all that was expected of it held.
    pub fn add(&mut self, result: &ScenarioResult, strictness: &Strictness) -> bool {
        let mut holds = true;
        for fault in &result.faults {
            self.cases += fault.cases.len();
            let missing = fault.missing();
            self.found += fault.expect.len() - missing.len();
            holds &=
                missing.is_empty() && !fault.cases.iter().any(|case| fault.is_unexpected(case));
            for case in &fault.cases {
                self.not_measured += usize::from(case.verdict.grade == Grade::Unknown);
                let unexpected =
                    case.warnings.iter().filter(|(word, _)| !fault.expect.contains(word));
                let unexpected: Vec<Word> = unexpected.map(|(word, _)| *word).collect();
                self.warnings += unexpected.len();
                let denied = unexpected
                    .iter()
                    .chain([&case.verdict.word])
                    .filter(|word| strictness.deny.contains(word))
                    .count();
                self.denied += denied;
                holds &= denied == 0;
            }
        }
        if holds {
            self.held += 1
        } else {
            self.failed += 1
        }
        holds
    }

    /// Takes in a failure of the lab or of a scenario's own ground.
    pub fn add_error(&mut self, error: &LabError) {
        match error {
            LabError::Scenario(_) => self.broken += 1,
            LabError::Lab(_) => self.unable += 1,
            LabError::Interrupted => self.interrupted = true,
        }
    }

    /// The exit code: 2 a scenario or a control is wrong, 1 a fault, 3 something could not be measured, else 0.
    pub fn exit_code(&self, strictness: &Strictness) -> u8 {
        if self.broken > 0 {
            2
        } else if self.failed > 0 || self.interrupted {
            1
        } else if self.unable > 0 || (self.not_measured > 0 && !strictness.allow_not_measured) {
            3
        } else {
            0
        }
    }
}
