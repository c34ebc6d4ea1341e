//! Which fsync would have kept the bad states from being legal: found by trial.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::PathBuf;

use super::model::Fsync;
use super::order::{Budget, Looked};
use super::parts::{Change, Inode, Wish};
use super::tell::shown_path;
use super::{PowerCuts, PowerState, legal};

/// So many are looked for together.
const REPAIRS_MAX: usize = 3;
/// So often it is looked whether they do.
const TRIALS_MAX: usize = 32;
/// So many parts are put on the disk to make a bad state smaller.
const SHRINKS_MAX: usize = 200;
/// Of so many places it is tried whether a sync there does.
const CANDIDATES_MAX: usize = 500;

/// One fsync more.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Repair {
    /// After the op of this number.
    pub after: u32,
    /// The file, or the folder.
    pub path: PathBuf,
    /// It is a folder.
    pub folder: bool,
    inode: Inode,
}

impl std::fmt::Display for Repair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match (self.folder, self.path.as_os_str().is_empty()) {
            (_, true) => shown_path(&self.path),
            (true, false) => format!("the folder {}", self.path.display()),
            (false, false) => self.path.display().to_string(),
        };
        write!(f, "fsync {what} after op {}", self.after)
    }
}

impl<'a> PowerCuts<'a> {
    /// As few fsyncs as are found with which no bad state were legal, among as many as the budget says; `None` where there are
    /// none, such as for a state that a kill leaves as well.
    pub fn repair(
        &self,
        is_bad: impl Fn(&PowerState) -> bool,
        budget: Budget,
    ) -> Option<Vec<Repair>> {
        let first_bad = |cuts: &PowerCuts<'a>| {
            let mut found = None;
            cuts.try_within(budget, |state| match is_bad(&state) {
                true => {
                    found = Some(state);
                    Looked::Enough
                }
                false => Looked::Known,
            });
            // Of one that lacks more than it must, a sync could take away what does not matter.
            let mut found: PowerState = found?;
            for _ in 0..SHRINKS_MAX {
                let smaller = cuts.with_one_more(&found).find(&is_bad);
                match smaller {
                    Some(smaller) => found = smaller,
                    None => break,
                }
            }
            Some(found)
        };
        let mut bad: Vec<PowerState> = first_bad(self).into_iter().collect();
        let candidates = self.candidates();
        for _ in 0..TRIALS_MAX {
            let chosen = self.chosen(&bad, &candidates)?;
            // What these do not keep from being bad comes to those that they must.
            match first_bad(&self.with(&self.wishes(&chosen))) {
                None => return Some(chosen),
                Some(state) => bad.push(state),
            }
        }
        None
    }

    /// A few that none of these states is legal with.
    fn chosen(&self, bad: &[PowerState], candidates: &BTreeSet<Repair>) -> Option<Vec<Repair>> {
        let mut left: Vec<&PowerState> = bad.iter().collect();
        let mut chosen: Vec<Repair> = Vec::new();
        while !left.is_empty() && chosen.len() < REPAIRS_MAX {
            let still = |repair: &Repair| -> Vec<&PowerState> {
                let with: Vec<Repair> = chosen.iter().chain([repair]).cloned().collect();
                let wishes = self.wishes(&with);
                let from = legal::durable_from(&self.log, self.model, &self.needs, &wishes);
                let is_legal = |state: &&PowerState| {
                    let now = self.moments[state.cut].now();
                    state.parts.iter().all(|part| from[*part] > now)
                };
                left.iter().copied().filter(is_legal).collect()
            };
            let able = candidates.iter().filter(|repair| self.can_mend(repair, &left));
            let best = able.take(CANDIDATES_MAX).map(|repair| (still(repair), repair));
            // A file rather than a folder, and late, where all of it has been written.
            let cost = |rest: usize, repair: &Repair| (rest, repair.folder, Reverse(repair.after));
            let (rest, repair) = best.min_by_key(|(rest, repair)| cost(rest.len(), repair))?;
            if rest.len() == left.len() {
                return None;
            }
            left = rest;
            chosen.push(repair.clone());
        }
        chosen.sort();
        left.is_empty().then_some(chosen)
    }

    /// It is of something that is missing in one of the states.
    fn can_mend(&self, repair: &Repair, left: &[&PowerState]) -> bool {
        let missing = left.iter().flat_map(|state| &state.parts);
        missing.map(|part| &self.log.parts[*part]).any(|part| match &part.change {
            // By the log of the file system any sync can carry names along.
            _ if self.model.fsync == Fsync::LogUpToIt && part.change.is_logged() => true,
            Change::Names(names) => names.iter().any(|name| name.folder == repair.inode),
            other => other.inodes().any(|inode| inode == repair.inode),
        })
    }

    fn wishes(&self, repairs: &[Repair]) -> Vec<(usize, Wish)> {
        let position = |repair: &Repair| {
            let after = self.log.parts.partition_point(|part| part.op <= repair.after);
            after.checked_sub(1).map_or(0, |last| self.log.parts[last].position)
        };
        let wish = |repair: &Repair| match repair.folder {
            true => Wish::Folder(repair.inode),
            false => Wish::File { inode: repair.inode, data_only: false },
        };
        repairs.iter().map(|repair| (position(repair), wish(repair))).collect()
    }

    /// After each op that wrote a file: that file; after each that changed names: their folders.
    fn candidates(&self) -> BTreeSet<Repair> {
        let mut candidates = BTreeSet::new();
        for part in &self.log.parts {
            let mut add = |path: PathBuf, folder, inode| {
                candidates.insert(Repair { after: part.op, path, folder, inode });
            };
            match &part.change {
                Change::Names(names) => names.iter().for_each(|name| {
                    let folder = name.path.parent().map(PathBuf::from).unwrap_or_default();
                    add(folder, true, name.folder);
                }),
                other => {
                    let op = self.events.get(part.position - 1).and_then(|event| event.op());
                    let path = op.and_then(|op| op.kind.path()).map(PathBuf::from);
                    for inode in other.inodes() {
                        add(path.clone().unwrap_or_default(), false, inode);
                    }
                }
            }
        }
        candidates
    }
}
