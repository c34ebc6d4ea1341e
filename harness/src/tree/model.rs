//! A file system in memory: what the op log makes of a tree, without a disk.
//!
//! The model holds inodes and names apart, as a file system does, so that hard links, files that are open and have
//! no name, and renames of what is open come out right. It knows nothing of descriptors: the log's [`FileId`]s are
//! bound to inodes at their first mention.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use super::acl::{ACCESS_LIST, mode_with_list};
use super::{BYTES_MAX, Node, NodeKind, Tree};
use crate::op::{Event, FileId, Op, OpKind, What};

/// The number of an inode within one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Inode(usize);

/// A file system in memory.
#[derive(Debug, Clone)]
pub struct Model {
    inodes: Vec<Entry>,
    files: HashMap<FileId, Inode>,
    /// Where an inode without a name was last seen: a file can be removed before the log first mentions its id.
    removed: HashMap<PathBuf, Inode>,
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
}

#[derive(Debug, Clone)]
enum Body {
    File(std::sync::Arc<Vec<u8>>),
    Folder(BTreeMap<OsString, Inode>),
    Link(PathBuf),
    Other(NodeKind),
}

const ROOT: Inode = Inode(0);
/// As many links as Linux follows in one look-up (`MAXSYMLINKS`, include/linux/namei.h).
const LINKS_FOLLOWED_MAX: usize = 40;

const KEEP_SIZE: i32 = 0x01;
const PUNCH_HOLE: i32 = 0x02;
const COLLAPSE_RANGE: i32 = 0x08;
const ZERO_RANGE: i32 = 0x10;
const INSERT_RANGE: i32 = 0x20;

