//! Reads of watched files, told by the kernel's own watch on each of them (inotify) and not by a stop for each read of any
//! file, which is most of what the start of a program consists of.
//!
//! What it tells is less than stops do: a file that is mapped was opened, and nobody sees whether it was read. Such
//! a file is named by [`Reads::unclear`].

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, Inotify, WatchDescriptor};

use crate::op::FileId;

/// The watches of one run.
#[derive(Debug)]
pub(super) struct Reads {
    kernel: Arc<Inotify>,
    files: HashMap<WatchDescriptor, FileId>,
    /// Files that were opened, and of which no read is known.
    opened: BTreeSet<FileId>,
    read: BTreeSet<FileId>,
    /// Reads that were come upon and not told yet.
    untold: Vec<FileId>,
}

impl Reads {
    /// None yet; what is left of an earlier run is thrown away.
    pub(super) fn new(kernel: Arc<Inotify>) -> Reads {
        let (files, opened, read) = (HashMap::new(), BTreeSet::new(), BTreeSet::new());
        let mut reads = Reads { kernel, files, opened, read, untold: Vec::new() };
        reads.look();
        reads
    }

    /// Watches a regular file. Where the kernel has no room for it, its reads stay unknown.
    pub(super) fn watch(&mut self, at: &Path, file: FileId) {
        let what =
            AddWatchFlags::IN_OPEN | AddWatchFlags::IN_ACCESS | AddWatchFlags::IN_DONT_FOLLOW;
        match self.kernel.add_watch(at, what) {
            Ok(watch) => _ = self.files.insert(watch, file),
            Err(_) => _ = self.opened.insert(file),
        }
    }

    /// The files that were read since the last time, in their order.
    pub(super) fn news(&mut self) -> Vec<FileId> {
        self.look();
        std::mem::take(&mut self.untold)
    }

    /// Called after an open that a stop told of, where [`news`](Self::news) was asked before it: that one hides no read.
    pub(super) fn opened(&mut self, file: FileId) {
        let is_unclear = self.opened.contains(&file);
        self.look();
        if !is_unclear {
            self.opened.remove(&file);
        }
    }

    /// A file of which nobody knows whether it was read.
    pub(super) fn unclear(&self) -> Option<FileId> {
        self.opened.first().copied()
    }

    fn look(&mut self) {
        loop {
            let events = match self.kernel.read_events() {
                Ok(events) => events,
                Err(Errno::EINTR) => continue,
                // There is nothing more; after another error what is not known to be read is not taken to be.
                Err(_) => return,
            };
            for event in events {
                let Some(file) = self.files.get(&event.wd).copied() else { continue };
                if event.mask.contains(AddWatchFlags::IN_ACCESS) {
                    self.opened.remove(&file);
                    self.read.insert(file);
                    self.untold.push(file);
                } else if event.mask.contains(AddWatchFlags::IN_OPEN) && !self.read.contains(&file)
                {
                    self.opened.insert(file);
                }
            }
        }
    }
}
