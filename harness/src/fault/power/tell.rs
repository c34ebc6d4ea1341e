//! A state in words: its id, what is not on the disk, and what is although that is not.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::parts::{Change, Inode, Part, Wish};
use super::{PowerCuts, PowerState};
use crate::op::What;

/// From so many on, ops that are missing one after another are told by the first and the last.
const RUN_MIN: usize = 3;
/// Of so many missing parts it is looked up what shows them: the first is most often the one.
const LOOKED_AT_MAX: usize = 8;
/// So many ops of what is missing are named by [`PowerCuts::ops`].
const OPS_MAX: usize = 6;

/// What is not on the disk of one op, or of some one after another: for the id, and in words.
type Told = (String, String);

impl PowerCuts<'_> {
    /// When the power failed and what is missing, as in a case's id: `14-3-7d`.
    pub fn id(&self, state: &PowerState) -> String {
        let place = &self.moments[state.cut].place;
        let place = place.as_ref().map_or("end".to_owned(), ToString::to_string);
        let ids = self.told(state).into_iter().map(|(id, _)| id);
        let old = state.old.then(|| "old".to_owned());
        [place].into_iter().chain(ids).chain(old).collect::<Vec<_>>().join("-")
    }

    /// What is not on the disk, in words.
    pub fn missing(&self, state: &PowerState) -> Vec<String> {
        let old =
            "where data is missing, the blocks show what they held before, as parts of other files";
        let old = state.old.then(|| old.to_owned());
        self.told(state).into_iter().map(|(_, words)| words).chain(old).collect()
    }

    /// The first ops of which something is not on the disk, and the one that is although what belongs to it is not, in their
    /// order.
    pub fn ops(&self, state: &PowerState) -> Vec<u32> {
        let mut ops: Vec<u32> = state.parts.iter().map(|part| self.log.parts[*part].op).collect();
        ops.dedup();
        ops.truncate(OPS_MAX);
        ops.extend(self.witness(state).map(|(_, witness)| witness.op));
        ops.sort_unstable();
        ops.dedup();
        ops
    }

    /// Why that can be, in words: what is on the disk although what belongs to it is not.
    pub fn although(&self, state: &PowerState) -> Option<String> {
        if let Some((of, witness)) = self.witness(state) {
            let path = self.path_at(of).unwrap_or_default();
            let shown = match &witness.change {
                Change::Size { .. } => format!("the length after {}", self.op(witness.op)),
                _ => self.op(witness.op),
            };
            let until = match of.op == witness.op {
                true => String::new(),
                false => format!(
                    ": no fsync of {} between op {} and op {}",
                    shown_path(&path),
                    of.op,
                    witness.op
                ),
            };
            return Some(format!("although {shown} is{until}"));
        }
        let is_late = state.ended && !state.parts.is_empty();
        is_late.then(|| "although the program had ended with success".to_owned())
    }

    /// A part that is not on the disk, and one that is and shows it.
    fn witness(&self, state: &PowerState) -> Option<(&Part, &Part)> {
        let is_missing = |part: usize| state.parts.binary_search(&part).is_ok();
        let count = self.log.count_at(state.events);
        let content = |part: &&usize| self.log.parts[**part].change.content_of().is_some();
        for missing in state.parts.iter().filter(content).take(LOOKED_AT_MAX) {
            let of = &self.log.parts[*missing];
            let Some(inode) = of.change.content_of() else { continue };
            let shows = |part: &&Part| match &part.change {
                Change::Names(names) => names.iter().any(|name| name.inode == Some(inode)),
                Change::Size { inode: of, .. } => *of == inode,
                _ => false,
            };
            let later = (missing + 1..count).filter(|part| !is_missing(*part));
            let later = later.map(|part| &self.log.parts[part]);
            // The last name that it got: by that it is found.
            let Some(witness) = later.rev().find(shows) else { continue };
            let (from, until) = (of.position, witness.position);
            if self.is_synced(inode, from..until) {
                continue;
            }
            return Some((of, witness));
        }
        None
    }

    fn is_synced(&self, inode: Inode, between: Range<usize>) -> bool {
        self.log.wishes.iter().any(|(at, wish)| {
            let is_of = match wish {
                Wish::File { inode: of, .. } => *of == inode,
                Wish::All => true,
                Wish::Folder(_) | Wish::Failed(_) => false,
            };
            is_of && between.contains(at)
        })
    }

    /// The path by which the op of a part knew what it changed.
    fn path_at(&self, part: &Part) -> Option<PathBuf> {
        let What::Op(op) = &self.events[part.position - 1].what else { return None };
        op.kind.path().map(Path::to_owned)
    }

    /// What is missing, op by op.
    fn told(&self, state: &PowerState) -> Vec<Told> {
        let mut told = Vec::new();
        let mut whole: Vec<u32> = Vec::new();
        let mut rest = &state.parts[..];
        while let Some(first) = rest.first() {
            let op = self.log.parts[*first].op;
            let (own, others) =
                rest.split_at(rest.partition_point(|part| self.log.parts[*part].op == op));
            rest = others;
            let all = self.parts_of(op);
            let is_next = whole.last().is_none_or(|last| self.next_with_parts(*last) == Some(op));
            if own.len() < all.len() || !is_next {
                self.tell_run(&mut whole, &mut told);
            }
            match own.len() < all.len() {
                true => self.tell_some(op, own, all, &mut told),
                false => whole.push(op),
            }
        }
        self.tell_run(&mut whole, &mut told);
        told
    }

    /// Ops of which nothing is on the disk.
    fn tell_run(&self, ops: &mut Vec<u32>, told: &mut Vec<Told>) {
        match (ops.first(), ops.last()) {
            (Some(first), Some(last)) if ops.len() >= RUN_MIN => {
                told.push((
                    format!("{first}..{last}"),
                    format!("{} to {}", self.op(*first), self.op(*last)),
                ));
            }
            _ => told.extend(ops.iter().map(|op| (op.to_string(), self.op(*op)))),
        }
        ops.clear();
    }

    /// An op of which some is on the disk.
    fn tell_some(&self, op: u32, gone: &[usize], all: Range<usize>, told: &mut Vec<Told>) {
        let is_data = |part: &usize| matches!(self.log.parts[*part].change, Change::Data { .. });
        let shown = self.op(op);
        let data: Vec<usize> = gone.iter().copied().filter(is_data).collect();
        if data.len() == all.filter(is_data).count() {
            told.push((format!("{op}d"), format!("the data of {shown}")));
        } else {
            for part in &data {
                if let Change::Data { offset, bytes, .. } = &self.log.parts[*part].change {
                    let end = offset + bytes.len() as u64;
                    let words = format!("bytes {offset} to {end} of {shown}");
                    told.push((format!("{op}d{offset}"), words));
                }
            }
        }
        if gone.len() > data.len() {
            told.push((format!("{op}s"), format!("the length after {shown}")));
        }
    }

    /// Where the parts of an op are.
    fn parts_of(&self, op: u32) -> Range<usize> {
        let parts = &self.log.parts;
        parts.partition_point(|part| part.op < op)..parts.partition_point(|part| part.op <= op)
    }

    fn next_with_parts(&self, op: u32) -> Option<u32> {
        self.log.parts.get(self.parts_of(op).end).map(|part| part.op)
    }

    /// An op in words: its number, call and path.
    fn op(&self, number: u32) -> String {
        let first = self.log.parts.get(self.parts_of(number).start);
        let event = first.and_then(|part| self.events.get(part.position - 1));
        let Some(op) = event.and_then(|event| event.op()) else {
            return format!("op {number}");
        };
        let path = op.kind.path().map(|path| format!(" of {}", shown_path(path)));
        format!("op {number} ({}{})", op.kind.word(), path.unwrap_or_default())
    }
}

/// The watched folder itself has no name of its own.
pub(super) fn shown_path(path: &Path) -> String {
    if path.as_os_str().is_empty() { "the folder".to_owned() } else { path.display().to_string() }
}
