//! Stop and resume: a file `<name>.stop` beside the checkpoint, honoured before each session. It survives a reboot.

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::clock::rfc3339;
use crate::files;

/// The stop file of one checkpoint. That it is there is what counts; what it says is for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopFile {
    path: PathBuf,
}

/// Who stopped the queue, when and why, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stopped {
    /// When.
    pub time: Option<Timestamp>,
    /// Who.
    pub by: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

impl Stopped {
    /// Who, when and why: ` by ann since 2026-03-01T12:00:00.000Z (a reason)`, or as much of it as is known.
    pub fn details(&self) -> String {
        let by = self.by.as_ref().map(|by| format!(" by {by}"));
        let since = self.time.map(|time| format!(" since {}", rfc3339(time)));
        let reason = self.reason.as_ref().map(|reason| format!(" ({reason})"));
        [by, since, reason].into_iter().flatten().collect()
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stopped{}", self.details())
    }
}

/// What could not be done with a stop file.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot {step} the stop file: {source}", path.display())]
pub struct StopError {
    /// The stop file.
    pub path: PathBuf,
    /// What was tried.
    pub step: &'static str,
    /// The kernel's answer.
    pub source: std::io::Error,
}

impl StopFile {
    /// The stop file beside the checkpoint file `target`, whose links are resolved.
    pub fn beside(target: &Path) -> Self {
        StopFile { path: files::beside(target, ".stop") }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the queue is stopped. A file without readable content stops it as well.
    ///
    /// # Errors
    ///
    /// [`StopError`] where this cannot be told.
    pub fn read(&self) -> Result<Option<Stopped>, StopError> {
        match files::read(&self.path) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes).unwrap_or_default())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                // A dangling link is a file for whoever put it there.
                Ok(self.path.is_symlink().then(Stopped::default))
            }
            Err(source) => Err(self.failed("read")(source)),
        }
    }

    /// Stops the queue; on disk when it returns. `false`: it was stopped already, and stays so in the first one's words.
    ///
    /// # Errors
    ///
    /// [`StopError`].
    pub fn set(&self, stopped: &Stopped) -> Result<bool, StopError> {
        let is_new = match File::options().write(true).create_new(true).open(&self.path) {
            Ok(mut file) => {
                let mut line = serde_json::to_vec(stopped).unwrap_or_default();
                line.push(b'\n');
                file.write_all(&line)
                    .and_then(|()| file.sync_all())
                    .map_err(self.failed("write"))?;
                true
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => false,
            Err(source) => return Err(self.failed("create")(source)),
        };
        // Also where it was there before: whoever made it may have been killed before this.
        self.sync_folder()?;
        Ok(is_new)
    }

    /// Lets sessions start again; on disk when it returns. `false`: it was not stopped.
    ///
    /// # Errors
    ///
    /// [`StopError`].
    pub fn clear(&self) -> Result<bool, StopError> {
        let was_there = match std::fs::remove_file(&self.path) {
            Ok(()) => true,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
            Err(source) => return Err(self.failed("remove")(source)),
        };
        self.sync_folder()?;
        Ok(was_there)
    }

    fn sync_folder(&self) -> Result<(), StopError> {
        files::sync_folder_of(&self.path).map_err(self.failed("sync the folder of"))
    }

    fn failed(&self, step: &'static str) -> impl FnOnce(std::io::Error) -> StopError {
        let path = self.path.clone();
        move |source| StopError { path, step, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stopping_twice_keeps_the_first_word_and_resuming_twice_is_fine() {
        let folder = tempfile::tempdir().unwrap();
        let stop = StopFile::beside(&folder.path().join("s.json"));
        assert_eq!(stop.path(), folder.path().join("s.json.stop"));
        assert_eq!(stop.read().unwrap(), None);
        let ann = Stopped { by: Some("ann".into()), ..Stopped::default() };
        assert!(stop.set(&ann).unwrap());
        assert!(!stop.set(&Stopped::default()).unwrap());
        assert_eq!(stop.read().unwrap(), Some(ann));
        assert!(stop.clear().unwrap());
        assert!(!stop.clear().unwrap());
        assert_eq!(stop.read().unwrap(), None);
    }

    #[test]
    fn a_file_without_content_stops_as_well() {
        let folder = tempfile::tempdir().unwrap();
        let stop = StopFile::beside(&folder.path().join("s.json"));
        std::fs::write(stop.path(), "").unwrap();
        assert_eq!(stop.read().unwrap(), Some(Stopped::default()));
    }

    #[test]
    fn what_cannot_be_read_is_an_error_and_not_a_go() {
        let folder = tempfile::tempdir().unwrap();
        let stop = StopFile::beside(&folder.path().join("s.json"));
        std::fs::create_dir(stop.path()).unwrap();
        assert!(stop.read().unwrap_err().to_string().contains("s.json.stop"));
    }
}
