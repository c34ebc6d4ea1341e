//! Calls that change contents without passing bytes, mappings, and syncs.

use std::os::fd::RawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use nix::sys::stat::FileStat;

use crate::op::touch::{Access, Object};
use crate::op::{Data, FileId, OpKind, What};
use crate::recording::Spool;
use crate::sys::memory;
use crate::trace::calls::Call;
use crate::trace::decode::write::{IN_MEMORY_MAX, own_sync};
use crate::trace::decode::{Ask, Pending, Returned};
use crate::trace::resolve::{descriptor, inode, kind, stat_fd};
use crate::trace::world::{Done, World};

const FICLONE: u32 = 0x4004_9409;
const FICLONERANGE: u32 = 0x4020_940d;
/// Requests that only ask: flags, extents, block size.
const ASKING: &[u32] = &[0x8008_6601, 0x801c_581f, 0xc020_660b, 0x1, 0x2, libc::TIOCGSID as u32];

/// Where bytes of one descriptor go to another.
struct Flow {
    from: RawFd,
    from_offset: Option<u64>,
    to: RawFd,
    to_offset: Option<u64>,
    /// What was asked for; `None` means that the call does not tell how much it did.
    len: Option<u64>,
}

fn flow(ask: &Ask<'_>) -> Option<Flow> {
    let a = &ask.args;
    let at = |address: u64| {
        if address == 0 { None } else { memory::read_u64(ask.tid, address) }
    };
    Some(match ask.call {
        Call::CopyFileRange | Call::Splice => Flow {
            from: ask.int(0),
            from_offset: at(a[1]),
            to: ask.int(2),
            to_offset: at(a[3]),
            len: Some(a[4]),
        },
        Call::Sendfile => Flow {
            from: ask.int(1),
            from_offset: at(a[2]),
            to: ask.int(0),
            to_offset: None,
            len: Some(a[3]),
        },
        _ if a[1] as u32 == FICLONE => Flow {
            from: ask.int(2),
            from_offset: Some(0),
            to: ask.int(0),
            to_offset: Some(0),
            len: None,
        },
        // struct file_clone_range: descriptor, source offset, length, target offset.
        _ => Flow {
            from: memory::read_u64(ask.tid, a[2])? as RawFd,
            from_offset: memory::read_u64(ask.tid, a[2] + 8),
            to: ask.int(0),
            to_offset: memory::read_u64(ask.tid, a[2] + 24),
            len: memory::read_u64(ask.tid, a[2] + 16).filter(|len| *len != 0),
        },
    })
}

/// `copy_file_range`, `sendfile`, `splice`, and the requests of `ioctl` that share blocks.
pub(super) fn copy(ask: &Ask<'_>) -> Option<Pending> {
    let is_ioctl = ask.call == Call::Ioctl;
    if is_ioctl && ![FICLONE, FICLONERANGE].contains(&(ask.args[1] as u32)) {
        return unknown_request(ask);
    }
    let flow = flow(ask)?;
    let stat = stat_fd(ask.tid, flow.to)?;
    let read = read_by(ask, &flow);
    let Some(file) = ask.world.file_of(ask.tid, flow.to, &stat) else {
        return copy_out(ask, flow, &stat, read);
    };
    let target = descriptor(ask.tid, flow.to)?;
    let path = ask.world.path(file);
    let append = target.flags & libc::O_APPEND != 0;
    let offset = match flow.to_offset {
        _ if append => target.stat.st_size as u64,
        Some(offset) => offset,
        None => target.position,
    };
    let source = stat_fd(ask.tid, flow.from);
    let to_source_end = source
        .map_or(0, |stat| (stat.st_size as u64).saturating_sub(flow.from_offset.unwrap_or(0)));
    let asked = flow.len.unwrap_or(to_source_end);
    let sync = own_sync(target.flags, 0);
    let at = path.clone();
    let looks = read.as_ref().and_then(looks_at);
    let write = move |data| OpKind::Write { file, path: at, offset, data, append };
    let preview = write.clone()(Data::default());
    let then = move |returned: Returned, world: &mut World| {
        let count = if is_ioctl { asked } else { returned.value as u64 };
        let mut done: Vec<Done> = read.into_iter().collect();
        if count == 0 {
            return done;
        }
        if count > world.room {
            done.push(Done::TooMuch);
            return done;
        }
        let Some(bytes) = read_back(&world.spool, returned.tid, flow.to, offset, count) else {
            let what = "bytes were copied that the lab may not read".into();
            done.push(Done::Gap { what, path: Some(path) });
            return done;
        };
        done.push(Done::Op(write(bytes)));
        if let Some(data_only) = sync {
            done.push(Done::Op(OpKind::Sync { file, path, data_only }));
        }
        done
    };
    let pending = Pending::op(ask, Some(ask.world.path(file)), Some(preview), then);
    // Out of a pipe it waits for who fills it.
    let waits = source.is_none_or(|stat| kind(&stat) != libc::S_IFREG);
    let pending = pending.touching(looks);
    Some(if waits { pending.free() } else { pending })
}

