//! Judging: recording, state and outcome in, verdict out. No I/O.

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
    /// Good: a program that ran with nothing to do, or one of several that was told to wait, changed nothing.
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
    /// Neither: the lab could not see enough.
    NotMeasured,
    /// Neither: it was not tried.
    Skipped,
}
