//! What a step touches, which tells the pairs of steps whose order can matter.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::op::{FileId, OpKind};

/// A thing that two programs can both see.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Object {
    /// A name in a folder: whether it is there, and what it stands for. The path is relative to the watched folder.
    Entry(PathBuf),
    /// The names in a folder, as listing it shows them.
    Listing(PathBuf),
    /// The bytes and the size of a file.
    Content(FileId),
    /// The mode, the owner and the number of names of a file.
    Attributes(FileId),
    /// Advisory locks on a file.
    Lock(FileId, Locks),
    /// Whether a program still runs, by its place among those of the race.
    Life(usize),
}

/// Advisory locks that can stand in each other's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Locks {
    /// On the whole file, by `flock`, which does not know of the others.
    Whole,
    /// On these bytes, from the first to the last, by `fcntl`.
    Bytes(u64, u64),
}

impl Locks {
    /// All that `fcntl` can lock.
    pub const ALL_BYTES: Locks = Locks::Bytes(0, u64::MAX);

    /// One of these can be in the way of one of the others.
    pub fn meet(self, other: Locks) -> bool {
        match (self, other) {
            (Locks::Whole, Locks::Whole) => true,
            (Locks::Bytes(first, last), Locks::Bytes(other_first, other_last)) => {
                first <= other_last && other_first <= last
            }
            _ => false,
        }
    }
}

/// What is done with an [`Object`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum How {
    /// It is looked at.
    Look,
    /// It is changed in a way that does not matter to others who do the same: names added to a folder, shared locks taken or
    /// let go.
    Add,
    /// It is changed.
    Change,
}

/// One thing that a step touches.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Access {
    /// What.
    pub object: Object,
    /// How.
    pub how: How,
}

impl Access {
    /// It is looked at.
    pub fn look(object: Object) -> Access {
        Access { object, how: How::Look }
    }

    /// It is changed.
    pub fn change(object: Object) -> Access {
        Access { object, how: How::Change }
    }

    /// Something is added to it.
    pub fn add(object: Object) -> Access {
        Access { object, how: How::Add }
    }

    /// The two do not commute.
    pub fn conflicts(&self, other: &Access) -> bool {
        matches!(
            (self.how, other.how),
            (How::Change, _) | (_, How::Change) | (How::Look, How::Add) | (How::Add, How::Look)
        ) && (meets(self, other) || meets(other, self))
    }
}

/// What the first does reaches the object of the second. Whoever follows a path looks up every name on it, so that a
/// change of a folder's name reaches all below.
fn meets(one: &Access, other: &Access) -> bool {
    match (&one.object, &other.object) {
        (Object::Entry(changed), Object::Entry(path) | Object::Listing(path))
            if one.how == How::Change =>
        {
            path.starts_with(changed)
        }
        (Object::Lock(file, locks), Object::Lock(other, others)) => {
            file == other && locks.meet(*others)
        }
        (one, other) => one == other,
    }
}

/// How a step waits for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Waits {
    /// It does not: it can always be made.
    #[default]
    Never,
    /// It takes a lock, and waits until it is free.
    ForLock,
    /// It lets a lock go, by whatever call.
    LetsGo,
}

/// A step that a program is about to make, or has made.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Touch {
    /// What it touches, in order and each once.
    accesses: Arc<[Access]>,
    /// How it waits.
    pub waits: Waits,
}

impl Touch {
    /// A step that touches this.
    pub fn new(mut accesses: Vec<Access>, waits: Waits) -> Touch {
        accesses.sort();
        accesses.dedup();
        Touch { accesses: accesses.into(), waits }
    }

    /// What it touches.
    pub fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// The order of the two matters.
    pub fn conflicts(&self, other: &Touch) -> bool {
        self.accesses.iter().any(|one| other.accesses.iter().any(|two| one.conflicts(two)))
    }

    /// The two can never be next at the same time: one waits for what the other lets go.
    pub fn excludes(&self, other: &Touch) -> bool {
        matches!(
            (self.waits, other.waits),
            (Waits::ForLock, Waits::LetsGo) | (Waits::LetsGo, Waits::ForLock)
        )
    }

    /// The same with more.
    pub fn and(&self, more: impl IntoIterator<Item = Access>) -> Touch {
        Touch::new(self.accesses.iter().cloned().chain(more).collect(), self.waits)
    }

