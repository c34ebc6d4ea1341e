//! What of a run can persist by itself: blocks of data, sizes, attributes, names. And what the run asked to be durable.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use crate::op::{Data, Event, FileId, Op, OpKind, What};
use crate::tree::{FileBytes, Misfit, Node, NodeKind, Tree, allocate};

/// The number of an inode within one log.
pub(super) type Inode = usize;

const KEEP_SIZE: i32 = 0x01;

/// A part of an op that persists as a whole, or not.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// The number of its op.
    pub(super) op: u32,
    /// How many events came before it, with its own.
    pub(super) position: usize,
    pub(super) change: Change,
}

#[derive(Debug, Clone)]
pub(super) enum Change {
    /// Bytes within one block of a file.
    Data { inode: Inode, offset: u64, bytes: Data },
    /// The size of a file; `grows` where a write went beyond its end.
    Size { inode: Inode, size: u64, grows: bool },
    /// `fallocate`, where that shows.
    Allocate { inode: Inode, mode: i32, offset: u64, len: u64 },
    /// Mode and owner, or an extended attribute.
    Attribute { inode: Inode, set: Attribute },
    /// Names in folders, all of them or none.
    Names(Vec<Name>),
}

#[derive(Debug, Clone)]
pub(super) enum Attribute {
    Mode(u32),
    Owner(u32, u32, u32),
    Extended(String, Option<Vec<u8>>),
}

/// What stands at a name from now on.
#[derive(Debug, Clone)]
pub(super) struct Name {
    pub(super) folder: Inode,
    pub(super) name: OsString,
    pub(super) inode: Option<Inode>,
    /// Another file had the name until now.
    pub(super) replaces: bool,
}

impl Change {
    /// The inodes that it is about.
    pub(super) fn inodes(&self) -> impl Iterator<Item = Inode> {
        let (own, names) = match self {
            Change::Data { inode, .. }
            | Change::Size { inode, .. }
            | Change::Allocate { inode, .. }
            | Change::Attribute { inode, .. } => (Some(*inode), &[][..]),
            Change::Names(names) => (None, &names[..]),
        };
        own.into_iter().chain(names.iter().filter_map(|name| name.inode))
    }

    /// It goes into the log of a file system that has one, at the time of its op.
    pub(super) fn is_logged(&self) -> bool {
        !matches!(self, Change::Data { .. } | Change::Size { grows: true, .. })
    }
}

/// What was to be made durable.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wish {
    /// A file, or its data alone.
    File { inode: Inode, data_only: bool },
    /// A folder.
    Folder(Inode),
    /// Everything.
    All,
    /// A file, and it failed: what was not durable then is so by no later one.
    Failed(Inode),
}

/// A run as parts.
#[derive(Debug, Clone, Default)]
pub(super) struct Log {
    /// Every inode as it was before the run, or as it was made.
    pub(super) inodes: Vec<Node>,
    /// The names before the run.
    pub(super) names: HashMap<Inode, BTreeMap<OsString, Inode>>,
    /// In the order of the log.
    pub(super) parts: Vec<Part>,
    /// What was asked for, and after how many events.
    pub(super) wishes: Vec<(usize, Wish)>,
    /// The tree before the run, where what can be found differs from it in single files alone: no folder is made, moved or
    /// removed, and no file has two names.
    pub(super) before: Option<Tree>,
    /// Where inodes stood before the run.
    pub(super) paths: HashMap<Inode, PathBuf>,
    /// The names that change, by their paths.
    pub(super) touched: BTreeMap<PathBuf, (Inode, OsString)>,
}

impl Log {
    /// The parts of a run that began at `before`, with data in blocks of so many bytes.
    ///
    /// # Errors
    ///
    /// [`Misfit`] for an op that cannot have happened there.
    pub(super) fn of(before: &Tree, events: &[Event], block: u64) -> Result<Log, Misfit> {
        let mut walk = Walk::begin(before, block);
        for (position, event) in (1..).zip(events) {
            walk.position = position;
            match &event.what {
                What::Op(op) => walk.op(op).map_err(|path| Misfit {
                    number: op.number,
                    call: op.call.clone(),
                    path,
                    what: "no such file",
                })?,
                What::Open { file, path, .. }
                | What::Read { file, path }
                | What::Close { file, path } => _ = walk.file(*file, path),
                What::Failed { call, path: Some(path), .. }
                    if matches!(call.as_str(), "fsync" | "fdatasync") =>
                {
                    let failed = walk.find(path).map(Wish::Failed);
                    failed.into_iter().for_each(|wish| walk.log.wishes.push((position, wish)));
                }
                _ => {}
            }
        }
        Ok(walk.end(before))
    }
}

