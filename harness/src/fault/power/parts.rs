//! What of a run can persist by itself: blocks of data, sizes, attributes, names. And what the run asked to be durable.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::op::{Data, Event, FileId, Op, OpKind, What};
use crate::tree::{FileBytes, Misfit, Model, Node, NodeKind, Tree};

/// The number of an inode within one log: the folder itself is the first.
pub(super) type Inode = usize;

/// Of the modes of `fallocate`, those that are modelled (include/uapi/linux/falloc.h).
const KEEP_SIZE: i32 = 0x01;
const PLAIN: i32 = 0;

/// A run has at most so many parts of data, or about as many: blocks are taken together until that is so.
const DATA_PARTS_MAX: u64 = 1 << 16;

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
    /// Bytes within one block of a file. `fresh`: the block is given to the file for them.
    Data { inode: Inode, offset: u64, bytes: Data, fresh: bool },
    /// The size of a file.
    Size { inode: Inode, size: u64, by: Resize },
    /// `fallocate` of a kind that moves or clears what is there.
    Allocate { inode: Inode, mode: i32, offset: u64, len: u64 },
    /// Mode and owner, or an extended attribute.
    Attribute { inode: Inode, set: Attribute },
    /// Names in folders, all of them or none.
    Names(Vec<Name>),
}

/// What set a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resize {
    /// A write beyond the end.
    Write,
    /// A call that made the file longer by what reads as zeros: `ftruncate`, `fallocate`.
    Extend,
    /// A truncation.
    Cut,
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
    /// The whole path, by which it was called.
    pub(super) path: PathBuf,
    pub(super) inode: Option<Inode>,
    /// A rename put it in the place of another file.
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
        !matches!(self, Change::Data { .. } | Change::Size { by: Resize::Write, .. })
    }

    /// The file of whose bytes or size it is one.
    pub(super) fn content_of(&self) -> Option<Inode> {
        match self {
            Change::Data { inode, .. }
            | Change::Size { inode, .. }
            | Change::Allocate { inode, .. } => Some(*inode),
            Change::Attribute { .. } | Change::Names(_) => None,
        }
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
    /// A file or folder, and it failed: what was not durable then is so by no later one.
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
    /// Data comes in blocks of so many bytes.
    pub(super) block: u64,
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
        let mut walk = Walk::begin(before, coarse_enough(events, block));
        for (position, event) in (1..).zip(events) {
            walk.position = position;
            match &event.what {
                What::Op(op) => walk.op(event, op)?,
                What::Failed { call, path: Some(path), .. }
                    if ["fsync", "fdatasync", "msync"].contains(&call.as_str()) =>
                {
                    let failed = walk.model.find(path).map(|inode| Wish::Failed(inode.number()));
                    failed.into_iter().for_each(|wish| walk.wish(wish));
                }
                _ => walk.model.apply(event)?,
            }
        }
        Ok(walk.end(before))
    }

    /// The parts that there are when so many events have been.
    pub(super) fn count_at(&self, events: usize) -> usize {
        self.parts.partition_point(|part| part.position <= events)
    }
}

/// The block, or one a power of two as large, with which a run has not too many parts.
fn coarse_enough(events: &[Event], mut block: u64) -> u64 {
    let written = events.iter().filter_map(|event| match &event.op()?.kind {
        OpKind::Write { data, .. } => Some(data.len() as u64),
        _ => None,
    });
    let bytes: u64 = written.sum();
    while bytes / block > DATA_PARTS_MAX {
        block *= 2;
    }
    block
}

/// The log while it is read.
struct Walk {
    log: Log,
    position: usize,
    /// The folder as the program saw it.
    model: Model,
    /// A file got another name, or a folder lost its own.
    linked: bool,
    /// The blocks that files have.
    blocks: HashMap<Inode, Blocks>,
}

/// The blocks of a file: the first so many, and these.
#[derive(Default)]
struct Blocks {
    first: u64,
    others: BTreeSet<u64>,
}

impl Blocks {
    fn of(node: &Node, block: u64) -> Blocks {
        let len = match &node.kind {
            NodeKind::File(bytes) => bytes.len(),
            _ => 0,
        };
        Blocks { first: len.div_ceil(block), others: BTreeSet::new() }
    }

