//! Exit codes: what a scheduler, a script or systemd learns from how the command ended.

/// How the command ended. The number is the process's exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done, or there was nothing to do.
    Done = 0,
    /// The work failed, a `status` threshold was passed, a note drifted, or a file could not be read or written.
    Failed = 1,
    /// The command line is wrong, or the environment lacks the key that it needs.
    Usage = 2,
    /// The checkpoint is damaged, or was damaged while the session worked (`EX_DATAERR`).
    Damaged = 65,
    /// Another session holds the checkpoint, or changed, deleted or created it meanwhile; try again (`EX_TEMPFAIL`).
    TryAgain = 75,
    /// `has-work` only: anything but a clear yes or no. systemd's `ExecCondition=` treats 1 to 254 as a silent skip and 255 as a failure.
    HasWorkFailed = 255,
}

impl Exit {
    /// `has-work` only: nothing to do, or stopped.
    pub const NO_WORK: Exit = Exit::Failed;
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        std::process::ExitCode::from(exit as u8)
    }
}
