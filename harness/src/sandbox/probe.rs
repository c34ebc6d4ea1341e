//! Single questions to this machine, each answered by trying.

use std::io;
use std::path::Path;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::ptrace;

use super::layout;
use super::view::Identity;
use crate::sys::namespace;

/// Whether a process of ours can be traced.
pub(crate) fn tracing() -> io::Result<()> {
    let traced = namespace::make(|| Ok(()))?.map_err(|(_, errno)| errno)?;
    Ok(ptrace::seize(traced.pid(), ptrace::Options::PTRACE_O_EXITKILL)?)
}

/// Whether a namespace can be made: those of root directly, those of others in a user namespace.
pub(crate) fn namespaces(wanted: CloneFlags) -> io::Result<()> {
    let identity = Identity::of_lab();
    let root = nix::unistd::geteuid().is_root() && wanted != CloneFlags::CLONE_NEWUSER;
    let inside = || {
        if !root {
            unshare(CloneFlags::CLONE_NEWUSER)?;
            identity.keep()?;
        }
        unshare(wanted - CloneFlags::CLONE_NEWUSER)
    };
    in_child(inside)
}

fn in_child(work: impl Fn() -> Result<(), Errno>) -> io::Result<()> {
    match namespace::make(|| work().map_err(|errno| (1, errno)))? {
        Ok(_) => Ok(()),
        Err((_, errno)) => Err(errno.into()),
    }
}

/// Where work folders are made, and why not in memory where that is so.
pub(crate) fn work_folders() -> (&'static Path, Option<String>) {
    (layout::home(), layout::memory_is_good(Path::new("/dev/shm")).err())
}
