//! Calls that change attributes: mode, owner, times, extended attributes.

use std::path::{Path, PathBuf};

use nix::sys::stat::FileStat;

use crate::op::{FileId, OpKind};
use crate::sys::memory;
use crate::trace::calls::Call;
use crate::trace::decode::{Ask, Pending};
use crate::trace::resolve::{Place, Target, inode, kind, stat_fd};
use crate::trace::world::Done;

const HERE: i32 = libc::AT_FDCWD;
const LONGEST_NAME: usize = 256;
const LARGEST_VALUE: usize = 65536;

/// What the call is about: a path, or a descriptor.
pub(super) enum At {
    Path { folder: i32, path: u64, follow: bool },
    Descriptor(i32),
}

/// A watched object whose attributes change.
pub(super) struct Object {
    pub(super) path: PathBuf,
    pub(super) file: Option<FileId>,
    reach: Reach,
}

enum Reach {
    Target(Box<Target>),
    Descriptor(i32),
}

impl Object {
    fn look(&self, tid: i32) -> Option<FileStat> {
        match &self.reach {
            Reach::Target(target) => target.look(),
            Reach::Descriptor(fd) => stat_fd(tid, *fd),
        }
    }
}

pub(super) fn object(ask: &Ask<'_>, at: At) -> Option<Object> {
    let fd = match at {
        At::Descriptor(fd) => fd,
        At::Path { folder, path, follow } => match ask.view().resolve_at(folder, path, follow) {
            Place::Watched(target) => {
                let file = target.stat.and_then(|stat| ask.world.names.by_inode(inode(&stat)));
                return Some(Object {
                    path: target.path.clone(),
                    file,
                    reach: Reach::Target(target),
                });
            }
            Place::Descriptor(fd) => fd,
            Place::Other => return None,
        },
    };
    let stat = stat_fd(ask.tid, fd)?;
    if let Some(file) = ask.world.file_of(ask.tid, fd, &stat) {
        return Some(Object {
            path: ask.world.path(file),
            file: Some(file),
            reach: Reach::Descriptor(fd),
        });
    }
    let on_disk = matches!(
        kind(&stat),
        libc::S_IFDIR | libc::S_IFIFO | libc::S_IFLNK | libc::S_IFCHR | libc::S_IFBLK
    );
    let path = ask.view().folder_of(fd).filter(|_| on_disk)?;
    Some(Object {
        file: ask.world.names.by_inode(inode(&stat)),
        path,
        reach: Reach::Descriptor(fd),
    })
}

/// A path that can be empty or null, which with some flags means the descriptor itself.
pub(super) fn path_or_descriptor(ask: &Ask<'_>, flags: i32) -> At {
    let (folder, path) = (ask.int(0), ask.args[1]);
    let empty = path == 0 || ask.view().path_at(path).is_some_and(|path| path == Path::new(""));
    if empty && (path == 0 || flags & libc::AT_EMPTY_PATH != 0) && folder != HERE {
        return At::Descriptor(folder);
    }
    At::Path { folder, path, follow: flags & libc::AT_SYMLINK_NOFOLLOW == 0 }
}

pub(super) fn plain_path(ask: &Ask<'_>, follow: bool) -> At {
    At::Path { folder: HERE, path: ask.args[0], follow }
}

/// `chmod`, `chown`, `utimens`, `setxattr` and their relatives.
pub(super) fn decode(ask: &Ask<'_>) -> Option<Pending> {
    match ask.call {
        Call::Chmod | Call::Fchmod | Call::Fchmodat | Call::Fchmodat2 => chmod(ask),
        Call::Chown | Call::Lchown | Call::Fchown | Call::Fchownat => chown(ask),
        Call::Utime | Call::Utimes | Call::Futimesat | Call::Utimensat => utimens(ask),
        Call::FileSetattr => {
            let object = object(ask, path_or_descriptor(ask, ask.int(4)))?;
            let path = Some(object.path);
            let what = "file_setattr is not modelled".into();
            Some(Pending::op(ask, path.clone(), None, |_, _| vec![Done::Gap { what, path }]))
        }
        _ => xattr(ask),
    }
}

