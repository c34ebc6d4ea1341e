//! Calls that change nothing and show something of what is watched: of interest where every step is held.

use crate::op::FileId;
use crate::op::touch::{Access, Object};
use crate::trace::calls::Call;
use crate::trace::decode::attributes::{self, At};
use crate::trace::decode::{Ask, Pending};
use crate::trace::numbers;
use crate::trace::resolve::{kind, stat_fd};

/// `stat` and its relatives, extended attributes, `access` where the path is no mark, `readlink`, `chdir`, listing a folder, seeking by a file's size, and asking whether a process lives.
pub(super) fn decode(ask: &Ask<'_>) -> Option<Pending> {
    match ask.call {
        Call::Getdents | Call::Getdents64 => listing(ask),
        Call::Lseek => by_descriptor(ask, |file| vec![Access::look(Object::Content(file))]),
        Call::Fstat => by_descriptor(ask, of_file),
        Call::Fgetxattr | Call::Flistxattr => by_descriptor(ask, attributes_of),
        Call::Getxattr | Call::Listxattr => {
            by_path(ask, attributes::plain_path(ask, true), attributes_of)
        }
        Call::Lgetxattr | Call::Llistxattr => {
            by_path(ask, attributes::plain_path(ask, false), attributes_of)
        }
        Call::Getxattrat | Call::Listxattrat => {
            by_path(ask, attributes::path_or_descriptor(ask, ask.int(2)), attributes_of)
        }
        Call::Kill => probe(ask),
        Call::Access | Call::Faccessat | Call::Faccessat2 => {
            by_path(ask, place(ask), attributes_of)
        }
        // Where a link leads to never changes, and neither does it that something is no link, or a folder.
        Call::Readlink | Call::Readlinkat | Call::Chdir => by_path(ask, place(ask), |_| Vec::new()),
        _ => by_path(ask, place(ask), of_file),
    }
}

/// All that `stat` tells of a file.
fn of_file(file: FileId) -> Vec<Access> {
    vec![Access::look(Object::Content(file)), Access::look(Object::Attributes(file))]
}

/// What it tells of a file that is not in its bytes.
fn attributes_of(file: FileId) -> Vec<Access> {
    vec![Access::look(Object::Attributes(file))]
}

fn by_descriptor(ask: &Ask<'_>, accesses: impl Fn(FileId) -> Vec<Access>) -> Option<Pending> {
    let file = ask.world.file_at(ask.tid, ask.int(0))?;
    Some(Pending::look(ask, ask.world.path(file)).touching(accesses(file)))
}

/// What a relative of `stat` looks at.
fn place(ask: &Ask<'_>) -> At {
    match ask.call {
        Call::Stat | Call::Access | Call::Chdir => attributes::plain_path(ask, true),
        Call::Lstat | Call::Readlink => attributes::plain_path(ask, false),
        Call::Statx => attributes::path_or_descriptor(ask, ask.int(2)),
        Call::Readlinkat => At::Path { folder: ask.int(0), path: ask.args[1], follow: false },
        // `faccessat` has no flags; the argument is whatever was in the register.
        Call::Faccessat => At::Path { folder: ask.int(0), path: ask.args[1], follow: true },
        _ => attributes::path_or_descriptor(ask, ask.int(3)),
    }
}

fn by_path(ask: &Ask<'_>, at: At, accesses: impl Fn(FileId) -> Vec<Access>) -> Option<Pending> {
    let by_name = matches!(at, At::Path { .. });
    let object = attributes::object(ask, at)?;
    let mut accesses = object.file.map(accesses).unwrap_or_default();
    if by_name || accesses.is_empty() {
        accesses.push(Access::look(Object::Entry(object.path.clone())));
    }
    Some(Pending::look(ask, object.path).touching(accesses))
}

fn listing(ask: &Ask<'_>) -> Option<Pending> {
    let fd = ask.int(0);
    let is_folder = stat_fd(ask.tid, fd).is_some_and(|stat| kind(&stat) == libc::S_IFDIR);
    let path = ask.view().folder_of(fd).filter(|_| is_folder)?;
    let accesses = vec![Access::look(Object::Listing(path.clone()))];
    Some(Pending::look(ask, path).touching(accesses))
}

/// `kill` with no signal: whether the first process of a program of the run is there.
fn probe(ask: &Ask<'_>) -> Option<Pending> {
    if ask.int(1) != 0 {
        return None;
    }
    let mut mains = ask.world.mains.iter();
    let program = match ask.world.containers {
        // Nobody but one's own first process is 1, and other programs have no number at all.
        true if ask.int(0) == 1 => mains.position(|main| numbers::are_shared(ask.tid, *main))?,
        true => return None,
        false => mains.position(|main| *main == ask.int(0))?,
    };
    let pending = Pending::event(ask, |_, _| Vec::new());
    Some(pending.touching(vec![Access::look(Object::Life(program))]))
}
