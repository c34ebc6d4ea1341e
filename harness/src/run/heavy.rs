//! Folders that are too large to be copied for every case: those of a build, of packages, of a history.

use std::fs;
use std::path::{Path, PathBuf};

/// So much of a folder is copied at most: every case writes it out and reads it again.
const BUDGET: Size = Size { bytes: 8 << 20, entries: 2_000 };

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Size {
    bytes: u64,
    entries: u64,
}

impl Size {
    fn exceeds(self, other: Size) -> bool {
        self.bytes > other.bytes || self.entries > other.entries
    }
}

/// The folders in `folder` that must be left out of a copy so that it keeps to its budget, the largest first. Those that hold
/// state stay in.
pub fn heavy_folders(folder: &Path, state: &[PathBuf]) -> Vec<PathBuf> {
    let mut sizes: Vec<(Size, PathBuf)> = Vec::new();
    let mut rest = Size { bytes: 0, entries: 0 };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = PathBuf::from(entry.file_name());
        // What holds state is copied whatever it costs.
        if state.iter().any(|state| state.starts_with(&name)) {
            continue;
        }
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let size = if is_folder { size_of(&entry.path(), BUDGET) } else { of_file(&entry) };
        rest = Size { bytes: rest.bytes + size.bytes, entries: rest.entries + size.entries };
        if is_folder {
            sizes.push((size, name));
        }
    }
    sizes.sort_by(|one, other| other.cmp(one));
    let mut heavy = Vec::new();
    for (size, name) in sizes {
        if !rest.exceeds(BUDGET) {
            break;
        }
        rest = Size { bytes: rest.bytes - size.bytes, entries: rest.entries - size.entries };
        heavy.push(name);
    }
    heavy
}

/// Up to here a copy costs no more than an overlay, which takes namespaces of its own for every case.
const COPIED: Size = Size { bytes: 1 << 20, entries: 100 };

/// Whether it pays to lay work folders over a folder instead of copying it.
pub fn is_large(folder: &Path) -> bool {
    size_of(folder, COPIED).exceeds(COPIED)
}

/// What is below a folder, as far as it matters: more than `enough` is not counted to its end.
fn size_of(folder: &Path, enough: Size) -> Size {
    let mut size = Size { bytes: 0, entries: 1 };
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let one = of_file(&entry);
            size = Size { bytes: size.bytes + one.bytes, entries: size.entries + 1 };
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
        if size.exceeds(enough) {
            break;
        }
    }
    size
}

fn of_file(entry: &fs::DirEntry) -> Size {
    let bytes =
        entry.metadata().ok().filter(|found| found.is_file()).map_or(0, |found| found.len());
    Size { bytes, entries: 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_folders_are_left_out_and_no_more() {
        let folder = tempfile::tempdir().expect("a folder");
        let grown = |name: &str, bytes: u64| {
            fs::create_dir(folder.path().join(name)).expect("a folder");
            let file = fs::File::create(folder.path().join(name).join("file")).expect("a file");
            file.set_len(bytes).expect("room for holes");
        };
        grown("small", 1 << 20);
        assert_eq!(heavy_folders(folder.path(), &[]), Vec::<PathBuf>::new());
        grown("target", 100 << 20);
        grown("packages", 6 << 20);
        assert_eq!(heavy_folders(folder.path(), &[]), [PathBuf::from("target")]);
        let state = [PathBuf::from("target/state.json")];
        assert_eq!(heavy_folders(folder.path(), &state), Vec::<PathBuf>::new());
        grown("history", 2 << 20);
        assert_eq!(heavy_folders(folder.path(), &state), [PathBuf::from("packages")]);
    }
}
