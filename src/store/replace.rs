//! Replacing a file whole: a temp file beside it, synced, then renamed over it.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, IoSlice, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::unistd::{AccessFlags, eaccess, getegid, geteuid};

use super::StoreError;
use crate::files::{beside, folder_of};

/// Permissions of a file that replaces none; the user's umask is taken off.
pub(super) const NEW_MODE: u32 = 0o666;
/// Permissions of one that does, until it has those of the file it replaces.
const PRIVATE_MODE: u32 = 0o600;
/// All that `chmod` can set.
const MODE_MASK: u32 = 0o7777;

/// Where a temp file for `target` is.
pub(super) fn temp_path(target: &Path) -> PathBuf {
    beside(target, &format!(".{}.tmp", std::process::id()))
}

/// A temp file that is removed when dropped, unless it was renamed.
#[derive(Debug)]
pub(super) struct Temp {
    file: File,
    path: PathBuf,
    in_place: bool,
}

impl Temp {
    /// Writes the parts to a new file beside `target` and makes them durable, with the mode and owner of `replaced`.
    ///
    /// If the owner cannot be kept, nothing is written: a file that silently changes hands may be one that its owner can
    /// no longer read. Access control lists and extended attributes are not kept. A bit of the mode that the kernel drops
    /// by itself (set-group-id, for who is not in the group) stays dropped.
    ///
    /// # Errors
    ///
    /// [`StoreError::Write`].
    pub(super) fn write(
        target: &Path,
        parts: &[&[u8]],
        replaced: Option<&Metadata>,
    ) -> Result<Temp, StoreError> {
        let path = temp_path(target);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(if replaced.is_some() { PRIVATE_MODE } else { NEW_MODE })
            .custom_flags(OFlag::O_NOFOLLOW.bits())
            .open(&path)
            .map_err(|error| failed(&path, "create the temp file", error))?;
        let temp = Temp::made(file, path);
        write_whole(&temp.file, parts)
            .map_err(|error| temp.failed("write the temp file", error))?;
        if let Some(replaced) = replaced {
            temp.take_after(replaced)?;
        }
        temp.sync()?;
        Ok(temp)
    }

    /// The temp file `file`, which was made at `path`.
    pub(super) fn made(file: File, path: PathBuf) -> Temp {
        Temp { file, path, in_place: false }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes its content durable.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        self.file.sync_all().map_err(|error| self.failed("sync the temp file", error))
    }

    /// Gives it owner and mode, in this order: a change of owner takes some bits of the mode away.
    fn take_after(&self, replaced: &Metadata) -> Result<(), StoreError> {
        let new =
            self.file.metadata().map_err(|error| self.failed("look at the temp file", error))?;
        if (new.uid(), new.gid()) != (replaced.uid(), replaced.gid()) {
            let kept = fchown(&self.file, Some(replaced.uid()), Some(replaced.gid()));
            kept.map_err(|error| {
                self.failed("give the temp file the owner of the checkpoint", error)
            })?;
        }
        let mode = replaced.mode() & MODE_MASK;
        if new.mode() & MODE_MASK != mode {
            let kept = self.file.set_permissions(Permissions::from_mode(mode));
            kept.map_err(|error| {
                self.failed("give the temp file the mode of the checkpoint", error)
            })?;
        }
        Ok(())
    }

    /// Renames it over `target`.
    pub(super) fn rename_over(mut self, target: &Path) -> Result<(), StoreError> {
        fs::rename(&self.path, target)
            .map_err(|error| self.failed("rename the temp file", error))?;
        self.in_place = true;
        Ok(())
    }

    /// Renames it to `target`, where nothing was a moment ago. Returns whether that is still so: if not, nothing was done.
    pub(super) fn rename_to_free(mut self, target: &Path) -> Result<bool, StoreError> {
        match rename_no_replace(&self.path, target) {
            Ok(()) => {
                self.in_place = true;
                Ok(true)
            }
            Err(Errno::EEXIST) => Ok(false),
            // Not every file system can; then the caller's own look, a moment ago, must do.
            Err(Errno::EINVAL | Errno::ENOSYS) => self.rename_over(target).map(|()| true),
            Err(errno) => Err(self.failed("rename the temp file", errno.into())),
        }
    }

