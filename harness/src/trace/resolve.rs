//! Paths and descriptors as the traced program sees them, which can be another mount namespace and another root.

use std::cell::{Cell, RefCell};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{FileStat, Mode, fstatat};

use crate::sys::memory;
use crate::trace::names::Inode;
use crate::trace::numbers;
use crate::watched::Watched;

const LONGEST_PATH: usize = 4096;
const MOST_LINKS: usize = 40;

/// A name in the watched folder: where it is, and what is there now.
#[derive(Debug)]
pub(super) struct Target {
    /// The folder that holds it.
    parent: OwnedFd,
    /// Its name in that folder.
    name: OsString,
    /// Relative to the watched folder.
    pub(super) path: PathBuf,
    /// What is there; `None` where nothing is.
    pub(super) stat: Option<FileStat>,
}

/// Where a path leads.
#[derive(Debug)]
pub(super) enum Place {
    /// Into the watched folder.
    Watched(Box<Target>),
    /// To a descriptor of the program itself (`/proc/self/fd/N`).
    Descriptor(i32),
    /// Elsewhere, or nowhere.
    Other,
}

impl Place {
    /// The target in the watched folder.
    pub(super) fn watched(self) -> Option<Target> {
        match self {
            Place::Watched(target) => Some(*target),
            _ => None,
        }
    }
}

impl Target {
    /// What is there by now.
    pub(super) fn look(&self) -> Option<FileStat> {
        fstatat(&self.parent, self.name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW).ok()
    }

    /// The folder that holds it.
    pub(super) fn parent(&self) -> &OwnedFd {
        &self.parent
    }

    /// A path by which the lab can reach it.
    pub(super) fn reachable(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.parent.as_raw_fd())).join(&self.name)
    }
}

/// What a descriptor of a program is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Descriptor {
    /// The file behind it.
    pub(super) stat: FileStat,
    /// The position.
    pub(super) position: u64,
    /// The flags of `open`, with those that `fcntl` set since.
    pub(super) flags: i32,
}

impl Descriptor {
    /// Open for writing.
    pub(super) fn is_writable(&self) -> bool {
        self.flags & libc::O_ACCMODE != libc::O_RDONLY && self.flags & libc::O_PATH == 0
    }

    /// Open for reading.
    pub(super) fn is_readable(&self) -> bool {
        self.flags & libc::O_ACCMODE != libc::O_WRONLY && self.flags & libc::O_PATH == 0
    }
}

/// Device and inode number.
pub(super) fn inode(stat: &FileStat) -> Inode {
    (stat.st_dev, stat.st_ino)
}

/// The type bits of a mode.
pub(super) fn kind(stat: &FileStat) -> u32 {
    stat.st_mode & libc::S_IFMT
}

/// The eyes of one thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    /// The thread.
    pub(super) tid: i32,
    /// The watched folders, as the program sees them, without links.
    pub(super) watched: &'a Watched,
    /// Set where the kernel would not tell a path, since it is longer than the kernel tells any (4,096 bytes).
    pub(super) lost: &'a Cell<bool>,
    /// Takes in the names that paths lead over, where that is of interest.
    pub(super) passed: Option<&'a RefCell<Vec<PathBuf>>>,
}

/// Whether the lab may look at a thread's descriptors.
pub(super) fn is_open_to_us(tid: i32) -> bool {
    std::fs::read_dir(format!("/proc/{tid}/fd")).is_ok()
}

/// What is behind a descriptor of a thread.
pub(super) fn stat_fd(tid: i32, fd: i32) -> Option<FileStat> {
    if fd < 0 {
        return None;
    }
    nix::sys::stat::stat(format!("/proc/{tid}/fd/{fd}").as_str()).ok()
}

/// A descriptor's file, position and flags.
pub(super) fn descriptor(tid: i32, fd: i32) -> Option<Descriptor> {
    describe(tid, fd, stat_fd(tid, fd)?)
}

/// The same where its file has been looked at already.
pub(super) fn describe(tid: i32, fd: i32, stat: FileStat) -> Option<Descriptor> {
    // One read: what is asked for stands in the first lines, and this is asked at every write.
    let mut buffer = [0; 256];
    let mut info = std::fs::File::open(format!("/proc/{tid}/fdinfo/{fd}")).ok()?;
    let len = std::io::Read::read(&mut info, &mut buffer).ok()?;
    let text = String::from_utf8_lossy(&buffer[..len]);
    let field = |name| text.lines().find_map(|line: &str| line.strip_prefix(name)).map(str::trim);
    Some(Descriptor {
        stat,
        position: field("pos:")?.parse().unwrap_or(0),
        flags: i32::from_str_radix(field("flags:")?, 8).ok()?,
    })
}

