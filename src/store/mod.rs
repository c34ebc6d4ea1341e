//! Where checkpoints are kept. One trait, one file for each store.
//!
//! A new store is one new file that implements [`Store`], one [`StoreKind`], and one line in [`open`].

mod file;
mod json;
mod lock;
mod reference;
mod replace;

use std::fmt::{self, Debug};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::checkpoint::{Checkpoint, Damage};

pub use json::JsonStore;
pub use reference::ReferenceStore;

/// The protocols by which a checkpoint can be kept. The format of the file is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StoreKind {
    /// [`JsonStore`]: locked, checked, durable.
    #[default]
    Json,
    /// [`ReferenceStore`]: check, then replace. For study, and for the lab.
    Reference,
}

impl StoreKind {
    /// Every kind, the default first.
    pub const ALL: [StoreKind; 2] = [StoreKind::Json, StoreKind::Reference];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            StoreKind::Json => "json",
            StoreKind::Reference => "reference",
        }
    }
}

impl fmt::Display for StoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The store of that kind for the checkpoint at `path`. Touches nothing.
pub fn open(kind: StoreKind, path: impl Into<PathBuf>) -> Box<dyn Store> {
    match kind {
        StoreKind::Json => Box::new(JsonStore::new(path)),
        StoreKind::Reference => Box::new(ReferenceStore::new(path)),
    }
}

/// A checkpoint together with the bytes it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// What the file says.
    pub checkpoint: Checkpoint,
    /// The file's bytes; `None` where there was no file and this is a fresh queue.
    pub bytes: Option<Arc<Vec<u8>>>,
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
    /// Those of [`read`](Self::read), [`StoreError::Busy`], and [`StoreError::Write`] where it shows already that nothing
    /// could be saved.
    fn begin(&self, wait: Wait) -> Result<Box<dyn Transaction + '_>, StoreError>;

    /// The checkpoint file with links resolved: lock, temp files and log sit beside it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unreadable`] for a dangling link or a parent that cannot be reached.
    fn target(&self) -> Result<PathBuf, StoreError>;

    /// A person's note may answer a question that nobody asked, as the reference lets it.
    fn resolves_anything(&self) -> bool {
        false
    }

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

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "process {pid}"),
            None => f.write_str("a session"),
        }
    }
}

/// One read-modify-write; the lock is held until it is dropped. Dropped without [`save`](Self::save), it has changed nothing.
pub trait Transaction: Debug {
    /// What was read; `None`: there truly is no file.
    fn loaded(&self) -> Option<&Loaded>;

    /// Checks that the file still holds what was read, then replaces it; durable on return.
    ///
    /// # Errors
    ///
    /// [`StoreError::Changed`], [`StoreError::Deleted`], [`StoreError::DamagedMeanwhile`], [`StoreError::Appeared`],
    /// [`StoreError::Unreadable`], [`StoreError::Write`]; the file is then as it was. [`StoreError::Unsynced`]; the file is
    /// then the new one.
    fn save(self: Box<Self>, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        let mut held = self;
        held.replace(checkpoint)
    }

    /// As [`save`](Self::save), with the lock still held on return, for what must be recorded before another begins. Once only: the
    /// file then holds something else than what was read, and a second call is refused.
    ///
    /// # Errors
    ///
    /// As [`save`](Self::save).
    fn replace(&mut self, checkpoint: &Checkpoint) -> Result<(), StoreError>;
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
    #[error("{}: the checkpoint was damaged while this session worked: {damage}; nothing was written; restore it from a backup or repair it by hand, then run again", path.display())]
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
    #[error("{}: the checkpoint was changed while this session worked ({}); nothing was written; run again", path.display(), what_changed(*loaded_sessions, *found_sessions))]
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

/// Announces a place of interest to a tracer: one look-up of `/crashlab/mark/NAME`, which fails.
pub fn mark(name: &str) {
    let path = Path::new("/crashlab/mark").join(name);
    let _no_such_file = nix::unistd::access(&path, nix::unistd::AccessFlags::F_OK);
}