/// The names as the program saw them, while the log is read.
struct Walk {
    log: Log,
    block: u64,
    position: usize,
    files: HashMap<FileId, Inode>,
    names: HashMap<Inode, BTreeMap<OsString, Inode>>,
    sizes: HashMap<Inode, u64>,
    /// Where an inode without a name was last seen.
    removed: HashMap<PathBuf, Inode>,
    /// A file got another name, or a folder lost its own.
    linked: bool,
}

const ROOT: Inode = 0;

impl Walk {
    fn begin(before: &Tree, block: u64) -> Walk {
        let log = Log::default();
        let mut walk = Walk {
            log,
            block,
            position: 0,
            files: HashMap::new(),
            names: HashMap::new(),
            sizes: HashMap::new(),
            removed: HashMap::new(),
            linked: false,
        };
        let mut groups: HashMap<PathBuf, Inode> = HashMap::new();
        for (path, node) in &before.nodes {
            let known = node.hard_link.as_ref().and_then(|group| groups.get(group).copied());
            let inode = known.unwrap_or_else(|| walk.add(node.clone()));
            node.hard_link.iter().for_each(|group| _ = groups.insert(group.clone(), inode));
            walk.log.paths.insert(inode, path.clone());
            if let Some((folder, name)) = walk.place(path) {
                walk.log.names.entry(folder).or_default().insert(name.clone(), inode);
                walk.names.entry(folder).or_default().insert(name, inode);
            }
        }
        walk
    }

    /// The log, once all of it was read.
    fn end(mut self, before: &Tree) -> Log {
        let log = &mut self.log;
        let mut is_plain =
            !self.linked && before.nodes.values().all(|node| node.hard_link.is_none());
        for part in &log.parts {
            let Change::Names(names) = &part.change else { continue };
            for name in names {
                let moved = name.inode.map(|inode| &log.inodes[inode].kind);
                is_plain &= !matches!(moved, Some(NodeKind::Folder));
                match log.paths.get(&name.folder) {
                    Some(path) => {
                        let place = (name.folder, name.name.clone());
                        log.touched.insert(path.join(&name.name), place);
                    }
                    None => is_plain = false,
                }
            }
        }
        log.before = is_plain.then(|| before.clone());
        self.log
    }

    fn add(&mut self, node: Node) -> Inode {
        let inode = self.log.inodes.len();
        if let NodeKind::File(bytes) = &node.kind {
            self.sizes.insert(inode, bytes.len());
        }
        self.log.inodes.push(Node { hard_link: None, ..node });
        inode
    }

    fn made(&mut self, kind: NodeKind, mode: u32, (uid, gid): (u32, u32)) -> Inode {
        let mode = mode & 0o7777;
        self.add(Node { kind, mode, uid, gid, hard_link: None, xattrs: BTreeMap::new() })
    }

    fn part(&mut self, op: u32, change: Change) {
        self.log.parts.push(Part { op, position: self.position, change });
    }

    fn find(&self, path: &Path) -> Option<Inode> {
        path.components().try_fold(ROOT, |at, component| match component {
            Component::Normal(name) => self.names.get(&at)?.get(name).copied(),
            _ => None,
        })
    }

    /// The folder of a path, and the name in it; the watched folder itself has none.
    fn place(&self, path: &Path) -> Option<(Inode, OsString)> {
        Some((self.find(path.parent()?)?, path.file_name()?.to_owned()))
    }

    fn file(&mut self, file: FileId, path: &Path) -> Option<Inode> {
        if let Some(inode) = self.files.get(&file) {
            return Some(*inode);
        }
        let inode = self.find(path).or_else(|| self.removed.get(path).copied())?;
        self.files.insert(file, inode);
        Some(inode)
    }

    /// Sets names, as one change.
    fn set(&mut self, op: u32, names: Vec<(&Path, Option<Inode>)>) -> Result<(), PathBuf> {
        let mut changes = Vec::new();
        for (path, inode) in names {
            let (folder, name) = self.place(path).ok_or_else(|| path.to_owned())?;
            let entries = self.names.entry(folder).or_default();
            let before = match inode {
                Some(inode) => entries.insert(name.clone(), inode),
                None => entries.remove(&name),
            };
            before.into_iter().for_each(|gone| _ = self.removed.insert(path.to_owned(), gone));
            let replaces = inode.is_some() && before.is_some();
            changes.push(Name { folder, name, inode, replaces });
        }
        self.part(op, Change::Names(changes));
        Ok(())
    }

    fn size(&mut self, op: u32, inode: Inode, size: u64, grows: bool) {
        self.sizes.insert(inode, size);
        self.part(op, Change::Size { inode, size, grows });
    }

