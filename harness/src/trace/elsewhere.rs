//! Places that are none of the run's own.
//!
//! In namespaces all but the run's own folders is read-only; a write that fails there is told, since a program that does
//! without it may do otherwise elsewhere. Without namespaces nobody but the tracer keeps a program from the user's
//! files: it answers such writes itself, and it looks whether the program goes by an absolute path to the folder whose
//! copy it is to use. There it may read what the copy holds as well. What it looks up without opening it is not seen.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::statvfs::{FsFlags, fstatvfs};

use crate::sys::ptrace::Tid;
use crate::trace::calls::{Call, OPEN_WRITES};
use crate::trace::decode::{Ask, open_request};
use crate::trace::resolve::{Place, Target, View, kind};
use crate::trace::tracer::Tracer;
use crate::watched::Watched;

/// Where everybody may write whatever the sandbox is: nothing there outlives the machine.
const FREE: [&str; 2] = ["/dev", "/proc"];

/// What keeps the programs of a sandbox without namespaces from the user's files.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fence {
    /// The folder whose copy the programs are to use.
    pub(crate) original: Option<PathBuf>,
    /// Where the copy is.
    pub(crate) copy: PathBuf,
    /// Folders in which they may write.
    pub(crate) open: Vec<PathBuf>,
}

/// What is to become of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// The kernel answers it.
    Own,
    /// It is answered with "read-only file system".
    Refused,
}

/// A path that a call is about.
struct Aim {
    folder: i32,
    /// 0 for the descriptor itself.
    path: u64,
    follow: bool,
    wish: Wish,
}

/// What a call wants of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    /// To open it, and to change it if it is there.
    Open { changes: bool, creates: bool },
    /// To make it, where nothing is yet.
    Make,
    /// To change what is there.
    Change,
}

impl Aim {
    /// The call changes something, if it may; otherwise the kernel has its own answer.
    fn writes(&self, target: Option<&Target>) -> bool {
        let is_there = target.is_none_or(|target| target.stat.is_some());
        match self.wish {
            Wish::Open { changes, creates } => {
                if is_there {
                    changes
                } else {
                    creates
                }
            }
            Wish::Make => !is_there,
            Wish::Change => is_there,
        }
    }

    /// It may change something.
    fn may_write(&self) -> bool {
        self.wish != Wish::Open { changes: false, creates: false }
    }
}

impl Tracer<'_> {
    /// Whether the call may go on; what it must not do is written down.
    pub(super) fn reaches(&mut self, tid: Tid, call: Call, args: &[u64; 6]) -> Reach {
        let process = self.threads[&tid].process;
        let ask = Ask { tid, process, call, args: *args, world: &self.world };
        let mut reach = Reach::Own;
        for aim in aims(&ask) {
            if !aim.may_write() && self.world.fence.is_none() {
                continue;
            }
            let Some((path, target)) = self.place(tid, &aim) else {
                continue;
            };
            let writes = aim.writes(target.as_ref());
            let fence = self.world.fence.as_ref();
            let original = fence.and_then(|fence| fence.original.as_deref());
            if let (Some(fence), Some(below)) =
                (fence, original.and_then(|folder| path.strip_prefix(folder).ok()))
            {
                let same = |target: &Target| is_same(target, &fence.copy.join(below));
                if writes || !target.as_ref().is_none_or(same) {
                    self.world.strayed.get_or_insert(path);
                    reach = Reach::Refused;
                }
                continue;
            }
            let refused = match fence {
                Some(fence) => !fence.open.iter().any(|folder| path.starts_with(folder)),
                None => target.as_ref().is_some_and(is_sealed),
            };
            if refused && writes {
                self.refused(&path);
                reach = if self.world.fence.is_some() { Reach::Refused } else { reach };
            }
        }
        reach
    }

    /// Writes down that a program may not write here, once.
    pub(super) fn refused(&mut self, path: &Path) {
        if !std::mem::replace(&mut self.world.refused, true) {
            let path = path.display();
            self.gap(format!("what a write to {path} does, which is read-only here"), None);
        }
    }

    /// The absolute path that is aimed at, without links, where it is none of the watched ones.
    fn place(&self, tid: Tid, aim: &Aim) -> Option<(PathBuf, Option<Target>)> {
        let all = Watched::alone(Path::new("/"));
        let everywhere = View { watched: &all, passed: None, ..self.world.view(tid) };
        let (path, target) = if aim.path == 0 {
            (Path::new("/").join(everywhere.folder_of(aim.folder)?), None)
        } else {
            match everywhere.resolve_at(aim.folder, aim.path, aim.follow) {
                Place::Watched(target) => (Path::new("/").join(&target.path), Some(*target)),
                _ => return None,
            }
        };
        // One that has another root goes by other paths than the lab.
        let root = fs::read_link(format!("/proc/{tid}/root")).ok()?;
        let path = root.join(path.strip_prefix("/").unwrap_or(&path));
        let own = self.world.watched.relative(&path).is_some();
        let free =
            FREE.iter().any(|folder| path.starts_with(folder)) && !path.starts_with("/dev/shm");
        (!own && !free).then_some((path, target))
    }
}

