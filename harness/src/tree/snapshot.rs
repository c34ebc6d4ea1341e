//! Trees from and to the disk.
use super::Tree;
use std::path::{Path, PathBuf};

/// A tree could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what} {}: {source}", path.display())]
pub struct SnapshotError {
    /// What was tried (`read`, `write`).
    pub what: &'static str,
    /// Where.
    pub path: PathBuf,
    /// The kernel's answer.
    pub source: std::io::Error,
}

/// Reads the folder at `root` and all below it.
///
/// # Errors
///
/// [`SnapshotError`] with the path that could not be read.
pub fn read(_root: &Path) -> Result<Tree, SnapshotError> {
    todo!()
}

/// Writes the tree into the folder `root`, which exists and is empty.
///
/// # Errors
///
/// [`SnapshotError`] with the path that could not be written.
pub fn write_out(_tree: &Tree, _root: &Path) -> Result<(), SnapshotError> {
    todo!()
}
