//! Looking: what is where in a model.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use super::{Body, Inode, Model, ROOT};
use crate::op::FileId;
use crate::tree::FileBytes;

/// As many links as Linux follows in one look-up (`MAXSYMLINKS`, include/linux/namei.h).
const LINKS_FOLLOWED_MAX: usize = 40;

impl Model {
    /// The inode at a path, no link followed.
    pub fn find(&self, path: &Path) -> Option<Inode> {
        path.components().try_fold(ROOT, |at, component| {
            match (&self.inodes.get(&at)?.body, component) {
                (Body::Folder(names), Component::Normal(name)) => names.get(name).copied(),
                _ => None,
            }
        })
    }

    /// The inode at a path, links followed as long as they stay inside the watched folder; `seen` is the absolute
    /// path at which the programs see that folder.
    pub fn resolve(&self, path: &Path, seen: &Path) -> Option<Inode> {
        self.find(&self.resolve_path(path, seen)?)
    }

    /// Where a path leads with all links followed; there need not be anything. `None` where it leaves the watched
    /// folder, goes through what is no folder, or goes round in circles.
    pub fn resolve_path(&self, path: &Path, seen: &Path) -> Option<PathBuf> {
        self.resolve_over(path, seen, |_| ())
    }

    /// As [`resolve_path`](Self::resolve_path), and tells each path on the way at which it looks for an entry: as long
    /// as these stay what they are, so does the result.
    pub(crate) fn resolve_over(
        &self,
        path: &Path,
        seen: &Path,
        mut looked_at: impl FnMut(&Path),
    ) -> Option<PathBuf> {
        let mut left: Vec<OsString> = parts(path)?;
        left.reverse();
        let mut trail = vec![(PathBuf::new(), ROOT)];
        let mut followed = 0;
        while let Some(name) = left.pop() {
            let (at, folder) = trail.last()?;
            let Body::Folder(names) = &self.inodes.get(folder)?.body else {
                return None;
            };
            if name == ".." {
                trail.pop();
                trail.last()?;
                continue;
            }
            let here = at.join(&name);
            looked_at(&here);
            let Some(inode) = names.get(&name) else {
                return Some(left.iter().rev().fold(here, |path, name| path.join(name)));
            };
            let Body::Link(target) = &self.inodes.get(inode)?.body else {
                trail.push((here, *inode));
                continue;
            };
            followed += 1;
            if followed > LINKS_FOLLOWED_MAX {
                return None;
            }
            let inside = target.strip_prefix(seen).ok();
            if inside.is_some() {
                trail.truncate(1);
            }
            left.extend(parts(inside.unwrap_or(target))?.into_iter().rev());
        }
        trail.pop().map(|(path, _)| path)
    }

    /// The inode that a file id stands for, which the log mentions now, perhaps for the first time: that at the path, or that
    /// was at it last.
    pub(crate) fn mentioned(&self, file: FileId, path: &Path) -> Option<Inode> {
        let at_path = || self.find(path).or_else(|| self.removed.get(path).copied());
        self.inode(file).or_else(at_path)
    }

    /// The inode that a file id of the log stands for, once the log has mentioned it.
    pub fn inode(&self, file: FileId) -> Option<Inode> {
        self.files.get(&file).copied()
    }

    /// What is in a regular file.
    pub fn content(&self, inode: Inode) -> Option<&FileBytes> {
        match &self.inodes.get(&inode)?.body {
            Body::File(content) => Some(content),
            _ => None,
        }
    }

    /// What a symbolic link points to.
    pub fn target(&self, inode: Inode) -> Option<&Path> {
        match &self.inodes.get(&inode)?.body {
            Body::Link(target) => Some(target),
            _ => None,
        }
    }

    /// The names in a folder, sorted.
    pub fn names(&self, inode: Inode) -> Option<impl Iterator<Item = (&OsStr, Inode)>> {
        match &self.inodes.get(&inode)?.body {
            Body::Folder(names) => {
                Some(names.iter().map(|(name, inode)| (name.as_os_str(), *inode)))
            }
            _ => None,
        }
    }

    /// Every path at which an inode is, sorted; none of a file that has no name.
    pub fn paths(&self, inode: Inode) -> Vec<PathBuf> {
        if inode == ROOT {
            return vec![PathBuf::new()];
        }
        let names = self.inodes.get(&inode).into_iter().flat_map(|entry| entry.names.keys());
        let mut paths: Vec<PathBuf> = names
            .filter_map(|(folder, name)| Some(self.path_of_folder(*folder)?.join(name)))
            .collect();
        paths.sort();
        paths
    }

    /// Where a folder is; `None` where it was removed.
    fn path_of_folder(&self, folder: Inode) -> Option<PathBuf> {
        let (mut at, mut names) = (folder, Vec::new());
        while at != ROOT {
            let (above, name) = self.inodes.get(&at)?.names.keys().next()?;
            names.push(name);
            at = *above;
        }
        Some(names.into_iter().rev().collect())
    }
}

/// The components of a relative path as a look-up takes them; `None` for an absolute one, which leaves the folder.
fn parts(path: &Path) -> Option<Vec<OsString>> {
    path.components()
        .filter(|component| !matches!(component, Component::CurDir))
        .map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            _ => None,
        })
        .collect()
}
