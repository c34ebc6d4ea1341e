//! Random programs of file operations, done on a real folder; what was done is told as a log, as the tracer tells it.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crashlab::op::{Actor, Event, FileId, Op, OpKind, What};
use proptest::prelude::*;
use rustix::fs::{self as sys, AtFlags, CWD, FallocateFlags, RenameFlags, XattrFlags};

/// One call. Files that are open are told by a number, modulo how many there are.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Create { path: PathBuf, mode: u32 },
    CreateUnnamed { folder: PathBuf, mode: u32 },
    Open { path: PathBuf, append: bool },
    Close { slot: usize },
    Write { slot: usize, offset: u64, len: usize, byte: u8 },
    Truncate { slot: usize, size: u64 },
    Allocate { slot: usize, mode: FallocateFlags, offset: u64, len: u64 },
    Copy { from: usize, to: usize, read: u64, written: u64, len: usize },
    Rename { from: PathBuf, to: PathBuf, flags: RenameFlags },
    Link { from: PathBuf, to: PathBuf },
    LinkOpen { slot: usize, to: PathBuf },
    Symlink { target: PathBuf, path: PathBuf },
    Unlink { path: PathBuf },
    Mkdir { path: PathBuf },
    Rmdir { path: PathBuf },
    Mkfifo { path: PathBuf, mode: u32 },
    Chmod { path: PathBuf, mode: u32 },
    Chown { path: PathBuf, uid: u32, gid: u32 },
    SetAttribute { path: PathBuf, name: &'static str, value: Vec<u8> },
    RemoveAttribute { path: PathBuf, name: &'static str },
}

pub(crate) const ALLOCATIONS: [FallocateFlags; 7] = [
    FallocateFlags::empty(),
    FallocateFlags::KEEP_SIZE,
    FallocateFlags::PUNCH_HOLE.union(FallocateFlags::KEEP_SIZE),
    FallocateFlags::ZERO_RANGE,
    FallocateFlags::ZERO_RANGE.union(FallocateFlags::KEEP_SIZE),
    FallocateFlags::COLLAPSE_RANGE,
    FallocateFlags::INSERT_RANGE,
];

/// A program of up to so many steps.
pub(crate) fn programs(most: usize) -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec(step(), 1..=most)
}

fn path() -> impl Strategy<Value = PathBuf> {
    let name = || proptest::sample::select(&["a", "b", "c"][..]);
    proptest::collection::vec(name(), 1..=2).prop_map(|names| names.iter().collect())
}

fn slot() -> impl Strategy<Value = usize> {
    0usize..4
}

/// Around the ends of blocks, and far behind what is there.
fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => (0u64..5).prop_map(|block| block * 4096),
        4 => 0u64..9000,
        1 => 60_000u64..70_000,
        1 => Just(1 << 34),
    ]
}

fn len() -> impl Strategy<Value = usize> {
    prop_oneof![3 => 0usize..200, 3 => 4000usize..5000, 2 => Just(4096), 1 => 12_000usize..13_000]
}

