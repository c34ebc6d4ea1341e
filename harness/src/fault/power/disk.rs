//! What a disk holds when some of the parts of a run have reached it.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::PathBuf;

use super::parts::{Attribute, Change, Inode, Log};
use crate::tree::{FileBytes, Node, NodeKind, Tree, allocate, set_attribute};

/// What a block held before it was given to a file. It says what it is, since it is shown to people.
const OLD: &[u8; 16] = b"(an old block..)";

/// The tree that is found after the cut, if of the first `count` parts all but these have reached the disk. `old`: blocks that
/// were given to a file show what they held before.
pub(super) fn tree(log: &Log, count: usize, missing: &[usize], old: bool) -> Tree {
    let mut disk = Disk::begin(log);
    let mut missing = missing.iter().peekable();
    for (number, part) in log.parts[..count].iter().enumerate() {
        match missing.next_if_eq(&&number) {
            None => disk.apply(&part.change),
            Some(_) if old => disk.show_old(&part.change),
            Some(_) => {}
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
    /// The folders whose names have changed.
    names: HashMap<Inode, BTreeMap<OsString, Inode>>,
}

impl<'a> Disk<'a> {
    fn begin(log: &'a Log) -> Disk<'a> {
        Disk { log, nodes: HashMap::new(), sizes: HashMap::new(), names: HashMap::new() }
    }

    /// The names in a folder, as far as they have reached the disk.
    fn names(&self, folder: Inode) -> Option<&BTreeMap<OsString, Inode>> {
        self.names.get(&folder).or_else(|| self.log.names.get(&folder))
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

    /// The data is not there, and the block that it was to be written to is.
    fn show_old(&mut self, change: &Change) {
        let Change::Data { inode, offset, fresh: true, .. } = change else { return };
        let block = self.log.block;
        let from = offset / block * block;
        // Where the truncation is not on the disk that gave it back, the block is the one that it was.
        if let Some((file, _)) = self.file(*inode).filter(|(file, _)| file.len() <= from) {
            let held: Vec<u8> = OLD.iter().copied().cycle().take(block as usize).collect();
            _ = file.write(from, &held.into());
        }
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::Data { inode, offset, bytes, .. } => {
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
                    let before = || self.log.names.get(&name.folder).cloned().unwrap_or_default();
                    let folder = self.names.entry(name.folder).or_insert_with(before);
                    match name.inode {
                        Some(inode) => _ = folder.insert(name.name.clone(), inode),
                        None => _ = folder.remove(&name.name),
                    }
                }
            }
        }
    }

    fn tree(mut self) -> Tree {
        match &self.log.before {
            Some(before) => self.changed(before.clone()),
            None => self.whole(),
        }
    }

    /// The tree before the run with what has changed, where every file has one name and no folder has changed its own.
    fn changed(&mut self, mut tree: Tree) -> Tree {
        for (path, (folder, name)) in &self.log.touched {
            match self.names(*folder).and_then(|names| names.get(name)).copied() {
                Some(inode) => _ = tree.nodes.insert(path.clone(), self.seen(inode)),
                None => _ = tree.nodes.remove(path),
            }
        }
        let changed: Vec<Inode> = self.nodes.keys().copied().collect();
        for inode in changed {
            let path = self.log.paths.get(&inode);
            if let Some(path) = path.filter(|path| !self.log.touched.contains_key(*path)) {
                let node = self.seen(inode);
                tree.nodes.insert(path.clone(), node);
            }
        }
        tree
    }

    /// An inode as it is found, files with what lies before their end.
    fn seen(&mut self, inode: Inode) -> Node {
        let mut node = self.node(inode).clone();
        if let (NodeKind::File(bytes), Some(size)) = (&mut node.kind, self.sizes.get(&inode)) {
            _ = bytes.resize(*size);
        }
        node
    }

    fn whole(mut self) -> Tree {
        let mut entries = Vec::new();
        let mut open = vec![(PathBuf::new(), 0)];
        while let Some((path, inode)) = open.pop() {
            let node = self.seen(inode);
            if let (NodeKind::Folder, Some(names)) = (&node.kind, self.names(inode)) {
                open.extend(names.iter().map(|(name, inode)| (path.join(name), *inode)));
            }
            entries.push((path, node, inode));
        }
        Tree::from_identities(entries)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::op::{Actor, Event, FileId, Op, OpKind, What};

    fn ops(kinds: Vec<OpKind>) -> Vec<Event> {
        let actor = Actor { program: 0, pid: 1, tid: 1 };
        let event = |(number, kind)| Event {
            actor,
            what: What::Op(Op { number, call: String::new(), kind }),
        };
        (1..).zip(kinds).map(event).collect()
    }

    /// A tree that is made of the one before and one that is made anew are the same, whatever has reached the disk.
    #[test]
    fn both_ways_to_the_tree_lead_to_the_same() {
        let path = |name: &str| Path::new(name).to_owned();
        let file = |number, name: &str| (FileId(number), path(name));
        let node = |kind| Node {
            kind,
            mode: 0o644,
            uid: 0,
            gid: 0,
            hard_link: None,
            xattrs: BTreeMap::new(),
        };
        let bytes = |text: &str| NodeKind::File(text.as_bytes().to_vec().into());
        let mut before = Tree::default();
        before.nodes.insert(path(""), node(NodeKind::Folder));
        before.nodes.insert(path("d"), node(NodeKind::Folder));
        before.nodes.insert(path("d/s"), node(bytes("old")));
        before.nodes.insert(path("log"), node(bytes("line\n")));
        let write = |(file, path), offset, text: &str| OpKind::Write {
            file,
            path,
            offset,
            data: text.as_bytes().to_vec().into(),
            append: false,
        };
        let events = ops(vec![
            OpKind::Create { file: FileId(0), path: Some(path("d/t")), mode: 0o600, owner: (0, 0) },
            write(file(0, "d/t"), 0, "newer"),
            write(file(1, "log"), 5, "more\n"),
            OpKind::Rename {
                from: path("d/t"),
                to: path("d/s"),
                exchange: false,
                no_replace: false,
            },
            OpKind::Chmod { path: path("d/s"), file: Some(FileId(0)), mode: 0o640 },
            OpKind::Unlink { path: path("log") },
        ]);
        let log = Log::of(&before, &events, 4096).expect("the log fits");
        let anew = Log { before: None, ..log.clone() };
        assert!(log.before.is_some());
        for kept in 0..1u32 << log.parts.len() {
            let count = log.parts.len();
            let missing: Vec<usize> = (0..count).filter(|part| kept >> part & 1 == 0).collect();
            for old in [false, true] {
                let (plain, whole) =
                    (tree(&log, count, &missing, old), tree(&anew, count, &missing, old));
                assert_eq!(plain, whole, "{kept:b}");
            }
        }
    }
}
