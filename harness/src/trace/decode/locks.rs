//! Advisory locks.

use crate::op::touch::{Access, How, Locks, Object};
use crate::op::{FileId, LockAction, LockFamily, OpKind};
use crate::sys::memory;
use crate::trace::calls::Call;
use crate::trace::decode::{Ask, Pending, WithoutWait};
use crate::trace::released::Lock;
use crate::trace::resolve::{inode, stat_fd};
use crate::trace::world::Done;

struct Request {
    family: LockFamily,
    action: LockAction,
    waits: bool,
}

/// `flock`, and `fcntl` with a lock command.
pub(super) fn decode(ask: &Ask<'_>) -> Option<Pending> {
    if ask.call == Call::Fcntl && [libc::F_GETLK, libc::F_OFD_GETLK].contains(&ask.int(1)) {
        return question(ask);
    }
    let request = if ask.call == Call::Flock { flock(ask.int(1))? } else { record_lock(ask)? };
    if request.family != LockFamily::Posix
        && let Some(stat) = stat_fd(ask.tid, ask.int(0))
    {
        ask.world.descriptors.borrow_mut().lock(inode(&stat));
    }
    let Some(file) = ask.world.file_at(ask.tid, ask.int(0)) else {
        // Elsewhere: no op, but who sleeps in it is blocked all the same.
        let pending = Pending::event(ask, |_, _| Vec::new()).free();
        return request.waits.then_some(Pending { may_wait: true, ..pending });
    };
    let path = ask.world.path(file);
    let kind =
        OpKind::Lock { file, path: path.clone(), family: request.family, action: request.action };
    let touches = if ask.world.steps { touches(ask, file, &request) } else { None };
    let pending =
        Pending::op(ask, Some(path), Some(kind.clone()), move |_, _| vec![Done::Op(kind)])
            .touching(touches);
    if request.waits && ask.world.steps {
        // Tried, and tried again when somebody has let it go: then who waits for whom is known.
        let value = match ask.call {
            Call::Flock => ask.int(1) | libc::LOCK_NB,
            _ if ask.int(1) == libc::F_SETLKW => libc::F_SETLK,
            _ => libc::F_OFD_SETLK,
        };
        let wants = range(ask).map(|range| Lock {
            file,
            family: request.family,
            exclusive: request.action == LockAction::Exclusive,
            range,
        });
        let without_wait = WithoutWait { argument: 1, value: value as u64, wants };
        return Some(Pending { without_wait: Some(without_wait), ..pending });
    }
    Some(Pending { alone: !request.waits, may_wait: request.waits, ..pending })
}

/// Who asks for a lock that another has sees whether there is one.
fn question(ask: &Ask<'_>) -> Option<Pending> {
    let file = ask.world.file_at(ask.tid, ask.int(0))?;
    let look = Access::look(Object::Lock(file, locks(ask)));
    Some(Pending::look(ask, ask.world.path(file)).touching([look]))
}

/// What a call touches that takes or lets go a lock. What one has oneself counts: a shared one in the place of an exclusive
/// one lets others in, and who lets go a shared one keeps nobody out who wants one like it.
fn touches(ask: &Ask<'_>, file: FileId, request: &Request) -> Option<Access> {
    let locks = locks(ask);
    let held = ask.world.locks.of(ask.world, ask.process);
    let mut own = held.iter().filter(|lock| lock.meets(file, locks));
    let how = match request.action {
        LockAction::Unlock if own.clone().next().is_none() => return None,
        LockAction::Shared | LockAction::Unlock if own.all(|lock| !lock.exclusive) => How::Add,
        _ => How::Change,
    };
    Some(Access { object: Object::Lock(file, locks), how })
}

fn locks(ask: &Ask<'_>) -> Locks {
    match range(ask) {
        _ if ask.call == Call::Flock => Locks::Whole,
        Some((first, last)) => Locks::Bytes(first, last),
        None => Locks::ALL_BYTES,
    }
}

/// The first and the last byte of a lock, where they are told from the beginning of the file.
fn range(ask: &Ask<'_>) -> Option<(u64, u64)> {
    if ask.call == Call::Flock {
        return Some((0, u64::MAX));
    }
    // struct flock: type, whence (16 bits each), start, length (64 bits each); a length of 0 goes on for ever.
    let whence = i16::from_ne_bytes(memory::read_array(ask.tid, ask.args[2] + 2)?);
    let start = memory::read_u64(ask.tid, ask.args[2] + 8)?;
    let len = memory::read_u64(ask.tid, ask.args[2] + 16)?;
    let is_plain = i32::from(whence) == libc::SEEK_SET && len.cast_signed() >= 0;
    let last = if len == 0 { u64::MAX } else { start.checked_add(len - 1)? };
    is_plain.then_some((start, last))
}

fn flock(operation: i32) -> Option<Request> {
    let action = match operation & !libc::LOCK_NB {
        libc::LOCK_SH => LockAction::Shared,
        libc::LOCK_EX => LockAction::Exclusive,
        libc::LOCK_UN => LockAction::Unlock,
        _ => return None,
    };
    let waits = operation & libc::LOCK_NB == 0 && action != LockAction::Unlock;
    Some(Request { family: LockFamily::Flock, action, waits })
}

fn record_lock(ask: &Ask<'_>) -> Option<Request> {
    let command = ask.int(1);
    let family = match command {
        libc::F_SETLK | libc::F_SETLKW => LockFamily::Posix,
        _ => LockFamily::OpenFile,
    };
    // struct flock begins with its type.
    let action = match i32::from(i16::from_ne_bytes(memory::read_array(ask.tid, ask.args[2])?)) {
        libc::F_RDLCK => LockAction::Shared,
        libc::F_WRLCK => LockAction::Exclusive,
        libc::F_UNLCK => LockAction::Unlock,
        _ => return None,
    };
    let waits =
        matches!(command, libc::F_SETLKW | libc::F_OFD_SETLKW) && action != LockAction::Unlock;
    Some(Request { family, action, waits })
}
