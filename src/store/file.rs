//! Finding and reading the file behind a checkpoint's path, and saying what is wrong with whatever else is there.

use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::OFlag;

use super::{Loaded, StoreError};
use crate::checkpoint::Checkpoint;
use crate::files::{folder_of, not_a_file};

/// As many links as the kernel itself follows.
const LINKS_MAX: usize = 40;

/// A checkpoint's file, or the place where it will be.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// With the links of its last part resolved; relative where the caller's path was, so that a program which runs in a
    /// folder stays in it.
    pub(super) path: PathBuf,
    /// What the kernel says of the file; `None`: there is none.
    pub(super) found: Option<Metadata>,
}

/// Follows `path`, which may be a link to a link, to the file itself.
///
/// # Errors
///
/// [`StoreError::Unreadable`] for everything but a file, or a free name in a folder that is there.
pub(super) fn resolve(path: &Path) -> Result<Target, StoreError> {
    let mut at = path.to_path_buf();
    for links in 0..=LINKS_MAX {
        match fs::symlink_metadata(&at) {
            Ok(found) if found.is_symlink() => {
                let next = fs::read_link(&at).map_err(|error| unreadable(path, &error))?;
                // A relative link counts from the folder that it is in; an absolute one replaces everything.
                at = folder_of(&at).join(next);
            }
            Ok(found) => {
                regular(path, &found)?;
                return Ok(Target { path: at, found: Some(found) });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && links > 0 => {
                return Err(StoreError::Unreadable {
                    path: path.to_path_buf(),
                    why: format!("it is a symbolic link that leads to nothing ({})", at.display()),
                    remedy:
                        "bring back the file it leads to, or remove the link to start a fresh queue"
                            .to_owned(),
                });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                free_name(path)?;
                return Ok(Target { path: at, found: None });
            }
            Err(error) => return Err(unreadable(path, &error)),
        }
    }
    Err(unreadable(path, &Errno::ELOOP.into()))
}

/// That nothing is at `path` is right only if its folder is there, and it can be the name of a file.
fn free_name(path: &Path) -> Result<(), StoreError> {
    let bytes = path.as_os_str().as_bytes();
    if path.file_name().is_none() || bytes.ends_with(b"/") || bytes.ends_with(b"/.") {
        return Err(StoreError::Unreadable {
            path: path.to_path_buf(),
            why: "that is not the name of a file".to_owned(),
            remedy: "give the path of a file".to_owned(),
        });
    }
    let folder = folder_of(path);
    match fs::metadata(folder) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(StoreError::Unreadable {
            path: path.to_path_buf(),
            why: if folder.is_symlink() {
                format!("its folder {} is a symbolic link that leads to nothing", folder.display())
            } else {
                format!("its folder {} is not there", folder.display())
            },
            remedy: "create the folder, or correct the path".to_owned(),
        }),
        Err(error) => Err(unreadable(path, &error)),
    }
}

/// The bytes of the file at `target`, which [`resolve`] has just found; `None` if it is gone again. Errors name `path`,
/// which the user knows. Never blocks, whatever has come to be there meanwhile.
pub(super) fn read(path: &Path, target: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits()).open(target);
    let mut file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(path, &error)),
    };
    let found = file.metadata().map_err(|error| unreadable(path, &error))?;
    regular(path, &found)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|error| unreadable(path, &error))?;
    Ok(Some(bytes))
}

/// What the bytes of the file at `path` say.
pub(super) fn decoded(path: &Path, bytes: Vec<u8>) -> Result<Loaded, StoreError> {
    let bytes = Arc::new(bytes);
    match Checkpoint::decode_shared(&bytes) {
        Ok(checkpoint) => Ok(Loaded { checkpoint, bytes: Some(bytes) }),
        Err(damage) => Err(StoreError::Damaged { path: path.to_path_buf(), damage: damage.into() }),
    }
}

/// That it is a file and nothing else.
pub(super) fn regular(path: &Path, found: &Metadata) -> Result<(), StoreError> {
    match not_a_file(found) {
        None => Ok(()),
        Some(kind) => Err(StoreError::Unreadable {
            path: path.to_path_buf(),
            why: format!("it is {kind}, not a file"),
            remedy: "give the path of a file".to_owned(),
        }),
    }
}

/// The kernel's refusal to reach or read `path`, with what to do about it.
pub(super) fn unreadable(path: &Path, error: &io::Error) -> StoreError {
    let (why, remedy) = match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EACCES | Errno::EPERM) => (
            "permission denied",
            "run as the user who owns it, or have the permissions of it and its folders changed",
        ),
        Some(Errno::ENOTDIR) => ("a part of its path is a file, not a folder", "correct the path"),
        Some(Errno::ELOOP) => ("its symbolic links lead round in a circle", "correct the links"),
        Some(Errno::ENAMETOOLONG) => {
            ("its name is too long for this file system", "choose a shorter name")
        }
        Some(Errno::EIO) => (
            "the medium failed (input/output error)",
            "check the disk, then restore it from a backup",
        ),
        _ => {
            return StoreError::Unreadable {
                path: path.to_path_buf(),
                why: error.to_string(),
                remedy: "remove the cause, then run again".to_owned(),
            };
        }
    };
    StoreError::Unreadable {
        path: path.to_path_buf(),
        why: why.to_owned(),
        remedy: remedy.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    #[test]
    fn what_came_to_be_there_meanwhile_is_neither_followed_nor_waited_for() {
        let folder = tempfile::TempDir::new().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "bytes").unwrap();
        symlink("file", at("link")).unwrap();
        mkfifo(&at("pipe"), Mode::S_IRWXU).unwrap();
        let read = |name: &str| read(Path::new("state.json"), &at(name));
        assert_eq!(read("file").unwrap().as_deref(), Some(&b"bytes"[..]));
        assert_eq!(read("gone").unwrap(), None);
        for name in ["link", "pipe"] {
            assert!(matches!(read(name), Err(StoreError::Unreadable { .. })), "{name}");
        }
    }

    #[test]
    fn a_medium_that_fails_is_told_as_such() {
        let text = unreadable(Path::new("state.json"), &Errno::EIO.into()).to_string();
        assert!(text.ends_with("check the disk, then restore it from a backup"), "{text}");
    }
}
