//! A database: the content of a checkpoint in tables, and several sessions at the same time, each on a question of its own.
//!
//! A session claims its question in one short transaction, works without a lock, and records the outcome in another. What a claim
//! guarantees, and against whom:
//!
//! - Its number, the epoch, is one that no other claim of the database ever had. The outcome is recorded only if the claim is still in
//!   the database as it was made, which the transaction that writes it looks up: a session that comes late, after another took its
//!   question over, is refused.
//! - A claim of a session that died is free at once, where the kernel tells ([`alive`]), else when its lease runs out.
//! - Outcomes stand in the order of the claims, whoever is quicker: what sessions side by side leave is what they leave one after
//!   another.
//!
//! Both transactions, and those of `resolve` and an import, run under the lock beside the database, so that they wait for each other in
//! the kernel, in order, and what is logged within them is in their order. The database's own locks keep out everyone else, such as the
//! `sqlite3` shell.
//!
//! The database is in rollback mode with `synchronous=EXTRA`: the journal is synced before the database is touched, the database before
//! the journal is removed, and the folder after that. So a power cut at any point leaves the old content or the new, and after a return
//! without error the new. (A write-ahead log would be shared memory between sessions, and `FULL` alone lets a removed journal come back
//! after a power cut and undo what was told to be saved.) A database is made beside its place and renamed, so that an empty file is never
//! one.
//!
//! Whatever looks at a database that a killed session was writing puts its journal back, as SQLite does; that is the one change that
//! reading makes.
//!
//! Everything is checked on the way in: the structure of the file, the schema, the types, and a SHA-256 of the content. Triggers clear
//! the latter when someone changes the content by SQL, so that this is allowed; a bit that fell over fires no trigger.

mod claims;
mod create;
mod database;
mod hold;
mod rows;
mod schema;
mod trouble;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::file::{self, Target};
use super::lock::{self, Lock};
use super::replace::{rehearse, remove_dead_temps};
use super::{
    Claim, Holder, Loaded, Store, StoreError, Terms, Transaction, Wait, alive, json, mark,
};
use crate::clock::Clock;
use claims::Leased;
use database::Database;
use hold::Held;

/// A checkpoint in a SQLite database.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    path: PathBuf,
    clock: Clock,
    /// Which boot of which machine this is.
    boot: String,
    /// How long another program, such as the `sqlite3` shell, may keep the database locked before this gives up. Sessions wait for each
    /// other at the lock beside it, not here.
    patience: Duration,
}

/// Longer than a person looks at a query, shorter than a person waits.
const PATIENCE: Duration = Duration::from_secs(5);

impl SqliteStore {
    /// The store for the database at `path`. Touches nothing.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        SqliteStore {
            path: path.into(),
            clock: Clock::System,
            boot: alive::boot(),
            patience: PATIENCE,
        }
    }

    /// The same, with another clock for leases.
    pub fn with_clock(self, clock: Clock) -> Self {
        SqliteStore { clock, ..self }
    }

    /// The same, as it would be on another machine: no lock of the kernel tells there whether a session of this one lives.
    pub fn on_machine(self, name: &str) -> Self {
        SqliteStore { boot: name.to_owned(), ..self }
    }

    /// The same, giving up sooner or later where another program keeps the database locked.
    pub fn with_patience(self, patience: Duration) -> Self {
        SqliteStore { patience, ..self }
    }

    /// The database, opened and not looked at; `None`: there truly is no file.
    fn open(&self, target: &Target) -> Result<Option<Database>, StoreError> {
        Database::open(&self.path, target, self.patience)
    }

    /// The lock beside the database, and the database in a transaction that keeps all others from writing.
    fn enter(&self, wait: Wait) -> Result<Entered, StoreError> {
        let (target, lock) = lock::take_beside(&self.path, wait)?;
        let database = self.open(&target)?;
        let found = match &database {
            Some(database) => {
                database.begin_to_write(&self.path)?;
                Some(database.examine(&self.path)?)
            }
            None => None,
        };
        Ok(Entered { target: target.path, lock, database, found })
    }

    /// As [`enter`](Self::enter), for the first time of a session: what would make the last time fail is to be found out now.
    fn enter_first(&self, wait: Wait) -> Result<Entered, StoreError> {
        let entered = self.enter(wait)?;
        // Only now: while the database is damaged, nothing beside it is touched either.
        remove_dead_temps(&entered.target)?;
        rehearse(&entered.target, json::existing(&self.path, &entered.target)?.as_ref())?;
        mark("loaded");
        Ok(entered)
    }
}

/// What [`SqliteStore::enter`] gives.
#[derive(Debug)]
struct Entered {
    target: PathBuf,
    lock: Lock,
    database: Option<Database>,
    found: Option<database::Found>,
}

impl Store for SqliteStore {
    fn read(&self) -> Result<Option<Loaded>, StoreError> {
        match self.open(&file::resolve(&self.path)?)? {
            Some(database) => {
                database.begin_to_read(&self.path)?;
                Ok(Some(database.examine(&self.path)?.loaded))
            }
            None => Ok(None),
        }
    }

    fn begin(&self, wait: Wait) -> Result<Box<dyn Transaction + '_>, StoreError> {
        Ok(Box::new(Held::new(&self.path, self.enter_first(wait)?)))
    }

    fn claim(&self, terms: &Terms<'_>) -> Result<Option<Box<dyn Claim + '_>>, StoreError> {
        let claim = Leased::claim(self, terms)?;
        Ok(claim.map(|claim| Box::new(claim) as Box<dyn Claim + '_>))
    }

    fn target(&self) -> Result<PathBuf, StoreError> {
        Ok(file::resolve(&self.path)?.path)
    }

    fn holders(&self) -> Result<Vec<Holder>, StoreError> {
        claims::holders(self)
    }
}

/// The bytes that a checkpoint has as a file of the reference's format.
fn loaded(checkpoint: crate::checkpoint::Checkpoint) -> Loaded {
    let bytes = Some(Arc::new(checkpoint.encode()));
    Loaded { checkpoint, bytes }
}

/// The lock file beside the database.
fn lock_path(target: &Path) -> PathBuf {
    lock::path_beside(target)
}
