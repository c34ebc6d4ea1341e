//! The op log: what a subject did to the watched files, in the order in which the disk saw it.
//!
//! An [`Event`] is anything that the tracer writes down. The events that change, sync or lock a watched file and
//! that succeeded are [`Op`]s and carry a number from 1 in the order of their exits; crash points are named by it.
//! Paths are relative to the watched folder (the work folder), with every link on the way resolved but for the last
//! component where the call itself does not follow it.

use std::ops::RangeBounds;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub(crate) mod path;
pub mod touch;

/// An inode within one run: it outlives renames and is never reused, unlike the kernel's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FileId(pub u32);

/// Who did it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Actor {
    /// Which of the programs that the run started (0 where there is one), or a descendant of it.
    pub program: usize,
    /// The kernel's process id (thread group).
    pub pid: i32,
    /// The kernel's thread id.
    pub tid: i32,
}

/// One thing that the tracer saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Who did it.
    pub actor: Actor,
    /// What it was.
    pub what: What,
}

impl Event {
    /// The numbered op that it was, if it was one.
    pub fn op(&self) -> Option<&Op> {
        match &self.what {
            What::Op(op) => Some(op),
            _ => None,
        }
    }
}

/// What an [`Event`] was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// A numbered op: it changed, synced or locked a watched file.
    Op(Op),
    /// A call on a watched file that would have been an op, and failed.
    Failed {
        /// The system call.
        call: String,
        /// The file, where it is known.
        #[serde(with = "path::option")]
        path: Option<PathBuf>,
        /// The error number.
        errno: i32,
    },
    /// The subject passed the mark of this name.
    Mark(String),
    /// Output reached the kernel.
    Output {
        /// Where to.
        stream: Stream,
        /// The bytes that were taken.
        bytes: Data,
    },
    /// A watched file was opened and that changed nothing (a creation or a truncation is an [`Op`] besides).
    Open {
        /// The file.
        file: FileId,
        /// The path it was opened by.
        #[serde(with = "path")]
        path: PathBuf,
        /// Opened for reading.
        readable: bool,
        /// Opened for writing.
        writable: bool,
    },
    /// A watched file was read, or mapped readable.
    Read {
        /// The file.
        file: FileId,
        /// The path by which the tracer knows it.
        #[serde(with = "path")]
        path: PathBuf,
    },
    /// The last descriptor that was open for writing on a watched file was closed, also by the end of its process.
    Close {
        /// The file.
        file: FileId,
        /// The path by which the tracer knows it.
        #[serde(with = "path")]
        path: PathBuf,
    },
    /// A process or thread began (`child` is its thread id).
    Spawned {
        /// The new thread's id.
        child: i32,
    },
    /// A process became another program.
    Executed {
        /// The program's path as the kernel resolved it.
        #[serde(with = "path")]
        path: PathBuf,
    },
    /// A thread ended, with its wait status in words (`exit 0`, `signal 9`).
    Ended {
        /// The status.
        status: String,
    },
}

impl What {
    /// The bytes that were written or printed, where it is that.
    pub(crate) fn data_mut(&mut self) -> Option<&mut Data> {
        match self {
            What::Op(Op { kind: OpKind::Write { data, .. }, .. }) => Some(data),
            What::Output { bytes, .. } => Some(bytes),
            _ => None,
        }
    }
}

/// Where output went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// An op of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Op {
    /// From 1, in the order of exits.
    pub number: u32,
    /// The system call, such as `renameat2`, or `mmap` for what a shared mapping changed.
    pub call: String,
    /// What it did.
    pub kind: OpKind,
}

