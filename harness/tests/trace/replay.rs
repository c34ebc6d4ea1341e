//! Applies a log to a folder by plain calls, without any model of what a file system is.

use std::collections::HashMap;
use std::ffi::CString;
use std::fs::{File, OpenOptions, Permissions};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt, chown, lchown};
use std::path::{Path, PathBuf};
use std::process::Command;

use crashlab::op::{FileId, Op, OpKind};
use nix::fcntl::{AT_FDCWD, AtFlags, FallocateFlags, RenameFlags, fallocate, renameat2};
use nix::sys::stat::{Mode, SFlag, major, makedev, minor, mknod};

use crate::support::{is_root, output, program};

/// A folder to which ops are applied.
pub(crate) struct Replay {
    root: PathBuf,
    /// Files stay open, so that those without a name can still be written.
    open: HashMap<FileId, File>,
}

impl Replay {
    /// Begins with the folder as it is.
    pub(crate) fn into(root: &Path) -> Replay {
        Replay { root: root.to_owned(), open: HashMap::new() }
    }

    /// Applies them all.
    pub(crate) fn all<'a>(&mut self, ops: impl IntoIterator<Item = &'a Op>) {
        for op in ops {
            self.apply(&op.kind).unwrap_or_else(|error| panic!("{op:?}: {error}"));
        }
    }

    fn at(&self, path: &Path) -> PathBuf {
        if path.as_os_str().is_empty() { self.root.clone() } else { self.root.join(path) }
    }

    fn own(&self, path: &Path, owner: (u32, u32)) -> std::io::Result<()> {
        if is_root() { lchown(path, Some(owner.0), Some(owner.1)) } else { Ok(()) }
    }

    fn file(&mut self, file: FileId, path: &Path) -> std::io::Result<&File> {
        if !self.open.contains_key(&file) {
            let opened = OpenOptions::new().read(true).write(true).open(self.at(path))?;
            self.open.insert(file, opened);
        }
        Ok(&self.open[&file])
    }

    fn apply(&mut self, kind: &OpKind) -> std::io::Result<()> {
        match kind {
            OpKind::Create { file, path, mode, owner } => {
                self.create(*file, path.as_deref(), *mode, *owner)?
            }
            OpKind::Write { file, path, offset, data, .. } => {
                self.file(*file, path)?.write_all_at(data, *offset)?;
            }
            OpKind::Truncate { file, path, size, .. } => self.file(*file, path)?.set_len(*size)?,
            OpKind::Allocate { file, path, mode, offset, len } => {
                let flags = FallocateFlags::from_bits_retain(*mode);
                fallocate(self.file(*file, path)?, flags, *offset as i64, *len as i64)?;
            }
            OpKind::Chmod { path, mode, .. } => {
                std::fs::set_permissions(self.at(path), Permissions::from_mode(*mode))?;
            }
            OpKind::Chown { path, uid, gid, mode, .. } => {
                self.chown(&self.at(path), *uid, *gid, *mode)?
            }
            OpKind::Xattr { path, name, value, .. } => {
                self.attribute(&self.at(path), name, value.as_deref())?
            }
            OpKind::Rename { .. }
            | OpKind::Link { .. }
            | OpKind::Symlink { .. }
            | OpKind::Unlink { .. }
            | OpKind::Mkdir { .. }
            | OpKind::Rmdir { .. }
            | OpKind::Mknod { .. } => self.names(kind)?,
            OpKind::Utimens { .. }
            | OpKind::Sync { .. }
            | OpKind::SyncFolder { .. }
            | OpKind::SyncAll
            | OpKind::SyncRange { .. }
            | OpKind::Lock { .. } => {}
        }
        Ok(())
    }

    fn names(&self, kind: &OpKind) -> std::io::Result<()> {
        match kind {
            OpKind::Rename { from, to, exchange, no_replace } => {
                let mut flags = RenameFlags::empty();
                flags.set(RenameFlags::RENAME_EXCHANGE, *exchange);
                flags.set(RenameFlags::RENAME_NOREPLACE, *no_replace);
                renameat2(AT_FDCWD, &self.at(from), AT_FDCWD, &self.at(to), flags)?;
            }
            OpKind::Link { file, from: None, to } => {
                let path = format!("/proc/self/fd/{}", self.open[file].as_raw_fd());
                let (to, flags) = (self.at(to), AtFlags::AT_SYMLINK_FOLLOW);
                nix::unistd::linkat(AT_FDCWD, path.as_str(), AT_FDCWD, &to, flags)?;
            }
            OpKind::Link { from: Some(from), to, .. } => {
                std::fs::hard_link(self.at(from), self.at(to))?
            }
            OpKind::Symlink { target, path, owner } => {
                std::os::unix::fs::symlink(target, self.at(path))?;
                self.own(&self.at(path), *owner)?;
            }
            OpKind::Unlink { path } => std::fs::remove_file(self.at(path))?,
            OpKind::Mkdir { path, mode, owner } => {
                std::fs::create_dir(self.at(path))?;
                self.own(&self.at(path), *owner)?;
                std::fs::set_permissions(self.at(path), Permissions::from_mode(*mode))?;
            }
            OpKind::Rmdir { path } => std::fs::remove_dir(self.at(path))?,
            OpKind::Mknod { path, mode, device, owner } => {
                let device = makedev(major(*device), minor(*device));
                let permissions = Mode::from_bits_truncate(*mode);
                mknod(&self.at(path), SFlag::from_bits_truncate(*mode), permissions, device)?;
                self.own(&self.at(path), *owner)?;
                std::fs::set_permissions(self.at(path), Permissions::from_mode(mode & 0o7777))?;
            }
            other => panic!("{other:?} changes no name"),
        }
        Ok(())
    }

    fn create(
        &mut self,
        file: FileId,
        path: Option<&Path>,
        mode: u32,
        owner: (u32, u32),
    ) -> std::io::Result<()> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let opened = match path {
            Some(path) => options.create_new(true).open(self.at(path))?,
            None => options.custom_flags(nix::libc::O_TMPFILE).open(&self.root)?,
        };
        let by_descriptor = format!("/proc/self/fd/{}", opened.as_raw_fd());
        if is_root() {
            chown(by_descriptor, Some(owner.0), Some(owner.1))?;
        }
        opened.set_permissions(Permissions::from_mode(mode))?;
        self.open.insert(file, opened);
        Ok(())
    }

    fn chown(&self, path: &Path, uid: u32, gid: u32, mode: u32) -> std::io::Result<()> {
        lchown(path, Some(uid), Some(gid))?;
        if !path.is_symlink() {
            std::fs::set_permissions(path, Permissions::from_mode(mode))?;
        }
        Ok(())
    }

    fn attribute(&self, path: &Path, name: &str, value: Option<&[u8]>) -> std::io::Result<()> {
        let mut tool = Command::new(program("attribute"));
        tool.arg(path).arg(name);
        if let Some(value) = value {
            tool.arg(std::ffi::OsStr::from_bytes(value));
        }
        assert!(CString::new(name).is_ok() && output(&mut tool)?.status.success());
        Ok(())
    }
}