impl<'a> View<'a> {
    /// Reads a path from the program's memory.
    pub(super) fn path_at(&self, address: u64) -> Option<PathBuf> {
        memory::read_string(self.tid, address, LONGEST_PATH)
            .map(|text| PathBuf::from(OsString::from_vec(text)))
    }

    /// Where a path relative to a folder's descriptor (or `AT_FDCWD`) leads; `follow`: through a link at its end too.
    pub(super) fn resolve(&self, folder: i32, path: &Path, follow: bool) -> Place {
        if let Some(fd) = self.own_descriptor(path) {
            return if follow { Place::Descriptor(fd) } else { Place::Other };
        }
        let Some(path) = self.absolute(folder, path) else {
            return Place::Other;
        };
        let place = self.lead(path.clone(), follow);
        if let Some(passed) = self.passed {
            let named = self.watched.relative(&path);
            let is_direct = match &place {
                Place::Watched(target) => named == Some(&target.path),
                _ => named.is_none(),
            };
            if !is_direct {
                passed.borrow_mut().extend(self.names_on(&path, follow));
            }
        }
        place
    }

    /// The watched names that an absolute path leads over and that are not what it leads to: links, and the first that is
    /// not there, or no folder where it would have to be one. Whoever changes one of these, changes where it leads.
    fn names_on(&self, path: &Path, follow: bool) -> Vec<PathBuf> {
        let parts = |path: &Path| -> Vec<OsString> {
            path.components().rev().map(|part| part.as_os_str().to_owned()).collect()
        };
        let (mut passed, mut links) = (Vec::new(), 0);
        let (mut at, mut left) = (PathBuf::from("/"), parts(path));
        while let Some(part) = left.pop() {
            if part == ".." {
                at.pop();
                continue;
            }
            // The root of an absolute link begins anew.
            let here = at.join(part);
            let reachable = self.reachable(&here);
            let is_last = left.is_empty();
            match reachable.symlink_metadata() {
                Ok(found) if found.is_symlink() && (follow || !is_last) => {
                    links += 1;
                    passed.extend(self.watched.relative(&here).map(Path::to_owned));
                    match reachable.read_link() {
                        Ok(target) if links <= MOST_LINKS => left.extend(parts(&target)),
                        _ => break,
                    }
                }
                Ok(found) if found.is_dir() || is_last => at = here,
                _ => {
                    passed.extend(self.watched.relative(&here).map(Path::to_owned));
                    break;
                }
            }
        }
        passed
    }

    /// Where an absolute path leads.
    fn lead(&self, mut path: PathBuf, follow: bool) -> Place {
        for _ in 0..MOST_LINKS {
            let Some((parent, name)) = self.parent_of(&path) else {
                return Place::Other;
            };
            let Some(above) = self.where_is(&parent) else {
                return Place::Other;
            };
            let stat = fstatat(&parent, name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW).ok();
            let is_link = stat.is_some_and(|stat| kind(&stat) == libc::S_IFLNK);
            if !(follow && is_link) {
                let whole = above.join(&name);

                return match self.watched.relative(&whole) {
                    Some(rest) => Place::Watched(Box::new(Target {
                        parent,
                        name,
                        path: rest.to_owned(),
                        stat,
                    })),
                    None => Place::Other,
                };
            }
            let Ok(target) = nix::fcntl::readlinkat(&parent, name.as_os_str()) else {
                return Place::Other;
            };
            path = above.join(target);
        }
        Place::Other
    }

    /// The same with the path still in the program's memory.
    pub(super) fn resolve_at(&self, folder: i32, address: u64, follow: bool) -> Place {
        match self.path_at(address) {
            Some(path) if !path.as_os_str().is_empty() => self.resolve(folder, &path, follow),
            _ => Place::Other,
        }
    }

    /// The path of a folder's descriptor relative to the watched folder, where it is below.
    pub(super) fn folder_of(&self, fd: i32) -> Option<PathBuf> {
        let path = self.link(&format!("fd/{fd}"))?;
        self.watched.relative(&path).map(Path::to_owned)
    }