/// The kernel will not let it be written.
fn is_sealed(target: &Target) -> bool {
    // Devices and pipes can be written also there.
    let holds = |stat| matches!(kind(&stat), libc::S_IFREG | libc::S_IFDIR | libc::S_IFLNK);
    target.stat.is_none_or(holds)
        && fstatvfs(target.parent()).is_ok_and(|found| found.flags().contains(FsFlags::ST_RDONLY))
}

/// Whether the copy holds the same as what a program is about to open.
fn is_same(target: &Target, copy: &Path) -> bool {
    let original = target.reachable();
    let names = |folder: &Path| -> Option<BTreeSet<_>> {
        Some(fs::read_dir(folder).ok()?.flatten().map(|entry| entry.file_name()).collect())
    };
    match target.stat.map(|stat| kind(&stat)) {
        Some(libc::S_IFDIR) => names(&original) == names(copy),
        Some(libc::S_IFREG) => {
            let size = |path: &Path| fs::metadata(path).map(|found| found.len()).ok();
            size(&original) == size(copy) && fs::read(&original).ok() == fs::read(copy).ok()
        }
        Some(_) => true,
        None => fs::symlink_metadata(copy).is_err(),
    }
}

const HERE: i32 = libc::AT_FDCWD;

fn aims(ask: &Ask<'_>) -> Vec<Aim> {
    let a = &ask.args;
    let change = |folder, path, follow| Aim { folder, path, follow, wish: Wish::Change };
    let make = |folder, path| Aim { folder, path, follow: false, wish: Wish::Make };
    let followed = |flags: i32| flags & libc::AT_SYMLINK_NOFOLLOW == 0;
    match ask.call {
        Call::Open | Call::Creat | Call::Openat | Call::Openat2 => {
            let opened = open_request(ask).map(|request| Aim {
                folder: request.folder,
                path: request.path,
                follow: request.follows(),
                wish: Wish::Open {
                    changes: request.flags as u32 & OPEN_WRITES & !(libc::O_CREAT as u32) != 0,
                    creates: request.flags & libc::O_CREAT != 0,
                },
            });
            opened.filter(|aim| aim.path != 0).into_iter().collect()
        }
        Call::Truncate | Call::Chmod | Call::Chown | Call::Utime | Call::Utimes => {
            vec![change(HERE, a[0], true)]
        }
        Call::Setxattr | Call::Removexattr => vec![change(HERE, a[0], true)],
        Call::Lchown | Call::Lsetxattr | Call::Lremovexattr => vec![change(HERE, a[0], false)],
        Call::Mkdir | Call::Mknod => vec![make(HERE, a[0])],
        Call::Mkdirat | Call::Mknodat => vec![make(ask.int(0), a[1])],
        Call::Unlink | Call::Rmdir => vec![change(HERE, a[0], false)],
        Call::Unlinkat => vec![change(ask.int(0), a[1], false)],
        // A file that gets one more name in the watched folder could be changed by that.
        Call::Link => vec![change(HERE, a[0], false), make(HERE, a[1])],
        Call::Linkat => {
            let follow = ask.int(4) & libc::AT_SYMLINK_FOLLOW != 0;
            vec![change(ask.int(0), a[1], follow), make(ask.int(2), a[3])]
        }
        Call::Rename => {
            vec![change(HERE, a[0], false), make(HERE, a[1]), change(HERE, a[1], false)]
        }
        Call::Renameat | Call::Renameat2 => {
            let (to, path) = (ask.int(2), a[3]);
            vec![change(ask.int(0), a[1], false), make(to, path), change(to, path, false)]
        }
        Call::Symlink => vec![make(HERE, a[1])],
        Call::Symlinkat => vec![make(ask.int(1), a[2])],
        Call::Fchmod | Call::Fchown | Call::Fsetxattr | Call::Fremovexattr => {
            vec![change(ask.int(0), 0, true)]
        }
        Call::Fchmodat => vec![change(ask.int(0), a[1], true)],
        Call::Fchmodat2 | Call::Utimensat => vec![change(ask.int(0), a[1], followed(ask.int(3)))],
        Call::Fchownat => vec![change(ask.int(0), a[1], followed(ask.int(4)))],
        Call::Futimesat => vec![change(ask.int(0), a[1], true)],
        Call::Setxattrat | Call::Removexattrat => {
            vec![change(ask.int(0), a[1], followed(ask.int(2)))]
        }
        Call::FileSetattr => vec![change(ask.int(0), a[1], followed(ask.int(4)))],
        _ => Vec::new(),
    }
}
