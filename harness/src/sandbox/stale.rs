//! Folders of labs that were killed before they could remove them: they lie in memory, so the next lab does it.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::clean;

/// What the names of sandboxes' folders begin with.
pub(super) const PREFIX: &str = "crashlab-";
/// A folder younger than this may belong to a lab that is about to mark it.
const YOUNG: Duration = Duration::from_secs(60);

/// Marks a folder as one that is in use, for as long as the file is open.
pub(super) fn mark(folder: &Path) -> io::Result<File> {
    let file = File::open(folder)?;
    file.try_lock()?;
    Ok(file)
}

/// Removes what other labs have left in `home`. What cannot be removed is somebody else's, and stays.
pub(super) fn sweep(home: &Path) {
    sweep_older(home, YOUNG);
}

fn sweep_older(home: &Path, age: Duration) {
    let Ok(entries) = fs::read_dir(home) else {
        return;
    };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
        // Links are not followed by this.
        let is_old = entry.metadata().is_ok_and(|found| {
            let changed = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            found.is_dir() && changed.elapsed().is_ok_and(|elapsed| elapsed >= age)
        });
        if is_ours
            && is_old
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
        assert!(at("crashlab-left").exists(), "it is young");
        sweep_older(home.path(), Duration::ZERO);
        assert!(!at("crashlab-left").exists());
        for name in ["crashlab-used/work/deep", "other/work/deep", "crashlab-file", "crashlab-link"]
        {
            assert!(at(name).exists(), "{name}");
        }
        // Not tried: that a dropped mark frees the folder. A child that another test forks holds it a moment longer.
        drop(mark);
    }
}
