//! Opening and closing, marks, and reads.

use std::path::PathBuf;

use crate::op::touch::{Access, Object};
use crate::op::{FileId, OpKind, What};
use crate::sys::memory;
use crate::trace::calls::{Call, OPEN_WRITES};
use crate::trace::decode::{Ask, Pending, Returned};
use crate::trace::resolve::{self, Descriptor, Place, Target, descriptor, inode, kind, stat_fd};
use crate::trace::world::{Done, World};

/// Marks are look-ups below this folder.
pub(in crate::trace) const MARKS: &str = "/crashlab/mark/";

/// An open, whichever call asks for it.
#[derive(Debug)]
pub(in crate::trace) struct Request {
    pub(in crate::trace) folder: i32,
    pub(in crate::trace) path: u64,
    pub(in crate::trace) flags: i32,
    mode: u32,
}

impl Request {
    /// A link at the path's end is followed.
    pub(in crate::trace) fn follows(&self) -> bool {
        let exclusive = self.flags & libc::O_CREAT != 0 && self.flags & libc::O_EXCL != 0;
        self.flags & libc::O_NOFOLLOW == 0 && !exclusive
    }
}

pub(in crate::trace) fn request(ask: &Ask<'_>) -> Option<Request> {
    let args = &ask.args;
    Some(match ask.call {
        Call::Open => Request {
            folder: libc::AT_FDCWD,
            path: args[0],
            flags: args[1] as i32,
            mode: args[2] as u32,
        },
        Call::Creat => Request {
            folder: libc::AT_FDCWD,
            path: args[0],
            flags: libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC,
            mode: args[1] as u32,
        },
        Call::Openat => Request {
            folder: ask.int(0),
            path: args[1],
            flags: args[2] as i32,
            mode: args[3] as u32,
        },
        _ => {
            // struct open_how: flags, mode, resolve.
            let flags = memory::read_u64(ask.tid, args[2])? as i32;
            let mode = memory::read_u64(ask.tid, args[2] + 8)? as u32;
            Request { folder: ask.int(0), path: args[1], flags, mode }
        }
    })
}

/// `open` and its relatives.
pub(super) fn decode(ask: &Ask<'_>) -> Option<Pending> {
    if ask.call == Call::OpenByHandleAt {
        return by_handle(ask);
    }
    let request = request(ask)?;
    let writes = request.flags as u32 & OPEN_WRITES != 0;
    if request.flags & libc::O_PATH != 0 {
        return if ask.world.steps { by_path_alone(ask, &request) } else { None };
    }
    if !(writes || ask.world.reads) {
        return None;
    }
    if request.flags & libc::O_TMPFILE == libc::O_TMPFILE {
        return unnamed(ask, &request);
    }
    match ask.view().resolve_at(request.folder, request.path, request.follows()) {
        Place::Watched(target) => named(ask, &request, *target, writes),
        Place::Descriptor(fd) => {
            let file = ask.world.file_at(ask.tid, fd)?;
            Some(existing(ask, &request, ask.world.path(file), Some(file)))
        }
        Place::Other => None,
    }
}

fn named(ask: &Ask<'_>, request: &Request, target: Target, writes: bool) -> Option<Pending> {
    match target.stat {
        // Opening a pipe can wait for the other side; folders and devices hold nothing that the log could lose.
        Some(stat) if kind(&stat) != libc::S_IFREG => looked_up(ask, target.path),
        Some(stat) => {
            let look = Access::look(Object::Entry(target.path.clone()));
            let file = ask.world.names.by_inode(inode(&stat));
            Some(existing(ask, request, target.path, file).touching([look]))
        }
        None if writes => {
            let look = Access::look(Object::Entry(target.path.clone()));
            Some(missing(ask, request, target.path).touching([look]))
        }
        None => looked_up(ask, target.path),
    }
}

/// `O_PATH`: whatever is there, only its name is looked up.
fn by_path_alone(ask: &Ask<'_>, request: &Request) -> Option<Pending> {
    let place = ask.view().resolve_at(request.folder, request.path, request.follows());
    looked_up(ask, place.watched()?.path)
}

/// A name was looked up, and nothing else is of interest.
fn looked_up(ask: &Ask<'_>, path: PathBuf) -> Option<Pending> {
    let look = Access::look(Object::Entry(path.clone()));
    ask.world.steps.then(|| Pending::look(ask, path).free().touching([look]))
}

fn existing(ask: &Ask<'_>, request: &Request, path: PathBuf, file: Option<FileId>) -> Pending {
    let truncates = request.flags & libc::O_TRUNC != 0;
    let truncate = {
        let path = path.clone();
        move |file| OpKind::Truncate { file, path, size: 0, by_open: true }
    };
    let preview = file.filter(|_| truncates).map(truncate.clone());
    let failure = path.clone();
    let tells_failure = request.flags as u32 & OPEN_WRITES != 0;
    let pending = Pending::op(ask, Some(failure), preview, move |returned, world| {
        let Some(opened) = opened(returned) else {
            return Vec::new();
        };
        let file = world.names.meet(inode(&opened.stat), &path);
        let mut done = Vec::new();
        if truncates {
            done.push(Done::Op(truncate(file)));
        }
        done.push(open_event(file, path, &opened, world));
        done
    });
    Pending { tells_failure, ..pending }
}

fn missing(ask: &Ask<'_>, request: &Request, path: PathBuf) -> Pending {
    // Who will own it, and what the umask leaves of the mode, is known only afterwards.
    let mode = request.mode & 0o7777;
    let preview = OpKind::Create {
        file: ask.world.names.next(),
        path: Some(path.clone()),
        mode,
        owner: (0, 0),
    };
    let preview = (request.flags & libc::O_CREAT != 0).then_some(preview);
    Pending::op(ask, Some(path.clone()), preview, move |returned, world| {
        let Some(opened) = opened(returned) else {
            return Vec::new();
        };
        let file = world.names.create(inode(&opened.stat), &path);
        vec![created(file, Some(path.clone()), &opened), open_event(file, path, &opened, world)]
    })
}