    /// A link in `/proc/TID`, as the program would see it.
    fn link(&self, name: &str) -> Option<PathBuf> {
        let path = self.told(&format!("/proc/{}/{name}", self.tid))?;
        let root = std::fs::read_link(format!("/proc/{}/root", self.tid)).ok()?;
        match path.strip_prefix(&root) {
            Ok(rest) => Some(Path::new("/").join(rest)),
            Err(_) => Some(path),
        }
    }

    fn told(&self, link: &str) -> Option<PathBuf> {
        let path = std::fs::read_link(link);
        if path.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::ENAMETOOLONG)) {
            self.lost.set(true);
        }
        path.ok()
    }

    /// A path with what it is relative to.
    pub(super) fn absolute(&self, folder: i32, path: &Path) -> Option<PathBuf> {
        if path.is_absolute() {
            return Some(path.to_owned());
        }
        let base = if folder == libc::AT_FDCWD {
            self.link("cwd")?
        } else {
            self.link(&format!("fd/{folder}"))?
        };
        Some(base.join(path))
    }

    /// `/proc/self/fd/N` and its relatives would lead to a descriptor of the lab if the lab followed them.
    fn own_descriptor(&self, path: &Path) -> Option<i32> {
        let text = path.to_str()?;
        let number = if let Some(rest) = text.strip_prefix("/proc/") {
            let (who, rest) = rest.split_once('/')?;
            let named = || who.parse().is_ok_and(|number| numbers::names_itself(self.tid, number));
            let own = who == "self" || who == "thread-self" || named();
            rest.strip_prefix("fd/").filter(|_| own)?
        } else {
            match text.strip_prefix("/dev/")? {
                "stdin" => "0",
                "stdout" => "1",
                "stderr" => "2",
                rest => rest.strip_prefix("fd/")?,
            }
        };
        number.parse().ok()
    }

    /// Opens the folder that holds the last component of an absolute path, and tells that component.
    fn parent_of(&self, path: &Path) -> Option<(OwnedFd, OsString)> {
        let root = self.open_root()?;
        let by_name = path.components().next_back().and_then(|last| match last {
            // `a/.` is `a` for `components`, but the kernel looks into the folder.
            Component::Normal(name) if !path.as_os_str().as_bytes().ends_with(b"/.") => {
                Some(name.to_owned())
            }
            _ => None,
        });
        if let Some(name) = by_name {
            let parent = path.parent().unwrap_or(Path::new("/"));
            return Some((self.open_below(&root, parent)?, name));
        }
        // It ends in `.` or `..`: a folder, which has a name of its own.
        let folder = self.open_below(&root, path)?;
        let own = self.where_is(&folder)?;
        let parent = self.open_below(&root, own.parent().unwrap_or(Path::new("/")))?;
        Some((parent, own.file_name().unwrap_or(OsStr::new(".")).to_owned()))
    }

    fn open_root(&self) -> Option<OwnedFd> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        nix::fcntl::open(format!("/proc/{}/root", self.tid).as_str(), flags, Mode::empty()).ok()
    }

    fn open_below(&self, root: &OwnedFd, path: &Path) -> Option<OwnedFd> {
        let how = OpenHow::new()
            .flags(OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC)
            .resolve(ResolveFlag::RESOLVE_IN_ROOT);
        openat2(root.as_fd(), path, how).ok()
    }

    /// The path of a folder that the lab has open, as the program would see it.
    fn where_is(&self, folder: &OwnedFd) -> Option<PathBuf> {
        let path = self.told(&format!("/proc/self/fd/{}", folder.as_raw_fd()))?;
        let root = std::fs::read_link(format!("/proc/{}/root", self.tid)).ok()?;
        Some(path.strip_prefix(&root).map_or(path.clone(), |rest| Path::new("/").join(rest)))
    }

    /// The watched folder's own path, without links, as the program sees it.
    pub(super) fn canonical(&self, path: &Path) -> Option<PathBuf> {
        let root = self.open_root()?;
        let folder = self.open_below(&root, path)?;
        self.where_is(&folder)
    }

    /// A path by which the lab can reach what the program sees at an absolute path.
    pub(super) fn reachable(&self, path: &Path) -> PathBuf {
        Path::new(&format!("/proc/{}/root", self.tid)).join(path.strip_prefix("/").unwrap_or(path))
    }
}