fn step() -> impl Strategy<Value = Step> {
    let mode = || proptest::sample::select(&[0o644, 0o600, 0o755][..]);
    let flags = prop_oneof![
        2 => Just(RenameFlags::empty()),
        1 => Just(RenameFlags::EXCHANGE),
        1 => Just(RenameFlags::NOREPLACE),
    ];
    let target = proptest::sample::select(&["a", "b", "../a", "b/c", "nowhere", "../../out"][..]);
    let name = || proptest::sample::select(&["user.a", "user.b"][..]);
    let owner = || proptest::sample::select(&[0u32, 1, 7][..]);
    let values = proptest::collection::vec(any::<u8>(), 0..5);
    let allocation = (slot(), proptest::sample::select(&ALLOCATIONS[..]), offset(), len());
    let blocks = (slot(), proptest::sample::select(&ALLOCATIONS[5..]), 0u64..3, 1u64..3);
    let files = prop_oneof![
        6 => (path(), mode()).prop_map(|(path, mode)| Step::Create { path, mode }),
        1 => (path(), mode()).prop_map(|(folder, mode)| Step::CreateUnnamed { folder, mode }),
        2 => (path(), any::<bool>()).prop_map(|(path, append)| Step::Open { path, append }),
        1 => slot().prop_map(|slot| Step::Close { slot }),
        8 => (slot(), offset(), len(), any::<u8>())
            .prop_map(|(slot, offset, len, byte)| Step::Write { slot, offset, len, byte }),
        2 => (slot(), offset()).prop_map(|(slot, size)| Step::Truncate { slot, size }),
        3 => allocation.prop_map(|(slot, mode, offset, len)| {
            Step::Allocate { slot, mode, offset, len: len as u64 }
        }),
        2 => blocks.prop_map(|(slot, mode, offset, len)| {
            Step::Allocate { slot, mode, offset: offset * 4096, len: len * 4096 }
        }),
        1 => (slot(), slot(), 0u64..5000, offset(), len()).prop_map(|(from, to, read, written, len)| {
            Step::Copy { from, to, read, written, len }
        }),
    ];
    let names = prop_oneof![
        4 => (path(), path(), flags).prop_map(|(from, to, flags)| Step::Rename { from, to, flags }),
        2 => (path(), path()).prop_map(|(from, to)| Step::Link { from, to }),
        1 => (slot(), path()).prop_map(|(slot, to)| Step::LinkOpen { slot, to }),
        2 => (target, path())
            .prop_map(|(target, path)| Step::Symlink { target: target.into(), path }),
        2 => path().prop_map(|path| Step::Unlink { path }),
        4 => path().prop_map(|path| Step::Mkdir { path }),
        1 => path().prop_map(|path| Step::Rmdir { path }),
        1 => (path(), mode()).prop_map(|(path, mode)| Step::Mkfifo { path, mode }),
    ];
    let attributes = prop_oneof![
        (path(), 0u32..0o10000).prop_map(|(path, mode)| Step::Chmod { path, mode }),
        (path(), owner(), owner()).prop_map(|(path, uid, gid)| Step::Chown { path, uid, gid }),
        (path(), name(), values).prop_map(|(path, name, value)| Step::SetAttribute {
            path,
            name,
            value
        }),
        (path(), name()).prop_map(|(path, name)| Step::RemoveAttribute { path, name }),
    ];
    prop_oneof![5 => files, 4 => names, 1 => attributes]
}

/// A real folder in which a program runs.
pub(crate) struct Run {
    root: PathBuf,
    open: Vec<(File, FileId, PathBuf, bool)>,
    /// The kernel gives the number of a file that is gone to another one.
    known: HashMap<(u64, u64), FileId>,
    files: u32,
    /// What was done.
    pub(crate) events: Vec<Event>,
    ops: u32,
    /// How often each kind of op was done.
    pub(crate) done: BTreeMap<String, u32>,
}

impl Run {
    /// Begins in a folder, by a path without links.
    pub(crate) fn new(root: &Path) -> Run {
        Run {
            root: root.to_owned(),
            open: Vec::new(),
            known: HashMap::new(),
            files: 0,
            events: Vec::new(),
            ops: 0,
            done: BTreeMap::new(),
        }
    }

    /// Does a step, if it can be done.
    pub(crate) fn step(&mut self, step: &Step) {
        if let Some(Ok(kind)) = self.act(step) {
            let word = match step {
                Step::Allocate { mode, .. } => format!("{mode:?}"),
                Step::Rename { flags, .. } => format!("{flags:?}"),
                Step::CreateUnnamed { .. } | Step::LinkOpen { .. } | Step::Copy { .. } => {
                    format!("{step:?}").split(' ').next().unwrap().to_owned()
                }
                _ => kind.word().to_owned(),
            };
            *self.done.entry(word).or_default() += 1;
            self.ops += 1;
            let op = Op { number: self.ops, call: kind.word().to_owned(), kind };
            self.tell(What::Op(op));
        }
    }

