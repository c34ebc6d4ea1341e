//! What a store refuses or cannot do, and what is wrong with what it found.

use std::fmt;
use std::path::PathBuf;

use super::Holder;
use crate::checkpoint::Damage;

/// What is wrong with something that should be a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flaw {
    /// A JSON text, and where in it.
    Json(Damage),
    /// A database, in words.
    Database(String),
}

impl From<Damage> for Flaw {
    fn from(damage: Damage) -> Self {
        Flaw::Json(damage)
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flaw::Json(damage) => damage.fmt(f),
            Flaw::Database(what) => f.write_str(what),
        }
    }
}

/// What a store refuses or cannot do.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file is no checkpoint. Exit code 65.
    #[error("{}: the checkpoint is damaged: {damage}; nothing was changed; restore it from a backup or repair it by hand, then run again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        damage: Flaw,
    },
    /// The file was whole when it was loaded, and is no checkpoint now. Exit code 65.
    #[error("{}: the checkpoint was damaged while this session worked: {damage}; nothing was written; restore it from a backup or repair it by hand, then run again", path.display())]
    DamagedMeanwhile {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        damage: Flaw,
    },
    /// There is something, but it cannot be read. Exit code 1.
    #[error("{}: cannot read the checkpoint: {why}; {remedy}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Permission, folder, dangling link, unreachable parent.
        why: String,
        /// What to do.
        remedy: String,
    },
    /// Another session holds the lock. Exit code 75.
    #[error("{}: another session{} holds the checkpoint; nothing was done; try again when it has ended", path.display(), match holder.pid { Some(pid) => format!(" (process {pid})"), None => String::new() })]
    Busy {
        /// The file.
        path: PathBuf,
        /// Who.
        holder: Holder,
    },
    /// The content is another than the one loaded. Exit code 75.
    #[error("{}: the checkpoint was changed while this session worked ({}); nothing was written; run again", path.display(), what_changed(*loaded_sessions, *found_sessions))]
    Changed {
        /// The file.
        path: PathBuf,
        /// `sessions_run` when it was loaded.
        loaded_sessions: u64,
        /// `sessions_run` now.
        found_sessions: u64,
    },
    /// The question is no longer this session's to record: its claim ran out and another took the question over, or a person changed
    /// what was claimed. Exit code 75.
    #[error("{}: `{question}` is no longer claimed by this session (its time ran out and another took it over, or it was changed by hand); nothing was written; run again", path.display())]
    Overtaken {
        /// The file.
        path: PathBuf,
        /// What the session worked on.
        question: String,
    },
    /// The file was deleted meanwhile. Exit code 75.
    #[error("{}: the checkpoint was deleted while this session worked; nothing was written; restore it, or run again to start a fresh queue", path.display())]
    Deleted {
        /// The file.
        path: PathBuf,
    },
    /// There was no file, and there is one now. Exit code 75.
    #[error("{}: a checkpoint appeared while this session worked; nothing was written; run again", path.display())]
    Appeared {
        /// The file.
        path: PathBuf,
    },
    /// The new checkpoint is in place, but the folder's entry for it could not be made durable. Exit code 1.
    #[error("{}: the checkpoint was replaced, but may be the old one again after a power cut: cannot sync its folder: {source}; check the disk", path.display())]
    Unsynced {
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// It could not be written; the file is as it was. Exit code 1.
    #[error("{}: cannot {step}: {source}; the checkpoint is as it was; {}, then run again", path.display(), remedy(source))]
    Write {
        /// The path that the failing step was on.
        path: PathBuf,
        /// The step.
        step: &'static str,
        /// The kernel's answer.
        source: std::io::Error,
    },
}

/// What to do when something could not be written.
fn remedy(error: &std::io::Error) -> &'static str {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "make room on the disk",
        ErrorKind::PermissionDenied => {
            "run as the owner of the checkpoint, or have the permissions of its folder changed"
        }
        ErrorKind::ReadOnlyFilesystem => "make the file system writable",
        ErrorKind::AlreadyExists => "remove what is there",
        ErrorKind::InvalidFilename => "give it a shorter name",
        _ => "remove the cause",
    }
}

fn what_changed(loaded_sessions: u64, found_sessions: u64) -> String {
    if loaded_sessions == found_sessions {
        format!("its session counter is still {loaded_sessions}, so by resolve or by hand")
    } else {
        format!("its session counter was {loaded_sessions}, and is {found_sessions} now")
    }
}
