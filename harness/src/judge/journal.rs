//! Journals: files that are no state themselves, and by which a recovery takes the state to where it really stood.
//!
//! What a journal holds can be more than any version of the state tells: a write-ahead log holds transactions that have not
//! come to the state yet. The lab cannot read it. But a run vouches for what it has written: it syncs its journal, or
//! releases the lock under which it wrote. Where the recovery goes from such a moment, while the state files stand in a
//! version, it may go from other places as well.

use std::collections::{BTreeSet, HashSet};

use super::follow::Follower;
use super::{Image, State, Versions};
use crate::op::{Event, FileId, LockAction, OpKind, What};
use crate::tree::{Inode, Misfit, Tree};

/// The numbers of the ops that vouched for a journal while the state stood in a version.
///
/// # Errors
///
/// [`Misfit`] where the log does not fit the tree.
pub fn vouched(
    before: &Tree,
    events: &[Event],
    state: &State,
    versions: &Versions,
) -> Result<Vec<u32>, Misfit> {
    let never_state = outside(before, events, state)?;
    let whole: HashSet<&Image> = versions.all.iter().map(|version| &version.image).collect();
    let mut at = Follower::new(before, state);
    let mut written: BTreeSet<Inode> = BTreeSet::new();
    let mut locked: BTreeSet<FileId> = BTreeSet::new();
    let mut moments = Vec::new();
    for event in events {
        at.apply(event)?;
        let What::Op(op) = &event.what else {
            continue;
        };
        let inode = op.kind.file().and_then(|file| at.model.inode(file));
        let vouches = match &op.kind {
            OpKind::Write { .. } | OpKind::Truncate { .. } | OpKind::Allocate { .. } => {
                written.extend(inode.filter(|inode| never_state.contains(inode)));
                false
            }
            OpKind::Sync { .. } => inode.is_some_and(|inode| written.remove(&inode)),
            OpKind::Lock { file, action: LockAction::Exclusive, .. } => {
                locked.insert(*file);
                false
            }
            OpKind::Lock { file, action: LockAction::Unlock, .. } => {
                locked.remove(file) && !std::mem::take(&mut written).is_empty()
            }
            _ => false,
        };
        if vouches && whole.contains(&at.image) {
            moments.push(op.number);
        }
    }
    Ok(moments)
}

/// Files that are written, and of which none ever becomes state: a temporary file that is renamed is no journal.
fn outside(before: &Tree, events: &[Event], state: &State) -> Result<BTreeSet<Inode>, Misfit> {
    let mut at = Follower::new(before, state);
    let (mut written, mut inside) = (BTreeSet::new(), BTreeSet::new());
    for event in events {
        at.apply(event)?;
        let What::Op(op) = &event.what else {
            continue;
        };
        let own = op.kind.file().and_then(|file| at.model.inode(file));
        written.extend(own);
        // A file becomes state by a name of its own, or by one of a folder or link on the way to it.
        let named = match &op.kind {
            OpKind::Rename { from, to, .. } => [at.files_below(from), at.files_below(to)].concat(),
            OpKind::Link { to, .. } | OpKind::Symlink { path: to, .. } => at.files_below(to),
            _ => Vec::new(),
        };
        let by_link = named.iter().any(|inode| at.model.target(*inode).is_some());
        let linked = written.iter().filter(|_| by_link).copied();
        let candidates = named.into_iter().chain(own).chain(linked);
        inside.extend(candidates.filter(|inode| at.is_state(*inode)));
    }
    Ok(written.difference(&inside).copied().collect())
}
