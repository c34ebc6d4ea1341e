//! Locks that the kernel lets go with a process that was killed alone: the log tells it as if the process had done it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use crate::op::touch::{Access, How, Locks, Object};
use crate::op::{FileId, LockAction, LockFamily, OpKind};
use crate::trace::world::{Done, World};

/// An advisory lock on a watched file.
pub(super) type Held = (FileId, LockFamily);

/// The same with all that the kernel tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lock {
    pub(super) file: FileId,
    pub(super) family: LockFamily,
    /// For writing: nobody else may have one.
    pub(super) exclusive: bool,
    /// The first and the last byte.
    pub(super) range: (u64, u64),
}

impl Lock {
    /// Who has the one keeps another from having the other.
    pub(super) fn excludes(&self, other: &Lock) -> bool {
        (self.exclusive || other.exclusive) && self.meets(other.file, other.locks())
    }

    /// It is among these, in part at least.
    pub(super) fn meets(&self, file: FileId, locks: Locks) -> bool {
        self.file == file && self.locks().meet(locks)
    }

    fn locks(&self) -> Locks {
        match self.family {
            LockFamily::Flock => Locks::Whole,
            LockFamily::Posix | LockFamily::OpenFile => Locks::Bytes(self.range.0, self.range.1),
        }
    }

    /// What it touches that this one goes away. Where it is shared, others who take or let go a shared one do not notice.
    pub(super) fn goes(&self) -> Access {
        let how = if self.exclusive { How::Change } else { How::Add };
        Access { object: Object::Lock(self.file, self.locks()), how }
    }
}

/// The locks of processes, as long as none of them changes.
#[derive(Debug, Default)]
pub(super) struct Known(RefCell<BTreeMap<i32, Rc<[Lock]>>>);

impl Known {
    /// The locks of a process.
    pub(super) fn of(&self, world: &World, process: i32) -> Rc<[Lock]> {
        if let Some(known) = self.0.borrow().get(&process) {
            return known.clone();
        }
        let locks: Rc<[Lock]> = locks_of(world, process).into();
        self.0.borrow_mut().insert(process, locks.clone());
        locks
    }

    /// Some lock may be another now.
    pub(super) fn forget(&mut self) {
        self.0.get_mut().clear();
    }
}

/// The locks that a process holds, each kind on each file once.
pub(super) fn held_by(world: &World, process: i32) -> Vec<Held> {
    let mut held = Vec::new();
    for lock in locks_of(world, process) {
        if !held.contains(&(lock.file, lock.family)) {
            held.push((lock.file, lock.family));
        }
    }
    held
}

/// The locks that a process holds, by what the kernel tells of its descriptors. One that a process has taken on an open file
/// belongs to all who have that file open by inheritance, but for those of the whole process.
fn locks_of(world: &World, process: i32) -> Vec<Lock> {
    let folder = PathBuf::from(format!("/proc/{process}/fdinfo"));
    let mut held = Vec::new();
    for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        let told: Vec<_> =
            text.lines().filter_map(|line| line.strip_prefix("lock:")).filter_map(parse).collect();
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let file = number.filter(|_| !told.is_empty()).and_then(|fd| world.file_at(process, fd));
        let Some(file) = file else { continue };
        for (family, exclusive, range) in told {
            let lock = Lock { file, family, exclusive, range };
            if !held.contains(&lock) {
                held.push(lock);
            }
        }
    }
    held
}

/// `\t1: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF`.
fn parse(lock: &str) -> Option<(LockFamily, bool, (u64, u64))> {
    let fields: Vec<&str> = lock.split_whitespace().collect();
    let family = match *fields.get(1)? {
        "FLOCK" => LockFamily::Flock,
        "POSIX" => LockFamily::Posix,
        "OFDLCK" => LockFamily::OpenFile,
        _ => return None,
    };
    let [.., first, last] = fields.as_slice() else { return None };
    let last = if *last == "EOF" { u64::MAX } else { last.parse().ok()? };
    Some((family, fields.get(3) == Some(&"WRITE"), (first.parse().ok()?, last)))
}

/// What the log tells of those that nobody holds any more.
pub(super) fn released(world: &World, held: Vec<Held>, living: &[i32]) -> Vec<Done> {
    let still: Vec<Held> = living.iter().flat_map(|process| held_by(world, *process)).collect();
    let gone = held.into_iter().filter(|lock| !still.contains(lock));
    let tell = |(file, family)| {
        let (path, action) = (world.path(file), LockAction::Unlock);
        Done::Op(OpKind::Lock { file, path, family, action })
    };
    gone.map(tell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_names_three_families() {
        let all = (0, u64::MAX);
        assert_eq!(
            parse("\t1: FLOCK  ADVISORY  WRITE 7 fe:00:12 0 EOF"),
            Some((LockFamily::Flock, true, all))
        );
        assert_eq!(
            parse("\t1: POSIX  ADVISORY  READ 7 fe:00:12 0 9"),
            Some((LockFamily::Posix, false, (0, 9)))
        );
        assert_eq!(
            parse("\t1: OFDLCK ADVISORY  WRITE -1 fe:00:12 0 EOF"),
            Some((LockFamily::OpenFile, true, all))
        );
        assert_eq!(parse("\t1: LEASE  ACTIVE    WRITE 7 fe:00:12 0 EOF"), None);
    }

    #[test]
    fn locks_exclude_each_other_where_one_is_for_writing() {
        let lock = |family, exclusive, range| Lock { file: FileId(0), family, exclusive, range };
        let (posix, open_file, flock) =
            (LockFamily::Posix, LockFamily::OpenFile, LockFamily::Flock);
        assert!(lock(posix, true, (0, 9)).excludes(&lock(open_file, false, (9, 12))));
        assert!(!lock(posix, true, (0, 9)).excludes(&lock(posix, true, (10, 12))));
        assert!(!lock(posix, false, (0, 9)).excludes(&lock(posix, false, (0, 9))));
        assert!(!lock(posix, true, (0, 9)).excludes(&lock(flock, true, (0, 9))));
    }
}