type Result<T> = std::result::Result<T, (PathBuf, &'static str)>;

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
        let folder = Entry::new(Body::Folder(BTreeMap::new()), 0o755, (0, 0));
        let mut model =
            Model { inodes: vec![folder], files: HashMap::new(), removed: HashMap::new() };
        let mut groups: HashMap<u32, Inode> = HashMap::new();
        for (path, node) in &tree.nodes {
            let entry = Entry::of(node);
            if path.as_os_str().is_empty() {
                model.inodes[0] = entry;
                continue;
            }
            let known = node.hard_link.and_then(|group| groups.get(&group).copied());
            let inode = known.unwrap_or_else(|| model.add(entry));
            if let Some(group) = node.hard_link {
                groups.insert(group, inode);
            }
            // A tree's keys are sorted, so that a folder comes before what is in it.
            let named = model.name(path, inode);
            debug_assert!(named.is_ok(), "a tree holds a path without its folder");
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
                let inode = self.add(Entry::new(Body::File(Default::default()), *mode, *owner));
                self.files.insert(*file, inode);
                path.as_ref().map_or(Ok(()), |path| self.name_new(path, inode))
            }
            OpKind::Write { file, path, offset, data, .. } => {
                let start = *offset as usize;
                let end = fitting(offset.saturating_add(data.len() as u64))
                    .map_err(|what| (path.clone(), what))?;
                let bytes = self.bytes_mut(*file, path)?;
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                bytes[start..end].copy_from_slice(data);
                Ok(())
            }
            OpKind::Truncate { file, path, size, .. } => {
                let size = fitting(*size).map_err(|what| (path.clone(), what))?;
                self.bytes_mut(*file, path)?.resize(size, 0);
                Ok(())
            }
            OpKind::Allocate { file, path, mode, offset, len } => {
                let bytes = self.bytes_mut(*file, path)?;
                allocate(bytes, *mode, *offset as usize, *len as usize)
                    .map_err(|what| (path.clone(), what))
            }
            OpKind::Rename { from, to, exchange, .. } => self.rename(from, to, *exchange),
            OpKind::Link { file, from, to } => {
                let inode = self
                    .bind(*file, from.as_deref().unwrap_or(to))
                    .ok_or((to.clone(), "no such file"))?;
                self.name_new(to, inode)
            }
            OpKind::Symlink { target, path, owner } => {
                let inode = self.add(Entry::new(Body::Link(target.clone()), 0o777, *owner));
                self.name_new(path, inode)
            }
            OpKind::Unlink { path } | OpKind::Rmdir { path } => self.unname(path),
            OpKind::Mkdir { path, mode, owner } => {
                let inode = self.add(Entry::new(Body::Folder(BTreeMap::new()), *mode, *owner));
                self.name_new(path, inode)
            }
            OpKind::Mknod { path, mode, device, owner } => {
                let body = match mode & 0o170000 {
                    0o010000 => Body::Other(NodeKind::Fifo),
                    0o140000 => Body::Other(NodeKind::Socket),
                    0o060000 => Body::Other(NodeKind::Device { block: true, number: *device }),
                    0o020000 => Body::Other(NodeKind::Device { block: false, number: *device }),
                    _ => Body::File(Default::default()),
                };
                let inode = self.add(Entry::new(body, mode & 0o7777, *owner));
                self.name_new(path, inode)
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
                self.entry_mut(*file, path)?.mode = mode & 0o7777;
                Ok(())
            }
            OpKind::Chown { path, file, uid, gid, mode } => {
                let entry = self.entry_mut(*file, path)?;
                (entry.uid, entry.gid, entry.mode) = (*uid, *gid, mode & 0o7777);
                Ok(())
            }
            OpKind::Xattr { path, file, name, value } => {
                let entry = self.entry_mut(*file, path)?;
                match value {
                    Some(list) if name == ACCESS_LIST => {
                        entry.mode = mode_with_list(entry.mode, list).unwrap_or(entry.mode);
                        None
                    }
                    // A tree holds attributes of users alone.
                    _ if !name.starts_with("user.") => None,
                    Some(value) => entry.xattrs.insert(name.clone(), value.clone()),
                    None => entry.xattrs.remove(name),
                };
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn rename(&mut self, from: &Path, to: &Path, exchange: bool) -> Result<()> {
        let moved = self.find(from).ok_or_else(|| (from.to_owned(), "no such file"))?;
        let replaced = self.find(to);
        if replaced == Some(moved) {
            return Ok(()); // Two names of one file: rename(2) does nothing.
        }
        self.unname(from)?;
        if let Some(other) = replaced {
            self.unname(to)?;
            if exchange {
                self.name(from, other)?;
            }
        }
        self.removed.remove(from);
        self.name(to, moved)
    }

    /// The inode at a path, no link followed.
    pub fn find(&self, path: &Path) -> Option<Inode> {
        path.components().try_fold(ROOT, |at, component| {
            match (&self.inodes[at.0].body, component) {
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
        let mut left: Vec<OsString> = parts(path)?;
        left.reverse();
        let mut trail = vec![(PathBuf::new(), ROOT)];
        let mut followed = 0;
        while let Some(name) = left.pop() {
            let (at, folder) = trail.last()?;
            let Body::Folder(names) = &self.inodes[folder.0].body else {
                return None;
            };
            if name == ".." {
                trail.pop();
                trail.last()?;
                continue;
            }
            let here = at.join(&name);
            let Some(inode) = names.get(&name) else {
                return Some(left.iter().rev().fold(here, |path, name| path.join(name)));
            };
            let Body::Link(target) = &self.inodes[inode.0].body else {
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

    /// The inode that a file id of the log stands for, once the log has mentioned it.
    pub fn inode(&self, file: FileId) -> Option<Inode> {
        self.files.get(&file).copied()
    }

    /// The bytes of a regular file.
    pub fn bytes(&self, inode: Inode) -> Option<&[u8]> {
        match &self.inodes[inode.0].body {
            Body::File(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// What a symbolic link points to.
    pub fn target(&self, inode: Inode) -> Option<&Path> {
        match &self.inodes[inode.0].body {
            Body::Link(target) => Some(target),
            _ => None,
        }
    }

    /// The names in a folder, sorted.
    pub fn names(&self, inode: Inode) -> Option<impl Iterator<Item = (&OsStr, Inode)>> {
        match &self.inodes[inode.0].body {
            Body::Folder(names) => {
                Some(names.iter().map(|(name, inode)| (name.as_os_str(), *inode)))
            }
            _ => None,
        }
    }

    /// The tree that the model stands at.
    pub fn tree(&self) -> Tree {
        let mut entries = Vec::new();
        let mut open = vec![(PathBuf::new(), ROOT)];
        while let Some((path, inode)) = open.pop() {
            let entry = &self.inodes[inode.0];
            if let Body::Folder(children) = &entry.body {
                open.extend(children.iter().map(|(name, inode)| (path.join(name), *inode)));
            }
            entries.push((path, entry.node(), inode));
        }
        Tree::from_identities(entries)
    }

    fn add(&mut self, entry: Entry) -> Inode {
        self.inodes.push(entry);
        Inode(self.inodes.len() - 1)
    }

    fn bind(&mut self, file: FileId, path: &Path) -> Option<Inode> {
        if let Some(inode) = self.files.get(&file) {
            return Some(*inode);
        }
        let inode = self.find(path).or_else(|| self.removed.get(path).copied())?;
        self.files.insert(file, inode);
        Some(inode)
    }

    fn folder_mut(&mut self, path: &Path) -> Result<&mut BTreeMap<OsString, Inode>> {
        let parent = path.parent().unwrap_or(Path::new(""));
        let inode = self.find(parent).ok_or_else(|| (parent.to_owned(), "no such folder"))?;
        match &mut self.inodes[inode.0].body {
            Body::Folder(names) => Ok(names),
            _ => Err((parent.to_owned(), "not a folder")),
        }
    }

    fn name(&mut self, path: &Path, inode: Inode) -> Result<()> {
        let name = path.file_name().ok_or_else(|| (path.to_owned(), "no name"))?.to_owned();
        self.folder_mut(path)?.insert(name, inode);
        Ok(())
    }

    fn name_new(&mut self, path: &Path, inode: Inode) -> Result<()> {
        if self.find(path).is_some() {
            return Err((path.to_owned(), "there is one already"));
        }
        self.name(path, inode)
    }

    fn unname(&mut self, path: &Path) -> Result<()> {
        let name = path.file_name().ok_or_else(|| (path.to_owned(), "no name"))?.to_owned();
        let inode = self
            .folder_mut(path)?
            .remove(&name)
            .ok_or_else(|| (path.to_owned(), "no such file"))?;
        self.removed.insert(path.to_owned(), inode);
        Ok(())
    }

    fn bytes_mut(&mut self, file: FileId, path: &Path) -> Result<&mut Vec<u8>> {
        let inode = self.bind(file, path).ok_or_else(|| (path.to_owned(), "no such file"))?;
        match &mut self.inodes[inode.0].body {
            Body::File(bytes) => Ok(std::sync::Arc::make_mut(bytes)),
            _ => Err((path.to_owned(), "not a regular file")),
        }
    }

    fn entry_mut(&mut self, file: Option<FileId>, path: &Path) -> Result<&mut Entry> {
        let inode = match file {
            Some(file) => self.bind(file, path),
            None => self.find(path),
        };
        let inode = inode.ok_or_else(|| (path.to_owned(), "no such file"))?;
        Ok(&mut self.inodes[inode.0])
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

/// A size that a file in memory may have.
fn fitting(size: u64) -> std::result::Result<usize, &'static str> {
    if size <= BYTES_MAX { Ok(size as usize) } else { Err("larger than what a tree may hold") }
}

/// What `fallocate(2)` does to the bytes, by its mode.
fn allocate(
    bytes: &mut Vec<u8>,
    mode: i32,
    offset: usize,
    len: usize,
) -> std::result::Result<(), &'static str> {
    // A hole may reach beyond all ends.
    let end = offset.saturating_add(len);
    if mode & COLLAPSE_RANGE != 0 {
        if end >= bytes.len() {
            return Err("the collapsed range reaches the end of the file");
        }
        bytes.drain(offset..end);
        return Ok(());
    }
    if mode & INSERT_RANGE != 0 {
        if offset >= bytes.len() {
            return Err("the inserted range begins at the end of the file");
        }
        fitting(bytes.len().saturating_add(len) as u64)?;
        bytes.splice(offset..offset, std::iter::repeat_n(0, len));
        return Ok(());
    }
    if mode & KEEP_SIZE == 0 && bytes.len() < end {
        bytes.resize(fitting(end as u64)?, 0);
    }
    if mode & (PUNCH_HOLE | ZERO_RANGE) != 0 {
        let until = end.min(bytes.len());
        bytes[offset.min(until)..until].fill(0);
    }
    Ok(())
}

impl Entry {
    fn new(body: Body, mode: u32, (uid, gid): (u32, u32)) -> Entry {
        Entry { body, mode: mode & 0o7777, uid, gid, xattrs: BTreeMap::new() }
    }

    fn of(node: &Node) -> Entry {
        let body = match &node.kind {
            NodeKind::File(bytes) => Body::File(std::sync::Arc::new(bytes.to_vec())),
            NodeKind::Folder => Body::Folder(BTreeMap::new()),
            NodeKind::Link(target) => Body::Link(target.clone()),
            other => Body::Other(other.clone()),
        };
        Entry { body, mode: node.mode, uid: node.uid, gid: node.gid, xattrs: node.xattrs.clone() }
    }

    fn node(&self) -> Node {
        let kind = match &self.body {
            Body::File(bytes) => NodeKind::File(bytes.as_slice().into()),
            Body::Folder(_) => NodeKind::Folder,
            Body::Link(target) => NodeKind::Link(target.clone()),
            Body::Other(kind) => kind.clone(),
        };
        let (mode, uid, gid) = (self.mode, self.uid, self.gid);
        Node { kind, mode, uid, gid, hard_link: None, xattrs: self.xattrs.clone() }
    }
}
