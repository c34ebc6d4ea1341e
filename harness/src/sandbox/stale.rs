//! Folders of labs that were killed before they could remove them: they lie in memory, so the next lab does it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tempfile::TempDir;

use super::clean;

/// What the names of sandboxes' folders begin with.
const PREFIX: &str = "crashlab-";
/// So often a sweep may take a new folder before it is marked.
const TRIES: usize = 100;

/// Makes a folder in `home` and marks it as one that is in use, for as long as the file is open.
///
/// Another lab may sweep between the two steps. It marks what it removes too, so either this finds the mark taken, or
/// its own mark is on a folder that has gone; then it makes another.
pub(super) fn make(home: &Path) -> io::Result<(TempDir, File)> {
    let mut tried = 0;
    loop {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(home)?;
        match mark(folder.path()) {
            Ok(mark) => return Ok((folder, mark)),
            Err(error) if tried == TRIES => return Err(error),
            Err(_) => tried += 1,
        }
    }
}

/// Marks a folder, which fails where another has done so or has removed it meanwhile.
fn mark(folder: &Path) -> io::Result<File> {
    let file = File::open(folder)?;
    file.try_lock()?;
    let (marked, there) = (file.metadata()?, fs::symlink_metadata(folder)?);
    if (marked.dev(), marked.ino()) == (there.dev(), there.ino()) {
        Ok(file)
    } else {
        Err(io::Error::from(io::ErrorKind::NotFound))
    }
}

/// Removes what other labs have left in `home`. What cannot be removed is somebody else's, and stays.
pub(super) fn sweep(home: &Path) {
    let Ok(entries) = fs::read_dir(home) else {
        return;
    };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
        // Links are not followed by this.
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_ours
            && is_folder
            && let Ok(_mark) = mark(&entry.path())
        {
            let _ = clean::remove(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_uses_is_removed() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        for name in ["crashlab-used", "crashlab-left", "other"] {
            fs::create_dir_all(at(name).join("work/deep")).unwrap();
        }
        fs::write(at("crashlab-file"), "").unwrap();
        std::os::unix::fs::symlink("other", at("crashlab-link")).unwrap();
        let mark = mark(&at("crashlab-used")).unwrap();

        sweep(home.path());
        assert!(!at("crashlab-left").exists());
        for name in ["crashlab-used/work/deep", "other/work/deep", "crashlab-file", "crashlab-link"]
        {
            assert!(at(name).exists(), "{name}");
        }
        // Not tried: that a dropped mark frees the folder. A child that another test forks holds it a moment longer.
        drop(mark);
    }

    #[test]
    fn a_folder_is_in_use_from_the_moment_it_can_be_had() {
        let home = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            let sweeper = scope.spawn(|| (0..2000).for_each(|_| sweep(home.path())));
            while !sweeper.is_finished() {
                let (folder, _mark) = make(home.path()).unwrap();
                fs::create_dir(folder.path().join("work")).unwrap();
            }
        });
    }

    #[test]
    fn a_mark_on_a_folder_that_has_gone_is_none() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("crashlab-other");
        fs::create_dir(&folder).unwrap();
        let before = mark(&folder).unwrap();
        fs::remove_dir(&folder).unwrap();
        fs::create_dir(&folder).unwrap();
        assert!(mark(&folder).is_ok(), "the mark was on another folder of this name");
        drop(before);
    }
}
