//! Links, modes and owners of state files: a replacement must keep them.

use std::path::Path;

use super::State;
use crate::tree::{Model, NodeKind, Tree};

/// What was not kept of each state file that was there before, a line each.
pub fn metadata_changes(before: &Tree, after: &Tree, state: &State) -> Vec<String> {
    let model = Model::new(before);
    let change = |path: &std::path::PathBuf| {
        let place = model.resolve_path(path, &state.seen)?;
        link_change(before, after, path).or_else(|| file_change(before, after, &place))
    };
    state.paths.iter().filter_map(change).collect()
}

fn link_change(before: &Tree, after: &Tree, path: &Path) -> Option<String> {
    let (NodeKind::Link(old), new) = (&before.get(path)?.kind, &after.get(path)?.kind) else {
        return None;
    };
    let (path, old_target) = (path.display(), old.display());
    match new {
        NodeKind::Link(new) if new == old => None,
        NodeKind::Link(new) => Some(format!(
            "{path}: the link led to {old_target}, and leads to {} now",
            new.display()
        )),
        _ => Some(format!("{path}: the link to {old_target} was replaced by a file")),
    }
}

fn file_change(before: &Tree, after: &Tree, path: &Path) -> Option<String> {
    let (old, new) = (before.get(path)?, after.get(path)?);
    let path = path.display();
    if old.mode != new.mode {
        return Some(format!("{path}: mode {:04o} became {:04o}", old.mode, new.mode));
    }
    if (old.uid, old.gid) != (new.uid, new.gid) {
        let (uid, gid) = (new.uid, new.gid);
        return Some(format!("{path}: owner {}:{} became {uid}:{gid}", old.uid, old.gid));
    }
    let cut_off = old.hard_link.is_some() && new.hard_link.is_none();
    cut_off.then(|| format!("{path}: its other hard links were cut off"))
}
