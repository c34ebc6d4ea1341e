//! Whole folders as text that can be compared: types, modes, owners, bytes, links, names of one file, attributes.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{output, program};

/// Every entry by its relative path, and what it is.
pub(crate) fn read(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut entries = BTreeMap::new();
    let mut first_names = HashMap::new();
    visit(root, root, &mut entries, &mut first_names);
    entries
}

fn visit(
    root: &Path,
    folder: &Path,
    entries: &mut BTreeMap<PathBuf, String>,
    first_names: &mut HashMap<u64, PathBuf>,
) {
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let name = path.strip_prefix(root).unwrap().to_owned();
        let metadata = path.symlink_metadata().unwrap();
        let first = first_names.entry(metadata.ino()).or_insert_with(|| name.clone()).clone();
        entries.insert(name.clone(), describe(&path, &metadata, &first));
        if metadata.is_dir() {
            visit(root, &path, entries, first_names);
        }
    }
}

fn describe(path: &Path, metadata: &std::fs::Metadata, first: &Path) -> String {
    let kind = metadata.file_type();
    let content = if kind.is_file() {
        format!("file {:?}", String::from_utf8_lossy(&bytes(path)))
    } else if kind.is_symlink() {
        let target = std::fs::read_link(path).unwrap();
        // An absolute link leads into the folder in which it was made.
        format!("link to {}", target.file_name().unwrap_or_default().display())
    } else if kind.is_dir() {
        "folder".into()
    } else if kind.is_fifo() || kind.is_socket() {
        format!("{kind:?}")
    } else {
        format!("device {}", metadata.rdev())
    };
    let (mode, owner) = (metadata.mode() & 0o7777, (metadata.uid(), metadata.gid()));
    format!("{content}, mode {mode:o}, owner {owner:?}, file of {first:?}, {}", attributes(path))
}

fn bytes(path: &Path) -> Vec<u8> {
    use std::os::unix::fs::PermissionsExt;
    match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(_) => {
            // Its own owner may not read it either.
            let before = path.metadata().unwrap().permissions();
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o600)).unwrap();
            let bytes = std::fs::read(path).unwrap();
            std::fs::set_permissions(path, before).unwrap();
            bytes
        }
    }
}

fn attributes(path: &Path) -> String {
    let output = output(Command::new(program("attribute")).arg(path)).unwrap();
    let mut lines: Vec<_> =
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    lines.sort();
    format!("attributes {lines:?}")
}
