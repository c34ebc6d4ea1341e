//! Where the runs of a subject come from: made here, and perhaps kept in a file, or read from one.

use std::path::PathBuf;

use super::LabError;
use super::scenario::must_be_good;
use super::stage::Stage;
use crate::recording::{Recorder, Recording};
use crate::tree::Tree;

/// Where the runs of a subject come from.
#[derive(Debug)]
pub enum Source {
    /// They are made.
    Live,
    /// They are made, and are to be kept in a new file.
    ToKeep(PathBuf),
    /// They are made, and kept.
    Kept(Recorder),
    /// They were made, and this file holds them.
    Ended(PathBuf),
    /// They were made before, perhaps elsewhere; and how many of them were given.
    Recorded(Vec<Recording>, usize),
}

impl Source {
    /// Runs come from a file.
    pub fn is_recorded(&self) -> bool {
        matches!(self, Source::Recorded(..))
    }

    /// The tree that the first run begins with.
    ///
    /// # Errors
    ///
    /// As [`Stage::prepare`]; [`LabError::Lab`] where what is kept cannot be written.
    pub(super) fn before(&mut self, stage: &Stage<'_>) -> Result<Tree, LabError> {
        match self {
            Source::Live | Source::Ended(_) => stage.prepare(),
            Source::ToKeep(path) => {
                // The file is made when the folder has been read, which it may lie in.
                let before = stage.prepare()?;
                let mut recorder = match stage.settings().backtrace {
                    true => Recorder::create_with_calls(path)?,
                    false => Recorder::create(path)?,
                };
                recorder.header(&stage.header())?;
                *self = Source::Kept(recorder);
                Ok(before)
            }
            Source::Kept(_) => stage.prepare(),
            Source::Recorded(runs, _) => {
                Ok(runs.first().map(|run| run.before.clone()).unwrap_or_default())
            }
        }
    }

    /// The next run, as it came out. A recorded one begins with the tree that it began with then. `None` where there is no
    /// other one in the file.
    ///
    /// # Errors
    ///
    /// As [`Stage::run`]; [`LabError::Lab`] where what is kept cannot be written.
    pub(super) fn next(
        &mut self,
        stage: &Stage<'_>,
        before: &Tree,
        reads: bool,
    ) -> Result<Option<Recording>, LabError> {
        match self {
            Source::Live | Source::ToKeep(_) | Source::Ended(_) => {
                stage.record(before, reads).map(Some)
            }
            Source::Kept(recorder) => {
                let spool = recorder.begin(before)?;
                // Whoever reads the file may want to know of reads.
                let recording = stage.record_into(before, true, &spool)?;
                recorder.end(&recording.trace, &recording.after)?;
                Ok(Some(recording))
            }
            Source::Recorded(runs, given) => {
                *given += 1;
                Ok(runs.get(*given - 1).cloned())
            }
        }
    }

    /// The next run, which must be one that kills can be derived from.
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next), and [`LabError::Scenario`] where the subject failed.
    pub(super) fn next_good(
        &mut self,
        stage: &Stage<'_>,
        before: &Tree,
        reads: bool,
    ) -> Result<Option<Recording>, LabError> {
        let next = self.next(stage, before, reads)?;
        next.map(|recording| must_be_good(recording, stage)).transpose()
    }

    /// All runs were made: what is kept of them is whole.
    ///
    /// # Errors
    ///
    /// [`LabError::Lab`] where it cannot be written.
    pub(super) fn finish(&mut self) -> Result<(), LabError> {
        if matches!(self, Source::Kept(_))
            && let Source::Kept(recorder) = std::mem::replace(self, Source::Live)
        {
            let path = recorder.path().to_owned();
            recorder.finish()?;
            *self = Source::Ended(path);
        }
        Ok(())
    }

    /// All begins anew: runs that are kept are those that come now.
    pub(super) fn again(&mut self) {
        *self = match std::mem::replace(self, Source::Live) {
            Source::Kept(recorder) => {
                let path = recorder.path().to_owned();
                drop(recorder);
                to_keep_anew(path)
            }
            Source::Ended(path) => to_keep_anew(path),
            Source::Recorded(runs, _) => Source::Recorded(runs, 0),
            other => other,
        };
    }
}

fn to_keep_anew(path: PathBuf) -> Source {
    // Where it stays, the next one cannot be made, and that is told.
    let _ = std::fs::remove_file(&path);
    Source::ToKeep(path)
}