/// `O_TMPFILE`: the path is that of a folder.
fn unnamed(ask: &Ask<'_>, request: &Request) -> Option<Pending> {
    let folder = ask.view().resolve_at(request.folder, request.path, true).watched()?.path;
    let mode = request.mode & 0o7777;
    let preview = OpKind::Create { file: ask.world.names.next(), path: None, mode, owner: (0, 0) };
    let look = Access::look(Object::Entry(folder.clone()));
    let pending = Pending::op(ask, Some(folder.clone()), Some(preview), move |returned, world| {
        let Some(opened) = opened(returned) else {
            return Vec::new();
        };
        let file = world.names.create_unnamed(inode(&opened.stat), &folder);
        let path = world.path(file);
        vec![created(file, None, &opened), open_event(file, path, &opened, world)]
    });
    Some(pending.touching([look]))
}

fn opened(returned: Returned) -> Option<Descriptor> {
    descriptor(returned.tid, returned.value as i32)
}

fn created(file: FileId, path: Option<PathBuf>, opened: &Descriptor) -> Done {
    let stat = &opened.stat;
    Done::Op(OpKind::Create {
        file,
        path,
        mode: stat.st_mode & 0o7777,
        owner: (stat.st_uid, stat.st_gid),
    })
}

fn open_event(file: FileId, path: PathBuf, opened: &Descriptor, world: &mut World) -> Done {
    let (readable, writable) = (opened.is_readable(), opened.is_writable());
    if writable {
        world.writable.insert(file);
    }
    if let Some(reads) = &mut world.told_reads {
        reads.opened(file);
    }
    Done::Event(What::Open { file, path, readable, writable })
}

/// A handle names a file without a path, possibly one that is watched.
fn by_handle(ask: &Ask<'_>) -> Option<Pending> {
    if ask.args[2] as u32 & OPEN_WRITES == 0 {
        return None;
    }
    Some(Pending::event(ask, |returned, world| {
        let file = stat_fd(returned.tid, returned.value as i32)
            .and_then(|stat| world.names.by_inode(inode(&stat)));
        let Some(file) = file else { return Vec::new() };
        world.writable.insert(file);
        vec![Done::Gap { what: "opened by handle".into(), path: Some(world.path(file)) }]
    }))
}

/// `prctl(PR_SET_DUMPABLE)`: from then on only root may look into the process.
pub(super) fn hidden(ask: &Ask<'_>) -> Pending {
    Pending::event(ask, |returned, _| {
        if resolve::is_open_to_us(returned.tid) {
            return Vec::new();
        }
        let what = "a process made itself unreadable: what it did from then on was not seen".into();
        vec![Done::Gap { what, path: None }]
    })
}

/// `chroot` and `pivot_root`: from then on the process has other paths than those by which the lab finds its files.
pub(super) fn moved_root(ask: &Ask<'_>) -> Pending {
    let call = ask.call.name();
    Pending::event(ask, move |returned, _| {
        if returned.value < 0 {
            return Vec::new();
        }
        let what = format!("{call}: what the process did below its new root folder was not seen");
        vec![Done::Gap { what, path: None }]
    })
}

/// `access` and its relatives: a mark, or nothing of interest.
pub(super) fn mark(ask: &Ask<'_>) -> Option<Pending> {
    let address = if ask.call == Call::Access { ask.args[0] } else { ask.args[1] };
    let path = ask.view().path_at(address)?;
    let name = path.to_str()?.strip_prefix(MARKS)?.to_owned();
    Some(Pending::event(ask, move |_, _| vec![Done::Event(What::Mark(name))]))
}

/// `read` and its relatives.
pub(super) fn read(ask: &Ask<'_>) -> Option<Pending> {
    let file = ask.world.file_at(ask.tid, ask.int(0))?;
    let path = ask.world.path(file);
    let at = Some(path.clone());
    let pending = Pending::event(ask, move |returned, _| {
        if returned.value < 0 {
            return Vec::new();
        }
        vec![Done::Event(What::Read { file, path })]
    });
    Some(Pending { path: at, ..pending }.touching([Access::look(Object::Content(file))]))
}

/// `close` and all that closes on the way, where it could be the last descriptor that is open for writing, or could let a
/// lock go.
pub(super) fn close(ask: &Ask<'_>) -> Option<Pending> {
    let locks = ask.world.steps && !ask.world.locked.is_empty();
    if ask.world.writable.is_empty() && !locks {
        return None;
    }
    let closing = match ask.call {
        Call::CloseRange if ask.args[2] as u32 & libc::CLOSE_RANGE_CLOEXEC != 0 => {
            return None;
        }
        Call::CloseRange => None,
        Call::Close => Some(ask.int(0)),
        _ if ask.int(0) == ask.int(1) => return None,
        _ => Some(ask.int(1)),
    };
    let mut touches = Vec::new();
    if let Some(fd) = closing {
        let file = ask.world.file_at(ask.tid, fd)?;
        touches.extend(ask.world.lets_go(ask.process, |locked| locked == file));
        if !ask.world.writable.contains(&file) && touches.is_empty() {
            return None;
        }
    } else {
        touches.extend(ask.world.lets_go(ask.process, |_| true));
    }
    // Even a failed close has closed the descriptor.
    let path =
        closing.and_then(|fd| ask.world.file_at(ask.tid, fd)).map(|file| ask.world.path(file));
    Some(Pending { path, ..Pending::event(ask, |_, _| vec![Done::Sweep]) }.touching(touches))
}
