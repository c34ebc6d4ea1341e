//! Which sets of parts a disk can hold: what a part needs on the disk before it, and from when on fsync has put it there.
//!
//! Both are worked out in one pass over the log, whatever its length.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;

use super::model::{DiskModel, Fsync, Growth, Order, Replace};
use super::parts::{Change, Inode, Log, Part, Resize, Wish};
use crate::tree::{FileBytes, NodeKind};

/// For each part of a log, the parts that are on the disk whenever it is; all of them come before it.
pub(super) fn needs(log: &Log, model: &DiskModel) -> Vec<Vec<usize>> {
    let mut seen = Seen {
        model,
        block: log.block,
        logged: None,
        files: HashMap::new(),
        names: HashMap::new(),
    };
    for (inode, node) in log.inodes.iter().enumerate() {
        if let NodeKind::File(bytes) = &node.kind {
            seen.files.insert(inode, File::of(bytes));
        }
    }
    let needs = log.parts.iter().enumerate().map(|(number, part)| {
        let mut needs = match model.order {
            Order::Everything => number.checked_sub(1).into_iter().collect(),
            _ => seen.needs(part),
        };
        needs.sort_unstable();
        needs.dedup();
        seen.see(number, part);
        needs
    });
    needs.collect()
}

/// The parts before the one at hand, by what they are about.
struct Seen<'a> {
    model: &'a DiskModel,
    block: u64,
    /// The last part that went into the log of the file system.
    logged: Option<usize>,
    files: HashMap<Inode, File>,
    /// The last part about each name.
    names: HashMap<(Inode, &'a OsStr), usize>,
}

/// The parts about one file.
#[derive(Default)]
struct File {
    /// How long it was before the run: what lies behind is in blocks that the run allocates.
    was: u64,
    size: u64,
    /// The last part about its size.
    sized: Option<usize>,
    /// The last about each block that is still there.
    blocks: BTreeMap<u64, usize>,
    /// What made blocks free, with the size that was left; larger sizes come later.
    freed: Vec<(usize, u64)>,
    /// Data behind the size as it was last set: a write that makes the file longer.
    growing: Vec<usize>,
    /// Data in blocks that the run allocates, and that no rename has waited for.
    fresh: Vec<usize>,
    /// The last rename that waited for it.
    waited: Option<usize>,
    /// The last about mode, owner or extended attributes.
    attributes: Option<usize>,
    /// That which gave it its first name in the run.
    named: Option<usize>,
}

impl File {
    fn of(bytes: &FileBytes) -> File {
        File { was: bytes.len(), size: bytes.len(), ..File::default() }
    }
}

impl<'a> Seen<'a> {
    fn needs(&mut self, part: &'a Part) -> Vec<usize> {
        let (model, has_log) = (self.model, self.model.order == Order::Metadata);
        let mut needs = Vec::new();
        match &part.change {
            Change::Data { inode, offset, .. } => {
                let file = self.files.entry(*inode).or_default();
                let block = offset / self.block;
                // One block of the page cache is written out as it is by then.
                needs.extend(file.blocks.get(&block));
                // The blocks of a truncated file are free: new ones are reached once that is on the disk.
                if has_log || model.growth == Growth::AfterData {
                    let behind = |(_, left): &&(usize, u64)| *left <= block * self.block;
                    needs.extend(file.freed.iter().rev().find(behind).map(|(freed, _)| *freed));
                }
            }
            Change::Size { inode, by, .. } => {
                let file = self.files.entry(*inode).or_default();
                needs.extend(file.sized);
                if *by == Resize::Write {
                    if model.growth == Growth::AfterData {
                        needs.append(&mut file.growing);
                    }
                    needs.extend(file.named.filter(|_| has_log));
                }
            }
            // Ranges are moved only when what is in them has been written out.
            Change::Allocate { inode, .. } => {
                let file = self.files.entry(*inode).or_default();
                needs.extend(file.sized);
                needs.extend(file.blocks.values());
            }
            Change::Attribute { inode, .. } => {
                needs.extend(self.files.entry(*inode).or_default().attributes);
            }
            Change::Names(names) => {
                for name in names {
                    needs.extend(self.names.get(&(name.folder, name.name.as_os_str())));
                    let Some(inode) = name.inode.filter(|_| name.replaces) else { continue };
                    let file = self.files.entry(inode).or_default();
                    if model.replace != Replace::Nothing {
                        needs.extend(file.sized);
                    }
                    if model.replace == Replace::Data {
                        needs.append(&mut file.fresh);
                        needs.extend(file.waited);
                    }
                }
            }
        }
        if has_log && part.change.is_logged() {
            needs.extend(self.logged);
        }
        needs
    }

    fn see(&mut self, number: usize, part: &'a Part) {
        if part.change.is_logged() {
            self.logged = Some(number);
        }
        match &part.change {
            Change::Data { inode, offset, bytes, .. } => {
                let block = offset / self.block;
                let file = self.files.entry(*inode).or_default();
                file.blocks.insert(block, number);
                if offset + bytes.len() as u64 > file.size {
                    file.growing.push(number);
                }
                if (block + 1) * self.block > file.was.next_multiple_of(self.block) {
                    file.fresh.push(number);
                }
            }
            Change::Size { inode, size, by } => {
                let file = self.files.entry(*inode).or_default();
                (file.size, file.sized) = (*size, Some(number));
                file.growing.clear();
                if *by == Resize::Cut {
                    file.cut(number, *size, self.block);
                }
            }
            Change::Allocate { inode, .. } => {
                let file = self.files.entry(*inode).or_default();
                file.sized = Some(number);
                file.cut(number, 0, self.block);
            }
            Change::Attribute { inode, .. } => {
                self.files.entry(*inode).or_default().attributes = Some(number);
            }
            Change::Names(names) => {
                for name in names {
                    self.names.insert((name.folder, &name.name), number);
                    let Some(inode) = name.inode else { continue };
                    let file = self.files.entry(inode).or_default();
                    file.named.get_or_insert(number);
                    if name.replaces {
                        file.waited = Some(number);
                    }
                }
            }
        }
    }
}