    /// A block is written; `true`: it was not the file's before.
    fn take(&mut self, block: u64) -> bool {
        block >= self.first && self.others.insert(block)
    }

    /// Blocks from this one on are given back.
    fn cut(&mut self, from: u64) {
        self.first = self.first.min(from);
        self.others.split_off(&from);
    }
}

impl Walk {
    fn begin(before: &Tree, block: u64) -> Walk {
        let log = Log { block, ..Log::default() };
        let mut walk = Walk {
            log,
            position: 0,
            model: Model::new(before),
            linked: false,
            blocks: HashMap::new(),
        };
        if before.get(Path::new("")).is_none() {
            walk.made(NodeKind::Folder, 0o755, (0, 0));
        }
        for (path, node) in &before.nodes {
            let Some(inode) = walk.model.find(path).map(|inode| inode.number()) else { continue };
            if inode == walk.log.inodes.len() {
                walk.log.inodes.push(Node { hard_link: None, ..node.clone() });
            }
            walk.log.paths.insert(inode, path.clone());
            if let Ok((folder, name)) = walk.model.place(path) {
                walk.log.names.entry(folder.number()).or_default().insert(name, inode);
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

    fn made(&mut self, kind: NodeKind, mode: u32, (uid, gid): (u32, u32)) -> Inode {
        let (mode, xattrs) = (mode & 0o7777, BTreeMap::new());
        self.log.inodes.push(Node { kind, mode, uid, gid, hard_link: None, xattrs });
        self.log.inodes.len() - 1
    }

    fn part(&mut self, op: u32, change: Change) {
        self.log.parts.push(Part { op, position: self.position, change });
    }

    fn wish(&mut self, wish: Wish) {
        self.log.wishes.push((self.position, wish));
    }

    /// A name, as it is found before the op; none where the model will not find it either.
    fn name(&self, path: &Path, inode: Option<Inode>, replaces: bool) -> Option<Name> {
        let (folder, name) = self.model.place(path).ok()?;
        Some(Name { folder: folder.number(), name, path: path.to_owned(), inode, replaces })
    }

    fn names(&mut self, op: u32, names: impl IntoIterator<Item = Option<Name>>) {
        let names: Vec<Name> = names.into_iter().flatten().collect();
        self.part(op, Change::Names(names));
    }

    /// How long a file is, as far as the log was read.
    fn size(&self, file: FileId, path: &Path) -> u64 {
        let inode = self.model.mentioned(file, path);
        inode.and_then(|inode| self.model.content(inode)).map_or(0, FileBytes::len)
    }

    /// The inode of an open file, or of what is at a path.
    fn inode(&self, file: Option<FileId>, path: &Path) -> Option<Inode> {
        let inode = match file {
            Some(file) => self.model.mentioned(file, path),
            None => self.model.find(path),
        };
        inode.map(|inode| inode.number())
    }

    /// Takes the op apart. What it names is looked up before it is done: an op that does not fit is the model's to tell.
    fn op(&mut self, event: &Event, op: &Op) -> Result<(), Misfit> {
        let number = op.number;
        match &op.kind {
            OpKind::Create { path, mode, owner, .. } => {
                let inode = self.made(NodeKind::File(FileBytes::default()), *mode, *owner);
                if let Some(path) = path {
                    self.names(number, [self.name(path, Some(inode), false)]);
                }
            }
            OpKind::Symlink { target, path, owner } => {
                let inode = self.made(NodeKind::Link(target.clone()), 0o777, *owner);
                self.names(number, [self.name(path, Some(inode), false)]);
            }
            OpKind::Mkdir { path, mode, owner } => {
                let inode = self.made(NodeKind::Folder, *mode, *owner);
                self.names(number, [self.name(path, Some(inode), false)]);
            }
            OpKind::Mknod { path, mode, device, owner } => {
                let inode = self.made(NodeKind::made(*mode, *device), *mode, *owner);
                self.names(number, [self.name(path, Some(inode), false)]);
            }
            OpKind::Link { file, from, to } => {
                self.linked = true;
                let inode = self.inode(Some(*file), from.as_deref().unwrap_or(to));
                self.names(number, [self.name(to, inode, false)]);
            }
            OpKind::Unlink { path } => self.names(number, [self.name(path, None, false)]),
            OpKind::Rmdir { path } => {
                self.linked = true;
                self.names(number, [self.name(path, None, false)]);
            }
            OpKind::Rename { from, to, exchange, .. } => {
                let (moved, other) = (self.inode(None, from), self.inode(None, to));
                // Two names of one file: nothing is done.
                if moved != other {
                    let back = other.filter(|_| *exchange);
                    // No file system starts to write out what an exchange brings to a name.
                    let replaces = other.is_some() && !exchange;
                    let names = [self.name(from, back, false), self.name(to, moved, replaces)];
                    self.names(number, names);
                }
            }
            _ => self.content(op),
        }
        self.model.apply(event)
    }

    /// What an op does to what is in a file, or says of it.
    fn content(&mut self, op: &Op) {
        let number = op.number;
        let (Some(inode), file) = (self.subject(&op.kind), op.kind.file()) else {
            if op.kind == OpKind::SyncAll {
                self.wish(Wish::All);
            }
            return;
        };
        let size = file.map_or(0, |file| self.size(file, op.kind.path().unwrap_or(Path::new(""))));
        match &op.kind {
            OpKind::Write { offset, data, .. } => {
                let end = offset.saturating_add(data.len() as u64);
                self.data(number, inode, *offset, data);
                if size < end {
                    self.resize(number, inode, end, Resize::Write);
                }
            }
            OpKind::Truncate { size: new, .. } if *new > size => {
                self.resize(number, inode, *new, Resize::Extend);
            }
            OpKind::Truncate { size: new, .. } => {
                let left = new.div_ceil(self.log.block);
                self.blocks(inode).cut(left);
                self.resize(number, inode, *new, Resize::Cut);
            }
            OpKind::Allocate { mode: KEEP_SIZE, .. } => {}
            OpKind::Allocate { mode: PLAIN, offset, len, .. } => {
                let end = offset.saturating_add(*len);
                let block = self.log.block;
                // Marked as not written: they read as zeros whatever they held.
                self.blocks(inode).others.extend(offset / block..end.div_ceil(block));
                if end > size {
                    self.resize(number, inode, end, Resize::Extend);
                }
            }
            OpKind::Allocate { mode, offset, len, .. } => {
                let (mode, offset, len) = (*mode, *offset, *len);
                self.part(number, Change::Allocate { inode, mode, offset, len });
            }
            OpKind::Chmod { mode, .. } => {
                self.attribute(op, inode, Attribute::Mode(*mode & 0o7777))
            }
            OpKind::Chown { uid, gid, mode, .. } => {
                self.attribute(op, inode, Attribute::Owner(*uid, *gid, *mode & 0o7777));
            }
            OpKind::Xattr { name, value, .. } => {
                self.attribute(op, inode, Attribute::Extended(name.clone(), value.clone()));
            }
            OpKind::Sync { data_only, .. } => {
                self.wish(Wish::File { inode, data_only: *data_only });
            }
            OpKind::SyncFolder { .. } => self.wish(Wish::Folder(inode)),
            _ => {}
        }
    }

    fn resize(&mut self, op: u32, inode: Inode, size: u64, by: Resize) {
        self.part(op, Change::Size { inode, size, by });
    }

    fn blocks(&mut self, inode: Inode) -> &mut Blocks {
        let (nodes, block) = (&self.log.inodes, self.log.block);
        self.blocks.entry(inode).or_insert_with(|| Blocks::of(&nodes[inode], block))
    }

    fn subject(&self, kind: &OpKind) -> Option<Inode> {
        self.inode(kind.file(), kind.path()?)
    }

    fn attribute(&mut self, op: &Op, inode: Inode, set: Attribute) {
        self.part(op.number, Change::Attribute { inode, set });
    }

    fn data(&mut self, op: u32, inode: Inode, offset: u64, data: &Data) {
        let mut done = 0;
        while done < data.len() {
            let at = offset.saturating_add(done as u64);
            let left = (self.log.block - at % self.log.block) as usize;
            let bytes = data.slice(done..data.len().min(done + left));
            done += bytes.len();
            let block = at / self.log.block;
            let fresh = self.blocks(inode).take(block);
            self.part(op, Change::Data { inode, offset: at, bytes, fresh });
        }
    }
}
