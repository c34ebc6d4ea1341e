//! Whether the session behind a claim lives: a lock of the kernel on one byte of the lock file, whose place is the number of the claim.
//!
//! The kernel lets such a lock go when its holder dies, however it dies, so that a question of a dead session is free at once, without
//! waiting for its lease to run out. A process id could not tell: two sessions in two containers are both process 1, and see nothing of
//! each other but the file. The lock is on the file itself, so that it is seen through every path, mount and namespace of one kernel.
//!
//! What a lock cannot tell is whether a session on another machine lives, where the file system does not carry locks from one to the
//! other, or whether one lived before this machine was started anew. So a claim names the boot of the machine that it was made on
//! ([`boot`]), and only claims of the same boot are asked about. For all others their lease counts alone.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

use super::lock::open_or_create;
use crate::files::{self, Links};

/// The sign of life of one claim. Ends with its holder, or when dropped.
#[derive(Debug)]
pub(super) struct Alive {
    file: File,
    number: i64,
}

impl Alive {
    /// Gives the sign of life of claim `number` in the lock file at `lock` of the checkpoint at `checkpoint`. `None`: a living session
    /// gives that sign already.
    ///
    /// # Errors
    ///
    /// The kernel's; `Unsupported` where the file system has no such locks.
    pub(super) fn begin(lock: &Path, checkpoint: &Path, number: i64) -> io::Result<Option<Alive>> {
        let file = open_or_create(lock, checkpoint)?;
        match fcntl(&file, FcntlArg::F_OFD_SETLK(&byte_lock(libc::F_WRLCK, number))) {
            Ok(_) => Ok(Some(Alive { file, number })),
            Err(Errno::EAGAIN | Errno::EACCES) => Ok(None),
            Err(Errno::EINVAL | Errno::ENOLCK | Errno::EOPNOTSUPP) => {
                Err(io::ErrorKind::Unsupported.into())
            }
            Err(errno) => Err(errno.into()),
        }
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        // Closing would do, but for a child that is being started right now and has a copy of the descriptor.
        let _ends_with_the_process =
            fcntl(&self.file, FcntlArg::F_OFD_SETLK(&byte_lock(libc::F_UNLCK, self.number)));
    }
}

/// Whether some session gives the sign of life of claim `number`. Creates nothing and takes nothing.
pub(super) fn lives(lock: &Path, number: i64) -> io::Result<bool> {
    let file = match files::open(OpenOptions::new().read(true), lock, Links::Refuse) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let mut found = byte_lock(libc::F_WRLCK, number);
    match fcntl(&file, FcntlArg::F_OFD_GETLK(&mut found)) {
        Ok(_) => Ok(i32::from(found.l_type) != libc::F_UNLCK),
        Err(errno) => Err(errno.into()),
    }
}

/// What names this boot of this machine: the kernel's random number for it. Empty where there is none to read.
pub(super) fn boot() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

fn byte_lock(kind: libc::c_int, number: i64) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: number,
        l_len: 1,
        l_pid: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_of_life_is_of_one_number_and_ends_when_dropped() {
        let folder = tempfile::TempDir::new().unwrap();
        let lock = folder.path().join("q.db.lock");
        let begin = |number| Alive::begin(&lock, Path::new("q.db"), number).unwrap();
        assert!(!lives(&lock, 7).unwrap(), "there is no lock file");
        let first = begin(7).unwrap();
        let _copy = first.file.try_clone().unwrap();
        assert!(begin(7).is_none());
        let _second = begin(8).unwrap();
        assert!(lives(&lock, 7).unwrap() && lives(&lock, 8).unwrap() && !lives(&lock, 9).unwrap());
        drop(first);
        assert!(!lives(&lock, 7).unwrap() && lives(&lock, 8).unwrap());
    }
}
