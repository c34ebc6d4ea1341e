//! Locks that the kernel lets go with a process that was killed alone: the log tells it as if the process had done it.

use std::path::PathBuf;

use crate::op::{FileId, LockAction, LockFamily, OpKind};
use crate::trace::world::{Done, World};

/// An advisory lock on a watched file.
pub(super) type Held = (FileId, LockFamily);

/// The locks that a process holds, by what the kernel tells of its descriptors. One that a process has taken on an open file
/// belongs to all who have that file open by inheritance, but for those of the whole process.
pub(super) fn held_by(world: &World, process: i32) -> Vec<Held> {
    let folder = PathBuf::from(format!("/proc/{process}/fdinfo"));
    let mut held = Vec::new();
    for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        let families: Vec<LockFamily> =
            text.lines().filter_map(|line| line.strip_prefix("lock:")).filter_map(family).collect();
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let file =
            number.filter(|_| !families.is_empty()).and_then(|fd| world.file_at(process, fd));
        for lock in families.into_iter().filter_map(|family| Some((file?, family))) {
            if !held.contains(&lock) {
                held.push(lock);
            }
        }
    }
    held
}

/// `\t1: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF`.
fn family(lock: &str) -> Option<LockFamily> {
    match lock.split_whitespace().nth(1)? {
        "FLOCK" => Some(LockFamily::Flock),
        "POSIX" => Some(LockFamily::Posix),
        "OFDLCK" => Some(LockFamily::OpenFile),
        _ => None,
    }
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
        assert_eq!(family("\t1: FLOCK  ADVISORY  WRITE 7 fe:00:12 0 EOF"), Some(LockFamily::Flock));
        assert_eq!(family("\t1: POSIX  ADVISORY  READ 7 fe:00:12 0 9"), Some(LockFamily::Posix));
        assert_eq!(
            family("\t1: OFDLCK ADVISORY  WRITE -1 fe:00:12 0 EOF"),
            Some(LockFamily::OpenFile)
        );
        assert_eq!(family("\t1: LEASE  ACTIVE    WRITE 7 fe:00:12 0 EOF"), None);
    }
}
