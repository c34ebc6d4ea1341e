//! Which fsync would have kept the bad states from being legal: found by trial.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::parts::{Change, Inode, Wish};
use super::{PowerCuts, PowerState, legal, shown};
use crate::op::{OpKind, What};

/// So many are looked for together.
const REPAIRS_MAX: usize = 3;

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

impl PowerCuts<'_> {
    /// As few fsyncs as are found without which none of these states were legal; `None` where there are none, such as for a
    /// state that a kill leaves as well.
    pub fn repair(&self, bad: &[&PowerState]) -> Option<Vec<Repair>> {
        let mut left: Vec<&PowerState> = bad.to_vec();
        let (mut chosen, candidates) = (Vec::new(), self.candidates());
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
        let position = |repair: &Repair| {
            let op = self
                .events
                .iter()
                .position(|event| matches!(&event.what, What::Op(op) if op.number == repair.after));
            op.map_or(0, |op| op + 1)
        };
        let wish = |repair: &Repair| match repair.folder {
            true => Wish::Folder(repair.inode),
            false => Wish::File { inode: repair.inode, data_only: false },
        };
        // One that comes right at the cut has not been waited for.
        let wishes = repairs.iter().map(|repair| (position(repair), wish(repair)));
        let wishes: Vec<(usize, Wish)> =
            wishes.filter(|(at, _)| *at < state.events || state.ended).collect();
        let durable =
            legal::durable_with(&self.log, self.model, &self.needs, state.events, &wishes);
        !state.parts.iter().any(|part| durable[*part])
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
