//! What a disk holds when some of the parts of a run have reached it.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::PathBuf;

use super::parts::{Attribute, Change, Inode, Log};
use crate::tree::{FileBytes, Node, NodeKind, Tree, allocate, set_attribute};

/// The tree that is found after the cut, if of the parts those that `persisted` tells have reached the disk.
pub(super) fn tree(log: &Log, persisted: impl Fn(usize) -> bool) -> Tree {
    let mut disk = Disk::begin(log);
    for (number, part) in log.parts.iter().enumerate() {
        if persisted(number) {
            disk.apply(&part.change);
        }
    }
    disk.tree()
}

struct Disk<'a> {
    log: &'a Log,
    /// What has changed of the inodes.
    nodes: HashMap<Inode, Node>,
    /// How long files are; what was written behind that is there, but not seen.
    sizes: HashMap<Inode, u64>,
    names: HashMap<Inode, BTreeMap<OsString, Inode>>,
}

impl<'a> Disk<'a> {
    fn begin(log: &'a Log) -> Disk<'a> {
        let mut names: HashMap<Inode, BTreeMap<OsString, Inode>> = HashMap::new();
        for (folder, name, inode) in &log.names {
            names.entry(*folder).or_default().insert(name.clone(), *inode);
        }
        Disk { log, nodes: HashMap::new(), sizes: HashMap::new(), names }
    }

    fn node(&mut self, inode: Inode) -> &mut Node {
        self.nodes.entry(inode).or_insert_with(|| self.log.inodes[inode].clone())
    }

    /// A file's bytes and its size.
    fn file(&mut self, inode: Inode) -> Option<(&mut FileBytes, &mut u64)> {
        let node = self.nodes.entry(inode).or_insert_with(|| self.log.inodes[inode].clone());
        let NodeKind::File(bytes) = &mut node.kind else {
            return None;
        };
        let size = self.sizes.entry(inode).or_insert_with(|| bytes.len());
        Some((bytes, size))
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::Data { inode, offset, bytes } => {
                if let Some((file, _)) = self.file(*inode) {
                    // The run wrote it, so that it fits.
                    _ = file.write(*offset, bytes);
                }
            }
            Change::Size { inode, size: new, .. } => {
                if let Some((file, size)) = self.file(*inode) {
                    if new < size {
                        _ = file.resize(*new);
                    }
                    *size = *new;
                }
            }
            Change::Allocate { inode, mode, offset, len } => {
                if let Some((file, size)) = self.file(*inode) {
                    _ = file.resize(*size);
                    // On a file that is shorter here than it was for the run, there may be nothing to move.
                    _ = allocate(file, *mode, *offset, *len);
                    *size = file.len();
                }
            }
            Change::Attribute { inode, set } => {
                let node = self.node(*inode);
                match set {
                    Attribute::Mode(mode) => node.mode = *mode,
                    Attribute::Owner(uid, gid, mode) => {
                        (node.uid, node.gid, node.mode) = (*uid, *gid, *mode);
                    }
                    Attribute::Extended(name, value) => {
                        set_attribute(&mut node.mode, &mut node.xattrs, name, value.as_deref());
                    }
                }
            }
            Change::Names(names) => {
                for name in names {
                    let folder = self.names.entry(name.folder).or_default();
                    match name.inode {
                        Some(inode) => _ = folder.insert(name.name.clone(), inode),
                        None => _ = folder.remove(&name.name),
                    }
                }
            }
        }
    }

    fn tree(mut self) -> Tree {
        let mut entries = Vec::new();
        let mut open = vec![(PathBuf::new(), 0)];
        while let Some((path, inode)) = open.pop() {
            let mut node = self.node(inode).clone();
            if let (NodeKind::File(bytes), Some(size)) = (&mut node.kind, self.sizes.get(&inode)) {
                _ = bytes.resize(*size);
            }
            if let (NodeKind::Folder, Some(names)) = (&node.kind, self.names.get(&inode)) {
                open.extend(names.iter().map(|(name, inode)| (path.join(name), *inode)));
            }
            entries.push((path, node, inode));
        }
        Tree::from_identities(entries)
    }
}
