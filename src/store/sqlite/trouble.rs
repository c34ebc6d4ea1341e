//! What SQLite says, in the words of the store.

use std::io;
use std::path::Path;

use rusqlite::{Error, ErrorCode, ffi};

use crate::store::replace::failed;
use crate::store::{Flaw, Holder, StoreError};

/// Why something in the database could not be done.
#[derive(Debug)]
pub(super) enum Trouble {
    /// SQLite's answer.
    Sql(Error),
    /// It is a database, and no checkpoint.
    Flaw(String),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Trouble::Sql(error)
    }
}

impl Trouble {
    /// As an error of reading the database at `path`.
    pub(super) fn reading(self, path: &Path) -> StoreError {
        let path_buf = || path.to_path_buf();
        let error = match self {
            Trouble::Flaw(flaw) => return damaged(path, flaw),
            Trouble::Sql(error) => error,
        };
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => busy(path),
            Some(ErrorCode::ReadOnly) => StoreError::Unreadable {
                path: path_buf(),
                why: "a session was killed while it saved, and what it left cannot be put back without permission to write".to_owned(),
                remedy: "run as the user who owns it, or have the permissions of it and its folder changed".to_owned(),
            },
            Some(
                ErrorCode::CannotOpen
                | ErrorCode::PermissionDenied
                | ErrorCode::SystemIoFailure
                | ErrorCode::OutOfMemory
                | ErrorCode::DiskFull
                | ErrorCode::FileLockingProtocolFailed,
            ) => StoreError::Unreadable {
                path: path_buf(),
                why: error.to_string(),
                remedy: "remove the cause, then run again".to_owned(),
            },
            // Not a database, malformed, of another schema or type: whatever else keeps it from being read is in its bytes.
            _ => damaged(path, words(&error)),
        }
    }

    /// As an error of the step `step` of writing to the database at `path`.
    pub(super) fn writing(self, path: &Path, step: &'static str) -> StoreError {
        let error = match self {
            Trouble::Flaw(flaw) => return damaged(path, flaw),
            Trouble::Sql(error) => error,
        };
        if error.sqlite_error().is_some_and(|e| e.extended_code == ffi::SQLITE_READONLY_DBMOVED) {
            return StoreError::Deleted { path: path.to_path_buf() };
        }
        let kind = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => return busy(path),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                return damaged(path, words(&error));
            }
            Some(ErrorCode::DiskFull) => io::ErrorKind::StorageFull,
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                io::ErrorKind::PermissionDenied
            }
            _ => io::ErrorKind::Other,
        };
        failed(path, step, io::Error::new(kind, words(&error)))
    }
}

/// Without the numbers by which SQLite calls them.
fn words(error: &Error) -> String {
    error.to_string().replace('\n', " ")
}

pub(super) fn damaged(path: &Path, flaw: impl Into<String>) -> StoreError {
    StoreError::Damaged { path: path.to_path_buf(), damage: Flaw::Database(flaw.into()) }
}

fn busy(path: &Path) -> StoreError {
    StoreError::Busy { path: path.to_path_buf(), holder: Holder::default() }
}
