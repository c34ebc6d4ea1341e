//! An open database: how it is opened, looked at as a whole, and written.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, params};

use super::claims::ClaimRow;
use super::rows::Rows;
use super::trouble::{Trouble, damaged};
use super::{loaded, schema};
use crate::digest;
use crate::files;
use crate::store::file::{self, Target};
use crate::store::replace::failed;
use crate::store::{Loaded, StoreError};

/// An open database. A transaction that is not committed is undone when it is dropped.
#[derive(Debug)]
pub(super) struct Database {
    connection: Connection,
    target: PathBuf,
    /// Device and inode of the file that was opened.
    file: (u64, u64),
}

/// All that is in a database.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) rows: Rows,
    pub(super) loaded: Loaded,
    /// SHA-256 of the checkpoint as a file.
    pub(super) digest: String,
    /// The last number that was given to a claim or a row.
    pub(super) epoch: i64,
    pub(super) claims: Vec<ClaimRow>,
}

impl Database {
    /// Opens the database at `target`; `None`: there truly is none. Errors name `path`, which the user knows.
    pub(super) fn open(
        path: &Path,
        target: &Target,
        patience: Duration,
    ) -> Result<Option<Database>, StoreError> {
        let journal = files::beside(&target.path, "-journal");
        let Some(found) = &target.found else {
            return match fs::symlink_metadata(&journal) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Ok(_) => Err(damaged(
                    path,
                    format!("it is gone, and its journal {} is there", journal.display()),
                )),
                Err(error) => Err(file::unreadable(&journal, &error)),
            };
        };
        // SQLite takes an empty file for a new database.
        if found.len() == 0 {
            return Err(damaged(path, "it is empty, 0 bytes"));
        }
        let database = Database::connect(&target.path, found, patience)
            .map_err(|error| Trouble::from(error).reading(path))?;
        Ok(Some(database))
    }

    fn connect(target: &Path, found: &Metadata, patience: Duration) -> rusqlite::Result<Database> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(plain(target), flags)?;
        connection.busy_timeout(patience)?;
        connection.execute_batch(
            "PRAGMA synchronous = EXTRA; PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY; \
             PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0",
        )?;
        schema::fire_no_triggers(&connection)?;
        Ok(Database { connection, target: target.to_owned(), file: (found.dev(), found.ino()) })
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Begins a transaction that sees one state of the database.
    pub(super) fn begin_to_read(&self, path: &Path) -> Result<(), StoreError> {
        self.run("BEGIN").map_err(|trouble| trouble.reading(path))
    }

    /// Begins a transaction that also keeps others from writing.
    pub(super) fn begin_to_write(&self, path: &Path) -> Result<(), StoreError> {
        self.run("BEGIN IMMEDIATE").map_err(|trouble| trouble.writing(path, "lock the database"))
    }

    fn run(&self, sql: &str) -> Result<(), Trouble> {
        Ok(self.connection.execute_batch(sql)?)
    }

    /// Reads and checks all of it. A transaction has begun.
    pub(super) fn examine(&self, path: &Path) -> Result<Found, StoreError> {
        self.look().map_err(|trouble| trouble.reading(path))
    }

    fn look(&self) -> Result<Found, Trouble> {
        schema::check(&self.connection)?;
        self.is_of_its_length()?;
        let (sessions_run, epoch, sha256) = self.connection.query_row(
            "SELECT sessions_run, epoch, sha256 FROM state WHERE id = 1",
            [],
            |row| {
                Ok((
                    row.get::<_, String>(0)?,
                    row.get::<_, i64>(1)?,
                    row.get::<_, Option<String>>(2)?,
                ))
            },
        )?;
        let rows = Rows::read(&self.connection, &sessions_run)?;
        let claims = ClaimRow::read_all(&self.connection)?;
        let last = claims.iter().map(|claim| claim.epoch).fold(rows.last(), i64::max);
        if epoch < last {
            return Err(Trouble::Flaw(format!(
                "its last number is {epoch}, and {last} was given already"
            )));
        }
        let loaded = loaded(rows.checkpoint()?);
        let digest = digest::sha256(loaded.bytes.as_deref().map_or(&[], Vec::as_slice));
        if sha256.is_some_and(|told| told != digest) {
            return Err(Trouble::Flaw(
                "its content is not what its SHA-256 says, and was not changed by SQL".to_owned(),
            ));
        }
        Ok(Found { rows, loaded, digest, epoch, claims })
    }

    /// That nothing is behind its last page: SQLite would pass it over.
    fn is_of_its_length(&self) -> Result<(), Trouble> {
        let number =
            |name: &str| self.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let pages = number("page_count")?.saturating_mul(number("page_size")?);
        match fs::symlink_metadata(&self.target) {
            Ok(found) if i64::try_from(found.len()).is_ok_and(|len| len != pages) => {
                Err(Trouble::Flaw(format!("it has {} bytes, and should have {pages}", found.len())))
            }
            _ => Ok(()),
        }
    }

    /// That the file which was opened is still the one at its place. `None`: there is none there.
    pub(super) fn is_in_place(&self) -> io::Result<Option<bool>> {
        match fs::symlink_metadata(&self.target) {
            Ok(found) => Ok(Some((found.dev(), found.ino()) == self.file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the rows, which were those of `before`, in the transaction that has begun.
    pub(super) fn write(&self, rows: &Rows, before: &Rows) -> Result<(), Trouble> {
        rows.write(before, &self.connection)
    }

    /// Notes the counter, the last number that was given, and the digest of the content.
    pub(super) fn seal(&self, sessions_run: u64, epoch: i64, digest: &str) -> Result<(), Trouble> {
        self.connection.execute(
            "UPDATE state SET sessions_run = ?, epoch = ?, sha256 = ?",
            params![sessions_run.to_string(), epoch, digest],
        )?;
        Ok(())
    }

    /// Makes what was written durable, and others can write again. `after`: the digest of the checkpoint then.
    pub(super) fn commit(self, path: &Path, after: &str) -> Result<(), StoreError> {
        let Err(trouble) = self.run("COMMIT") else { return Ok(()) };
        let target = self.target.clone();
        drop(self);
        // The step that failed may be the very last, the sync of the folder.
        let target = file::resolve(&target);
        let now =
            target.and_then(|target| Database::open(path, &target, Duration::ZERO)).ok().flatten();
        let now = now.and_then(|now| {
            now.begin_to_read(path).ok()?;
            now.examine(path).ok()
        });
        if now.is_some_and(|found| found.digest == after) {
            let source = io::Error::other(match trouble {
                Trouble::Sql(error) => error.to_string(),
                Trouble::Flaw(flaw) => flaw,
            });
            return Err(StoreError::Unsynced { path: path.to_owned(), source });
        }
        Err(trouble.writing(path, "save to the database"))
    }
}

/// That a file was not exchanged or taken away since it was opened.
pub(super) fn in_place(database: &Database, path: &Path) -> Result<(), StoreError> {
    match database.is_in_place() {
        Ok(Some(true)) => Ok(()),
        Ok(None) => Err(StoreError::Deleted { path: path.to_owned() }),
        Ok(Some(false)) => Err(StoreError::Appeared { path: path.to_owned() }),
        Err(error) => Err(failed(path, "look at the database", error)),
    }
}

/// The path so that SQLite cannot take it for anything else: `:memory:` and `file:...` mean something to it.
pub(super) fn plain(path: &Path) -> PathBuf {
    if path.is_absolute() { path.to_owned() } else { Path::new(".").join(path) }
}