    fn op(&mut self, op: &Op) -> Result<(), PathBuf> {
        let number = op.number;
        match &op.kind {
            OpKind::Create { file, path, mode, owner } => {
                let inode = self.made(NodeKind::File(FileBytes::default()), *mode, *owner);
                self.files.insert(*file, inode);
                path.iter().try_for_each(|path| self.set(number, vec![(path, Some(inode))]))
            }
            OpKind::Write { file, path, offset, data, .. } => {
                let inode = self.file(*file, path).ok_or_else(|| path.clone())?;
                let end = offset.saturating_add(data.len() as u64);
                let mut done = 0;
                while done < data.len() {
                    let at = offset + done as u64;
                    let left = (self.block - at % self.block) as usize;
                    let bytes = data.slice(done..data.len().min(done + left));
                    done += bytes.len();
                    self.part(number, Change::Data { inode, offset: at, bytes });
                }
                if self.sizes.get(&inode).is_none_or(|size| *size < end) {
                    self.size(number, inode, end, true);
                }
                Ok(())
            }
            OpKind::Truncate { file, path, size, .. } => {
                let inode = self.file(*file, path).ok_or_else(|| path.clone())?;
                self.size(number, inode, *size, false);
                Ok(())
            }
            OpKind::Allocate { file, path, mode, offset, len } => {
                let inode = self.file(*file, path).ok_or_else(|| path.clone())?;
                let (mode, offset, len) = (*mode, *offset, *len);
                if mode != KEEP_SIZE {
                    let size = self.sizes.get(&inode).copied().unwrap_or(0);
                    let mut hole = FileBytes::hole(size).map_err(|_| path.clone())?;
                    allocate(&mut hole, mode, offset, len).map_err(|_| path.clone())?;
                    self.sizes.insert(inode, hole.len());
                    self.part(number, Change::Allocate { inode, mode, offset, len });
                }
                Ok(())
            }
            OpKind::Rename { from, to, exchange, .. } => {
                let moved = self.find(from).ok_or_else(|| from.clone())?;
                let other = self.find(to);
                match other {
                    Some(other) if other == moved => Ok(()),
                    Some(other) if *exchange => {
                        self.set(number, vec![(from, Some(other)), (to, Some(moved))])
                    }
                    _ => self.set(number, vec![(from, None), (to, Some(moved))]),
                }
            }
            OpKind::Link { file, from, to } => {
                let inode = self.file(*file, from.as_deref().unwrap_or(to));
                let inode = inode.ok_or_else(|| to.clone())?;
                self.linked = true;
                self.set(number, vec![(to, Some(inode))])
            }
            OpKind::Symlink { target, path, owner } => {
                let inode = self.made(NodeKind::Link(target.clone()), 0o777, *owner);
                self.set(number, vec![(path, Some(inode))])
            }
            OpKind::Unlink { path } => self.set(number, vec![(path, None)]),
            OpKind::Rmdir { path } => {
                self.linked = true;
                self.set(number, vec![(path, None)])
            }
            OpKind::Mkdir { path, mode, owner } => {
                let inode = self.made(NodeKind::Folder, *mode, *owner);
                self.set(number, vec![(path, Some(inode))])
            }
            OpKind::Mknod { path, mode, device, owner } => {
                let inode = self.made(NodeKind::made(*mode, *device), *mode, *owner);
                self.set(number, vec![(path, Some(inode))])
            }
            OpKind::Chmod { path, file, mode } => {
                self.attribute(number, *file, path, Attribute::Mode(*mode & 0o7777))
            }
            OpKind::Chown { path, file, uid, gid, mode } => {
                let set = Attribute::Owner(*uid, *gid, *mode & 0o7777);
                self.attribute(number, *file, path, set)
            }
            OpKind::Xattr { path, file, name, value } => {
                let set = Attribute::Extended(name.clone(), value.clone());
                self.attribute(number, *file, path, set)
            }
            OpKind::Sync { file, path, data_only } => {
                let inode = self.file(*file, path).ok_or_else(|| path.clone())?;
                self.wish(Wish::File { inode, data_only: *data_only });
                Ok(())
            }
            OpKind::SyncFolder { path } => {
                let inode = self.find(path).ok_or_else(|| path.clone())?;
                self.wish(Wish::Folder(inode));
                Ok(())
            }
            OpKind::SyncAll => {
                self.wish(Wish::All);
                Ok(())
            }
            OpKind::SyncRange { file, path } | OpKind::Lock { file, path, .. } => {
                _ = self.file(*file, path);
                Ok(())
            }
            OpKind::Utimens { .. } => Ok(()),
        }
    }

    fn attribute(
        &mut self,
        op: u32,
        file: Option<FileId>,
        path: &Path,
        set: Attribute,
    ) -> Result<(), PathBuf> {
        let inode = match file {
            Some(file) => self.file(file, path),
            None => self.find(path),
        };
        let inode = inode.ok_or_else(|| path.to_owned())?;
        self.part(op, Change::Attribute { inode, set });
        Ok(())
    }

    fn wish(&mut self, wish: Wish) {
        self.log.wishes.push((self.position, wish));
    }
}
