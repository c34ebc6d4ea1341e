//! A file system in memory: what the op log makes of a tree, without a disk.
//!
//! The model holds inodes and names apart, as a file system does, so that hard links, files that are open and have
//! no name, and renames of what is open come out right. It knows nothing of descriptors: the log's [`FileId`]s are
//! bound to inodes at their first mention.
//!
//! Beside them it keeps the tree that they are, up to date by what each op changes. All of it is shared with copies.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub(crate) use self::allocate::allocate;
use super::acl::set_attribute;
use super::{FileBytes, Node, NodeKind, Tree};
use crate::op::{Event, FileId, Op, OpKind, What};
use crate::shared::SharedMap;

mod allocate;
mod look;
mod names;

/// The number of an inode within one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Inode(usize);

impl Inode {
    /// Its number: from 0, which is the folder itself, in the order in which a model comes to know them.
    pub(crate) fn number(self) -> usize {
        self.0
    }
}

/// A file system in memory.
#[derive(Debug, Clone)]
pub struct Model {
    /// What has a name, or is open.
    inodes: SharedMap<Inode, Entry>,
    files: SharedMap<FileId, Inode>,
    /// Where an inode without a name was last seen: a file can be removed before the log first mentions its id.
    removed: SharedMap<PathBuf, Inode>,
    /// What all of it is.
    tree: Tree,
}

/// The log does not fit the tree: the tracer and the disk disagree about what was there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("op {number} ({call}) does not fit the recorded tree: {}: {what}", path.display())]
pub struct Misfit {
    /// The op's number.
    pub number: u32,
    /// The system call.
    pub call: String,
    /// The path in question.
    pub path: PathBuf,
    /// What is wrong.
    pub what: &'static str,
}

#[derive(Debug, Clone)]
struct Entry {
    body: Body,
    mode: u32,
    uid: u32,
    gid: u32,
    xattrs: BTreeMap<String, Vec<u8>>,
    /// The folders that it is in, with its name there.
    names: SharedMap<(Inode, OsString), ()>,
}

#[derive(Debug, Clone)]
enum Body {
    File(FileBytes),
    Folder(SharedMap<OsString, Inode>),
    Link(PathBuf),
    Other(NodeKind),
}

const ROOT: Inode = Inode(0);

