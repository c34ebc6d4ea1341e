//! Removes what subjects leave, whatever its modes are.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Empties a folder, except for what is at `kept` (and the folders on the way to it): folders there are emptied themselves.
/// Nothing is followed out of the folder.
pub(super) fn empty(folder: &Path, kept: &[PathBuf]) -> io::Result<()> {
    open(folder)?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let is_folder = entry.file_type()?.is_dir();
        match (kept.iter().any(|kept| kept.starts_with(&path)), is_folder) {
            (true, true) => empty(&path, kept)?,
            (true, false) => {}
            (false, true) => remove(&path)?,
            (false, false) => fs::remove_file(&path)?,
        }
    }
    Ok(())
}

/// Removes a folder and all below it.
pub(super) fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        // Only those who are not root get here.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_all(folder)?;
            fs::remove_dir_all(folder)
        }
        other => other,
    }
}

fn open(folder: &Path) -> io::Result<()> {
    let mode = fs::symlink_metadata(folder)?.permissions().mode();
    if mode & 0o700 == 0o700 {
        return Ok(());
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(mode | 0o700))
}

fn open_all(folder: &Path) -> io::Result<()> {
    open(folder)?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_all(&entry.path())?;
        }
    }
    Ok(())
}
