//! The forms of `write`, to watched files and to the run's outputs.

use std::os::fd::RawFd;

use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::stat::{FileStat, fstat};
use nix::unistd::{Whence, lseek};

use crate::op::{Data, FileId, OpKind, What};
use crate::subject::OUTPUT_LIMIT;
use crate::sys::memory;
use crate::trace::calls::Call;
use crate::trace::decode::{Ask, Pending};
use crate::trace::resolve::{describe, stat_fd};
use crate::trace::world::Done;

/// Bytes of one call, more than which go to the spool in parts.
pub(super) const IN_MEMORY_MAX: usize = 1 << 20;
/// The kernel takes no more bytes at once (`MAX_RW_COUNT`).
const ONE_CALL_MAX: u64 = 0x7fff_f000;
const RWF_DSYNC: i32 = 0x2;
const RWF_SYNC: i32 = 0x4;
const RWF_APPEND: i32 = 0x10;
const RWF_NOAPPEND: i32 = 0x20;

/// How a write syncs by itself: not, its data, or all.
pub(super) fn own_sync(flags: i32, call_flags: i32) -> Option<bool> {
    if flags & libc::O_SYNC == libc::O_SYNC || call_flags & RWF_SYNC != 0 {
        return Some(false);
    }
    (flags & libc::O_DSYNC != 0 || call_flags & RWF_DSYNC != 0).then_some(true)
}

/// `write`, `writev`, `pwrite64`, `pwritev`, `pwritev2`.
pub(super) fn decode(ask: &Ask<'_>) -> Option<Pending> {
    let fd = ask.int(0);
    if let Some(pending) = by_copy(ask, fd) {
        return Some(pending);
    }
    let stat = stat_fd(ask.tid, fd)?;
    if let Some(file) = ask.world.file_of(ask.tid, fd, &stat) {
        let target = describe(ask.tid, fd, stat)?;
        ask.world.descriptors.borrow_mut().used(ask.process, ask.tid, fd);
        let position = || Some(target.position);
        return to_file(ask, file, target.flags, position, || Some(target.stat.st_size));
    }
    let (_, stream) = ask.world.stream(&stat)?;
    let bytes = offered(ask, OUTPUT_LIMIT as u64);
    let pending = Pending::event(ask, move |returned, _| {
        let Ok(taken) = usize::try_from(returned.value) else {
            return Vec::new();
        };
        let bytes = bytes.slice(..taken.min(bytes.len()));
        vec![Done::Event(What::Output { stream, bytes })]
    });
    Some(pending.free())
}

/// The same by the lab's own copy of the descriptor, where there is one: no path has to be looked up.
fn by_copy(ask: &Ask<'_>, fd: RawFd) -> Option<Pending> {
    let file_of = |stat: &FileStat| ask.world.file_of(ask.tid, fd, stat);
    let names = ask.world.names.changes();
    let copy = ask.world.descriptors.borrow_mut().copy((ask.tid, fd), names, file_of)?;
    let own = &*copy.own;
    let flags = fcntl(own, FcntlArg::F_GETFL).ok()?;
    let position = || lseek(own, 0, Whence::SeekCur).ok()?.try_into().ok();
    to_file(ask, copy.file, flags, position, || Some(fstat(own).ok()?.st_size))
}

/// The bytes that the call offers, up to a limit. What another thread does to them meanwhile is a race of the program's own.
fn offered(ask: &Ask<'_>, limit: u64) -> Data {
    let pieces = match ask.call {
        Call::Write | Call::Pwrite64 => vec![(ask.args[1], ask.args[2])],
        _ => memory::read_iovecs(ask.tid, ask.args[1], ask.args[2]),
    };
    let limit = limit.min(ONE_CALL_MAX);
    // A length can be named that is not there: where little is, no more is needed.
    let first = memory::read_vector(ask.tid, &pieces, limit.min(IN_MEMORY_MAX as u64) as usize);
    if first.len() < IN_MEMORY_MAX {
        return first.into();
    }
    ask.world.spool.collect(|to| memory::pass_vector(ask.tid, &pieces, limit, to))
}

/// The flags of the call itself.
fn call_flags(ask: &Ask<'_>) -> i32 {
    if ask.call == Call::Pwritev2 { ask.int(5) } else { 0 }
}

/// Where a write goes, and whether at the end of the file.
fn destination(
    ask: &Ask<'_>,
    flags: i32,
    position: impl FnOnce() -> Option<u64>,
    size: impl FnOnce() -> Option<i64>,
) -> Option<(u64, bool)> {
    let by_descriptor = flags & libc::O_APPEND != 0;
    let call_flags = call_flags(ask);
    if call_flags & RWF_APPEND != 0 || (by_descriptor && call_flags & RWF_NOAPPEND == 0) {
        // Also `pwrite`: on Linux it appends where the descriptor does.
        return Some((u64::try_from(size()?).unwrap_or(0), by_descriptor));
    }
    let offset = match ask.call {
        Call::Write | Call::Writev => position()?,
        Call::Pwritev2 if ask.args[3] == u64::MAX => position()?,
        _ => ask.args[3],
    };
    Some((offset, false))
}

fn to_file(
    ask: &Ask<'_>,
    file: FileId,
    flags: i32,
    position: impl FnOnce() -> Option<u64>,
    size: impl FnOnce() -> Option<i64>,
) -> Option<Pending> {
    let (offset, append) = destination(ask, flags, position, size)?;
    let path = ask.world.path(file);
    let sync = own_sync(flags, call_flags(ask));
    // One byte more than there is room for shows that there is none.
    let bytes = offered(ask, ask.world.room.saturating_add(1));
    let at = path.clone();
    let write = move |data| OpKind::Write { file, path: at.clone(), offset, data, append };
    let preview = write(bytes.clone());
    Some(Pending::op(ask, Some(path.clone()), Some(preview), move |returned, _| {
        let taken = bytes.len().min(returned.value as usize);
        if taken == 0 {
            return Vec::new();
        }
        let mut done = vec![Done::Op(write(bytes.slice(..taken)))];
        if let Some(data_only) = sync {
            done.push(Done::Op(OpKind::Sync { file, path, data_only }));
        }
        done
    }))
}
