//! Where checkpoints are kept. One trait, one file or folder for each store.
//!
//! A new store is one new file that implements [`Store`], one [`StoreKind`], and one line in [`open`]. What must hold of it is what
//! [`conformance`] tries, of a store of another crate as well.

mod alive;
mod claim;
pub mod conformance;
mod error;
mod file;
mod json;
mod lock;
mod reference;
mod replace;
mod sqlite;

use std::fmt::{self, Debug};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::checkpoint::Checkpoint;

pub use claim::{Applied, Claim, ClaimError, Terms, Whole};
pub use error::{Flaw, StoreError};
pub use json::JsonStore;
pub use reference::ReferenceStore;
pub use sqlite::SqliteStore;

/// The ways to keep a checkpoint. The content is the same; `json` and `reference` keep it in the same format of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StoreKind {
    /// [`JsonStore`]: locked, checked, durable.
    #[default]
    Json,
    /// [`ReferenceStore`]: check, then replace. For study, and for the lab.
    Reference,
    /// [`SqliteStore`]: a database, in which several sessions work at the same time.
    Sqlite,
}

impl StoreKind {
    /// Every kind, the default first.
    pub const ALL: [StoreKind; 3] = [StoreKind::Json, StoreKind::Reference, StoreKind::Sqlite];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            StoreKind::Json => "json",
            StoreKind::Reference => "reference",
            StoreKind::Sqlite => "sqlite",
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
        StoreKind::Sqlite => Box::new(SqliteStore::new(path)),
    }
}

/// A checkpoint together with the bytes it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// What the file says.
    pub checkpoint: Checkpoint,
    /// The file's bytes, or those it would have where the store keeps another kind of file; `None` where there was no file and this is a
    /// fresh queue.
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

    /// Begins the read-modify-write of the whole checkpoint: takes the lock (if the store has one), then reads.
    ///
    /// # Errors
    ///
    /// Those of [`read`](Self::read), [`StoreError::Busy`], and [`StoreError::Write`] where it shows already that nothing
    /// could be saved.
    fn begin(&self, wait: Wait) -> Result<Box<dyn Transaction + '_>, StoreError>;

    /// Claims the next question for a session. `None`: the queue is empty, and nothing was written.
    ///
    /// # Errors
    ///
    /// Those of [`begin`](Self::begin); [`StoreError::Busy`] where others work on all that is left.
    fn claim(&self, terms: &Terms<'_>) -> Result<Option<Box<dyn Claim + '_>>, StoreError> {
        let transaction = self.begin(Wait::Fail)?;
        let whole = Whole::new(transaction, terms.fresh);
        Ok(whole.map(|claim| Box::new(claim) as Box<dyn Claim + '_>))
    }

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

    /// Whoever works on the checkpoint now.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unreadable`].
    fn holders(&self) -> Result<Vec<Holder>, StoreError>;
}

/// Who holds a lock, or a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Holder {
    /// Its process id, where the lock file tells.
    pub pid: Option<u32>,
    /// The number of its claim, where the store has such.
    pub claim: Option<u64>,
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

/// Announces a place of interest to a tracer: one look-up of `/crashlab/mark/NAME`, which fails.
pub fn mark(name: &str) {
    let path = Path::new("/crashlab/mark").join(name);
    let _no_such_file = nix::unistd::access(&path, nix::unistd::AccessFlags::F_OK);
}
