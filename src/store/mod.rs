//! Where checkpoints are kept. One trait, one file for each store.

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use crate::checkpoint::{Checkpoint, Damage};

/// A checkpoint together with the bytes it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// What the file says.
    pub checkpoint: Checkpoint,
    /// The file's bytes; `None` where there was no file and this is a fresh queue.
    pub bytes: Option<Vec<u8>>,
}

/// What to do when another holds the checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Fail at once with [`StoreError::Busy`].
    Fail,
    /// Wait until it is free.
    Block,
}

/// A place for one checkpoint.
pub trait Store: Debug {
    /// Reads without a lock; nothing is created. `None`: there truly is no file.
    ///
    /// # Errors
    ///
    /// [`StoreError::Damaged`] or [`StoreError::Unreadable`].
    fn read(&self) -> Result<Option<Loaded>, StoreError>;

    /// Begins the read-modify-write of one session: takes the lock (if the store has one), then reads.
    ///
    /// # Errors
    ///
    /// Those of [`read`](Self::read), and [`StoreError::Busy`].
    fn begin(&self, wait: Wait) -> Result<Box<dyn Transaction + '_>, StoreError>;

    /// The checkpoint file with links resolved: lock, temp files and log sit beside it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unreadable`] for a dangling link or a parent that cannot be reached.
    fn target(&self) -> Result<PathBuf, StoreError>;

    /// Process id of whoever holds the lock now, if anyone does.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unreadable`].
    fn holder(&self) -> Result<Option<Holder>, StoreError>;
}

/// Who holds a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// Its process id, where the lock file tells.
    pub pid: Option<u32>,
}

/// One read-modify-write. Dropped without [`save`](Self::save), it has changed nothing.
pub trait Transaction: Debug {
    /// What was read; `None`: there truly is no file.
    fn loaded(&self) -> Option<&Loaded>;

    /// Checks that the file still holds what was read, then replaces it; durable on return.
    ///
    /// # Errors
    ///
    /// [`StoreError::Changed`], [`StoreError::Deleted`], [`StoreError::DamagedMeanwhile`], [`StoreError::Appeared`],
    /// [`StoreError::Write`]; the file is then as it was.
    fn save(self: Box<Self>, checkpoint: &Checkpoint) -> Result<Vec<u8>, StoreError>;
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
        damage: Damage,
    },
    /// The file was whole when it was loaded, and is no checkpoint now. Exit code 65.
    #[error("{}: the checkpoint was damaged while this session worked: {damage}; nothing was written", path.display())]
    DamagedMeanwhile {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        damage: Damage,
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
    #[error("{}: the checkpoint was changed while this session worked (session counter {} then, {} now); nothing was written; run again", path.display(), loaded_sessions, found_sessions)]
    Changed {
        /// The file.
        path: PathBuf,
        /// `sessions_run` when it was loaded.
        loaded_sessions: u64,
        /// `sessions_run` now.
        found_sessions: u64,
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
    /// It could not be written; the file is as it was. Exit code 1.
    #[error("{}: cannot {step}: {source}; the checkpoint is as it was", path.display())]
    Write {
        /// The path that the failing step was on.
        path: PathBuf,
        /// The step.
        step: &'static str,
        /// The kernel's answer.
        source: std::io::Error,
    },
}

/// Announces a place of interest to a tracer: one look-up of `/crashlab/mark/NAME`, which fails.
pub fn mark(name: &str) {
    let path = Path::new("/crashlab/mark").join(name);
    let _no_such_file = nix::unistd::access(&path, nix::unistd::AccessFlags::F_OK);
}