impl File {
    /// The part gave blocks free, all those behind what is left.
    fn cut(&mut self, number: usize, left: u64, block: u64) {
        self.blocks.split_off(&left.div_ceil(block));
        self.freed.retain(|(_, before)| *before < left);
        self.freed.push((number, left));
        self.was = self.was.min(left);
        if left == 0 {
            self.fresh.clear();
        }
    }
}

/// For each part of a log, whose parts need this, the number of events from which on it is surely on the disk; with what was
/// asked for, and with `more` that is asked for. A sync counts when it was waited for: that of the log has come back at its
/// event; one more only at the next.
pub(super) fn durable_from(
    log: &Log,
    model: &DiskModel,
    needs: &[Vec<usize>],
    more: &[(usize, Wish)],
) -> Vec<usize> {
    let own = log.wishes.iter().map(|(at, wish)| (*at, *at, *wish));
    let more = more.iter().map(|(at, wish)| (*at, at + 1, *wish));
    let mut wishes: Vec<(usize, usize, Wish)> = own.chain(more).collect();
    wishes.sort_by_key(|(at, ..)| *at);
    let mut durable = Durable::of(log, model);
    for (at, from, wish) in wishes {
        durable.go_to(at);
        durable.grant(from, wish);
    }
    let mut durable = durable.from;
    for part in (0..durable.len()).rev() {
        for need in &needs[part] {
            durable[*need] = durable[*need].min(durable[part]);
        }
    }
    durable
}

/// What is not durable at a place of the log, by what can make it so.
struct Durable<'a> {
    log: &'a Log,
    model: &'a DiskModel,
    from: Vec<usize>,
    /// So many parts have been.
    done: usize,
    pending: HashMap<Inode, Pending>,
    /// So many parts are on the disk as far as they are logged.
    logged: usize,
    /// So many are all there, but for those whose sync failed.
    all: usize,
    failed: Vec<bool>,
}

/// Of a file or folder, what is not on the disk yet.
#[derive(Default)]
struct Pending {
    content: Vec<usize>,
    attributes: Vec<usize>,
    /// Names in it.
    names: Vec<usize>,
    /// So many parts of the log had been when it was last changed; and when, but for its data alone and its attributes.
    changed: usize,
    reshaped: usize,
}

impl<'a> Durable<'a> {
    fn of(log: &'a Log, model: &'a DiskModel) -> Durable<'a> {
        let count = log.parts.len();
        Durable {
            log,
            model,
            from: vec![usize::MAX; count],
            done: 0,
            pending: HashMap::new(),
            logged: 0,
            all: 0,
            failed: vec![false; count],
        }
    }

    /// Takes in the parts up to a position. An op is before the sync that follows it in the same call, as with O_SYNC.
    fn go_to(&mut self, position: usize) {
        while let Some(part) =
            self.log.parts.get(self.done).filter(|part| part.position <= position)
        {
            let number = self.done;
            self.done += 1;
            for inode in part.change.inodes() {
                let pending = self.pending.entry(inode).or_default();
                pending.changed = self.done;
                if !matches!(part.change, Change::Data { .. } | Change::Attribute { .. }) {
                    pending.reshaped = self.done;
                }
            }
            match &part.change {
                Change::Attribute { inode, .. } => {
                    self.pending.entry(*inode).or_default().attributes.push(number);
                }
                Change::Names(names) => {
                    for name in names {
                        let folder = self.pending.entry(name.folder).or_default();
                        folder.names.push(number);
                        folder.changed = self.done;
                    }
                }
                other => {
                    let pending = other.content_of().map(|inode| self.pending.entry(inode));
                    pending.into_iter().for_each(|file| file.or_default().content.push(number));
                }
            }
        }
    }

    fn grant(&mut self, from: usize, wish: Wish) {
        match wish {
            Wish::Failed(inode) => {
                let Some(pending) = self.pending.get_mut(&inode) else { return };
                for part in pending.content.drain(..).chain(pending.names.drain(..)) {
                    self.failed[part] = true;
                }
            }
            Wish::All => {
                for part in self.all..self.done {
                    if !self.failed[part] {
                        self.from[part] = self.from[part].min(from);
                    }
                }
                (self.all, self.logged) = (self.done, self.done);
                self.pending.clear();
            }
            Wish::File { inode, data_only } => {
                let Some(pending) = self.pending.get_mut(&inode) else { return };
                let mut parts = std::mem::take(&mut pending.content);
                if !data_only {
                    parts.append(&mut pending.attributes);
                }
                let until = if data_only { pending.reshaped } else { pending.changed };
                self.put(from, parts, until);
            }
            Wish::Folder(folder) => {
                let Some(pending) = self.pending.get_mut(&folder) else { return };
                let mut parts = std::mem::take(&mut pending.names);
                parts.append(&mut pending.attributes);
                let until = pending.changed;
                self.put(from, parts, until);
            }
        }
    }

    /// These are on the disk, and what is in the log of the file system up to the last change that was asked for.
    fn put(&mut self, from: usize, parts: Vec<usize>, until: usize) {
        for part in parts {
            self.from[part] = self.from[part].min(from);
        }
        if self.model.fsync == Fsync::LogUpToIt {
            for part in self.logged..until {
                if self.log.parts[part].change.is_logged() {
                    self.from[part] = self.from[part].min(from);
                }
            }
            self.logged = self.logged.max(until);
        }
    }
}
