//! A new database: made beside its place, synced, and renamed, so that it is there as a whole or not at all.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::OFlag;
use rusqlite::{Connection, OpenFlags};

use super::claims::ClaimRow;
use super::database::plain;
use super::rows::Rows;
use super::schema;
use super::trouble::Trouble;
use crate::checkpoint::Checkpoint;
use crate::digest;
use crate::files;
use crate::store::StoreError;
use crate::store::replace::{NEW_MODE, Temp, failed, temp_path};

/// Makes the database at `target`, where nothing is, with this checkpoint in it and, perhaps, a claim, whose epoch is yet to be given.
/// Returns the content, and the epoch of the claim.
///
/// # Errors
///
/// [`StoreError::Appeared`] where something is there now; [`StoreError::Write`]; [`StoreError::Unsynced`].
pub(super) fn create(
    path: &Path,
    target: &Path,
    checkpoint: &Checkpoint,
    claim: impl FnOnce(&mut i64) -> Result<Option<ClaimRow>, StoreError>,
) -> Result<(Rows, Option<ClaimRow>), StoreError> {
    let temp = temp_path(target);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(NEW_MODE)
        .custom_flags(OFlag::O_NOFOLLOW.bits())
        .open(&temp)
        .map_err(|error| failed(&temp, "create the temp file", error))?;
    let temp = Temp::made(file, temp);
    let mut epoch = 0;
    let rows = Rows::default().following(checkpoint, &mut epoch);
    let claim = claim(&mut epoch)?;
    let sha256 = digest::sha256_of_parts(&checkpoint.encoded().parts());
    fill(temp.path(), &rows, claim.as_ref(), epoch, &sha256)
        .map_err(|trouble| trouble.writing(temp.path(), "write the temp file"))?;
    temp.sync()?;
    let folder = files::folder_of(target);
    let folder = File::open(folder).map_err(|error| failed(folder, "open the folder", error))?;
    if !temp.rename_to_free(target)? {
        return Err(StoreError::Appeared { path: path.to_owned() });
    }
    folder
        .sync_all()
        .map_err(|source: io::Error| StoreError::Unsynced { path: path.to_owned(), source })?;
    Ok((rows, claim))
}

fn fill(
    temp: &Path,
    rows: &Rows,
    claim: Option<&ClaimRow>,
    epoch: i64,
    sha256: &str,
) -> Result<(), Trouble> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(plain(temp), flags)?;
    // Nobody sees it before it is synced as a whole.
    connection.execute_batch(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA secure_delete = ON; BEGIN",
    )?;
    schema::fire_no_triggers(&connection)?;
    schema::create(&connection)?;
    rows.write(&Rows::default(), &connection)?;
    if let Some(claim) = claim {
        claim.insert(&connection)?;
    }
    connection.execute(
        "UPDATE state SET sessions_run = ?, epoch = ?, sha256 = ?",
        rusqlite::params![rows.sessions_run.to_string(), epoch, sha256],
    )?;
    connection.execute_batch("COMMIT")?;
    connection.close().map_err(|(_, error)| error.into())
}
