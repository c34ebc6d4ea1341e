//! Power cuts: what a disk can hold after one, at each moment of a run, by the rules of a disk model.
//!
//! A run is parted into what can persist by itself: blocks of data, sizes, attributes and names. A model says which parts are
//! on the disk whenever another one is, and what fsync has put there. Every set of parts that is closed under both
//! is a legal state.

use crate::op::Event;
use crate::scenario::KillPoint;
use crate::tree::{Misfit, Tree};

mod disk;
mod legal;
mod model;
mod order;
mod parts;
mod repair;
mod states;
mod tell;

pub use model::{DiskModel, Fsync, Growth, MODELS, NoSuchModel, Order, Replace, Rule, Unwritten};
pub use order::{Budget, Looked, Share};
pub use repair::Repair;

use parts::{Change, Log, Wish};
use states::Moment;

/// With at most so many parts that may be missing there are few enough legal states to go through all of them.
pub const EXHAUSTIVE_PARTS: usize = 12;

/// The power cuts of a run on a disk.
#[derive(Debug, Clone)]
pub struct PowerCuts<'a> {
    model: &'static DiskModel,
    events: &'a [Event],
    log: Log,
    needs: Vec<Vec<usize>>,
    /// From how many events on each part is durable.
    durable_from: Vec<usize>,
    moments: Vec<Cut>,
    /// The ops that write data, each with its position.
    data_ops: Vec<(usize, u32)>,
}

/// When the power fails.
#[derive(Debug, Clone)]
struct Cut {
    /// The place; `None` after the end of the run.
    place: Option<KillPoint>,
    /// How many events came before it.
    events: usize,
}

impl Cut {
    /// By when a sync must have come back: at the end, all have.
    fn now(&self) -> usize {
        self.events + usize::from(self.place.is_none())
    }
}

/// What a disk can hold after a power cut.
#[derive(Debug, Clone)]
pub struct PowerState {
    /// How many events of the log came before the cut.
    pub events: usize,
    /// The run had ended.
    pub ended: bool,
    /// What is found.
    pub tree: Tree,
    /// The number of its moment.
    cut: usize,
    /// The parts that are missing.
    parts: Vec<usize>,
    /// Blocks whose data is missing show what they held before.
    old: bool,
}

impl PowerState {
    /// So many parts of ops are not on the disk.
    pub fn lacks(&self) -> usize {
        self.parts.len()
    }
}

impl<'a> PowerCuts<'a> {
    /// The power cuts of a run that began at `before`, at each of its ops, at these places, and after its end.
    ///
    /// # Errors
    ///
    /// [`Misfit`] where the log does not fit the tree.
    pub fn new(
        before: &Tree,
        events: &'a [Event],
        model: &'static DiskModel,
        places: &[(KillPoint, usize)],
    ) -> Result<PowerCuts<'a>, Misfit> {
        let log = Log::of(before, events, model.block)?;
        let needs = legal::needs(&log, model);
        let durable_from = legal::durable_from(&log, model, &needs, &[]);
        let at = |(place, events): &(KillPoint, usize)| Cut {
            place: Some(place.clone()),
            events: *events,
        };
        let mut moments: Vec<Cut> = places.iter().map(at).collect();
        moments.push(Cut { place: None, events: events.len() });
        let is_data = |part: &&parts::Part| matches!(part.change, Change::Data { .. });
        let data = log.parts.iter().filter(is_data);
        let mut data_ops: Vec<(usize, u32)> = data.map(|part| (part.position, part.op)).collect();
        data_ops.dedup();
        Ok(PowerCuts { model, events, log, needs, durable_from, moments, data_ops })
    }

    /// The model.
    pub fn model(&self) -> &'static DiskModel {
        self.model
    }

    /// Data is taken to persist in pieces of so many bytes: more than the model says where the run wrote very much.
    pub fn block(&self) -> u64 {
        self.log.block
    }

    /// Every legal state of every moment has few enough parts to be tried.
    pub fn is_small(&self) -> bool {
        (0..self.moments.len()).all(|cut| self.moment(cut).free().len() <= EXHAUSTIVE_PARTS)
    }

    fn moment(&self, cut: usize) -> Moment<'_> {
        let cut = &self.moments[cut];
        let (count, now) = (self.log.count_at(cut.events), cut.now());
        Moment::new(&self.needs, count, |part| self.durable_from[part] <= now)
    }

    fn state(&self, number: usize, parts: Vec<usize>) -> PowerState {
        self.state_with(number, parts, false)
    }

    fn state_with(&self, number: usize, parts: Vec<usize>, old: bool) -> PowerState {
        let cut = &self.moments[number];
        let count = self.log.count_at(cut.events);
        let tree = disk::tree(&self.log, count, &parts, old);
        PowerState { events: cut.events, ended: cut.place.is_none(), tree, cut: number, parts, old }
    }

    /// The same, where blocks whose data is missing show what they held before; none where that can be seen of no block.
    fn with_old_blocks(&self, state: &PowerState) -> Option<PowerState> {
        if self.model.unwritten == Unwritten::Zeros {
            return None;
        }
        let is_fresh =
            |part: &usize| matches!(self.log.parts[*part].change, Change::Data { fresh: true, .. });
        let with_old = state.parts.iter().any(is_fresh);
        let with_old = with_old.then(|| self.state_with(state.cut, state.parts.clone(), true));
        with_old.filter(|with_old| with_old.tree != state.tree)
    }

    /// The state as it is with NULs for missing data, and as it is with old blocks, where that is another one.
    fn with_unwritten(&self, state: PowerState) -> impl Iterator<Item = PowerState> + use<> {
        let with_old = self.with_old_blocks(&state);
        [state].into_iter().chain(with_old)
    }

    /// The legal states with one part more on the disk than in this one of theirs, or with NULs for what blocks held before.
    pub fn with_one_more(&self, state: &PowerState) -> impl Iterator<Item = PowerState> {
        let is_missing = |part: &usize| state.parts.binary_search(part).is_ok();
        let can_be = move |part: &&usize| !self.needs[**part].iter().any(is_missing);
        let with_nuls = state.old.then(|| self.state(state.cut, state.parts.clone()));
        let with_part = state.parts.iter().filter(can_be).map(|part| {
            let parts = state.parts.iter().copied().filter(|other| other != part).collect();
            let more = self.state(state.cut, parts);
            let with_old = state.old.then(|| self.with_old_blocks(&more)).flatten();
            with_old.unwrap_or(more)
        });
        with_nuls.into_iter().chain(with_part)
    }

    /// The same run with these syncs in it as well.
    fn with(&self, more: &[(usize, Wish)]) -> PowerCuts<'a> {
        let durable_from = legal::durable_from(&self.log, self.model, &self.needs, more);
        PowerCuts { durable_from, ..self.clone() }
    }
}