    fn tell(&mut self, what: What) {
        self.events.push(Event { actor: Actor { program: 0, pid: 1, tid: 1 }, what });
    }

    fn at(&self, path: &Path) -> PathBuf {
        if path.as_os_str().is_empty() { self.root.clone() } else { self.root.join(path) }
    }

    /// The path with every link on the way to its last component followed, if it stays inside.
    fn place(&self, path: &Path) -> Option<PathBuf> {
        let above = fs::canonicalize(self.at(path.parent()?)).ok()?;
        Some(above.strip_prefix(&self.root).ok()?.join(path.file_name()?))
    }

    /// The path with all links followed, if it stays inside and something is there.
    fn followed(&self, path: &Path) -> Option<PathBuf> {
        let place = fs::canonicalize(self.at(path)).ok()?;
        Some(place.strip_prefix(&self.root).ok()?.to_owned())
    }

    fn slot(&self, slot: usize) -> Option<&(File, FileId, PathBuf, bool)> {
        self.open.get(slot % self.open.len().max(1))
    }

    /// A new file has this number of the kernel's.
    fn new_file(&mut self, metadata: &fs::Metadata) -> FileId {
        let file = FileId(self.files);
        self.files += 1;
        self.known.insert((metadata.dev(), metadata.ino()), file);
        file
    }

    /// Something new is there of which no op tells an id.
    fn forget(&mut self, place: &Path) -> fs::Metadata {
        let metadata = fs::symlink_metadata(self.at(place)).unwrap();
        self.known.remove(&(metadata.dev(), metadata.ino()));
        metadata
    }

    fn file(&mut self, place: &Path) -> FileId {
        let metadata = fs::symlink_metadata(self.at(place)).unwrap();
        let known = self.known.get(&(metadata.dev(), metadata.ino())).copied();
        known.unwrap_or_else(|| self.new_file(&metadata))
    }

    fn act(&mut self, step: &Step) -> Option<io::Result<OpKind>> {
        Some(match step {
            Step::Create { path, mode } => self.create(&self.place(path)?, *mode),
            Step::CreateUnnamed { folder, mode } => {
                self.create_unnamed(&self.followed(folder)?, *mode)
            }
            Step::Open { path, append } => {
                self.open(self.followed(path)?, *append);
                return None;
            }
            Step::Close { slot } => {
                if !self.open.is_empty() {
                    let (_, file, path, _) = self.open.remove(slot % self.open.len());
                    self.tell(What::Close { file, path });
                }
                return None;
            }
            Step::Write { .. } | Step::Truncate { .. } | Step::Allocate { .. } => {
                self.rewrite(step)?
            }
            Step::Copy { from, to, read, written, len } => {
                let (source, (target, file, path, _)) = (self.slot(*from)?, self.slot(*to)?);
                let (mut read, mut at) = (*read, *written);
                let done =
                    sys::copy_file_range(&source.0, Some(&mut read), target, Some(&mut at), *len);
                done.map_err(io::Error::from).map(|done| {
                    let mut bytes = vec![0; done];
                    target.read_exact_at(&mut bytes, *written).unwrap();
                    let (file, path, append) = (*file, path.clone(), false);
                    OpKind::Write { file, path, offset: *written, data: bytes.into(), append }
                })
            }
            Step::Chmod { .. }
            | Step::Chown { .. }
            | Step::SetAttribute { .. }
            | Step::RemoveAttribute { .. } => self.change_attributes(step)?,
            _ => self.name(step)?,
        })
    }

    fn create(&mut self, place: &Path, mode: u32) -> io::Result<OpKind> {
        let mut options = fs::OpenOptions::new();
        let file =
            options.read(true).write(true).create_new(true).mode(mode).open(self.at(place))?;
        Ok(self.created(file, Some(place.to_owned())))
    }

