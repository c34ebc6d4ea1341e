//! The whole checkpoint in one transaction, for `resolve` and an import.

use std::path::Path;

use super::Entered;
use super::create::create;
use super::database::in_place;
use crate::checkpoint::Checkpoint;
use crate::digest;
use crate::store::{Loaded, StoreError, Transaction, mark};

/// One hold on the whole checkpoint.
#[derive(Debug)]
pub(super) struct Held<'s> {
    /// As the user gave it, for messages.
    path: &'s Path,
    entered: Entered,
    replaced: bool,
}

impl<'s> Held<'s> {
    pub(super) fn new(path: &'s Path, entered: Entered) -> Self {
        Held { path, entered, replaced: false }
    }

    fn loaded_sessions(&self) -> u64 {
        self.entered.found.as_ref().map_or(0, |found| found.rows.sessions_run)
    }
}

impl Transaction for Held<'_> {
    fn loaded(&self) -> Option<&Loaded> {
        self.entered.found.as_ref().map(|found| &found.loaded)
    }

    fn replace(&mut self, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        if self.replaced {
            let sessions = self.loaded_sessions();
            return Err(StoreError::Changed {
                path: self.path.to_owned(),
                loaded_sessions: sessions,
                found_sessions: checkpoint.sessions_run,
            });
        }
        let (Some(database), Some(found)) = (&self.entered.database, &self.entered.found) else {
            mark("checked");
            create(self.path, &self.entered.target, checkpoint, |_| Ok(None))?;
            self.replaced = true;
            mark("saved");
            return Ok(());
        };
        in_place(database, self.path)?;
        mark("checked");
        let digest = digest::sha256_of_parts(&checkpoint.encoded().parts());
        let mut epoch = found.epoch;
        let rows = found.rows.following(checkpoint, &mut epoch);
        database
            .write(&rows, &found.rows)
            .and_then(|()| database.seal(rows.sessions_run, epoch, &digest))
            .map_err(|trouble| trouble.writing(self.path, "write to the database"))?;
        self.replaced = true;
        if let Some(database) = self.entered.database.take() {
            database.commit(self.path, &digest)?;
        }
        mark("saved");
        Ok(())
    }
}
