//! Calls that make, move and remove names.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use nix::sys::stat::FileStat;

use crate::op::touch::{Access, Object};
use crate::op::{FileId, OpKind};
use crate::sys::memory;
use crate::trace::calls::Call;
use crate::trace::decode::{Ask, Pending};
use crate::trace::resolve::{Place, Target, inode, kind};
use crate::trace::world::{Done, World};

const HERE: i32 = libc::AT_FDCWD;

fn gap(what: &str, path: PathBuf) -> Vec<Done> {
    vec![Done::Gap { what: what.into(), path: Some(path) }]
}

fn owner(stat: &FileStat) -> (u32, u32) {
    (stat.st_uid, stat.st_gid)
}

/// All forms of `rename`.
pub(super) fn rename(ask: &Ask<'_>) -> Option<Pending> {
    let a = &ask.args;
    let (from, to, flags) = match ask.call {
        Call::Rename => ((HERE, a[0]), (HERE, a[1]), 0),
        Call::Renameat => ((ask.int(0), a[1]), (ask.int(2), a[3]), 0),
        _ => ((ask.int(0), a[1]), (ask.int(2), a[3]), a[4] as u32),
    };
    let from = ask.view().resolve_at(from.0, from.1, false).watched();
    let to = ask.view().resolve_at(to.0, to.1, false).watched();
    match (from, to) {
        (Some(from), Some(to)) => Some(rename_within(ask, &from, &to, flags)),
        (Some(from), None) => {
            let path = from.path.clone();
            let change = Access::change(Object::Entry(path.clone()));
            let pending = Pending::op(ask, Some(path.clone()), None, move |_, world| {
                world.names.forget_below(&path);
                gap("moved out of the watched folder", path)
            });
            Some(pending.touching([change]))
        }
        (None, Some(to)) => {
            let change = Access::change(Object::Entry(to.path.clone()));
            let pending = Pending::op(ask, Some(to.path.clone()), None, move |_, world| {
                world.names.forget_below(&to.path);
                world.scan(&to.reachable(), &to.path);
                gap("moved into the watched folder", to.path)
            });
            Some(pending.touching([change]))
        }
        (None, None) => None,
    }
}

fn rename_within(ask: &Ask<'_>, from: &Target, to: &Target, flags: u32) -> Pending {
    let exchange = flags & libc::RENAME_EXCHANGE != 0;
    let whiteout = flags & libc::RENAME_WHITEOUT != 0;
    let (old, new) = (from.path.clone(), to.path.clone());
    let one_file = matches!((&from.stat, &to.stat), (Some(a), Some(b)) if inode(a) == inode(b));
    let kind = OpKind::Rename {
        from: old.clone(),
        to: new.clone(),
        exchange,
        no_replace: flags & libc::RENAME_NOREPLACE != 0,
    };
    Pending::op(ask, Some(old.clone()), Some(kind.clone()), move |returned, world| {
        if one_file {
            // Two names of one file: the kernel says success and does nothing.
            return Vec::new();
        }
        if exchange {
            world.names.exchange(&old, &new);
        } else {
            world.names.rename(&old, &new);
        }
        let mut done = vec![Done::Op(kind)];
        if whiteout
            && let Place::Watched(left) =
                world.view(returned.tid).resolve(HERE, &world.watched.base.join(&old), false)
        {
            done.extend(made_node(&left, world));
        }
        done
    })
}

/// `link` and `linkat`, also from a descriptor.
pub(super) fn link(ask: &Ask<'_>) -> Option<Pending> {
    let a = &ask.args;
    let (from, to, flags) = match ask.call {
        Call::Link => ((HERE, a[0]), (HERE, a[1]), 0),
        _ => ((ask.int(0), a[1]), (ask.int(2), a[3]), ask.int(4)),
    };
    let source = source(ask, from, flags);
    let to = ask.view().resolve_at(to.0, to.1, false).watched();
    match (source, to) {
        (Some((Some(file), path)), Some(to)) => {
            let from = ask.world.names.is_named(file).then_some(path);
            let kind = OpKind::Link { file, from, to: to.path.clone() };
            Some(Pending::known(ask, to.path.clone(), kind, move |world| {
                world.names.link(file, &to.path)
            }))
        }
        (Some((None, path)), Some(_)) => {
            Some(Pending::op(ask, Some(path), None, |_, _| Vec::new()))
        }
        (Some((_, path)), None) => Some(Pending::op(ask, Some(path.clone()), None, |_, _| {
            gap("got a name outside of the watched folder", path)
        })),
        (None, Some(to)) => {
            let change = Access::change(Object::Entry(to.path.clone()));
            let pending = Pending::op(ask, Some(to.path.clone()), None, move |_, world| {
                world.scan(&to.reachable(), &to.path);
                gap("a file from outside of the watched folder got a name in it", to.path)
            });
            Some(pending.touching([change]))
        }
        (None, None) => None,
    }
}

/// What gets another name: the file, where there is one, and the path by which it is known.
fn source(ask: &Ask<'_>, from: (i32, u64), flags: i32) -> Option<(Option<FileId>, PathBuf)> {
    let by_path = || {
        let follow = flags & libc::AT_SYMLINK_FOLLOW != 0;
        ask.view().resolve_at(from.0, from.1, follow)
    };
    let is_empty = || ask.view().path_at(from.1) == Some(PathBuf::new());
    let place = if flags & libc::AT_EMPTY_PATH != 0 && is_empty() {
        Place::Descriptor(from.0)
    } else {
        by_path()
    };
    match place {
        Place::Watched(target) => {
            let file = target.stat.and_then(|stat| ask.world.names.by_inode(inode(&stat)));
            Some((file, target.path))
        }
        Place::Descriptor(fd) => {
            let file = ask.world.file_at(ask.tid, fd)?;
            Some((Some(file), ask.world.path(file)))
        }
        Place::Other => None,
    }
}

