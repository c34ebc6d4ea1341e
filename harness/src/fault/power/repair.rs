//! Which fsync would have kept the bad states from being legal: found by trial.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::parts::{Change, Inode, Wish};
use super::{PowerCuts, PowerState, legal, shown};
use crate::op::{OpKind, What};

/// So many are looked for together.
const REPAIRS_MAX: usize = 3;
/// So often it is looked whether they do.
const TRIALS_MAX: usize = 32;

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
            (_, true) => shown(&self.path),
            (true, false) => format!("the folder {}", self.path.display()),
            (false, false) => self.path.display().to_string(),
        };
        write!(f, "fsync {what} after op {}", self.after)
    }
}

impl<'a> PowerCuts<'a> {
    /// As few fsyncs as are found without which no bad state were legal, among the first `states`; `None` where there are
    /// none, such as for a state that a kill leaves as well.
    pub fn repair(
        &self,
        is_bad: impl Fn(&PowerState) -> bool,
        states: usize,
    ) -> Option<Vec<Repair>> {
        let first_bad = |cuts: &PowerCuts<'a>| cuts.states().take(states).find(&is_bad);
        let mut bad: Vec<PowerState> = first_bad(self).into_iter().collect();
        let candidates = self.candidates();
        for _ in 0..TRIALS_MAX {
            let chosen = self.chosen(&bad, &candidates)?;
            // What these do not keep from being bad comes to those that they must.
            match first_bad(&self.with(&chosen)) {
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
                left.iter().copied().filter(|state| self.is_legal_with(state, &with)).collect()
            };
            let best = candidates.iter().map(|repair| (still(repair), repair));
            let (rest, repair) = best.min_by_key(|(rest, repair)| (rest.len(), repair.folder))?;
            if rest.len() == left.len() {
                return None;
            }
            left = rest;
            chosen.push(repair.clone());
        }
        chosen.sort();
        left.is_empty().then_some(chosen)
    }

    fn is_legal_with(&self, state: &PowerState, repairs: &[Repair]) -> bool {
        // One that comes right at the cut has not been waited for.
        let wishes = self.wishes(repairs).into_iter();
        let wishes: Vec<(usize, Wish)> =
            wishes.filter(|(at, _)| *at < state.events || state.ended).collect();
        let durable = legal::durable(&self.log, self.model, &self.needs, state.events, &wishes);
        !state.parts.iter().any(|part| durable[*part])
    }

    fn wishes(&self, repairs: &[Repair]) -> Vec<(usize, Wish)> {
        let position = |repair: &Repair| {
            let parts = self.log.parts.iter();
            parts.rev().find(|part| part.op == repair.after).map_or(0, |part| part.position)
        };
        let wish = |repair: &Repair| match repair.folder {
            true => Wish::Folder(repair.inode),
            false => Wish::File { inode: repair.inode, data_only: false },
        };
        repairs.iter().map(|repair| (position(repair), wish(repair))).collect()
    }

    /// The same run with these fsyncs in it. A cut right at one of them comes before it has been waited for.
    fn with(&self, repairs: &[Repair]) -> PowerCuts<'a> {
        let mut with = self.clone();
        with.more = self.wishes(repairs);
        with
    }

    /// After each op that wrote a file: that file; after each that changed names: their folders.
    fn candidates(&self) -> BTreeSet<Repair> {
        let mut candidates = BTreeSet::new();
        for part in &self.log.parts {
            let op = self.events.get(part.position - 1).map(|event| &event.what);
            let Some(What::Op(op)) = op else { continue };
            match &part.change {
                Change::Names(names) => {
                    let paths: Vec<&PathBuf> = match &op.kind {
                        OpKind::Rename { from, to, .. } => vec![from, to],
                        _ => Vec::new(),
                    };
                    let paths = paths.into_iter().map(PathBuf::as_path).chain(op.kind.path());
                    for path in paths {
                        let folder = path.parent().map(PathBuf::from).unwrap_or_default();
                        let last = path.file_name();
                        for name in names.iter().filter(|name| Some(name.name.as_os_str()) == last)
                        {
                            let path = folder.clone();
                            candidates.insert(Repair {
                                after: op.number,
                                path,
                                folder: true,
                                inode: name.folder,
                            });
                        }
                    }
                }
                other => {
                    let path = op.kind.path().map(PathBuf::from).unwrap_or_default();
                    for inode in other.inodes() {
                        let path = path.clone();
                        candidates.insert(Repair { after: op.number, path, folder: false, inode });
                    }
                }
            }
        }
        candidates
    }
}
