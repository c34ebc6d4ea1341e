//! The lab's own copies of descriptors through which programs write again and again.
//!
//! A copy is the same open file as the program's descriptor: its position and flags are those of the program, whoever
//! changes them. What a copy cannot tell is whether the program's number still stands for that file, so the kernel is asked
//! at each use (`kcmp`), and nothing has to be known of all the ways in which a table of descriptors can change.
//!
//! A copy also keeps what the program believes to have closed: a lock, or a program file that cannot be executed while
//! somebody may write to it. So copies are given up before anything closes, and there is none of a file that is locked
//! by a lock that belongs to the open file.

use std::collections::BTreeSet;
use std::os::fd::{OwnedFd, RawFd};
use std::rc::Rc;

use nix::sys::stat::{FileStat, fstat};

use crate::op::FileId;
use crate::sys::{descriptor, forked};
use crate::trace::calls::Call;
use crate::trace::names::Inode;
use crate::trace::resolve::inode;

/// So many copies are kept; programs that write to more files in turn are looked at without.
const MOST: usize = 32;

/// The copies.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    kept: Vec<Kept>,
    /// What was looked at last without a copy; who comes back gets one.
    last: Option<(i32, RawFd)>,
    locked: BTreeSet<Inode>,
}

/// A copy.
#[derive(Debug)]
struct Kept {
    process: i32,
    tid: i32,
    fd: RawFd,
    copy: Rc<OwnedFd>,
    stat: FileStat,
    /// The file, as it was known at the given state of the names.
    known: Option<(u64, Option<FileId>)>,
}

/// A copy to look at, not to be kept.
#[derive(Debug)]
pub(super) struct Copy {
    /// The same open file as the program's.
    pub(super) own: Rc<OwnedFd>,
    /// The file.
    pub(super) file: FileId,
}

impl Descriptors {
    /// The copy of a thread's descriptor, where there is one and the number still stands for the same open file. `file_of`
    /// tells which watched file it is; it is asked again when the `names` have changed.
    pub(super) fn copy(
        &mut self,
        (tid, fd): (i32, RawFd),
        names: u64,
        file_of: impl FnOnce(&FileStat) -> Option<FileId>,
    ) -> Option<Copy> {
        let position = self.kept.iter().position(|kept| (kept.tid, kept.fd) == (tid, fd))?;
        let kept = &mut self.kept[position];
        if !descriptor::is_same(&kept.copy, tid, fd) {
            self.kept.swap_remove(position);
            return None;
        }
        let file = match kept.known {
            Some((then, file)) if then == names => file,
            _ => file_of(&kept.stat),
        };
        kept.known = Some((names, file));
        Some(Copy { own: kept.copy.clone(), file: file? })
    }

    /// A thread writes to a watched file by a descriptor of which there is no copy.
    pub(super) fn used(&mut self, process: i32, tid: i32, fd: RawFd) {
        if self.last != Some((tid, fd)) {
            self.last = Some((tid, fd));
            return;
        }
        let Ok(copy) = descriptor::copy(process, fd) else { return };
        let Ok(stat) = fstat(&copy) else { return };
        if self.locked.contains(&inode(&stat)) {
            return;
        }
        if self.kept.len() == MOST {
            self.kept.remove(0);
        }
        let copy = Rc::new(copy);
        self.kept.push(Kept { process, tid, fd, copy, stat, known: None });
    }

    /// A call is about to be made that can close descriptors.
    pub(super) fn before(&mut self, process: i32, call: Call, args: &[u64; 6]) {
        let closed = match call {
            Call::Close => args[0] as RawFd,
            Call::Dup2 | Call::Dup3 => args[1] as RawFd,
            Call::CloseRange => return self.forget_all(),
            Call::ExitGroup | Call::Execve | Call::Execveat => return self.forget(process),
            _ => return,
        };
        // Several processes can share one table.
        self.keep(|kept| kept.fd != closed);
    }

    /// A process or thread has ended, or become another program.
    pub(super) fn forget(&mut self, id: i32) {
        self.keep(|kept| kept.process != id && kept.tid != id);
    }

    /// Something happened that nobody decodes.
    pub(super) fn forget_all(&mut self) {
        self.keep(|_| false);
    }

    /// The open file gets a lock that lasts until its last descriptor is closed.
    pub(super) fn lock(&mut self, file: Inode) {
        self.locked.insert(file);
        self.keep(|kept| inode(&kept.stat) != file);
    }

    /// Gives up the others, for good.
    fn keep(&mut self, which: impl FnMut(&Kept) -> bool) {
        let before = self.kept.len();
        self.kept.retain(which);
        if self.kept.len() < before {
            forked::outwait();
        }
    }
}