    fn create_unnamed(&mut self, folder: &Path, mode: u32) -> io::Result<OpKind> {
        let mut options = fs::OpenOptions::new();
        let options = options.read(true).write(true).mode(mode).custom_flags(libc::O_TMPFILE);
        let file = options.open(self.at(folder))?;
        Ok(self.created(file, None))
    }

    fn created(&mut self, handle: File, path: Option<PathBuf>) -> OpKind {
        let metadata = handle.metadata().unwrap();
        let file = self.new_file(&metadata);
        self.open.push((handle, file, path.clone().unwrap_or_default(), false));
        let (mode, owner) = (metadata.mode() & 0o7777, (metadata.uid(), metadata.gid()));
        OpKind::Create { file, path, mode, owner }
    }

    fn open(&mut self, path: PathBuf, append: bool) {
        if !fs::metadata(self.at(&path)).is_ok_and(|metadata| metadata.is_file()) {
            return;
        }
        let mut options = fs::OpenOptions::new();
        let Ok(handle) = options.read(true).write(true).append(append).open(self.at(&path)) else {
            return;
        };
        let file = self.file(&path);
        let (readable, writable) = (true, true);
        self.tell(What::Open { file, path: path.clone(), readable, writable });
        self.open.push((handle, file, path, append));
    }

    fn rewrite(&mut self, step: &Step) -> Option<io::Result<OpKind>> {
        let (Step::Write { slot, .. } | Step::Truncate { slot, .. } | Step::Allocate { slot, .. }) =
            step
        else {
            return None;
        };
        let (handle, file, path, append) = self.slot(*slot)?;
        let (file, path, append) = (*file, path.clone(), *append);
        Some(match *step {
            Step::Write { offset, len, byte, .. } => {
                let bytes: Vec<u8> = (0..len).map(|at| byte.wrapping_mul(at as u8 | 1)).collect();
                let end = handle.metadata().unwrap().len();
                handle.write_at(&bytes, offset).map(|done| {
                    let data = bytes[..done].into();
                    let offset = if append { end } else { offset };
                    OpKind::Write { file, path, offset, data, append }
                })
            }
            Step::Truncate { size, .. } => {
                handle.set_len(size).map(|()| OpKind::Truncate { file, path, size, by_open: false })
            }
            Step::Allocate { mode, offset, len, .. } => {
                sys::fallocate(handle, mode, offset, len).map_err(io::Error::from).map(|()| {
                    OpKind::Allocate { file, path, mode: mode.bits().cast_signed(), offset, len }
                })
            }
            _ => return None,
        })
    }

