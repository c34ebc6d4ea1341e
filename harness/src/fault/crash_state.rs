//! Crash states: what kills leave, derived from the log. SIGKILL loses nothing of the page cache, so that the state after
//! a kill is the tree after the last op.

use std::collections::HashMap;

use crate::judge::{Follower, Image, State};
use crate::op::{Event, Op, OpKind, What};
use crate::scenario::KillPoint;
use crate::tree::{Misfit, Tree};

/// What a kill leaves.
#[derive(Debug, Clone)]
pub struct CrashState {
    /// Where the kill comes.
    pub point: KillPoint,
    /// How many events of the log came before it, the one at which it comes among them.
    pub events: usize,
    /// What is left.
    pub tree: Tree,
    /// What is left of the state files.
    pub survivor: Image,
}

/// The states that kills at these points of a run leave, lazily, in the order of the log. Points that the log does not
/// have are left out.
///
/// Each costs what the run changed since the one before it, however large the tree.
pub fn crash_states<'a>(
    before: &Tree,
    log: &'a [Event],
    state: &'a State,
    points: Vec<KillPoint>,
) -> impl Iterator<Item = Result<CrashState, Misfit>> + use<'a> {
    let positions = Positions::of(log);
    let place = |point: KillPoint| {
        let bytes = match &point {
            KillPoint::Inside(_, bytes) => *bytes,
            _ => u64::MAX,
        };
        Some((positions.of_point(&point)?, bytes, point))
    };
    let mut places: Vec<(usize, u64, KillPoint)> = points.into_iter().filter_map(place).collect();
    places.sort();
    let mut run = Run { log, at: Follower::new(before, state), done: 0, cut: None };
    places.into_iter().map(move |(events, bytes, point)| {
        let at = match bytes {
            u64::MAX => run.after(events)?,
            _ => run.inside(events, bytes)?,
        };
        let (tree, survivor) = (at.model.tree(), at.image.clone());
        Ok(CrashState { point, events, tree, survivor })
    })
}

/// Of these places of a run, those that lie between two events, each with how many events come before it.
pub fn moments(log: &[Event], places: Vec<KillPoint>) -> Vec<(KillPoint, usize)> {
    let positions = Positions::of(log);
    let between = places.into_iter().filter(|place| !matches!(place, KillPoint::Inside(..)));
    let with_position = |place: KillPoint| {
        let events = positions.of_point(&place)?;
        Some((place, events))
    };
    between.filter_map(with_position).collect()
}

/// A run that is gone through once.
struct Run<'a> {
    log: &'a [Event],
    at: Follower<'a>,
    /// How many events were applied.
    done: usize,
    /// The same with so many bytes of the next event, which is a write.
    cut: Option<(Follower<'a>, u64)>,
}

impl<'a> Run<'a> {
    fn after(&mut self, events: usize) -> Result<&Follower<'a>, Misfit> {
        while self.done < events {
            self.at.apply(&self.log[self.done])?;
            self.done += 1;
            self.cut = None;
        }
        Ok(&self.at)
    }

    /// As far as a write of which only the first bytes were done. Cuts of one write come one after another, so that
    /// each goes on from the one before it.
    fn inside(&mut self, events: usize, bytes: u64) -> Result<&Follower<'a>, Misfit> {
        self.after(events - 1)?;
        let (at, done) = self.cut.get_or_insert_with(|| (self.at.clone(), 0));
        at.apply(&part(&self.log[events - 1], *done, bytes))?;
        *done = bytes;
        Ok(at)
    }
}

/// A write of which only some bytes are done, from one place to another.
fn part(event: &Event, from: u64, until: u64) -> Event {
    let mut event = event.clone();
    if let What::Op(Op { kind: OpKind::Write { data, offset, .. }, .. }) = &mut event.what {
        let len = data.len() as u64;
        *data = data.slice(from.min(len) as usize..until.min(len) as usize);
        *offset += from;
    }
    event
}

/// How many events come up to each place of a log, the one at which it lies among them.
#[derive(Default)]
struct Positions<'a> {
    ops: Vec<usize>,
    outputs: Vec<usize>,
    kinds: HashMap<&'a str, Vec<usize>>,
    marks: HashMap<&'a str, Vec<usize>>,
}

impl<'a> Positions<'a> {
    fn of(log: &'a [Event]) -> Positions<'a> {
        let mut positions = Positions::default();
        for (position, event) in (1..).zip(log) {
            match &event.what {
                What::Output { .. } => positions.outputs.push(position),
                What::Mark(name) => positions.marks.entry(name).or_default().push(position),
                _ => {}
            }
            if let Some(op) = event.op() {
                positions.ops.push(position);
                positions.kinds.entry(op.kind.word()).or_default().push(position);
            }
        }
        positions
    }

    fn of_point(&self, point: &KillPoint) -> Option<usize> {
        let nth =
            |positions: &[usize], nth: u32| positions.get(nth.checked_sub(1)? as usize).copied();
        match point {
            KillPoint::All | KillPoint::EachProcess | KillPoint::Process(..) => None,
            KillPoint::After(0) => Some(0),
            KillPoint::After(number) | KillPoint::Inside(number, _) => nth(&self.ops, *number),
            KillPoint::Kind(word, count) => nth(self.kinds.get(&**word)?, *count),
            KillPoint::Mark(name, count) => nth(self.marks.get(&**name)?, *count),
            KillPoint::Output(count) => nth(&self.outputs, *count),
        }
    }
}