/// What an op did. File contents are those that the kernel took, which can be fewer bytes than were offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OpKind {
    /// A new, empty file got a name (`path`), or none yet (`O_TMPFILE`, where `path` is `None`).
    Create {
        /// The new file.
        file: FileId,
        /// Its name.
        #[serde(with = "path::option")]
        path: Option<PathBuf>,
        /// Its mode after the umask.
        mode: u32,
        /// Its owner and group, as the kernel gave them.
        owner: (u32, u32),
    },
    /// Bytes were written; `offset` is where they really went, also with `O_APPEND`.
    Write {
        /// The file.
        file: FileId,
        /// The path by which the tracer knows it.
        #[serde(with = "path")]
        path: PathBuf,
        /// Where they went, in bytes.
        offset: u64,
        /// The bytes.
        data: Data,
        /// The descriptor was `O_APPEND`.
        append: bool,
    },
    /// The size was set, by `truncate`, `ftruncate` or `O_TRUNC`.
    Truncate {
        /// The file.
        file: FileId,
        /// The path by which the tracer knows it.
        #[serde(with = "path")]
        path: PathBuf,
        /// The new size, in bytes.
        size: u64,
        /// It came with an open (`O_TRUNC`).
        by_open: bool,
    },
    /// `fallocate`, with its mode bits.
    Allocate {
        /// The file.
        file: FileId,
        /// The path by which the tracer knows it.
        #[serde(with = "path")]
        path: PathBuf,
        /// `FALLOC_FL_*`.
        mode: i32,
        /// Start, in bytes.
        offset: u64,
        /// Length, in bytes.
        len: u64,
    },
    /// A name moved, by any form of rename.
    Rename {
        /// The old name.
        #[serde(with = "path")]
        from: PathBuf,
        /// The new name.
        #[serde(with = "path")]
        to: PathBuf,
        /// `RENAME_EXCHANGE`.
        exchange: bool,
        /// `RENAME_NOREPLACE`.
        no_replace: bool,
    },
    /// A file got another name.
    Link {
        /// The file.
        file: FileId,
        /// The name it had, if any.
        #[serde(with = "path::option")]
        from: Option<PathBuf>,
        /// The new name.
        #[serde(with = "path")]
        to: PathBuf,
    },
    /// A symbolic link was made.
    Symlink {
        /// What it points to, unresolved.
        #[serde(with = "path")]
        target: PathBuf,
        /// Where it is.
        #[serde(with = "path")]
        path: PathBuf,
        /// Its owner and group.
        owner: (u32, u32),
    },
    /// A name was removed.
    Unlink {
        /// The name.
        #[serde(with = "path")]
        path: PathBuf,
    },
    /// A folder was made.
    Mkdir {
        /// Where it is.
        #[serde(with = "path")]
        path: PathBuf,
        /// Its mode after the umask.
        mode: u32,
        /// Its owner and group.
        owner: (u32, u32),
    },
    /// A folder was removed.
    Rmdir {
        /// Where it was.
        #[serde(with = "path")]
        path: PathBuf,
    },
    /// A pipe, socket or device node was made.
    Mknod {
        /// Where it is.
        #[serde(with = "path")]
        path: PathBuf,
        /// Type and mode bits, as in `st_mode`.
        mode: u32,
        /// Device number, for devices.
        device: u64,
        /// Its owner and group.
        owner: (u32, u32),
    },
    /// The mode of a file was set.
    Chmod {
        /// The path by which the tracer knows it.
        #[serde(with = "path")]
        path: PathBuf,
        /// The file, if it is no folder.
        file: Option<FileId>,
        /// The new permission bits.
        mode: u32,
    },
    /// The owner of a file was set.
    Chown {
        /// The path by which the tracer knows it.
        #[serde(with = "path")]
        path: PathBuf,
        /// The file, if it is no folder.
        file: Option<FileId>,
        /// The owner after the call.
        uid: u32,
        /// The group after the call.
        gid: u32,
        /// The mode after the call (a change of owner can clear set-uid bits).
        mode: u32,
    },
    /// Times were set.
    Utimens {
        /// The path by which the tracer knows it.
        #[serde(with = "path")]
        path: PathBuf,
    },
    /// An extended attribute was set (`Some`) or removed.
    Xattr {
        /// The path by which the tracer knows it.
        #[serde(with = "path")]
        path: PathBuf,
        /// The file, if it is no folder.
        file: Option<FileId>,
        /// The attribute's name.
        name: String,
        /// Its value.
        value: Option<Vec<u8>>,
    },
    /// `fsync`, `fdatasync` or `msync(MS_SYNC)` of a file, or an `O_SYNC` write's own sync.
    Sync {
        /// The file.
        file: FileId,
        /// The path by which the tracer knows it.
        #[serde(with = "path")]
        path: PathBuf,
        /// Metadata that is not needed to read the data back may stay behind (`fdatasync`).
        data_only: bool,
    },
    /// `fsync` of a folder.
    SyncFolder {
        /// The folder.
        #[serde(with = "path")]
        path: PathBuf,
    },
    /// `sync` or `syncfs`.
    SyncAll,
    /// `sync_file_range`: starts or waits for write-back, promises nothing.
    SyncRange {
        /// The file.
        file: FileId,
        /// The path by which the tracer knows it.
        #[serde(with = "path")]
        path: PathBuf,
    },
    /// An advisory lock was taken, changed or released.
    Lock {
        /// The file.
        file: FileId,
        /// The path by which the tracer knows it.
        #[serde(with = "path")]
        path: PathBuf,
        /// Which kind of lock.
        family: LockFamily,
        /// What was done.
        action: LockAction,
    },
}

