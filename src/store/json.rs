//! The default store: locked from load to save, checked against the whole content that was loaded, durable on return.
//!
//! What a save guarantees, and against whom:
//!
//! - Against sessions, `resolve` and all else that takes the lock: nothing of one is ever lost to another.
//! - Against whoever ignores the lock (an editor, the reference store): the file is read once more and compared byte for
//!   byte, after the new content is on disk and right before the rename. A change in the moment between that reading and
//!   the rename, a few microseconds, is overwritten unseen: no file system offers a rename on condition of content. (A
//!   checkpoint that appears where none was is safe even then, where the file system can rename without replacing.)
//! - Against a kill, an error and a power cut: the old content or the new, whole. After a return without error, the new.
//!
//! Mode and owner are kept, and a session that could not keep them fails before it starts. Access control lists and
//! extended attributes are not kept, and a second hard link to the old file keeps the old content. Beside a checkpoint
//! `state.json` every file `state.json.<digits>.tmp` belongs to this store, which removes it.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use super::file::{self, Target};
use super::lock::{self, Lock};
use super::replace::{Temp, failed, rehearse, remove_dead_temps};
use super::{Holder, Loaded, Store, StoreError, Transaction, Wait, mark};
use crate::checkpoint::Checkpoint;
use crate::files;

/// A checkpoint in a JSON file, guarded by `<name>.lock` beside it.
///
/// A link is followed: lock and temp file sit beside what it leads to, and it stays a link.
#[derive(Debug, Clone)]
pub struct JsonStore {
    path: PathBuf,
}

impl JsonStore {
    /// The store for the checkpoint at `path`. Touches nothing.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        JsonStore { path: path.into() }
    }

    fn load(&self, target: &Target) -> Result<Option<Loaded>, StoreError> {
        if target.found.is_none() {
            return Ok(None);
        }
        match file::read(&self.path, &target.path)? {
            Some(bytes) => file::decoded(&self.path, bytes).map(Some),
            None => Ok(None),
        }
    }
}

impl Store for JsonStore {
    fn read(&self) -> Result<Option<Loaded>, StoreError> {
        self.load(&file::resolve(&self.path)?)
    }

    fn begin(&self, wait: Wait) -> Result<Box<dyn Transaction + '_>, StoreError> {
        let (target, lock) = lock::take_beside(&self.path, wait)?;
        let loaded = self.load(&target)?;
        // Only now: while the checkpoint is damaged, nothing beside it is touched either.
        remove_dead_temps(&target.path)?;
        rehearse(&target.path, existing(&self.path, &target.path)?.as_ref())?;
        mark("loaded");
        Ok(Box::new(Held { path: &self.path, target: target.path, loaded, lock }))
    }

    fn target(&self) -> Result<PathBuf, StoreError> {
        Ok(file::resolve(&self.path)?.path)
    }

    fn holders(&self) -> Result<Vec<Holder>, StoreError> {
        let lock = lock::path_beside(&file::resolve(&self.path)?.path);
        let holder = lock::holder(&lock).map_err(|error| file::unreadable(&lock, &error))?;
        Ok(holder.into_iter().collect())
    }
}

/// What the kernel says about the file at `target`, which is no link; `None` if there is none.
pub(super) fn existing(path: &Path, target: &Path) -> Result<Option<Metadata>, StoreError> {
    match fs::symlink_metadata(target) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(file::unreadable(path, &error)),
    }
}

/// One session's hold on the checkpoint.
#[derive(Debug)]
struct Held<'s> {
    /// As the user gave it, for messages.
    path: &'s Path,
    target: PathBuf,
    loaded: Option<Loaded>,
    lock: Lock,
}

impl Transaction for Held<'_> {
    fn loaded(&self) -> Option<&Loaded> {
        self.loaded.as_ref()
    }

    fn replace(&mut self, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        let encoded = checkpoint.encoded();
        // Opened before anything is changed, so that a folder that cannot be synced is found out in time.
        let folder = files::folder_of(&self.target);
        let folder =
            File::open(folder).map_err(|error| failed(folder, "open the folder", error))?;
        let replaced = existing(self.path, &self.target)?;
        let temp = Temp::write(&self.target, &encoded.parts(), replaced.as_ref())?;
        self.check()?;
        mark("checked");
        if self.loaded.is_some() {
            temp.rename_over(&self.target)?;
        } else if !temp.rename_to_free(&self.target)? {
            return Err(StoreError::Appeared { path: self.path.to_path_buf() });
        }
        folder
            .sync_all()
            .map_err(|source| StoreError::Unsynced { path: self.path.to_path_buf(), source })?;
        mark("saved");
        Ok(())
    }
}

impl Held<'_> {
    /// That everything is as it was when it was loaded.
    fn check(&self) -> Result<(), StoreError> {
        let path = || self.path.to_path_buf();
        let in_place = self.lock.is_in_place();
        if !in_place.map_err(|error| failed(self.lock.path(), "look at the lock file", error))? {
            let cause = io::Error::other(
                "it was removed or replaced while this session worked, so another may hold it",
            );
            return Err(failed(self.lock.path(), "rely on the lock file", cause));
        }
        let now = file::resolve(self.path)?;
        if now.path != self.target {
            return Err(StoreError::Unreadable {
                path: path(),
                why: format!(
                    "its link led to {} before, and leads to {} now",
                    self.target.display(),
                    now.path.display()
                ),
                remedy: "nothing was written; run again".to_owned(),
            });
        }
        let bytes = if now.found.is_some() { file::read(self.path, &self.target)? } else { None };
        match (&self.loaded, bytes) {
            (None, None) => Ok(()),
            (None, Some(_)) => Err(StoreError::Appeared { path: path() }),
            (Some(_), None) => Err(StoreError::Deleted { path: path() }),
            (Some(loaded), Some(bytes)) if loaded.bytes.as_deref() == Some(&bytes) => Ok(()),
            (Some(loaded), Some(bytes)) => Err(match Checkpoint::decode(&bytes) {
                Ok(found) => StoreError::Changed {
                    path: path(),
                    loaded_sessions: loaded.checkpoint.sessions_run,
                    found_sessions: found.sessions_run,
                },
                Err(damage) => StoreError::DamagedMeanwhile { path: path(), damage: damage.into() },
            }),
        }
    }
}
