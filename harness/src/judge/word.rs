//! The words of verdicts and warnings, and their grades.

/// A verdict or a warning, as scenarios, reports and case lists write it.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// Good: the state before the step at hand survived, and the recovery ended where it must from there.
    Old,
    /// Good: the state after the step at hand survived, and the recovery ended where it must from there.
    New,
    /// Good: what survived is no version, and the recovery still ended where it must.
    Recovered,
    /// Good after damage, else a fault: the recovery gave up, named the file and left its bytes alone.
    Refused,
    /// Good: a program that ran with nothing to do changed nothing.
    Unchanged,
    /// Good: several processes ended as they would have one after another.
    Serial,
    /// Good: the alarm was raised.
    Noticed,
    /// Fault: the recovery did not end.
    Hung,
    /// Fault: work was done again.
    Repeated,
    /// Fault: what survived is no version of the file.
    Torn,
    /// Fault: the recovery failed without refusing.
    Crashed,
    /// Fault: the recovery began from nothing.
    Restarted,
    /// Fault: something acknowledged is gone.
    Lost,
    /// Fault: any other end.
    Diverged,
    /// Fault: damage was taken for good.
    Accepted,
    /// Fault: no alarm was raised.
    Unnoticed,
    /// Warning: a file that nobody removes.
    Leftover,
    /// Warning: a link, a mode or an owner was not kept.
    Metadata,
    /// Warning: the damage leaves a file that is valid by the scenario's own word, so nobody can refuse it.
    Undetectable,
    /// Neither: the lab could not see enough.
    NotMeasured,
    /// Neither: it was not tried.
    Skipped,
}

/// How a verdict counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// As it should be.
    Good,
    /// Printed, and counted only where it was asked for.
    Warning,
    /// Nothing is known: never a pass.
    Unknown,
    /// A fault of the subject.
    Fault,
}

impl Word {
    /// Every word, in the order of its declaration.
    pub const ALL: [Word; 21] = [
        Word::Old,
        Word::New,
        Word::Recovered,
        Word::Refused,
        Word::Unchanged,
        Word::Serial,
        Word::Noticed,
        Word::Hung,
        Word::Repeated,
        Word::Torn,
        Word::Crashed,
        Word::Restarted,
        Word::Lost,
        Word::Diverged,
        Word::Accepted,
        Word::Unnoticed,
        Word::Leftover,
        Word::Metadata,
        Word::Undetectable,
        Word::NotMeasured,
        Word::Skipped,
    ];

    /// The word as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Word::Old => "old",
            Word::New => "new",
            Word::Recovered => "recovered",
            Word::Refused => "refused",
            Word::Unchanged => "unchanged",
            Word::Serial => "serial",
            Word::Noticed => "noticed",
            Word::Hung => "hung",
            Word::Repeated => "repeated",
            Word::Torn => "torn",
            Word::Crashed => "crashed",
            Word::Restarted => "restarted",
            Word::Lost => "lost",
            Word::Diverged => "diverged",
            Word::Accepted => "accepted",
            Word::Unnoticed => "unnoticed",
            Word::Leftover => "leftover",
            Word::Metadata => "metadata",
            Word::Undetectable => "undetectable",
            Word::NotMeasured => "not-measured",
            Word::Skipped => "skipped",
        }
    }

    /// How it counts after a kill, an overlap or an undisturbed run; only `refused` counts otherwise after damage.
    pub fn grade(self) -> Grade {
        match self {
            Word::Old
            | Word::New
            | Word::Recovered
            | Word::Unchanged
            | Word::Serial
            | Word::Noticed => Grade::Good,
            Word::Leftover | Word::Metadata | Word::Undetectable => Grade::Warning,
            Word::NotMeasured | Word::Skipped => Grade::Unknown,
            _ => Grade::Fault,
        }
    }

    /// How it counts after damage: there a refusal is what must come.
    pub fn grade_after_damage(self) -> Grade {
        if self == Word::Refused { Grade::Good } else { self.grade() }
    }
}

impl std::fmt::Display for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_written_alike_everywhere() {
        for word in Word::ALL {
            let read: Word = serde_json::from_value(word.as_str().into()).expect("a word");
            assert_eq!((read, word.to_string()), (word, word.as_str().to_owned()));
        }
        assert_eq!(format!("{:>5}", Word::Old), "  old", "reports have columns");
    }

    #[test]
    fn whatever_is_not_good_is_a_fault_unless_it_is_said_otherwise() {
        let with = |grade: Grade| Word::ALL.into_iter().filter(move |word| word.grade() == grade);
        assert_eq!(with(Grade::Good).count(), 6);
        assert!(with(Grade::Warning).eq([Word::Leftover, Word::Metadata, Word::Undetectable]));
        assert!(with(Grade::Unknown).eq([Word::NotMeasured, Word::Skipped]));
        let changed =
            Word::ALL.into_iter().filter(|word| word.grade() != word.grade_after_damage());
        assert!(changed.eq([Word::Refused]));
    }
}
