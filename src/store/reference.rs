//! The protocol of the reference, with its weak points, for study and for the lab. Do not keep work in it.
//!
//! Load; work; check that the file still says the counter that was loaded; write a temp file; rename it over the path.
//! What goes wrong with that, kept here on purpose:
//!
//! - no lock: two sessions can both pass the check, and one is lost;
//! - only the counter is compared: a `resolve` or a hand edit in between is erased unseen;
//! - no sync: after a power cut the file may be old, empty or garbage although the session reported success;
//! - a temp file that a killed session left stays for ever;
//! - a person's note on a question that is not pending invents an answer, and a question that is still queued is then
//!   answered twice;
//! - a link is replaced by a file, mode and owner are lost, and a link that leads to nothing counts as no file;
//! - a file that was deleted meanwhile is written anew;
//! - a file that was damaged meanwhile gives a parser's message that does not say so.
//!
//! One thing is stricter than in the reference: a file whose elements have wrong types does not load here, since
//! [`Checkpoint`] cannot hold them. And what is not a file is refused instead of waited for.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use serde_json::Value;

use super::replace::failed;
use super::{Holder, Loaded, Store, StoreError, Transaction, Wait, file, mark};
use crate::checkpoint::Checkpoint;
use crate::files;

/// A checkpoint in a JSON file, kept as the reference keeps it.
#[derive(Debug, Clone)]
pub struct ReferenceStore {
    path: PathBuf,
}

impl ReferenceStore {
    /// The store for the checkpoint at `path`. Touches nothing.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        ReferenceStore { path: path.into() }
    }
}

impl Store for ReferenceStore {
    fn read(&self) -> Result<Option<Loaded>, StoreError> {
        if !exists(&self.path)? {
            return Ok(None);
        }
        let bytes = fs::read(&self.path).map_err(|error| file::unreadable(&self.path, &error))?;
        file::decoded(&self.path, bytes).map(Some)
    }

    /// Takes no lock, so there is nothing to wait for.
    fn begin(&self, _wait: Wait) -> Result<Box<dyn Transaction + '_>, StoreError> {
        let loaded = self.read()?;
        mark("loaded");
        Ok(Box::new(Unlocked { path: &self.path, loaded }))
    }

    /// The path itself: links are not followed when saving.
    fn target(&self) -> Result<PathBuf, StoreError> {
        Ok(self.path.clone())
    }

    fn resolves_anything(&self) -> bool {
        true
    }

    fn holders(&self) -> Result<Vec<Holder>, StoreError> {
        Ok(Vec::new())
    }
}

/// Whether the path leads to a file. A link that leads to nothing, a circle of links and a file in place of a folder all
/// count as nothing there.
fn exists(path: &Path) -> Result<bool, StoreError> {
    match fs::metadata(path) {
        Ok(found) => file::regular(path, &found).map(|()| true),
        Err(error) => match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => Ok(false),
            _ => Err(file::unreadable(path, &error)),
        },
    }
}

#[derive(Debug)]
struct Unlocked<'s> {
    path: &'s Path,
    loaded: Option<Loaded>,
}

impl Transaction for Unlocked<'_> {
    fn loaded(&self) -> Option<&Loaded> {
        self.loaded.as_ref()
    }

    fn replace(&mut self, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        self.check()?;
        mark("checked");
        let bytes = checkpoint.encode();
        let temp = files::beside(self.path, &format!(".{}.tmp", std::process::id()));
        fs::write(&temp, &bytes).map_err(|error| failed(&temp, "write the temp file", error))?;
        fs::rename(&temp, self.path)
            .map_err(|error| failed(&temp, "rename the temp file", error))?;
        mark("saved");
        Ok(())
    }
}

impl Unlocked<'_> {
    /// That the counter is still the one that was loaded, if there is a file at all. Nothing else is looked at.
    fn check(&self) -> Result<(), StoreError> {
        if !exists(self.path)? {
            return Ok(());
        }
        let raw = |error: io::Error| failed(self.path, "check the counter", error);
        let bytes = fs::read(self.path).map_err(raw)?;
        let value: Value = serde_json::from_slice(&bytes).map_err(|error| raw(error.into()))?;
        let found = match value {
            Value::Object(fields) => fields.get("sessions_run").cloned().unwrap_or(Value::from(0)),
            _ => return Err(raw(io::Error::other("not an object"))),
        };
        let loaded = self.loaded.as_ref().map_or(0, |loaded| loaded.checkpoint.sessions_run);
        if found == loaded {
            return Ok(());
        }
        Err(StoreError::Changed {
            path: self.path.to_path_buf(),
            loaded_sessions: loaded,
            // A counter that is no counter differs as well.
            found_sessions: found.as_u64().unwrap_or_default(),
        })
    }
}
