//! What can go wrong in a command, and the exit code it ends with.

use std::path::PathBuf;

use crate::checkpoint::Damage;
use crate::control::StopError;
use crate::corpus::CorpusError;
use crate::exit::Exit;
use crate::log::LogError;
use crate::model::ScriptError;
use crate::model::remote::AccessError;
use crate::queue::NotPending;
use crate::session::SessionError;
use crate::store::{StoreError, StoreKind};

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum CliError {
    /// The store's errors name the file themselves.
    #[error("{}{source}", match source { SessionError::Store(_) => String::new(), _ => format!("{}: ", path.display()) })]
    Session { path: PathBuf, source: SessionError },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Stop(#[from] StopError),
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    #[error(transparent)]
    Script(#[from] ScriptError),
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error("{}: {why}", path.display())]
    NotPending { path: PathBuf, why: NotPending },
    #[error("{}: there is no checkpoint; `long-horizon run` makes one", path.display())]
    NoCheckpoint { path: PathBuf },
    #[error("--state says the store `{named}`, and --store says `{store}`; give one of them")]
    TwoStores { named: StoreKind, store: StoreKind },
    #[error("{}: there is a checkpoint already; nothing was written; import into another file", path.display())]
    Exists { path: PathBuf },
    #[error("{}: it is no checkpoint: {damage}; nothing was written", path.display())]
    NotImported { path: PathBuf, damage: Damage },
    #[error("{}: cannot {what}: {source}", path.display())]
    File { path: PathBuf, what: &'static str, source: std::io::Error },
}

impl CliError {
    pub(super) fn exit(&self) -> Exit {
        match self {
            CliError::Store(error)
            | CliError::Session { source: SessionError::Store(error), .. } => of_store(error),
            CliError::Access(_) | CliError::TwoStores { .. } => Exit::Usage,
            CliError::NotImported { .. } => Exit::Damaged,
            _ => Exit::Failed,
        }
    }
}

fn of_store(error: &StoreError) -> Exit {
    match error {
        StoreError::Damaged { .. } | StoreError::DamagedMeanwhile { .. } => Exit::Damaged,
        StoreError::Busy { .. }
        | StoreError::Changed { .. }
        | StoreError::Overtaken { .. }
        | StoreError::Deleted { .. }
        | StoreError::Appeared { .. } => Exit::TryAgain,
        StoreError::Unreadable { .. } | StoreError::Write { .. } | StoreError::Unsynced { .. } => {
            Exit::Failed
        }
    }
}