fn chmod(ask: &Ask<'_>) -> Option<Pending> {
    let (at, mode) = match ask.call {
        Call::Chmod => (plain_path(ask, true), ask.args[1]),
        Call::Fchmod => (At::Descriptor(ask.int(0)), ask.args[1]),
        Call::Fchmodat => (path_or_descriptor(ask, 0), ask.args[2]),
        _ => (path_or_descriptor(ask, ask.int(3)), ask.args[2]),
    };
    let object = object(ask, at)?;
    let (path, file) = (object.path.clone(), object.file);
    let change = move |mode: u32| OpKind::Chmod { path, file, mode: mode & 0o7777 };
    let preview = change.clone()(mode as u32);
    Some(Pending::op(ask, Some(object.path.clone()), Some(preview), move |returned, _| {
        // As the kernel set it: it can clear the set-group bit.
        let mode = object.look(returned.tid).map_or(mode as u32, |stat| stat.st_mode);
        vec![Done::Op(change(mode))]
    }))
}

fn chown(ask: &Ask<'_>) -> Option<Pending> {
    let at = match ask.call {
        Call::Chown => plain_path(ask, true),
        Call::Lchown => plain_path(ask, false),
        Call::Fchown => At::Descriptor(ask.int(0)),
        _ => path_or_descriptor(ask, ask.int(4)),
    };
    let object = object(ask, at)?;
    let (path, file) = (object.path.clone(), object.file);
    let change = move |stat: FileStat| OpKind::Chown {
        path,
        file,
        uid: stat.st_uid,
        gid: stat.st_gid,
        mode: stat.st_mode & 0o7777,
    };
    let preview = object.look(ask.tid).map(change.clone());
    Some(Pending::op(ask, Some(object.path.clone()), preview, move |returned, _| {
        object.look(returned.tid).map(|stat| Done::Op(change(stat))).into_iter().collect()
    }))
}

fn utimens(ask: &Ask<'_>) -> Option<Pending> {
    let at = match ask.call {
        Call::Utime | Call::Utimes => plain_path(ask, true),
        Call::Futimesat => path_or_descriptor(ask, 0),
        _ => path_or_descriptor(ask, ask.int(3)),
    };
    let path = object(ask, at)?.path;
    Some(Pending::known(ask, path.clone(), OpKind::Utimens { path }, |_| {}))
}

fn xattr(ask: &Ask<'_>) -> Option<Pending> {
    let at = match ask.call {
        Call::Setxattr | Call::Removexattr => plain_path(ask, true),
        Call::Lsetxattr | Call::Lremovexattr => plain_path(ask, false),
        Call::Fsetxattr | Call::Fremovexattr => At::Descriptor(ask.int(0)),
        _ => path_or_descriptor(ask, ask.int(2)),
    };
    let with_folder = matches!(ask.call, Call::Setxattrat | Call::Removexattrat);
    let object = object(ask, at)?;
    let name =
        memory::read_string(ask.tid, ask.args[if with_folder { 3 } else { 1 }], LONGEST_NAME)?;
    let name = String::from_utf8_lossy(&name).into_owned();
    let value = match ask.call {
        Call::Setxattr | Call::Lsetxattr | Call::Fsetxattr => {
            Some((ask.args[2], ask.args[3] as usize))
        }
        // struct xattr_args: value, size (32 bits), flags.
        Call::Setxattrat => {
            let size = u32::from_ne_bytes(memory::read_array(ask.tid, ask.args[4] + 8)?);
            Some((memory::read_u64(ask.tid, ask.args[4])?, size as usize))
        }
        _ => None,
    };
    let value =
        value.map(|(address, size)| memory::read(ask.tid, address, size.min(LARGEST_VALUE)));
    let kind = OpKind::Xattr { path: object.path.clone(), file: object.file, name, value };
    Some(Pending::known(ask, object.path, kind, |_| {}))
}