/// The three kinds of advisory locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LockFamily {
    /// `flock`.
    Flock,
    /// `fcntl(F_SETLK)`, owned by the process.
    Posix,
    /// `fcntl(F_OFD_SETLK)`, owned by the open file description.
    OpenFile,
}

/// What was done with an advisory lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LockAction {
    /// Taken, shared.
    Shared,
    /// Taken, exclusive.
    Exclusive,
    /// Released.
    Unlock,
}

/// Bytes that are shared, not copied, wherever they lie; printed by their length.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Vec<u8>", into = "Vec<u8>")]
pub struct Data(Bytes);

impl Data {
    /// A part of them, shared as well.
    ///
    /// # Panics
    ///
    /// Where the range goes beyond the bytes.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Data {
        Data(self.0.slice(range))
    }
}

impl std::fmt::Debug for Data {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Data({} bytes)", self.0.len())
    }
}

impl From<Vec<u8>> for Data {
    fn from(bytes: Vec<u8>) -> Self {
        Data(bytes.into())
    }
}

impl From<Bytes> for Data {
    fn from(bytes: Bytes) -> Self {
        Data(bytes)
    }
}

impl From<&[u8]> for Data {
    fn from(bytes: &[u8]) -> Self {
        Data(Bytes::copy_from_slice(bytes))
    }
}

impl From<Data> for Vec<u8> {
    fn from(data: Data) -> Self {
        data.0.into()
    }
}

impl std::ops::Deref for Data {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl OpKind {
    /// The word by which crash points name this kind: `rename#1` is after the first `rename`.
    pub fn word(&self) -> &'static str {
        match self {
            OpKind::Create { .. } => "create",
            OpKind::Write { .. } => "write",
            OpKind::Truncate { .. } => "truncate",
            OpKind::Allocate { .. } => "allocate",
            OpKind::Rename { .. } => "rename",
            OpKind::Link { .. } => "link",
            OpKind::Symlink { .. } => "symlink",
            OpKind::Unlink { .. } => "unlink",
            OpKind::Mkdir { .. } => "mkdir",
            OpKind::Rmdir { .. } => "rmdir",
            OpKind::Mknod { .. } => "mknod",
            OpKind::Chmod { .. } => "chmod",
            OpKind::Chown { .. } => "chown",
            OpKind::Utimens { .. } => "utimens",
            OpKind::Xattr { .. } => "xattr",
            OpKind::Sync { .. } | OpKind::SyncFolder { .. } | OpKind::SyncAll => "sync",
            OpKind::SyncRange { .. } => "sync-range",
            OpKind::Lock { .. } => "lock",
        }
    }

    /// The op changes the tree; the others sync or lock, or set times only.
    pub fn changes(&self) -> bool {
        !matches!(
            self,
            OpKind::Sync { .. }
                | OpKind::SyncFolder { .. }
                | OpKind::SyncAll
                | OpKind::SyncRange { .. }
                | OpKind::Lock { .. }
                | OpKind::Utimens { .. }
        )
    }

    /// The path by which the op is told: the new one where there are two, none where there is none yet.
    pub fn path(&self) -> Option<&Path> {
        match self {
            OpKind::Create { path, .. } => path.as_deref(),
            OpKind::Rename { to: path, .. }
            | OpKind::Link { to: path, .. }
            | OpKind::Write { path, .. }
            | OpKind::Truncate { path, .. }
            | OpKind::Allocate { path, .. }
            | OpKind::Symlink { path, .. }
            | OpKind::Unlink { path }
            | OpKind::Mkdir { path, .. }
            | OpKind::Rmdir { path }
            | OpKind::Mknod { path, .. }
            | OpKind::Chmod { path, .. }
            | OpKind::Chown { path, .. }
            | OpKind::Utimens { path }
            | OpKind::Xattr { path, .. }
            | OpKind::Sync { path, .. }
            | OpKind::SyncFolder { path }
            | OpKind::SyncRange { path, .. }
            | OpKind::Lock { path, .. } => Some(path),
            OpKind::SyncAll => None,
        }
    }

    /// The file that the op is on, if it is on an open file rather than on a name.
    pub fn file(&self) -> Option<FileId> {
        match self {
            OpKind::Create { file, .. }
            | OpKind::Write { file, .. }
            | OpKind::Truncate { file, .. }
            | OpKind::Allocate { file, .. }
            | OpKind::Link { file, .. }
            | OpKind::Sync { file, .. }
            | OpKind::SyncRange { file, .. }
            | OpKind::Lock { file, .. } => Some(*file),
            OpKind::Chmod { file, .. }
            | OpKind::Chown { file, .. }
            | OpKind::Xattr { file, .. } => *file,
            _ => None,
        }
    }
}