    /// It changes something that another can see.
    pub fn changes(&self) -> bool {
        self.accesses.iter().any(|access| access.how != How::Look)
    }
}

impl OpKind {
    /// What an op touches, by what it says itself: of a name that goes away, not the file that it stood for; and of a lock not
    /// which bytes.
    pub fn accesses(&self) -> Vec<Access> {
        match self {
            OpKind::Create { path: Some(path), .. }
            | OpKind::Symlink { path, .. }
            | OpKind::Unlink { path }
            | OpKind::Mkdir { path, .. }
            | OpKind::Mknod { path, .. } => name_changes(path),
            OpKind::Rmdir { path } => {
                let mut all = name_changes(path);
                all.push(Access::look(Object::Listing(path.clone())));
                all
            }
            OpKind::Rename { from, to, .. } => {
                let mut all = name_changes(from);
                all.extend(name_changes(to));
                all
            }
            OpKind::Link { file, to, .. } => {
                let mut all = name_changes(to);
                all.push(Access::change(Object::Attributes(*file)));
                all
            }
            OpKind::Write { file, .. }
            | OpKind::Truncate { file, .. }
            | OpKind::Allocate { file, .. } => vec![Access::change(Object::Content(*file))],
            OpKind::Chmod { path, file, .. }
            | OpKind::Chown { path, file, .. }
            | OpKind::Xattr { path, file, .. } => {
                let object = file.map_or_else(|| Object::Entry(path.clone()), Object::Attributes);
                vec![Access::change(object)]
            }
            // Who looks at the times, looks at the name.
            OpKind::Utimens { path } => vec![Access::change(Object::Entry(path.clone()))],
            OpKind::Lock { .. }
            | OpKind::Create { path: None, .. }
            | OpKind::Sync { .. }
            | OpKind::SyncFolder { .. }
            | OpKind::SyncAll
            | OpKind::SyncRange { .. } => Vec::new(),
        }
    }
}

/// A name appears, goes away, or stands for something else.
fn name_changes(path: &Path) -> Vec<Access> {
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    vec![Access::change(Object::Entry(path.to_owned())), Access::add(Object::Listing(folder))]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str) -> Object {
        Object::Entry(path.into())
    }

    #[test]
    fn looks_commute_and_changes_do_not() {
        let (look, change) = (Access::look(entry("a")), Access::change(entry("a")));
        assert!(!look.conflicts(&look));
        assert!(look.conflicts(&change) && change.conflicts(&look) && change.conflicts(&change));
        assert!(!change.conflicts(&Access::change(entry("b"))));
        assert!(
            !Access::change(Object::Content(FileId(1)))
                .conflicts(&Access::look(Object::Attributes(FileId(1))))
        );
    }

    #[test]
    fn a_folders_name_reaches_all_below_it() {
        let moved = Access::change(entry("d"));
        assert!(moved.conflicts(&Access::look(entry("d/s"))));
        assert!(Access::look(entry("d/s")).conflicts(&moved));
        assert!(moved.conflicts(&Access::look(Object::Listing("d".into()))));
        assert!(!moved.conflicts(&Access::look(entry("d2"))));
        // A change below is no change of the folder's own name.
        assert!(!Access::change(entry("d/s")).conflicts(&Access::look(entry("d"))));
    }

    #[test]
    fn locks_meet_on_common_bytes() {
        let lock = |locks| Access::change(Object::Lock(FileId(1), locks));
        let bytes = lock(Locks::Bytes(2, 4));
        assert!(bytes.conflicts(&lock(Locks::Bytes(4, 9))) && bytes.conflicts(&bytes));
        assert!(bytes.conflicts(&lock(Locks::ALL_BYTES)));
        assert!(!bytes.conflicts(&lock(Locks::Bytes(5, 9))));
        assert!(!bytes.conflicts(&lock(Locks::Bytes(0, 1))));
        assert!(
            !bytes.conflicts(&lock(Locks::Whole))
                && lock(Locks::Whole).conflicts(&lock(Locks::Whole))
        );
        let other = Access::change(Object::Lock(FileId(2), Locks::Bytes(2, 4)));
        assert!(!bytes.conflicts(&other));
    }

    #[test]
    fn names_are_added_in_any_order_but_seen_in_one() {
        let listing = || Object::Listing("".into());
        assert!(!Access::add(listing()).conflicts(&Access::add(listing())));
        assert!(Access::add(listing()).conflicts(&Access::look(listing())));
    }
}
