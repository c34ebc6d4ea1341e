//! Ways to entries however deep they lie. The kernel takes no path above 4,096 bytes, but a subject can make folders
//! below that by relative paths; what goes through the descriptor of an open folder stays short.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;

/// No more of a path than this, in bytes, is handed to the kernel at a time.
const PIECE_MAX: usize = 3000;

/// A folder that all below is reached from.
#[derive(Debug)]
pub(crate) struct Top {
    folder: Folder,
    /// The folder that was opened last: entries mostly come folder by folder.
    last: Option<(Vec<u8>, Folder)>,
}

/// An open folder.
#[derive(Debug, Clone)]
pub(crate) struct Folder(Rc<OwnedFd>);

impl Top {
    /// Opens a folder by a path that the kernel takes.
    pub(crate) fn open(path: &Path) -> io::Result<Top> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let folder = nix::fcntl::open(path, flags, Mode::empty())?;
        Ok(Top { folder: Folder(Rc::new(folder)), last: None })
    }

    /// Opens the folder at a relative path of any length.
    pub(crate) fn folder(&mut self, relative: &Path) -> io::Result<Folder> {
        let path = relative.as_os_str().as_bytes();
        let (mut folder, mut left) = match &self.last {
            Some((last, folder)) if last.as_slice() == path => return Ok(folder.clone()),
            // One that lies below the last is nearer from there.
            Some((last, folder)) if !last.is_empty() => match path.strip_prefix(last.as_slice()) {
                Some([b'/', rest @ ..]) => (folder.clone(), rest),
                _ => (self.folder.clone(), path),
            },
            _ => (self.folder.clone(), path),
        };
        while !left.is_empty() {
            let (piece, rest) = split(left);
            folder = folder.below(OsStr::from_bytes(piece))?;
            left = rest;
        }
        self.last = Some((path.to_vec(), folder.clone()));
        Ok(folder)
    }

    /// Opens the folder that holds the entry at a relative path, which is not the top itself.
    pub(crate) fn parent(&mut self, relative: &Path) -> io::Result<Folder> {
        self.folder(relative.parent().unwrap_or(Path::new("")))
    }
}

/// A piece of a path that the kernel takes, and the rest. A name alone is never longer than that.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let within = &path[..path.len().min(PIECE_MAX)];
    match within.iter().rposition(|byte| *byte == b'/') {
        Some(slash) if within.len() < path.len() => (&path[..slash], &path[slash + 1..]),
        _ => (path, &[]),
    }
}

impl Folder {
    fn below(&self, path: &OsStr) -> io::Result<Folder> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        Ok(Folder(Rc::new(openat(self, path, flags, Mode::empty())?)))
    }

    /// A path of an entry; good for as long as this folder is open.
    pub(crate) fn entry(&self, name: &OsStr) -> PathBuf {
        self.path().join(name)
    }

    fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }

    /// The names in it, sorted, so that nothing depends on the file system's order.
    pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
        let entries = fs::read_dir(self.path())?;
        let mut names: Vec<OsString> =
            entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
        names.sort();
        Ok(names)
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
