//! Which files the watched folder holds, and under which names: numbers that outlive renames and are never reused.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::path::{Path, PathBuf};

use crate::op::FileId;

/// How the kernel tells files apart at one moment: device and inode number.
pub(super) type Inode = (u64, u64);

/// Files (all that is no folder) of the watched folder. Paths are relative to it.
#[derive(Debug, Default)]
pub(super) struct Names {
    by_inode: HashMap<Inode, FileId>,
    by_path: BTreeMap<PathBuf, FileId>,
    /// By the number of the file: the path by which it is known.
    known_as: Vec<PathBuf>,
    changes: u64,
}

impl Names {
    /// The file of this inode, if it is one of the watched folder.
    pub(super) fn by_inode(&self, inode: Inode) -> Option<FileId> {
        self.by_inode.get(&inode).copied()
    }

    /// Grows with every change, so that what was learnt at one state is known to hold still.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// The file that has this name now.
    pub(super) fn by_path(&self, path: &Path) -> Option<FileId> {
        self.by_path.get(path).copied()
    }

    /// The path by which a file is known: one of its names, or the last one it had.
    pub(super) fn path(&self, file: FileId) -> &Path {
        &self.known_as[file.0 as usize]
    }

    /// Whether the file has a name.
    pub(super) fn is_named(&self, file: FileId) -> bool {
        self.by_path(self.path(file)) == Some(file)
    }

    /// The number that the next new file gets.
    pub(super) fn next(&self) -> FileId {
        FileId(self.known_as.len() as u32)
    }

    /// A new file, with the name that it got. Whatever had this inode before is gone: the kernel reuses the numbers.
    pub(super) fn create(&mut self, inode: Inode, path: &Path) -> FileId {
        self.changes += 1;
        let file = self.next();
        self.known_as.push(path.to_owned());
        self.by_inode.insert(inode, file);
        self.by_path.insert(path.to_owned(), file);
        file
    }

    /// A new file without a name in this folder.
    pub(super) fn create_unnamed(&mut self, inode: Inode, folder: &Path) -> FileId {
        self.changes += 1;
        let file = self.next();
        self.known_as.push(folder.join(format!("#{}", file.0)));
        self.by_inode.insert(inode, file);
        file
    }

    /// A file that was there already, under this name: its number, a new one at the first sight.
    pub(super) fn meet(&mut self, inode: Inode, path: &Path) -> FileId {
        self.changes += 1;
        match self.by_inode(inode) {
            Some(file) if self.is_named(file) => {
                self.by_path.insert(path.to_owned(), file);
                file
            }
            _ => self.create(inode, path),
        }
    }

    /// A file got one more name.
    pub(super) fn link(&mut self, file: FileId, path: &Path) {
        self.changes += 1;
        let named = self.is_named(file);
        self.by_path.insert(path.to_owned(), file);
        if !named {
            self.known_as[file.0 as usize] = path.to_owned();
        }
    }

    /// A name is gone.
    pub(super) fn unlink(&mut self, path: &Path) {
        self.changes += 1;
        let Some(file) = self.by_path.remove(path) else {
            return;
        };
        if self.path(file) == path
            && let Some((other, _)) = self.by_path.iter().find(|(_, id)| **id == file)
        {
            self.known_as[file.0 as usize] = other.clone();
        }
    }

    /// All names at and below a path are gone.
    pub(super) fn forget_below(&mut self, path: &Path) {
        let gone: Vec<PathBuf> = self.below(path).map(|(name, _)| name.clone()).collect();
        gone.iter().for_each(|name| self.unlink(name));
    }

    /// A name (of a file or a folder) moved; what had the new name before is gone.
    pub(super) fn rename(&mut self, from: &Path, to: &Path) {
        self.unlink(to);
        let moved = self.take_below(from);
        self.put_below(moved, from, to);
    }

    /// Two names changed places.
    pub(super) fn exchange(&mut self, one: &Path, other: &Path) {
        let first = self.take_below(one);
        let second = self.take_below(other);
        self.put_below(first, one, other);
        self.put_below(second, other, one);
    }

    fn below(&self, path: &Path) -> impl Iterator<Item = (&PathBuf, &FileId)> {
        // Paths are ordered by their components, so that all below a folder follow it without a gap.
        let range = (Bound::Included(path.to_owned()), Bound::Unbounded);
        self.by_path.range(range).take_while(move |(name, _)| name.starts_with(path))
    }

    fn take_below(&mut self, path: &Path) -> Vec<(PathBuf, FileId)> {
        self.changes += 1;
        let taken: Vec<_> = self.below(path).map(|(name, file)| (name.clone(), *file)).collect();
        for (name, _) in &taken {
            self.by_path.remove(name);
        }
        taken
    }

    fn put_below(&mut self, moved: Vec<(PathBuf, FileId)>, from: &Path, to: &Path) {
        self.changes += 1;
        for (name, file) in moved {
            let new = match name.strip_prefix(from) {
                Ok(rest) if rest.as_os_str().is_empty() => to.to_owned(),
                Ok(rest) => to.join(rest),
                Err(_) => continue,
            };
            if self.path(file) == name {
                self.known_as[file.0 as usize] = new.clone();
            }
            self.by_path.insert(new, file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str) -> &Path {
        Path::new(path)
    }

    #[test]
    fn an_inode_that_is_used_again_is_another_file() {
        let mut names = Names::default();
        let first = names.create((1, 7), at("a"));
        names.unlink(at("a"));
        assert!(!names.is_named(first));
        assert_eq!(names.path(first), at("a"), "known by its last name");
        let second = names.meet((1, 7), at("a"));
        assert_ne!(first, second);
        names.rename(at("a"), at("b"));
        assert_eq!(names.meet((1, 7), at("b")), second);
    }

    #[test]
    fn a_file_is_known_by_a_name_that_it_has() {
        let mut names = Names::default();
        let file = names.create((1, 7), at("a"));
        names.link(file, at("b"));
        names.unlink(at("a"));
        assert_eq!(names.path(file), at("b"));
        assert!(names.is_named(file));
        let other = names.create((1, 8), at("c"));
        names.rename(at("c"), at("b"));
        assert!(!names.is_named(file) && names.is_named(other));
    }

    #[test]
    fn folders_take_their_files_along() {
        let mut names = Names::default();
        let (deep, beside) = (names.create((1, 1), at("d/e/f")), names.create((1, 2), at("d.txt")));
        let other = names.create((1, 3), at("g/h"));
        names.exchange(at("d"), at("g"));
        assert_eq!((names.path(deep), names.path(other)), (at("g/e/f"), at("d/h")));
        assert_eq!(names.path(beside), at("d.txt"));
        names.rename(at("g/e"), at("x"));
        assert_eq!(names.by_path(at("x/f")), Some(deep));
        names.forget_below(at("x"));
        assert!(!names.is_named(deep));
    }
}
