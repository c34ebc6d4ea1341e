//! Files by their paths: what sits beside a checkpoint, and opening that never waits and takes nothing but a file.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::libc;
use nix::unistd::geteuid;

/// The folder that a file is in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A path beside `path`, with `ending` after its name. Names need not be UTF-8.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(ending);
    path.with_file_name(name)
}

/// Makes the entry of `path` in its folder durable.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

/// What to do with a path that is a symbolic link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    Follow,
    Refuse,
}

/// Opens a file. Whatever else is there is an error, and at once: opening a pipe would wait for its other end, and reading a device might
/// never end.
pub(crate) fn open(options: &mut OpenOptions, path: &Path, links: Links) -> io::Result<File> {
    let not_a_file_here = |kind| io::Error::other(format!("it is {kind}, not a file"));
    let mut flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    flags.set(OFlag::O_NOFOLLOW, links == Links::Refuse);
    let file = match options.custom_flags(flags.bits()).open(path) {
        // The kernel has a word of its own for each; what is there says more.
        Err(error)
            if matches!(error.raw_os_error(), Some(libc::ELOOP | libc::EISDIR | libc::ENXIO)) =>
        {
            let found = match links {
                Links::Follow => fs::metadata(path),
                Links::Refuse => fs::symlink_metadata(path),
            };
            let kind = found.ok().as_ref().and_then(not_a_file);
            return Err(kind.map_or(error, not_a_file_here));
        }
        opened => opened?,
    };
    match not_a_file(&file.metadata()?) {
        None => Ok(file),
        Some(kind) => Err(not_a_file_here(kind)),
    }
}

/// The bytes of the file that `path` leads to.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut file = open(OpenOptions::new().read(true), path, Links::Follow)?;
    io::Read::read_to_end(&mut file, &mut bytes)?;
    Ok(bytes)
}

/// What it is, unless it is a file.
pub(crate) fn not_a_file(found: &Metadata) -> Option<&'static str> {
    let kind = found.file_type();
    if kind.is_file() {
        None
    } else if kind.is_dir() {
        Some("a folder")
    } else if kind.is_symlink() {
        Some("a symbolic link")
    } else if kind.is_fifo() {
        Some("a named pipe")
    } else if kind.is_socket() {
        Some("a socket")
    } else {
        Some("a device")
    }
}

/// Gives a file that the superuser has just made the owner of `checkpoint`: otherwise one `sudo` would shut the owner out of the lock and
/// the log from then on. Where it fails, the file stays as it is, and its owner can still delete it.
pub(crate) fn share_owner(file: &File, checkpoint: &Path) {
    if !geteuid().is_root() {
        return;
    }
    if let (Ok(ours), Ok(theirs)) = (file.metadata(), fs::metadata(checkpoint))
        && (ours.uid(), ours.gid()) != (theirs.uid(), theirs.gid())
    {
        let _stays_ours = fchown(file, Some(theirs.uid()), Some(theirs.gid()));
    }
}
