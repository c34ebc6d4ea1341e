//! The lock beside a checkpoint: who works on it, from load to save.
//!
//! It is an advisory lock of the kernel on the file `<name>.lock`, so it ends with its holder, however that ends. The
//! file itself stays. Removing it would be a race: one session opens it, the holder removes it and ends, a third creates
//! and locks a new one, and then two hold "the lock" at once.
//!
//! Two locks are taken on the same descriptor. `flock` is the one that excludes; it cannot be asked about without being
//! taken, and a `status` that took it for a moment could turn away a session that starts in that moment. So the holder
//! also takes a record lock, which can be asked about.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use nix::sys::signal::kill;
use nix::unistd::Pid;

use super::file::{self, Target};
use super::replace::failed;
use super::{Holder, StoreError, Wait};
use crate::files::{self, Links};

/// Longest content of a lock file that is looked at: a process id and a line feed.
const PID_LEN_MAX: usize = 16;

/// Where the lock of the checkpoint file `target` is.
pub(super) fn path_beside(target: &Path) -> PathBuf {
    files::beside(target, ".lock")
}

/// Takes the lock beside the file that the checkpoint's `path` leads to. The path may be a link that came to lead elsewhere while this
/// waited.
pub(super) fn take_beside(path: &Path, wait: Wait) -> Result<(Target, Lock), StoreError> {
    let mut target = file::resolve(path)?;
    loop {
        let lock = Lock::take(&path_beside(&target.path), path, wait)?;
        let now = file::resolve(path)?;
        if now.path == target.path {
            return Ok((now, lock));
        }
        target = now;
    }
}

/// The lock, held. Let go when dropped.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock at `path` for the checkpoint at `checkpoint`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Busy`] if another has it and `wait` says so, [`StoreError::Write`] if the file cannot be used.
    pub(super) fn take(path: &Path, checkpoint: &Path, wait: Wait) -> Result<Lock, StoreError> {
        loop {
            let file = open_or_create(path, checkpoint)
                .map_err(|error| failed(path, "open the lock file", error))?;
            let taken = match wait {
                Wait::Block => lock_uninterrupted(&file).map(|()| true),
                Wait::Fail => match file.try_lock() {
                    Ok(()) => Ok(true),
                    Err(TryLockError::WouldBlock) => Ok(false),
                    Err(TryLockError::Error(error)) => Err(error),
                },
            };
            if !taken.map_err(|error| failed(path, "take the lock", error))? {
                return Err(StoreError::Busy {
                    path: checkpoint.to_path_buf(),
                    holder: Holder { pid: live_pid(&file), claim: None },
                });
            }
            let lock = Lock { file, path: path.to_path_buf() };
            // Someone may have removed the file between opening and locking. Then this is a lock on nothing: try again.
            if lock
                .is_in_place()
                .map_err(|error| failed(&lock.path, "look at the lock file", error))?
            {
                lock.announce()
                    .map_err(|error| failed(&lock.path, "write the lock file", error))?;
                return Ok(lock);
            }
        }
    }

    /// Whether the file at the lock's path is still the one that is locked. If it is not, another may hold its own.
    pub(super) fn is_in_place(&self) -> io::Result<bool> {
        let held = self.file.metadata()?;
        match fs::symlink_metadata(&self.path) {
            Ok(found) => Ok((found.dev(), found.ino()) == (held.dev(), held.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Where the lock file is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn announce(&self) -> io::Result<()> {
        match fcntl(&self.file, FcntlArg::F_OFD_SETLK(&record_lock(libc::F_WRLCK))) {
            // Some file systems have no such locks. Then only `holder` knows less.
            Ok(_) | Err(Errno::EINVAL | Errno::ENOLCK | Errno::EOPNOTSUPP) => {}
            Err(errno) => return Err(errno.into()),
        }
        let line = format!("{}\n", std::process::id());
        self.file.write_all_at(line.as_bytes(), 0)?;
        // A holder that was killed may have left a longer one.
        if self.file.metadata()?.len() > line.len() as u64 {
            self.file.set_len(line.len() as u64)?;
        }
        Ok(())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // An empty file says that nobody is in; two runs then also leave the same bytes. If it fails, the process id
        // stays, which is looked at only while the lock is held.
        let _stays = self.file.set_len(0);
        // Closing would do, but for a child process that is being started right now: until it runs its program it has a
        // copy of every descriptor, and would keep the lock for that moment.
        let _ends_with_the_process =
            fcntl(&self.file, FcntlArg::F_OFD_SETLK(&record_lock(libc::F_UNLCK)));
        let _ends_with_the_process = self.file.unlock();
    }
}

/// A signal that the program handles ends the waiting, but not the wish.
fn lock_uninterrupted(file: &File) -> io::Result<()> {
    loop {
        match file.lock() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            locked => return locked,
        }
    }
}

/// Who holds the lock at `path` now. Creates nothing and takes nothing.
pub(super) fn holder(path: &Path) -> io::Result<Option<Holder>> {
    let file = match files::open(OpenOptions::new().read(true), path, Links::Refuse) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut found = record_lock(libc::F_WRLCK);
    match fcntl(&file, FcntlArg::F_OFD_GETLK(&mut found)) {
        Ok(_) if i32::from(found.l_type) == libc::F_UNLCK => Ok(None),
        Ok(_) => Ok(Some(Holder { pid: live_pid(&file), claim: None })),
        // No record locks here: what is left is the process id, which may be of one that was killed.
        Err(Errno::EINVAL | Errno::ENOLCK | Errno::EOPNOTSUPP) => {
            Ok(live_pid(&file).map(|pid| Holder { pid: Some(pid), claim: None }))
        }
        Err(errno) => Err(errno.into()),
    }
}

/// A lock on the first byte of the file that belongs to the descriptor, not to the process. The other bytes are for [claims](super::alive).
fn record_lock(kind: libc::c_int) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 1,
        l_pid: 0,
    }
}

