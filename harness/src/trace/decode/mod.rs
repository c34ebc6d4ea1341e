//! From a call's number and arguments to what it will have done: one file for each family of calls.
//!
//! A call is looked at when it is entered, since that is when names and sizes are as the call finds them; if it
//! concerns nothing that is watched, it runs on at once. Otherwise the result is a [`Pending`], which is finished with
//! what the call returned.

use std::path::PathBuf;

use crate::op::touch::{Access, Object};
use crate::op::{OpKind, What};
use crate::sys::ptrace::Entry;
use crate::trace::calls::Call;
use crate::trace::released::Lock;
use crate::trace::resolve::View;
use crate::trace::world::{Done, World};

mod attributes;
mod data;
mod locks;
mod looks;
mod names;
mod open;
mod write;

pub(super) use open::{MARKS, request as open_request};

/// A call as it is entered.
#[derive(Debug)]
pub(super) struct Ask<'a> {
    /// The thread that makes it.
    pub(super) tid: i32,
    /// Its process.
    pub(super) process: i32,
    /// Which call.
    pub(super) call: Call,
    /// Its arguments.
    pub(super) args: [u64; 6],
    /// What is known.
    pub(super) world: &'a World,
}

/// What a call returned; never an error.
#[derive(Debug, Clone, Copy)]
pub(super) struct Returned {
    /// The thread that made the call.
    pub(super) tid: i32,
    /// The value.
    pub(super) value: i64,
}

/// A lock that a call waits for, and how the call is made one that does not.
#[derive(Debug)]
pub(super) struct WithoutWait {
    /// The argument that says that it waits.
    pub(super) argument: usize,
    /// What is there for a call that does not.
    pub(super) value: u64,
    /// The lock, where its range is known.
    pub(super) wants: Option<Lock>,
}

type Then = Box<dyn FnOnce(Returned, &mut World) -> Vec<Done>>;

/// A call that concerns what is watched, between its entry and its exit.
pub(super) struct Pending {
    /// Which call.
    pub(super) call: Call,
    /// It is let in alone, so that the order of the log is the order of the disk.
    pub(super) alone: bool,
    /// It may sleep until another lets a lock go.
    pub(super) may_wait: bool,
    /// That it fails is an event.
    pub(super) tells_failure: bool,
    /// What it touches beside what its op says.
    pub(super) touches: Vec<Access>,
    /// It takes a lock and waits for it: how it is tried without.
    pub(super) without_wait: Option<WithoutWait>,
    /// The call as it was made, where the lab has made it another.
    pub(super) entry: Option<Entry>,
    /// The op that it will be, as far as one can tell.
    pub(super) preview: Option<OpKind>,
    /// The file, for what cannot be told by an op.
    pub(super) path: Option<PathBuf>,
    /// What to put back into the program's memory at the exit: address and value.
    pub(super) restore: Option<(u64, u64)>,
    then: Then,
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pending")
            .field("call", &self.call)
            .field("preview", &self.preview)
            .finish_non_exhaustive()
    }
}

impl Pending {
    /// A call that will be an op, or fail to be one.
    fn op(
        ask: &Ask<'_>,
        path: Option<PathBuf>,
        preview: Option<OpKind>,
        then: impl FnOnce(Returned, &mut World) -> Vec<Done> + 'static,
    ) -> Pending {
        let (alone, may_wait, tells_failure) = (true, false, true);
        Pending {
            call: ask.call,
            alone,
            may_wait,
            tells_failure,
            touches: Vec::new(),
            without_wait: None,
            entry: None,
            preview,
            path,
            restore: None,
            then: Box::new(then),
        }
    }

    /// A call that is an op which is known already; `then` brings the names up to date.
    fn known(
        ask: &Ask<'_>,
        path: PathBuf,
        kind: OpKind,
        then: impl FnOnce(&mut World) + 'static,
    ) -> Pending {
        Pending::op(ask, Some(path), Some(kind.clone()), move |_, world| {
            then(world);
            vec![Done::Op(kind)]
        })
    }

    /// A call that is worth an event but is no op.
    fn event(
        ask: &Ask<'_>,
        then: impl FnOnce(Returned, &mut World) -> Vec<Done> + 'static,
    ) -> Pending {
        Pending { tells_failure: false, ..Pending::op(ask, None, None, then) }
    }

