//! Links, modes and owners of state files: a replacement must keep them.

use std::path::Path;

use super::State;
use crate::tree::{NodeKind, Tree};

/// What was not kept of each state file that was there before, a line each.
pub fn metadata_changes(before: &Tree, after: &Tree, state: &State) -> Vec<String> {
    state.paths.iter().filter_map(|path| change(before, after, path)).collect()
}

fn change(before: &Tree, after: &Tree, path: &Path) -> Option<String> {
    let (old, new) = (before.get(path)?, after.get(path)?);
    let path = path.display();
    match (&old.kind, &new.kind) {
        (NodeKind::Link(old), NodeKind::Link(new)) if old == new => return target_change(before, after, old),
        (NodeKind::Link(old), NodeKind::Link(new)) => {
            return Some(format!("{path}: the link led to {}, and leads to {} now", old.display(), new.display()));
        }
        (NodeKind::Link(old), _) => {
            return Some(format!("{path}: the link to {} was replaced by a file", old.display()));
        }
        _ => {}
    }
    if old.mode != new.mode {
        return Some(format!("{path}: mode {:04o} became {:04o}", old.mode, new.mode));
    }
    if (old.uid, old.gid) != (new.uid, new.gid) {
        return Some(format!("{path}: owner {}:{} became {}:{}", old.uid, old.gid, new.uid, new.gid));
    }
    if old.hard_link.is_some() && new.hard_link.is_none() {
        return Some(format!("{path}: its other hard links were cut off"));
    }
    None
}

fn target_change(before: &Tree, after: &Tree, target: &Path) -> Option<String> {
    // Only plain relative targets are followed: a state file behind several links is named by its last link.
    change(before, after, target)
}