/// A copy out of a watched file reads it, where reads are of interest.
fn read_by(ask: &Ask<'_>, flow: &Flow) -> Option<Done> {
    if !ask.world.reads {
        return None;
    }
    let file = ask.world.file_at(ask.tid, flow.from)?;
    Some(Done::Event(What::Read { file, path: ask.world.path(file) }))
}

/// What a read touches.
fn looks_at(read: &Done) -> Option<Access> {
    match read {
        Done::Event(What::Read { file, .. }) => Some(Access::look(Object::Content(*file))),
        _ => None,
    }
}

/// Reads from the file behind a descriptor of a program, without touching the descriptor's position.
fn read_back(spool: &Spool, tid: i32, fd: RawFd, offset: u64, len: u64) -> Option<Data> {
    let file = std::fs::File::open(format!("/proc/{tid}/fd/{fd}")).ok()?;
    let part = |at: u64| {
        let mut bytes = vec![0; (len - at).min(IN_MEMORY_MAX as u64) as usize];
        file.read_exact_at(&mut bytes, offset + at).ok()?;
        Some(bytes)
    };
    if len <= IN_MEMORY_MAX as u64 {
        return part(0).map(Data::from);
    }
    let data = spool.collect(|to| {
        (0..len).step_by(IN_MEMORY_MAX).map_while(part).for_each(|bytes| to(&bytes));
    });
    (data.len() as u64 == len).then_some(data)
}

/// Copies to what is not watched: to an output of the run, or out of a watched file.
fn copy_out(ask: &Ask<'_>, flow: Flow, to: &FileStat, read: Option<Done>) -> Option<Pending> {
    let stream = ask.world.stream(to).map(|(_, stream)| stream);
    if stream.is_none() && read.is_none() {
        return None;
    }
    let source = descriptor(ask.tid, flow.from)?;
    let is_file = kind(&source.stat) == libc::S_IFREG;
    let offset = flow.from_offset.unwrap_or(source.position);
    let looks = read.as_ref().and_then(looks_at);
    let pending = Pending::event(ask, move |returned, world| {
        let Ok(count) = u64::try_from(returned.value) else {
            return Vec::new();
        };
        let output = stream.map(|stream| {
            match read_back(&world.spool, returned.tid, flow.from, offset, count)
                .filter(|_| is_file)
            {
                Some(bytes) => Done::Event(What::Output { stream, bytes }),
                None => Done::Gap { what: "output was moved through a pipe".into(), path: None },
            }
        });
        read.into_iter().chain(output).collect()
    });
    Some(pending.touching(looks).free())
}

fn unknown_request(ask: &Ask<'_>) -> Option<Pending> {
    let request = ask.args[1] as u32;
    if ASKING.contains(&request) {
        return None;
    }
    let file = ask.world.file_at(ask.tid, ask.int(0))?;
    let path = ask.world.path(file);
    Some(Pending::event(ask, move |returned, _| {
        if returned.value < 0 {
            return Vec::new();
        }
        vec![Done::Gap { what: format!("ioctl {request:#x} is not modelled"), path: Some(path) }]
    }))
}

