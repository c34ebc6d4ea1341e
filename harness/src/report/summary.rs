//! Counting: what a run came to as a whole, and its exit code.

use crate::judge::Word;
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
    /// Cases with a fault that was not expected.
    pub faults: usize,
    /// Planted faults that were found.
    pub found: usize,
    /// Warnings that nobody expected.
    pub warnings: usize,
    /// Cases that could not be measured.
    pub not_measured: usize,
    /// Cases that were not tried, for a reason that is told.
    pub skipped: usize,
    /// Scenarios that were not tried, since something that they need is not installed.
    pub untried: usize,
    /// Scenarios or builds that are wrong themselves.
    pub broken: usize,
    /// Scenarios for which the lab cannot run here.
    pub unable: usize,
    /// Derived kills that were made for real as well.
    pub tried: usize,
    /// Those of them that left what had been derived.
    pub confirmed: usize,
    /// Those of these that did but for what is another in each run.
    pub but_for_chance: usize,
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
            self.tried += fault.confirmation.tried;
            self.confirmed += fault.confirmation.confirmed;
            self.but_for_chance += fault.confirmation.but_for_chance;
            self.faults += fault.cases.iter().filter(|case| fault.is_unexpected(case)).count();
            let missing = fault.missing();
            self.found += fault.expect.len() - missing.len();
            holds &=
                missing.is_empty() && !fault.cases.iter().any(|case| fault.is_unexpected(case));
            for case in &fault.cases {
                self.not_measured += usize::from(case.verdict.word == Word::NotMeasured);
                self.skipped += usize::from(case.verdict.word == Word::Skipped);
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
    pub fn add_error(&mut self, error: &LabError, strictness: &Strictness) {
        match error {
            LabError::Missing(_) => {
                let denied = usize::from(strictness.deny.contains(&Word::Skipped));
                self.untried += 1;
                self.denied += denied;
                self.failed += denied;
            }
            LabError::Scenario(_) => self.broken += 1,
            LabError::Lab(_) => self.unable += 1,
            LabError::Interrupted => self.interrupted = true,
        }
    }

    /// The exit code: 2 a scenario or a control is wrong, 1 a fault, 3 something was not measured, also because the run
    /// was told to stop, else 0.
    pub fn exit_code(&self, strictness: &Strictness) -> u8 {
        if self.broken > 0 {
            2
        } else if self.failed > 0 {
            1
        } else if self.interrupted
            || self.unable > 0
            || (self.not_measured > 0 && !strictness.allow_not_measured)
        {
            3
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Verdict;
    use crate::run::{Case, FaultResult};

    fn result(word: Word, warnings: &[Word], expect: &[Word]) -> ScenarioResult {
        let verdict = Verdict { word, grade: word.grade(), why: String::new() };
        let warnings = warnings.iter().map(|word| (*word, String::new())).collect();
        let case = Case { id: "kill@1".into(), verdict, warnings, evidence: Default::default() };
        let fault = FaultResult {
            kind: "kill",
            about: String::new(),
            expect: expect.to_vec(),
            partial: false,
            containers: false,
            cases: vec![case],
            confirmation: Default::default(),
            disks: Vec::new(),
        };
        ScenarioResult {
            name: "s".into(),
            file: "s.toml".into(),
            replay: String::new(),
            faults: vec![fault],
            masks: Vec::new(),
            notes: Vec::new(),
            elapsed: std::time::Duration::ZERO,
        }
    }

    fn code(results: &[ScenarioResult], errors: &[LabError], strictness: &Strictness) -> u8 {
        let mut summary = Summary::default();
        for result in results {
            summary.add(result, strictness);
        }
        errors.iter().for_each(|error| summary.add_error(error, strictness));
        summary.exit_code(strictness)
    }

    #[test]
    fn exit_codes() {
        let plain = Strictness::default();
        let good = || result(Word::Old, &[], &[]);
        let bad = || result(Word::Torn, &[], &[]);
        let wrong = || LabError::Scenario(String::new());
        let unable = || LabError::Lab(String::new());
        assert_eq!(code(&[good()], &[], &plain), 0);
        assert_eq!(code(&[good(), bad()], &[], &plain), 1);
        assert_eq!(code(&[result(Word::Torn, &[], &[Word::Torn])], &[], &plain), 0);
        assert_eq!(code(&[result(Word::Old, &[], &[Word::Torn])], &[], &plain), 1, "not found");
        assert_eq!(code(&[result(Word::Lost, &[], &[Word::Torn])], &[], &plain), 1, "another one");
        assert_eq!(code(&[bad()], &[wrong()], &plain), 2);
        assert_eq!(code(&[good()], &[unable()], &plain), 3);
        assert_eq!(code(&[good()], &[LabError::Interrupted], &plain), 3);
        assert_eq!(code(&[bad()], &[LabError::Interrupted], &plain), 1);
        let unknown = || result(Word::NotMeasured, &[], &[]);
        assert_eq!(code(&[unknown()], &[], &plain), 3);
        assert_eq!(code(&[unknown(), bad()], &[], &plain), 1);
        let skipped = || result(Word::Skipped, &[], &[]);
        assert_eq!(code(&[good(), skipped()], &[], &plain), 0);
        let deny = Strictness { deny: vec![Word::Skipped], ..Strictness::default() };
        assert_eq!(code(&[good(), skipped()], &[], &deny), 1);
        let missing = || LabError::Missing(String::new());
        assert_eq!(code(&[good()], &[missing()], &plain), 0);
        assert_eq!(code(&[good()], &[missing()], &deny), 1);
        let allow = Strictness { allow_not_measured: true, ..Strictness::default() };
        assert_eq!(code(&[unknown()], &[], &allow), 0);
    }

    #[test]
    fn warnings_count_where_they_are_denied_and_nobody_expects_them() {
        let warned = |expect: &[Word]| result(Word::Old, &[Word::Leftover], expect);
        let deny = Strictness { deny: vec![Word::Leftover], ..Strictness::default() };
        assert_eq!(code(&[warned(&[])], &[], &Strictness::default()), 0);
        assert_eq!(code(&[warned(&[])], &[], &deny), 1);
        assert_eq!(code(&[warned(&[Word::Leftover])], &[], &deny), 0);
        let other = Strictness { deny: vec![Word::Metadata], ..Strictness::default() };
        assert_eq!(code(&[warned(&[])], &[], &other), 0);
    }
}
