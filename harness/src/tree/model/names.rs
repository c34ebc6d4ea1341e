//! Names: what gives an entry one and takes it away, and what that makes of the tree.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{Body, Inode, Model, NOT_THERE, Result};
use crate::tree::Node;

impl Model {
    pub(super) fn rename(&mut self, from: &Path, to: &Path, exchange: bool) -> Result<()> {
        let moved = self.find(from).ok_or_else(|| (from.to_owned(), NOT_THERE))?;
        let replaced = self.find(to);
        if replaced == Some(moved) {
            return Ok(()); // Two names of one file: rename(2) does nothing.
        }
        self.detach(from)?;
        if let Some(other) = replaced {
            self.detach(to)?;
            if exchange {
                self.attach(from, other)?;
            }
        }
        self.removed.remove(from);
        self.attach(to, moved)
    }

    /// Gives a name that is free.
    pub(super) fn attach_new(&mut self, path: &Path, inode: Inode) -> Result<()> {
        if self.find(path).is_some() {
            return Err((path.to_owned(), "there is one already"));
        }
        self.attach(path, inode)
    }

    /// Gives a name.
    fn attach(&mut self, path: &Path, inode: Inode) -> Result<()> {
        let (folder, name) = self.place(path)?;
        if !self.enter(folder, name, inode) {
            return Err((path.to_owned(), "not in a folder"));
        }
        self.show_below(inode);
        Ok(())
    }

    /// Takes a name away, and all that is below it out of the tree.
    pub(super) fn detach(&mut self, path: &Path) -> Result<()> {
        let (folder, name) = self.place(path)?;
        let taken = self.inodes.update(&folder, |entry| match &mut entry.body {
            Body::Folder(names) => {
                let inode = names.get(&name).copied();
                names.remove(&name);
                inode
            }
            _ => None,
        });
        let inode = taken.flatten().ok_or_else(|| (path.to_owned(), NOT_THERE))?;
        let others = self.inodes.update(&inode, |entry| {
            entry.names.remove(&(folder, name));
            !entry.names.is_empty()
        });
        self.removed.insert(path.to_owned(), inode);
        let hidden: Vec<PathBuf> = self.tree.below(path).map(|(below, _)| below.into()).collect();
        for below in hidden {
            self.tree.nodes.remove(&below);
        }
        if others == Some(true) {
            self.show(inode);
        }
        Ok(())
    }

    /// The folder and the name that make a path.
    pub(crate) fn place(&self, path: &Path) -> Result<(Inode, OsString)> {
        let name = path.file_name().ok_or_else(|| (path.to_owned(), "no name"))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let inode = self.find(folder).ok_or_else(|| (folder.to_owned(), "no such folder"))?;
        Ok((inode, name.to_owned()))
    }

    /// Enters a name in a folder; the tree is left alone. Tells whether it is a folder.
    pub(super) fn enter(&mut self, folder: Inode, name: OsString, inode: Inode) -> bool {
        let is_folder = self.inodes.update(&folder, |entry| match &mut entry.body {
            Body::Folder(names) => {
                names.insert(name.clone(), inode);
                true
            }
            _ => false,
        });
        self.inodes.update(&inode, |entry| entry.names.insert((folder, name), ()));
        is_folder == Some(true)
    }

    /// Puts an entry, as it is now, into the tree at each of its names.
    pub(super) fn show(&mut self, inode: Inode) {
        let Some(node) = self.inodes.get(&inode).map(|entry| entry.node()) else {
            return;
        };
        let paths = self.paths(inode);
        let first = paths.first().filter(|_| paths.len() > 1).cloned();
        for path in paths {
            self.tree.nodes.insert(path, Node { hard_link: first.clone(), ..node.clone() });
        }
    }

    /// Shows an entry, and if it is a folder, all below it.
    fn show_below(&mut self, inode: Inode) {
        let mut open = vec![inode];
        while let Some(inode) = open.pop() {
            self.show(inode);
            open.extend(self.names(inode).into_iter().flatten().map(|(_, inode)| inode));
        }
    }
}
