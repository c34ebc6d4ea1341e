//! Runs that were made, by what was done in them.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::{Made, Moment, Side};
use crate::judge::shape;
use crate::op::touch::{Object, Touch};

/// No more steps are remembered, lest memory grow without end: they are some 200 MB.
const STEPS_MAX: usize = 1_000_000;

/// The steps up to a moment, whatever the order of those that commute: which steps of each program, and which of the others'
/// steps came before each of them; with who is enabled then, and the moment's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Trace(u128);

/// A run, and a place in it.
#[derive(Debug)]
pub(super) struct Remembered<'m> {
    pub(super) made: &'m [Made],
    /// The moment at which nobody could go on.
    pub(super) last: &'m Moment,
    pub(super) at: usize,
}

/// All runs that were made.
#[derive(Debug)]
pub(super) struct Memory {
    /// So many more steps there is room for.
    room: usize,
    runs: Vec<(Vec<Made>, Moment)>,
    /// Where what was done, and who went on then, was followed by what comes by itself.
    places: HashMap<(Trace, Side), (u32, u32)>,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory { room: STEPS_MAX, runs: Vec::new(), places: HashMap::new() }
    }
}

impl Memory {
    /// It remembers nothing.
    #[cfg(test)]
    pub(super) fn of_nothing() -> Memory {
        Memory { room: 0, ..Memory::default() }
    }

    /// Takes in a run, which went on by itself from this step on; `traces` before each of its steps.
    pub(super) fn add(&mut self, made: Vec<Made>, last: Moment, from: usize, traces: &[Trace]) {
        let Some(room) = self.room.checked_sub(made.len()).filter(|room| *room > 0) else {
            return;
        };
        self.room = room;
        let run = self.runs.len() as u32;
        for (at, (trace, step)) in traces.iter().zip(&made).enumerate().skip(from) {
            self.places.entry((*trace, step.side)).or_insert((run, at as u32));
        }
        self.runs.push((made, last));
    }

    /// A run in which this had been done when this program went on, and all went on by themselves then.
    pub(super) fn find(&self, trace: &Trace, side: Side) -> Option<Remembered<'_>> {
        let (run, at) = self.places.get(&(*trace, side))?;
        let (made, last) = self.runs.get(*run as usize)?;
        Some(Remembered { made, last, at: *at as usize })
    }
}

/// What was done before each step of a run.
pub(super) fn traces(made: &[Made], clocks: &[Vec<usize>]) -> Vec<Trace> {
    let sides = clocks.first().map_or(0, Vec::len);
    // How many steps each program had made before each step.
    let mut counts: Vec<Vec<usize>> = vec![vec![0; sides]];
    let mut steps = 0u128;
    let mut traces = Vec::with_capacity(made.len());
    for (at, step) in made.iter().enumerate() {
        let Moment { enabled, history, .. } = &step.before;
        traces.push(Trace(digest(&(steps, enabled.0, history))));
        let mut now = counts[at].clone();
        now[step.side] += 1;
        counts.push(now);
        let seen: Vec<usize> =
            clocks[at].iter().enumerate().map(|(side, place)| counts[*place][side]).collect();
        // The same whatever the order of its terms.
        steps = steps.wrapping_add(digest(&(step.side, seen, Looks(&step.touch))));
    }
    traces
}

fn digest(value: &impl Hash) -> u128 {
    let half = |which: u8| {
        let mut hasher = DefaultHasher::new();
        (which, value).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}

/// A touch by what is the same in each run: not by numbers of files and processes.
struct Looks<'t>(&'t Touch);

impl Hash for Looks<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.waits.hash(state);
        let accesses = self.0.accesses();
        // In the order of the files' numbers, which are not the same.
        let mut parts: Vec<(u8, String, u8)> = accesses
            .iter()
            .map(|access| {
                let (kind, name) = match &access.object {
                    Object::Entry(path) => (0, shape(path)),
                    Object::Listing(path) => (1, shape(path)),
                    Object::Content(_) => (2, String::new()),
                    Object::Attributes(_) => (3, String::new()),
                    Object::Lock(_, locks) => (4, format!("{locks:?}")),
                    Object::Life(side) => (5, side.to_string()),
                };
                (kind, name, access.how as u8)
            })
            .collect();
        parts.sort();
        parts.hash(state);
    }
}