    fn failed(&self, step: &'static str, source: io::Error) -> StoreError {
        failed(&self.path, step, source)
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        if !self.in_place {
            // If this fails as well, the next session removes it.
            let _left_for_the_next = fs::remove_file(&self.path);
        }
    }
}

/// Finds out whether [`Temp::write`] and a rename will be allowed beside `target`, as far as that can be known: better
/// before a model was paid than after. `replaced` is the file that is there now.
///
/// # Errors
///
/// [`StoreError::Write`].
pub(super) fn rehearse(target: &Path, replaced: Option<&Metadata>) -> Result<(), StoreError> {
    let folder = folder_of(target);
    eaccess(folder, AccessFlags::W_OK | AccessFlags::X_OK)
        .map_err(|errno| failed(folder, "write to the folder of the checkpoint", errno.into()))?;
    // A name so long that none can be formed from it would be found out only then, too.
    let temp = temp_path(target);
    match fs::symlink_metadata(&temp) {
        Err(error) if error.kind() == io::ErrorKind::InvalidFilename => {
            return Err(failed(&temp, "create the temp file", error));
        }
        _ => {}
    }
    match replaced {
        // Only another's file raises the question whether its owner can be kept, and only trying answers it.
        Some(replaced)
            if (replaced.uid(), replaced.gid()) != (geteuid().as_raw(), getegid().as_raw()) =>
        {
            Temp::write(target, &[], Some(replaced)).map(drop)
        }
        _ => Ok(()),
    }
}

/// Writes the parts one behind the other, in one call if the kernel takes them all.
fn write_whole(mut file: &File, parts: &[&[u8]]) -> io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> =
        parts.iter().filter(|part| !part.is_empty()).map(|part| IoSlice::new(part)).collect();
    let mut left = &mut slices[..];
    while !left.is_empty() {
        match file.write_vectored(left) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut left, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(target_env = "gnu")]
fn rename_no_replace(from: &Path, to: &Path) -> nix::Result<()> {
    use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
    renameat2(AT_FDCWD, from, AT_FDCWD, to, RenameFlags::RENAME_NOREPLACE)
}

/// Other C libraries do not have the call.
#[cfg(not(target_env = "gnu"))]
fn rename_no_replace(_from: &Path, _to: &Path) -> nix::Result<()> {
    Err(Errno::ENOSYS)
}

/// Removes what killed sessions left beside `target`. The caller holds the lock, so no living session has a temp file
/// there, whatever process id is in its name.
pub(super) fn remove_dead_temps(target: &Path) -> Result<(), StoreError> {
    let folder = folder_of(target);
    let listing = |error| failed(folder, "look for temp files of killed sessions", error);
    let name = target.file_name().unwrap_or_default();
    for entry in fs::read_dir(folder).map_err(listing)? {
        let entry = entry.map_err(listing)?;
        if !is_temp_name(name, &entry.file_name()) || !entry.file_type().map_err(listing)?.is_file()
        {
            continue;
        }
        match fs::remove_file(entry.path()) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(failed(
                    &entry.path(),
                    "remove the temp file of a killed session",
                    error,
                ));
            }
        }
    }
    Ok(())
}

/// Whether `candidate` is `<name>.<digits>.tmp`.
fn is_temp_name(name: &OsStr, candidate: &OsStr) -> bool {
    let digits = candidate
        .as_bytes()
        .strip_prefix(name.as_bytes())
        .and_then(|rest| rest.strip_prefix(b"."))
        .and_then(|rest| rest.strip_suffix(b".tmp"));
    digits.is_some_and(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit))
}

pub(super) fn failed(path: &Path, step: &'static str, source: io::Error) -> StoreError {
    StoreError::Write { path: path.to_path_buf(), step, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_appears_at_the_last_moment_is_not_replaced() {
        let folder = tempfile::TempDir::new().unwrap();
        let target = folder.path().join("state.json");
        let temp = Temp::write(&target, &[b"ou", b"rs"], None).unwrap();
        fs::write(&target, "theirs").unwrap();
        assert!(!temp.rename_to_free(&target).unwrap());
        assert_eq!(fs::read(&target).unwrap(), b"theirs");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the temp file is gone");

        fs::remove_file(&target).unwrap();
        let temp = Temp::write(&target, &[b"ou", b"rs"], None).unwrap();
        assert!(temp.rename_to_free(&target).unwrap());
        assert_eq!(fs::read(&target).unwrap(), b"ours");
    }
}