    fn name(&mut self, step: &Step) -> Option<io::Result<OpKind>> {
        Some(match step {
            Step::Rename { from, to, flags } => {
                let (from, to) = (self.place(from)?, self.place(to)?);
                let done = sys::renameat_with(CWD, self.at(&from), CWD, self.at(&to), *flags);
                let exchange = flags.contains(RenameFlags::EXCHANGE);
                let no_replace = flags.contains(RenameFlags::NOREPLACE);
                done.map(|()| OpKind::Rename { from, to, exchange, no_replace })
                    .map_err(io::Error::from)
            }
            Step::Link { from, to } => {
                let (from, to) = (self.place(from)?, self.place(to)?);
                let done = fs::hard_link(self.at(&from), self.at(&to));
                done.map(|()| OpKind::Link { file: self.file(&from), from: Some(from), to })
            }
            Step::LinkOpen { slot, to } => {
                let (handle, file, ..) = self.slot(*slot)?;
                let (file, to) = (*file, self.place(to)?);
                let from = format!("/proc/self/fd/{}", handle.as_raw_fd());
                let done = sys::linkat(CWD, from, CWD, self.at(&to), AtFlags::SYMLINK_FOLLOW);
                done.map(|()| OpKind::Link { file, from: None, to }).map_err(io::Error::from)
            }
            Step::Symlink { target, path } => {
                let (target, path) = (target.clone(), self.place(path)?);
                let done = std::os::unix::fs::symlink(&target, self.at(&path));
                done.map(|()| {
                    let made = self.forget(&path);
                    OpKind::Symlink { target, path, owner: (made.uid(), made.gid()) }
                })
            }
            Step::Unlink { path } => {
                let path = self.place(path)?;
                fs::remove_file(self.at(&path)).map(|()| OpKind::Unlink { path })
            }
            Step::Rmdir { path } => {
                let path = self.place(path)?;
                fs::remove_dir(self.at(&path)).map(|()| OpKind::Rmdir { path })
            }
            Step::Mkdir { path } => {
                let path = self.place(path)?;
                fs::create_dir(self.at(&path)).map(|()| {
                    let made = self.forget(&path);
                    let (mode, owner) = (made.mode() & 0o7777, (made.uid(), made.gid()));
                    OpKind::Mkdir { path, mode, owner }
                })
            }
            Step::Mkfifo { path, mode } => {
                let path = self.place(path)?;
                let mode = sys::Mode::from_bits_retain(*mode);
                let done = sys::mknodat(CWD, self.at(&path), sys::FileType::Fifo, mode, 0);
                done.map_err(io::Error::from).map(|()| {
                    let made = self.forget(&path);
                    let (mode, owner) = (made.mode(), (made.uid(), made.gid()));
                    OpKind::Mknod { path, mode, device: 0, owner }
                })
            }
            _ => return None,
        })
    }

    /// The id of what is no folder.
    fn file_unless_folder(&mut self, place: &Path) -> Option<FileId> {
        let is_folder = fs::symlink_metadata(self.at(place)).unwrap().is_dir();
        (!is_folder).then(|| self.file(place))
    }

    fn change_attributes(&mut self, step: &Step) -> Option<io::Result<OpKind>> {
        Some(match step {
            Step::Chmod { path, mode } => {
                let path = self.followed(path)?;
                // What its owner cannot read, nobody can compare.
                let mode = mode | if self.at(&path).is_dir() { 0o700 } else { 0o600 };
                let permissions = fs::Permissions::from_mode(mode);
                fs::set_permissions(self.at(&path), permissions).map(|()| {
                    // Who is not in the group cannot set its bit.
                    let mode = fs::metadata(self.at(&path)).unwrap().mode() & 0o7777;
                    OpKind::Chmod { file: self.file_unless_folder(&path), path, mode }
                })
            }
            Step::Chown { path, uid, gid } => {
                let path = self.place(path)?;
                let done = std::os::unix::fs::lchown(self.at(&path), Some(*uid), Some(*gid));
                done.map(|()| {
                    let now = fs::symlink_metadata(self.at(&path)).unwrap();
                    let (uid, gid, mode) = (now.uid(), now.gid(), now.mode() & 0o7777);
                    OpKind::Chown { file: self.file_unless_folder(&path), path, uid, gid, mode }
                })
            }
            Step::SetAttribute { path, name, value } => {
                let path = self.place(path)?;
                let done = sys::lsetxattr(self.at(&path), *name, value, XattrFlags::empty());
                let value = Some(value.clone());
                self.attribute(path, name, value, done)
            }
            Step::RemoveAttribute { path, name } => {
                let path = self.place(path)?;
                let done = sys::lremovexattr(self.at(&path), *name);
                self.attribute(path, name, None, done)
            }
            _ => return None,
        })
    }

    fn attribute(
        &mut self,
        path: PathBuf,
        name: &str,
        value: Option<Vec<u8>>,
        done: rustix::io::Result<()>,
    ) -> io::Result<OpKind> {
        done.map_err(io::Error::from).map(|()| {
            let file = self.file_unless_folder(&path);
            OpKind::Xattr { path, file, name: name.to_owned(), value }
        })
    }
}
