//! Owners in a recording: what belonged to who recorded it belongs to who reads it.

use super::{Recorded, Recording};
use crate::op::{OpKind, What};

/// From the owners in a recording to those of this user.
struct Owners {
    then: (u32, u32),
    now: (u32, u32),
}

impl Owners {
    fn of(then: (u32, u32)) -> Owners {
        let now = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
        Owners { then, now }
    }

    /// An ordinary user cannot give files away, so that all of a copy is its own.
    fn now(&self, (uid, gid): (u32, u32)) -> (u32, u32) {
        let all = self.now.0 != 0;
        let of = |id: u32, then: u32, now: u32| if all || id == then { now } else { id };
        (of(uid, self.then.0, self.now.0), of(gid, self.then.1, self.now.1))
    }

    fn in_op(&self, kind: &mut OpKind) {
        match kind {
            OpKind::Create { owner, .. }
            | OpKind::Symlink { owner, .. }
            | OpKind::Mkdir { owner, .. }
            | OpKind::Mknod { owner, .. } => *owner = self.now(*owner),
            OpKind::Chown { uid, gid, .. } => (*uid, *gid) = self.now((*uid, *gid)),
            _ => {}
        }
    }

    fn in_run(&self, run: &mut Recording) {
        for tree in [&mut run.before, &mut run.after] {
            tree.nodes.update_all(|_, node| {
                (node.uid, node.gid) = self.now((node.uid, node.gid));
            });
        }
        for event in &mut run.trace.events {
            if let What::Op(op) = &mut event.what {
                self.in_op(&mut op.kind);
            }
        }
    }
}

impl Recorded {
    /// The recording as if this user had made it.
    #[must_use]
    pub fn as_ours(mut self) -> Recorded {
        let owners = Owners::of(self.header.user);
        self.runs.iter_mut().for_each(|run| owners.in_run(run));
        self
    }
}
