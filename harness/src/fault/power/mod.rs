//! Power cuts: what a disk can hold after one, at each moment of a run, by the rules of a disk model.
//!
//! A run is parted into what can persist by itself: blocks of data, sizes, attributes and names. A model says which parts are
//! on the disk whenever another one is, and what fsync has put there. Every set of parts that is closed under both
//! is a legal state.

use std::collections::BTreeSet;
use std::path::Path;

use crate::op::Event;
use crate::scenario::KillPoint;
use crate::tree::{Misfit, Tree};

mod disk;
mod legal;
mod model;
mod parts;
mod repair;
mod states;

pub use model::{DiskModel, Fsync, Growth, MODELS, NoSuchModel, Order, Replace, Rule};
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
    moments: Vec<Cut>,
    /// Wishes that the run did not have.
    more: Vec<(usize, Wish)>,
}

/// When the power fails.
#[derive(Debug, Clone)]
struct Cut {
    /// The place; `None` after the end of the run.
    place: Option<KillPoint>,
    /// How many events came before it.
    events: usize,
}

/// What a disk can hold after a power cut.
#[derive(Debug, Clone)]
pub struct PowerState {
    /// When it came and what is missing, as in a case's id: `14-3-7d`.
    pub id: String,
    /// How many events of the log came before the cut.
    pub events: usize,
    /// The run had ended.
    pub ended: bool,
    /// What is not on the disk, in words.
    pub missing: Vec<String>,
    /// What is found.
    pub tree: Tree,
    /// The parts that are missing.
    parts: Vec<usize>,
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
        let at = |(place, events): &(KillPoint, usize)| Cut {
            place: Some(place.clone()),
            events: *events,
        };
        let mut moments: Vec<Cut> = places.iter().map(at).collect();
        moments.push(Cut { place: None, events: events.len() });
        Ok(PowerCuts { model, events, log, needs, moments, more: Vec::new() })
    }

    /// The model.
    pub fn model(&self) -> &'static DiskModel {
        self.model
    }

    /// The legal states, lazily: at every moment, first with everything there, with nothing but what is durable, and without
    /// the data of one write; then without one part, without two, and so on. Equal states come more than once.
    pub fn states(&self) -> impl Iterator<Item = PowerState> {
        let likely = self.moments.iter().flat_map(move |cut| {
            let moment = self.moment(cut);
            self.likely(&moment).into_iter().map(move |missing| self.state(cut, missing))
        });
        // Only now: most often what is looked for is among the likely ones.
        let deepest = || self.moments.iter().map(|cut| self.moment(cut).free().len()).max();
        let sizes = std::iter::once_with(deepest).flat_map(|deepest| 1..=deepest.unwrap_or(0));
        let others = sizes.flat_map(move |size| {
            self.moments.iter().flat_map(move |cut| {
                let missing = self.moment(cut).missing_of(size);
                missing.map(move |missing| self.state(cut, missing))
            })
        });
        likely.chain(others)
    }

    /// Every legal state of every moment has few enough parts to be tried.
    pub fn is_small(&self) -> bool {
        self.moments.iter().all(|cut| self.moment(cut).free().len() <= EXHAUSTIVE_PARTS)
    }

    fn moment(&self, cut: &Cut) -> Moment<'_> {
        let ended = cut.place.is_none();
        let more = self.more.iter().copied().filter(|(at, _)| *at < cut.events || ended);
        let more: Vec<(usize, Wish)> = more.collect();
        let durable = legal::durable(&self.log, self.model, &self.needs, cut.events, &more);
        let count = self.log.parts.partition_point(|part| part.position <= cut.events);
        Moment::new(&self.needs, &durable, count)
    }

    fn likely(&self, moment: &Moment<'_>) -> Vec<Vec<usize>> {
        let mut likely = vec![Vec::new(), moment.free().to_vec()];
        let mut numbers: Vec<u32> =
            self.log.parts[..moment.count()].iter().map(|part| part.op).collect();
        numbers.dedup();
        for number in numbers {
            let data = (0..moment.count()).filter(|part| {
                let part = &self.log.parts[*part];
                part.op == number && matches!(part.change, Change::Data { .. })
            });
            likely.push(moment.without(data));
        }
        likely.dedup();
        likely
    }

    fn state(&self, cut: &Cut, parts: Vec<usize>) -> PowerState {
        let count = self.log.parts.partition_point(|part| part.position <= cut.events);
        let is_there = |part: usize| part < count && parts.binary_search(&part).is_err();
        let tree = disk::tree(&self.log, is_there);
        let (ids, missing): (Vec<String>, Vec<String>) =
            self.told(&parts, count).into_iter().unzip();
        let place = cut.place.as_ref().map_or("end".to_owned(), KillPoint::to_string);
        let id = [vec![place], ids].concat().join("-");
        PowerState { id, events: cut.events, ended: cut.place.is_none(), missing, tree, parts }
    }

    /// What is missing, op by op: for the id, and in words.
    fn told(&self, missing: &[usize], count: usize) -> Vec<(String, String)> {
        let numbers: BTreeSet<u32> = missing.iter().map(|part| self.log.parts[*part].op).collect();
        numbers.into_iter().flat_map(|number| self.told_of(number, missing, count)).collect()
    }

    fn told_of(&self, number: u32, missing: &[usize], count: usize) -> Vec<(String, String)> {
        let own = |part: &usize| self.log.parts[*part].op == number;
        let is_data = |part: &usize| matches!(self.log.parts[*part].change, Change::Data { .. });
        let all: Vec<usize> = (0..count).filter(own).collect();
        let gone: Vec<usize> = missing.iter().copied().filter(own).collect();
        let op = self.op(number);
        if gone.len() == all.len() {
            return vec![(number.to_string(), op)];
        }
        let data: Vec<usize> = gone.iter().copied().filter(is_data).collect();
        let mut told = Vec::new();
        if data.len() == all.iter().filter(|part| is_data(part)).count() {
            told.push((format!("{number}d"), format!("the data of {op}")));
        } else {
            for part in &data {
                if let Change::Data { offset, bytes, .. } = &self.log.parts[*part].change {
                    let end = offset + bytes.len() as u64;
                    told.push((
                        format!("{number}d{offset}"),
                        format!("bytes {offset} to {end} of {op}"),
                    ));
                }
            }
        }
        if gone.len() > data.len() {
            told.push((format!("{number}s"), format!("the length after {op}")));
        }
        told
    }

    /// An op in words: its number, call and path.
    fn op(&self, number: u32) -> String {
        let ops = self.events.iter().filter_map(Event::op);
        let Some(op) = ops.into_iter().find(|op| op.number == number) else {
            return format!("op {number}");
        };
        let path = op.kind.path().map(|path| format!(" of {}", shown(path))).unwrap_or_default();
        format!("op {number} ({}{path})", op.kind.word())
    }
}

/// The watched folder itself has no name of its own.
fn shown(path: &Path) -> String {
    if path.as_os_str().is_empty() { "the folder".to_owned() } else { path.display().to_string() }
}