    /// A call that only looks at something.
    fn look(ask: &Ask<'_>, path: PathBuf) -> Pending {
        Pending { path: Some(path), ..Pending::event(ask, |_, _| Vec::new()) }
    }

    /// It touches this as well.
    fn touching(mut self, accesses: impl IntoIterator<Item = Access>) -> Pending {
        self.touches.extend(accesses);
        self
    }

    /// It may block for as long as it likes, so nobody waits for it.
    fn free(self) -> Pending {
        Pending { alone: false, ..self }
    }

    /// Finishes it with what it returned.
    pub(super) fn finish(self, tid: i32, result: i64, world: &mut World) -> Vec<Done> {
        if result >= 0 || !self.tells_failure {
            return (self.then)(Returned { tid, value: result }, world);
        }
        let call = self.call.name().to_owned();
        vec![Done::Event(What::Failed { call, path: self.path, errno: -result as i32 })]
    }
}

impl<'a> Ask<'a> {
    fn view(&self) -> View<'a> {
        self.world.view(self.tid)
    }

    /// An argument as a descriptor or another signed number.
    pub(super) fn int(&self, index: usize) -> i32 {
        self.args[index] as i32
    }

    /// What the call will do, if that is of interest.
    pub(super) fn decode(&self) -> Option<Pending> {
        if !self.world.steps {
            return self.decode_call();
        }
        self.world.passed.borrow_mut().clear();
        let pending = self.decode_call();
        let passed = self.world.passed.take();
        let Some(path) = passed.last().cloned() else { return pending };
        let looks = passed.into_iter().map(|path| Access::look(Object::Entry(path)));
        Some(pending.unwrap_or_else(|| Pending::look(self, path).free()).touching(looks))
    }

    fn decode_call(&self) -> Option<Pending> {
        match self.call {
            Call::Open | Call::Creat | Call::Openat | Call::Openat2 | Call::OpenByHandleAt => {
                open::decode(self)
            }
            Call::Access | Call::Faccessat | Call::Faccessat2 => {
                open::mark(self).or_else(|| self.world.steps.then(|| looks::decode(self))?)
            }
            Call::Kill if self.world.steps => looks::decode(self),
            // They look at nothing.
            Call::Nanosleep | Call::ClockNanosleep => None,
            call if call.is_look() => looks::decode(self),
            Call::Read | Call::Readv | Call::Pread64 | Call::Preadv | Call::Preadv2 => {
                open::read(self)
            }
            Call::Close | Call::Dup2 | Call::Dup3 | Call::CloseRange => open::close(self),
            Call::Write | Call::Writev | Call::Pwrite64 | Call::Pwritev | Call::Pwritev2 => {
                write::decode(self)
            }
            Call::CopyFileRange | Call::Sendfile | Call::Splice | Call::Ioctl => data::copy(self),
            Call::Truncate | Call::Ftruncate | Call::Fallocate => data::size(self),
            Call::Mmap => data::mmap(self),
            Call::Fsync
            | Call::Fdatasync
            | Call::Sync
            | Call::Syncfs
            | Call::SyncFileRange
            | Call::Msync => data::sync(self),
            Call::Rename | Call::Renameat | Call::Renameat2 => names::rename(self),
            Call::Link | Call::Linkat => names::link(self),
            Call::Symlink | Call::Symlinkat => names::symlink(self),
            Call::Unlink | Call::Unlinkat | Call::Rmdir => names::unlink(self),
            Call::Mkdir | Call::Mkdirat => names::mkdir(self),
            Call::Mknod | Call::Mknodat | Call::Bind => names::mknod(self),
            Call::Flock | Call::Fcntl => locks::decode(self),
            Call::Prctl => Some(open::hidden(self)),
            Call::Chroot | Call::PivotRoot => Some(open::moved_root(self)),
            // It ends the other threads of its process, and returns only where it fails.
            Call::Execve | Call::Execveat => Some(Pending::event(self, |_, _| Vec::new()).free()),
            Call::Clone | Call::Clone3 | Call::ExitGroup | Call::IoUringSetup | Call::IoSetup => {
                None
            }
            // Where they reach out of the run they were refused before.
            Call::Kill
            | Call::Tkill
            | Call::Tgkill
            | Call::RtSigqueueinfo
            | Call::RtTgsigqueueinfo
            | Call::PidfdSendSignal
            | Call::Ptrace
            | Call::ProcessVmWritev => None,
            _ => attributes::decode(self),
        }
    }
}
