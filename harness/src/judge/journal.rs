//! Journals: files that are no state themselves, and by which a recovery takes the state to where it really stood.
//!
//! What a journal holds can be more than any version of the state tells: a write-ahead log holds transactions that have not
//! come to the state yet. The lab cannot read it. But a run vouches for what it has written: it syncs its journal, or
//! releases the lock under which it wrote. Where the recovery goes from such a moment, while the state files stand in a
//! version, it may go from other places as well.

use std::collections::BTreeSet;

use super::image::Follower;
use super::{State, Versions};
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
        let whole = || versions.all.iter().any(|version| version.image == at.image);
        if vouches && whole() {
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
        written.extend(op.kind.file().and_then(|file| at.model.inode(file)));
        let is_state = |inode: &&Inode| !state.paths_of(&at.model, **inode).is_empty();
        inside.extend(written.iter().filter(is_state).copied().collect::<Vec<_>>());
    }
    Ok(written.difference(&inside).copied().collect())
}