/// An op cannot be: where, and why.
type Result<T> = std::result::Result<T, (PathBuf, &'static str)>;

const NOT_THERE: &str = "no such file";
const TOO_LONG: &str = "longer than a file can be";

/// What a run left at `after` that its log does not account for, in words; `None` where log and disk agree.
pub fn unaccounted(before: &Tree, events: &[Event], after: &Tree) -> Option<String> {
    let mut model = Model::new(before);
    if let Some(misfit) = events.iter().find_map(|event| model.apply(event).err()) {
        return Some(misfit.to_string());
    }
    let differences = super::difference(&model.tree(), after);
    let first = differences.first()?;
    Some(format!("the op log does not account for what the run left: {first}"))
}

impl Model {
    /// The model of a tree.
    pub fn new(tree: &Tree) -> Model {
        let mut model = Model {
            inodes: SharedMap::new(),
            files: SharedMap::new(),
            removed: SharedMap::new(),
            tree: tree.clone(),
        };
        let top = tree.get(Path::new("")).map(Entry::of);
        model.add(top.unwrap_or_else(|| Entry::new(Body::Folder(SharedMap::new()), 0o755, (0, 0))));
        if tree.get(Path::new("")).is_none() {
            model.show(ROOT);
        }
        let mut groups: HashMap<&Path, Inode> = HashMap::new();
        // The folder that the last entry was in: a tree's keys are sorted.
        let mut last = (Path::new(""), Some(ROOT));
        for (path, node) in &tree.nodes {
            let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
                continue;
            };
            let first = node.hard_link.as_deref();
            let known = first.and_then(|first| groups.get(first).copied());
            let inode = known.unwrap_or_else(|| model.add(Entry::of(node)));
            groups.extend(first.map(|first| (first, inode)));
            if last.0 != folder {
                last = (folder, model.find(folder));
            }
            // A sorted tree has a folder before what is in it.
            let named = last.1.is_some_and(|folder| model.enter(folder, name.to_owned(), inode));
            debug_assert!(named, "a tree holds a path without its folder");
        }
        model
    }

    /// Applies what an event changed; events that are no ops change nothing.
    ///
    /// # Errors
    ///
    /// [`Misfit`] where the op cannot have happened in this tree; the model is then no longer to be trusted.
    pub fn apply(&mut self, event: &Event) -> std::result::Result<(), Misfit> {
        match &event.what {
            What::Op(op) => self.apply_op(op),
            What::Open { file, path, .. }
            | What::Read { file, path }
            | What::Close { file, path } => {
                // Binds the id while its path is still right; a file that the model does not know is none of ours.
                let _known = self.bind(*file, path);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn apply_op(&mut self, op: &Op) -> std::result::Result<(), Misfit> {
        self.change(&op.kind).map_err(|(path, what)| Misfit {
            number: op.number,
            call: op.call.clone(),
            path,
            what,
        })
    }

    fn change(&mut self, kind: &OpKind) -> Result<()> {
        match kind {
            OpKind::Create { file, path, mode, owner } => {
                let inode = self.add(Entry::new(Body::File(FileBytes::default()), *mode, *owner));
                self.files.insert(*file, inode);
                path.as_ref().map_or(Ok(()), |path| self.attach_new(path, inode))
            }
            OpKind::Write { file, path, offset, data, .. } => {
                let write = |content: &mut FileBytes| content.write(*offset, data);
                self.rewrite(*file, path, |content| write(content).map_err(|_| TOO_LONG))
            }
            OpKind::Truncate { file, path, size, .. } => {
                self.rewrite(*file, path, |content| content.resize(*size).map_err(|_| TOO_LONG))
            }
            OpKind::Allocate { file, path, mode, offset, len } => {
                self.rewrite(*file, path, |content| allocate(content, *mode, *offset, *len))
            }
            OpKind::Rename { from, to, exchange, .. } => self.rename(from, to, *exchange),
            OpKind::Link { file, from, to } => {
                let inode = self
                    .bind(*file, from.as_deref().unwrap_or(to))
                    .ok_or((to.clone(), NOT_THERE))?;
                self.attach_new(to, inode)
            }
            OpKind::Symlink { target, path, owner } => {
                let inode = self.add(Entry::new(Body::Link(target.clone()), 0o777, *owner));
                self.attach_new(path, inode)
            }
            OpKind::Unlink { path } | OpKind::Rmdir { path } => self.detach(path),
            OpKind::Mkdir { path, mode, owner } => {
                let inode = self.add(Entry::new(Body::Folder(SharedMap::new()), *mode, *owner));
                self.attach_new(path, inode)
            }
            OpKind::Mknod { path, mode, device, owner } => {
                let body = match NodeKind::made(*mode, *device) {
                    NodeKind::File(bytes) => Body::File(bytes),
                    other => Body::Other(other),
                };
                let inode = self.add(Entry::new(body, mode & 0o7777, *owner));
                self.attach_new(path, inode)
            }
            OpKind::Chmod { .. } | OpKind::Chown { .. } | OpKind::Xattr { .. } => {
                self.change_attributes(kind)
            }
            OpKind::Sync { file, path, .. }
            | OpKind::SyncRange { file, path }
            | OpKind::Lock { file, path, .. } => {
                let _known = self.bind(*file, path);
                Ok(())
            }
            OpKind::Utimens { .. } | OpKind::SyncFolder { .. } | OpKind::SyncAll => Ok(()),
        }
    }

    fn change_attributes(&mut self, kind: &OpKind) -> Result<()> {
        match kind {
            OpKind::Chmod { path, file, mode } => {
                self.change_entry(*file, path, |entry| entry.mode = mode & 0o7777)
            }
            OpKind::Chown { path, file, uid, gid, mode } => {
                self.change_entry(*file, path, |entry| {
                    (entry.uid, entry.gid, entry.mode) = (*uid, *gid, mode & 0o7777);
                })
            }
            OpKind::Xattr { path, file, name, value } => self.change_entry(*file, path, |entry| {
                set_attribute(&mut entry.mode, &mut entry.xattrs, name, value.as_deref());
            }),
            _ => Ok(()),
        }
    }

    /// The tree that the model stands at.
    pub fn tree(&self) -> Tree {
        self.tree.clone()
    }

    fn add(&mut self, entry: Entry) -> Inode {
        // Inodes are never taken out.
        let inode = Inode(self.inodes.len());
        self.inodes.insert(inode, entry);
        inode
    }

    fn bind(&mut self, file: FileId, path: &Path) -> Option<Inode> {
        let inode = self.mentioned(file, path)?;
        self.files.insert(file, inode);
        Some(inode)
    }

    /// Changes what is in a file.
    fn rewrite(
        &mut self,
        file: FileId,
        path: &Path,
        change: impl FnOnce(&mut FileBytes) -> std::result::Result<(), &'static str>,
    ) -> Result<()> {
        let changed = |entry: &mut Entry| match &mut entry.body {
            Body::File(content) => change(content),
            _ => Err("not a regular file"),
        };
        let inode = self.bind(file, path).ok_or_else(|| (path.to_owned(), NOT_THERE))?;
        let changed = self.inodes.update(&inode, changed).unwrap_or(Err(NOT_THERE));
        self.show(inode);
        changed.map_err(|what| (path.to_owned(), what))
    }

    /// Changes what is said of anything.
    fn change_entry(
        &mut self,
        file: Option<FileId>,
        path: &Path,
        change: impl FnOnce(&mut Entry),
    ) -> Result<()> {
        let inode = match file {
            Some(file) => self.bind(file, path),
            None => self.find(path),
        };
        let inode = inode.ok_or_else(|| (path.to_owned(), NOT_THERE))?;
        self.inodes.update(&inode, change);
        self.show(inode);
        Ok(())
    }
}

impl Entry {
    fn new(body: Body, mode: u32, (uid, gid): (u32, u32)) -> Entry {
        let (xattrs, names) = (BTreeMap::new(), SharedMap::new());
        Entry { body, mode: mode & 0o7777, uid, gid, xattrs, names }
    }

    fn of(node: &Node) -> Entry {
        let body = match &node.kind {
            NodeKind::File(content) => Body::File(content.clone()),
            NodeKind::Folder => Body::Folder(SharedMap::new()),
            NodeKind::Link(target) => Body::Link(target.clone()),
            other => Body::Other(other.clone()),
        };
        let xattrs = node.xattrs.clone();
        Entry { xattrs, ..Entry::new(body, node.mode, (node.uid, node.gid)) }
    }

    fn node(&self) -> Node {
        let kind = match &self.body {
            Body::File(content) => NodeKind::File(content.clone()),
            Body::Folder(_) => NodeKind::Folder,
            Body::Link(target) => NodeKind::Link(target.clone()),
            Body::Other(kind) => kind.clone(),
        };
        let (mode, uid, gid) = (self.mode, self.uid, self.gid);
        Node { kind, mode, uid, gid, hard_link: None, xattrs: self.xattrs.clone() }
    }
}
