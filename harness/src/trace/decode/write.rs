//! The forms of `write`, to watched files and to the run's outputs.

use crate::op::{Data, FileId, OpKind, What};
use crate::subject::OUTPUT_LIMIT;
use crate::sys::memory;
use crate::trace::calls::Call;
use crate::trace::decode::{Ask, Pending};
use crate::trace::resolve::{Descriptor, describe, stat_fd};
use crate::trace::world::Done;

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
    let stat = stat_fd(ask.tid, fd)?;
    if let Some(file) = ask.world.file_of(ask.tid, fd, &stat) {
        return Some(to_file(ask, file, &describe(ask.tid, fd, stat)?));
    }
    let (_, stream) = ask.world.stream(&stat)?;
    let bytes = offered(ask, OUTPUT_LIMIT);
    let pending = Pending::event(ask, move |returned, _| {
        let Ok(taken) = usize::try_from(returned.value) else {
            return Vec::new();
        };
        let mut bytes = bytes;
        bytes.truncate(taken);
        vec![Done::Event(What::Output { stream, bytes })]
    });
    Some(pending.free())
}

/// The bytes that the call offers, up to a limit. What another thread does to them meanwhile is a race of the program's own.
fn offered(ask: &Ask<'_>, limit: usize) -> Vec<u8> {
    let pieces = match ask.call {
        Call::Write | Call::Pwrite64 => vec![(ask.args[1], ask.args[2])],
        _ => memory::read_iovecs(ask.tid, ask.args[1], ask.args[2]),
    };
    memory::read_vector(ask.tid, &pieces, limit)
}

/// Where a write goes, and whether at the end of the file.
fn destination(ask: &Ask<'_>, target: &Descriptor) -> (u64, bool) {
    let end = u64::try_from(target.stat.st_size).unwrap_or(0);
    let by_descriptor = target.flags & libc::O_APPEND != 0;
    let call_flags = if ask.call == Call::Pwritev2 { ask.int(5) } else { 0 };
    if call_flags & RWF_APPEND != 0 || (by_descriptor && call_flags & RWF_NOAPPEND == 0) {
        // Also `pwrite`: on Linux it appends where the descriptor does.
        return (end, by_descriptor);
    }
    let offset = match ask.call {
        Call::Write | Call::Writev => target.position,
        Call::Pwritev2 if ask.args[3] == u64::MAX => target.position,
        _ => ask.args[3],
    };
    (offset, false)
}

fn to_file(ask: &Ask<'_>, file: FileId, target: &Descriptor) -> Pending {
    let (offset, append) = destination(ask, target);
    let path = ask.world.path(file);
    let call_flags = if ask.call == Call::Pwritev2 { ask.int(5) } else { 0 };
    let sync = own_sync(target.flags, call_flags);
    // One byte more than there is room for shows that there is none.
    let bytes = Data::from(offered(ask, ask.world.room.saturating_add(1)));
    let at = path.clone();
    let write = move |data| OpKind::Write { file, path: at.clone(), offset, data, append };
    let preview = write(bytes.clone());
    Pending::op(ask, Some(path.clone()), Some(preview), move |returned, _| {
        let taken = bytes.len().min(returned.value as usize);
        if taken == 0 {
            return Vec::new();
        }
        let data = if taken == bytes.len() { bytes } else { bytes[..taken].to_vec().into() };
        let mut done = vec![Done::Op(write(data))];
        if let Some(data_only) = sync {
            done.push(Done::Op(OpKind::Sync { file, path, data_only }));
        }
        done
    })
}
