//! What the tracer knows about the watched folder and the run's outputs while the run goes on.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use nix::sys::stat::FileStat;

use crate::op::touch::Access;
use crate::op::{FileId, OpKind, Stream, What};
use crate::recording::Spool;
use crate::trace::budget::Disk;
use crate::trace::descriptors::Descriptors;
use crate::trace::elsewhere::Fence;
use crate::trace::mapping::Mappings;
use crate::trace::names::{Inode, Names};
use crate::trace::reads::Reads;
use crate::trace::released::{Known, Lock};
use crate::trace::resolve::{Descriptor, View, descriptor, inode, kind, stat_fd};
use crate::tree::Top;
use crate::watched::Watched;

/// What a finished call gives.
#[derive(Debug)]
pub(super) enum Done {
    /// An op, which gets the next number.
    Op(OpKind),
    /// Another event.
    Event(What),
    /// Something that the log does not tell.
    Gap {
        /// What, in words.
        what: String,
        /// Where.
        path: Option<PathBuf>,
    },
    /// More was written than the log may keep.
    TooMuch,
    /// Descriptors were closed: look whether one was the last that was open for writing.
    Sweep,
}

/// Names, open files and outputs.
#[derive(Debug)]
pub(super) struct World {
    /// The watched folders as the programs see them, without links.
    pub(super) watched: Watched,
    /// A path was longer than the kernel tells, so that nobody knows whether it is in the watched folder.
    pub(super) lost: Cell<bool>,
    /// Where every step is held: names that the call at hand looks up on its way to what it is about.
    pub(super) passed: RefCell<Vec<PathBuf>>,
    /// The file system that it is on.
    pub(super) device: u64,
    /// Its files.
    pub(super) names: Names,
    /// The lab's own copies of descriptors of them.
    pub(super) descriptors: RefCell<Descriptors>,
    /// Files that a program has open for writing.
    pub(super) writable: BTreeSet<FileId>,
    /// Files that a program has mapped shared and may write through memory.
    pub(super) mappings: Mappings,
    /// Reads are of interest.
    pub(super) reads: bool,
    /// Every step is held.
    pub(super) steps: bool,
    /// Each program is process 1 of a process namespace of its own.
    pub(super) containers: bool,
    /// The first process of each program.
    pub(super) mains: Vec<i32>,
    /// Files on which a process has taken a lock, with the process; it may have let it go since.
    pub(super) locked: BTreeSet<(FileId, i32)>,
    /// The locks of those whose locks were asked for.
    pub(super) locks: Known,
    /// Tells of them, where stops do not.
    pub(super) told_reads: Option<Reads>,
    /// So many more written bytes the log may keep.
    pub(super) room: u64,
    /// Takes in what is written.
    pub(super) spool: Spool,
    /// What keeps programs from the user's files, where namespaces do not.
    pub(super) fence: Option<Fence>,
    /// A path of the user's own folder that was reached although its copy was meant.
    pub(super) strayed: Option<PathBuf>,
    /// What the run takes of the disk.
    pub(super) disk: Disk,
    /// A write outside of the watched folder was refused.
    pub(super) refused: bool,
    /// The ends of the run's outputs in the hands of its programs.
    pub(super) streams: Vec<(Inode, usize, Stream)>,
}

impl World {
    /// The eyes of a thread.
    pub(super) fn view(&self, tid: i32) -> View<'_> {
        let passed = self.steps.then_some(&self.passed);
        View { tid, watched: &self.watched, lost: &self.lost, passed }
    }

    /// The watched regular file behind a descriptor.
    pub(super) fn file_at(&self, tid: i32, fd: i32) -> Option<FileId> {
        self.file_of(tid, fd, &stat_fd(tid, fd)?)
    }

    /// The same where the descriptor's file has been looked at already.
    pub(super) fn file_of(&self, tid: i32, fd: i32, stat: &FileStat) -> Option<FileId> {
        if kind(stat) != libc::S_IFREG {
            return None;
        }
        let file = self.names.by_inode(inode(stat))?;
        // The inode of a file that lost all its names may by now belong to a file elsewhere.
        (self.names.is_named(file) || self.view(tid).folder_of(fd).is_some()).then_some(file)
    }

    /// The same with the descriptor's position and flags.
    pub(super) fn open_file_at(&self, tid: i32, fd: i32) -> Option<(FileId, Descriptor)> {
        let file = self.file_at(tid, fd)?;
        Some((file, descriptor(tid, fd)?))
    }

    /// What it touches that a process lets go its locks, those on such files.
    pub(super) fn lets_go(&self, process: i32, of: impl Fn(FileId) -> bool) -> Vec<Access> {
        let mine: Vec<FileId> = self
            .locked
            .iter()
            .filter(|(_, owner)| *owner == process)
            .map(|(file, _)| *file)
            .collect();
        if !mine.iter().any(|file| of(*file)) {
            return Vec::new();
        }
        let held = self.locks.of(self, process);
        let goes = held.iter().filter(|lock| mine.contains(&lock.file) && of(lock.file));
        goes.map(Lock::goes).collect()
    }

    /// The path by which a file is known.
    pub(super) fn path(&self, file: FileId) -> PathBuf {
        self.names.path(file).to_owned()
    }

    /// The output that a descriptor's file is an end of.
    pub(super) fn stream(&self, stat: &FileStat) -> Option<(usize, Stream)> {
        let found = self.streams.iter().find(|(end, _, _)| *end == inode(stat))?;
        Some((found.1, found.2))
    }

    /// Learns the files in a folder (or one file), reachable for the lab at `at`; `path` is relative to the watched folder.
    pub(super) fn scan(&mut self, at: &Path, path: &Path) {
        let Ok(stat) = nix::sys::stat::lstat(at) else {
            return;
        };
        if kind(&stat) != libc::S_IFDIR {
            self.meet(at, &stat, path);
            return;
        }
        let Ok(mut top) = Top::open(at) else {
            return;
        };
        let mut folders = vec![PathBuf::new()];
        while let Some(relative) = folders.pop() {
            let Ok(folder) = top.folder(&relative) else {
                continue;
            };
            for name in folder.names().unwrap_or_default() {
                let below = relative.join(&name);
                let at = folder.entry(&name);
                match nix::sys::stat::lstat(&at) {
                    Ok(stat) if kind(&stat) == libc::S_IFDIR => folders.push(below),
                    Ok(stat) => self.meet(&at, &stat, &path.join(below)),
                    Err(_) => {}
                }
            }
        }
    }

    fn meet(&mut self, at: &Path, stat: &FileStat, path: &Path) {
        let file = self.names.meet(inode(stat), path);
        if let Some(reads) = self.told_reads.as_mut().filter(|_| kind(stat) == libc::S_IFREG) {
            reads.watch(at, file);
        }
    }

    /// The files that the process of this thread has open for writing, of those that may be.
    pub(super) fn open_for_writing(&self, tid: i32) -> Option<BTreeSet<FileId>> {
        let mut found = BTreeSet::new();
        for entry in std::fs::read_dir(format!("/proc/{tid}/fd")).ok()? {
            let number = entry.ok().and_then(|entry| entry.file_name().to_str()?.parse().ok());
            let Some(fd) = number else { continue };
            if let Some(file) = self.file_at(tid, fd)
                && self.writable.contains(&file)
                && descriptor(tid, fd).is_some_and(|descriptor| descriptor.is_writable())
            {
                found.insert(file);
            }
        }
        Some(found)
    }
}