/// The process id in a lock file, if such a process lives (here: in another container it has another number, or none).
fn live_pid(file: &File) -> Option<u32> {
    let mut bytes = [0; PID_LEN_MAX];
    let len = file.read_at(&mut bytes, 0).ok()?;
    let pid: i32 = std::str::from_utf8(&bytes[..len]).ok()?.strip_suffix('\n')?.parse().ok()?;
    let lives = pid > 0 && matches!(kill(Pid::from_raw(pid), None), Ok(()) | Err(Errno::EPERM));
    lives.then_some(pid.unsigned_abs())
}

/// Opens first and creates only if that fails: creating a file that exists is refused in some folders that all can write
/// to (the setting `fs.protected_regular`), even to the superuser.
pub(super) fn open_or_create(path: &Path, checkpoint: &Path) -> io::Result<File> {
    let open = |options: &mut OpenOptions| {
        files::open(options.read(true).write(true), path, Links::Refuse)
    };
    loop {
        match open(&mut OpenOptions::new()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        match open(OpenOptions::new().create_new(true)) {
            // Another was quicker; its file will do.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created.inspect(|file| files::share_owner(file, checkpoint)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_the_descriptor_does_not_keep_the_lock() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("state.json.lock");
        let take = || Lock::take(&path, Path::new("state.json"), Wait::Fail);
        let lock = take().unwrap();
        let _copy = lock.file.try_clone().unwrap();
        assert!(matches!(take(), Err(StoreError::Busy { .. })));
        drop(lock);
        assert_eq!(holder(&path).unwrap(), None);
        assert!(take().is_ok());
    }

    #[test]
    fn a_longer_process_id_that_a_killed_holder_left_is_overwritten_whole() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("state.json.lock");
        fs::write(&path, "123456789012345678901234567890\n").unwrap();
        let _lock = Lock::take(&path, Path::new("state.json"), Wait::Fail).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
    }

    #[test]
    fn a_lock_file_that_cannot_be_looked_at_is_not_one_that_is_gone() {
        let folder = tempfile::TempDir::new().unwrap();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let lock = Lock::take(&inner.join("lock"), Path::new("state.json"), Wait::Fail).unwrap();
        assert!(lock.is_in_place().unwrap());
        fs::rename(&inner, folder.path().join("moved")).unwrap();
        assert!(!lock.is_in_place().unwrap());
        fs::write(&inner, "a file in place of the folder").unwrap();
        assert_eq!(lock.is_in_place().unwrap_err().kind(), io::ErrorKind::NotADirectory);
    }
}
