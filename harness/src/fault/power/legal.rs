//! Which sets of parts a disk can hold: what a part needs on the disk before it, and what fsync has put there.

use std::collections::HashMap;
use std::ffi::OsStr;

use super::model::{DiskModel, Fsync, Growth, Order, Replace};
use super::parts::{Change, Inode, Log, Part, Wish};

/// For each part of a log, the parts that are on the disk whenever it is; all of them come before it.
pub(super) fn needs(log: &Log, model: &DiskModel) -> Vec<Vec<usize>> {
    let mut seen = Seen::default();
    let needs = log.parts.iter().enumerate().map(|(number, part)| {
        let mut needs = match model.order {
            Order::Everything => number.checked_sub(1).into_iter().collect(),
            _ => seen.needs(part, model),
        };
        needs.sort_unstable();
        needs.dedup();
        seen.see(number, part, model);
        needs
    });
    needs.collect()
}

/// The parts before the one at hand, by what they are about.
#[derive(Default)]
struct Seen<'a> {
    blocks: HashMap<(Inode, u64), usize>,
    sizes: HashMap<Inode, usize>,
    truncated: HashMap<Inode, usize>,
    /// All that is in the file since it was truncated to nothing.
    data: HashMap<Inode, Vec<usize>>,
    attributes: HashMap<Inode, usize>,
    first_name: HashMap<Inode, usize>,
    names: HashMap<(Inode, &'a OsStr), usize>,
    logged: Option<usize>,
}

impl<'a> Seen<'a> {
    fn needs(&self, part: &'a Part, model: &DiskModel) -> Vec<usize> {
        let mut needs = Vec::new();
        let has_log = model.order == Order::Metadata;
        match &part.change {
            Change::Data { inode, offset, .. } => {
                // One block of the page cache is written out as it is by then.
                needs.extend(self.blocks.get(&(*inode, offset / model.block)));
                // The blocks of a truncated file are free: new ones are reached once that is on the disk.
                if has_log || model.growth == Growth::AfterData {
                    needs.extend(self.truncated.get(inode));
                }
            }
            Change::Size { inode, grows, .. } => {
                needs.extend(self.sizes.get(inode));
                if *grows {
                    if model.growth == Growth::AfterData {
                        needs.extend(self.data.get(inode).into_iter().flatten());
                    }
                    needs.extend(self.first_name.get(inode).filter(|_| has_log));
                }
            }
            // Ranges are moved only when what is in them has been written out.
            Change::Allocate { inode, .. } => {
                needs.extend(self.sizes.get(inode));
                needs.extend(self.data.get(inode).into_iter().flatten());
            }
            Change::Attribute { inode, .. } => needs.extend(self.attributes.get(inode)),
            Change::Names(names) => {
                for name in names {
                    needs.extend(self.names.get(&(name.folder, name.name.as_os_str())));
                    if let Some(inode) = name.inode.filter(|_| name.replaces) {
                        if model.replace != Replace::Nothing {
                            needs.extend(self.sizes.get(&inode));
                        }
                        if model.replace == Replace::Data {
                            needs.extend(self.data.get(&inode).into_iter().flatten());
                        }
                    }
                }
            }
        }
        if has_log && part.change.is_logged() {
            needs.extend(self.logged);
        }
        needs
    }

    fn see(&mut self, number: usize, part: &'a Part, model: &DiskModel) {
        if part.change.is_logged() {
            self.logged = Some(number);
        }
        match &part.change {
            Change::Data { inode, offset, .. } => {
                self.blocks.insert((*inode, offset / model.block), number);
                self.data.entry(*inode).or_default().push(number);
            }
            Change::Size { inode, size, grows } => {
                self.sizes.insert(*inode, number);
                if !grows {
                    self.truncated.insert(*inode, number);
                    let gone = |block: u64| block * model.block >= *size;
                    self.blocks.retain(|(of, block), _| of != inode || !gone(*block));
                    if *size == 0 {
                        self.data.remove(inode);
                    }
                }
            }
            Change::Allocate { inode, .. } => {
                self.sizes.insert(*inode, number);
                self.truncated.insert(*inode, number);
                self.blocks.retain(|(of, _), _| of != inode);
            }
            Change::Attribute { inode, .. } => _ = self.attributes.insert(*inode, number),
            Change::Names(names) => {
                for name in names {
                    self.names.insert((name.folder, &name.name), number);
                    name.inode.iter().for_each(|inode| {
                        self.first_name.entry(*inode).or_insert(number);
                    });
                }
            }
        }
    }
}

/// The parts that are surely on the disk when so many events had been written down, for a log whose parts need this; with
/// what was asked for, and with `more`.
pub(super) fn durable(
    log: &Log,
    model: &DiskModel,
    needs: &[Vec<usize>],
    position: usize,
    more: &[(usize, Wish)],
) -> Vec<bool> {
    let mut wishes: Vec<(usize, Wish)> = log.wishes.iter().chain(more).copied().collect();
    wishes.sort_by_key(|(at, _)| *at);
    let mut durable = vec![false; log.parts.len()];
    let mut failed = vec![false; log.parts.len()];
    for (at, wish) in wishes.iter().filter(|(at, _)| *at <= position) {
        // An op is before the sync that follows it in the same call, as with O_SYNC.
        let before = log.parts.partition_point(|part| part.position <= *at);
        let parts = &log.parts[..before];
        match wish {
            Wish::Failed(inode) => {
                for (number, part) in parts.iter().enumerate() {
                    failed[number] |= is_content(&part.change, *inode) && !durable[number];
                }
            }
            Wish::All => durable[..before].fill(true),
            Wish::File { inode, data_only } => {
                let is_own = |part: &Part| match &part.change {
                    Change::Attribute { inode: of, .. } => of == inode && !data_only,
                    other => is_content(other, *inode),
                };
                let own = (0..before).filter(|number| is_own(&parts[*number]) && !failed[*number]);
                let own: Vec<usize> = own.collect();
                let reaches = |part: &Part| match &part.change {
                    Change::Data { .. } | Change::Attribute { .. } if *data_only => false,
                    other => other.inodes().any(|of| of == *inode),
                };
                let until = parts.iter().rposition(reaches).map_or(0, |last| last + 1);
                own.into_iter().for_each(|number| durable[number] = true);
                log_until(model, &parts[..until], &mut durable);
            }
            Wish::Folder(folder) => {
                let is_in = |part: &Part| match &part.change {
                    Change::Names(names) => names.iter().any(|name| name.folder == *folder),
                    _ => false,
                };
                (0..before)
                    .filter(|number| is_in(&parts[*number]))
                    .for_each(|number| durable[number] = true);
                let until = parts.iter().rposition(is_in).map_or(0, |last| last + 1);
                log_until(model, &parts[..until], &mut durable);
            }
        }
    }
    for number in (0..durable.len()).rev().filter(|number| log.parts[*number].position <= position)
    {
        if durable[number] {
            needs[number].iter().for_each(|needed| durable[*needed] = true);
        }
    }
    durable
}

/// What is in the log of the file system up to here was written with it.
fn log_until(model: &DiskModel, parts: &[Part], durable: &mut [bool]) {
    if model.fsync == Fsync::LogUpToIt {
        for (part, durable) in parts.iter().zip(durable) {
            *durable |= part.change.is_logged();
        }
    }
}

/// The change is one of a file's bytes or its size.
fn is_content(change: &Change, inode: Inode) -> bool {
    match change {
        Change::Data { inode: of, .. }
        | Change::Size { inode: of, .. }
        | Change::Allocate { inode: of, .. } => *of == inode,
        _ => false,
    }
}