/// `truncate`, `ftruncate` and `fallocate`.
pub(super) fn size(ask: &Ask<'_>) -> Option<Pending> {
    let a = &ask.args;
    let (file, path) = file_or_path(ask)?;
    let kind = match ask.call {
        Call::Fallocate => {
            OpKind::Allocate { file, path: path.clone(), mode: ask.int(1), offset: a[2], len: a[3] }
        }
        _ => OpKind::Truncate { file, path: path.clone(), size: a[1], by_open: false },
    };
    Some(Pending::known(ask, path, kind, |_| {}))
}

fn file_or_path(ask: &Ask<'_>) -> Option<(FileId, PathBuf)> {
    if ask.call == Call::Truncate {
        let target = ask.view().resolve_at(libc::AT_FDCWD, ask.args[0], true).watched()?;
        return Some((ask.world.names.by_inode(inode(&target.stat?))?, target.path));
    }
    let file = ask.world.file_at(ask.tid, ask.int(0))?;
    Some((file, ask.world.path(file)))
}

/// `mmap` of a watched file.
pub(super) fn mmap(ask: &Ask<'_>) -> Option<Pending> {
    let (protection, flags, fd) = (ask.int(2), ask.int(3), ask.int(4));
    if flags & libc::MAP_ANONYMOUS != 0 {
        return None;
    }
    let (file, target) = ask.world.open_file_at(ask.tid, fd)?;
    let path = ask.world.path(file);
    // It may become writable later; only what the descriptor allows counts.
    let may_change = flags & libc::MAP_SHARED != 0 && target.is_writable();
    let reads = ask.world.reads && protection & libc::PROT_READ != 0;
    if !(may_change || reads) {
        return None;
    }
    let hides = flags & libc::MAP_SHARED != 0 && ask.world.steps;
    let look = reads.then(|| Access::look(Object::Content(file)));
    let pending = Pending::event(ask, move |returned, world: &mut World| {
        let mut done = Vec::new();
        if (-4095..0).contains(&returned.value) {
            return done;
        }
        if hides {
            let what =
                "mapped into memory: in what order it is read and written there was not seen";
            done.push(Done::Gap { what: what.into(), path: Some(path.clone()) });
        }
        if reads {
            done.push(Done::Event(What::Read { file, path: path.clone() }));
        }
        if may_change && let Err(what) = world.mappings.add(returned.tid, fd, file) {
            done.push(Done::Gap { what, path: Some(path) });
        }
        done
    });
    Some(pending.touching(look))
}

/// `fsync` and its relatives.
pub(super) fn sync(ask: &Ask<'_>) -> Option<Pending> {
    if ask.call == Call::Msync {
        return msync(ask);
    }
    if ask.call == Call::Sync {
        return Some(Pending::op(ask, None, Some(OpKind::SyncAll), |_, _| {
            vec![Done::Op(OpKind::SyncAll)]
        }));
    }
    let fd = ask.int(0);
    let stat = stat_fd(ask.tid, fd)?;
    if ask.call == Call::Syncfs {
        let here = stat.st_dev == ask.world.device;
        return here.then(|| {
            Pending::op(ask, None, Some(OpKind::SyncAll), |_, _| vec![Done::Op(OpKind::SyncAll)])
        });
    }
    if kind(&stat) == libc::S_IFDIR {
        let path = ask.view().folder_of(fd)?;
        return Some(Pending::known(ask, path.clone(), OpKind::SyncFolder { path }, |_| {}));
    }
    let file = ask.world.file_of(ask.tid, fd, &stat)?;
    let path = ask.world.path(file);
    let kind = match ask.call {
        Call::SyncFileRange => OpKind::SyncRange { file, path: path.clone() },
        call => OpKind::Sync { file, path: path.clone(), data_only: call == Call::Fdatasync },
    };
    Some(Pending::known(ask, path, kind, |_| {}))
}

fn msync(ask: &Ask<'_>) -> Option<Pending> {
    if ask.int(2) & libc::MS_SYNC == 0 {
        return None;
    }
    let file = ask.world.mappings.file_at(ask.tid, ask.args[0])?;
    let path = ask.world.path(file);
    // As `fsync` on Linux, over a range; that range is taken for the whole, since others are rare.
    Some(Pending::known(ask, path.clone(), OpKind::Sync { file, path, data_only: false }, |_| {}))
}