/// `symlink` and `symlinkat`.
pub(super) fn symlink(ask: &Ask<'_>) -> Option<Pending> {
    let (folder, path) =
        if ask.call == Call::Symlink { (HERE, ask.args[1]) } else { (ask.int(1), ask.args[2]) };
    let at = ask.view().resolve_at(folder, path, false).watched()?;
    let target = ask.view().path_at(ask.args[0])?;
    let make = {
        let path = at.path.clone();
        move |owner| OpKind::Symlink { target, path, owner }
    };
    let preview = make.clone()((0, 0));
    Some(Pending::op(ask, Some(at.path.clone()), Some(preview), move |_, world| {
        let Some(stat) = at.look() else {
            return Vec::new();
        };
        world.names.create(inode(&stat), &at.path);
        vec![Done::Op(make(owner(&stat)))]
    }))
}

/// `unlink`, `unlinkat` and `rmdir`.
pub(super) fn unlink(ask: &Ask<'_>) -> Option<Pending> {
    let (folder, path, is_folder) = match ask.call {
        Call::Unlink => (HERE, ask.args[0], false),
        Call::Rmdir => (HERE, ask.args[0], true),
        _ => (ask.int(0), ask.args[1], ask.int(2) & libc::AT_REMOVEDIR != 0),
    };
    let path = ask.view().resolve_at(folder, path, false).watched()?.path;
    if is_folder {
        return Some(Pending::known(ask, path.clone(), OpKind::Rmdir { path }, |_| {}));
    }
    let kind = OpKind::Unlink { path: path.clone() };
    Some(Pending::known(ask, path.clone(), kind, move |world| world.names.unlink(&path)))
}

/// `mkdir` and `mkdirat`.
pub(super) fn mkdir(ask: &Ask<'_>) -> Option<Pending> {
    let (folder, path, mode) = match ask.call {
        Call::Mkdir => (HERE, ask.args[0], ask.args[1]),
        _ => (ask.int(0), ask.args[1], ask.args[2]),
    };
    let at = ask.view().resolve_at(folder, path, false).watched()?;
    let preview =
        OpKind::Mkdir { path: at.path.clone(), mode: mode as u32 & 0o7777, owner: (0, 0) };
    Some(Pending::op(ask, Some(at.path.clone()), Some(preview), move |_, _| {
        let Some(stat) = at.look() else {
            return Vec::new();
        };
        vec![Done::Op(OpKind::Mkdir {
            path: at.path,
            mode: stat.st_mode & 0o7777,
            owner: owner(&stat),
        })]
    }))
}

/// `mknod`, `mknodat`, and `bind`, which makes a socket's node.
pub(super) fn mknod(ask: &Ask<'_>) -> Option<Pending> {
    let (place, mode, device) = match ask.call {
        Call::Mknod => (ask.view().resolve_at(HERE, ask.args[0], false), ask.args[1], ask.args[2]),
        Call::Mknodat => {
            (ask.view().resolve_at(ask.int(0), ask.args[1], false), ask.args[2], ask.args[3])
        }
        _ => {
            let socket = u64::from(libc::S_IFSOCK | 0o777);
            (ask.view().resolve(HERE, &socket_path(ask)?, false), socket, 0)
        }
    };
    let at = place.watched()?;
    let (path, mode) = (at.path.clone(), mode as u32);
    let preview = if [0, libc::S_IFREG].contains(&(mode & libc::S_IFMT)) {
        let file = ask.world.names.next();
        OpKind::Create { file, path: Some(path.clone()), mode: mode & 0o7777, owner: (0, 0) }
    } else {
        OpKind::Mknod { path: path.clone(), mode, device, owner: (0, 0) }
    };
    Some(Pending::op(ask, Some(path), Some(preview), move |_, world| made_node(&at, world)))
}

/// The path in a `struct sockaddr_un`.
fn socket_path(ask: &Ask<'_>) -> Option<PathBuf> {
    const LONGEST: usize = 110;
    let address = memory::read(ask.tid, ask.args[1], (ask.args[2] as usize).min(LONGEST));
    let (family, path) = address.split_first_chunk::<2>()?;
    let end = path.iter().position(|byte| *byte == 0).unwrap_or(path.len());
    let is_unix = i32::from(u16::from_ne_bytes(*family)) == libc::AF_UNIX;
    (is_unix && end > 0).then(|| PathBuf::from(OsString::from_vec(path[..end].to_vec())))
}

fn made_node(at: &Target, world: &mut World) -> Vec<Done> {
    let Some(stat) = at.look() else {
        return Vec::new();
    };
    let path = at.path.clone();
    let file = world.names.create(inode(&stat), &path);
    let op = if kind(&stat) == libc::S_IFREG {
        OpKind::Create { file, path: Some(path), mode: stat.st_mode & 0o7777, owner: owner(&stat) }
    } else {
        OpKind::Mknod { path, mode: stat.st_mode, device: stat.st_rdev, owner: owner(&stat) }
    };
    vec![Done::Op(op)]
}
