//! Which schedules are worth a run: dynamic partial-order reduction over the runs that were made.
//!
//! Two steps of different programs that touch nothing in common can be swapped without any program or file being able to
//! tell; schedules that differ only so are one, and one of them is run. The reduction looks at a run that was made: where
//! a program could have made its step before one that it conflicts with, and the order of the two did not follow from
//! something else, that other order is to be tried as well (Flanagan and Godefroid, "Dynamic partial-order reduction for
//! model checking software", POPL 2005). Sleep sets (Godefroid, "Partial-Order Methods for the Verification of
//! Concurrent Systems", LNCS 1032) keep a schedule from being run a second time in another order of steps that commute.
//!
//! A bound on preemptions (switches away from a program that could have gone on) makes the reduction miss schedules
//! within the bound, unless each place to try is also tried where the program that goes second had been let on (Coons,
//! Musuvathi and McKinley, "Bounded partial-order reduction", OOPSLA 2013); sleep sets are not sound there, and are not
//! used. Neither is that enough where programs wait for locks: a switch away from one that holds a lock costs less than the
//! same order by a switch before or behind, if the other comes to wait for the lock, since the switch back is free. So the
//! places beside steps with such locks are tried too.
//!
//! A run need not be made whose beginning is that of one that was made, in another order of steps that commute: it would go on as
//! that one did (after Musuvathi and Qadeer, "Partial-order reduction for context-bounded state exploration", MSR-TR-2007-12).
//! What it would have shown is taken from there (`memory.rs`); no schedule is left out by that.
//!
//! Of programs that are the same, only orders are made in which the first of them begins first ([`Alike`]): no schedule is left out but
//! those that are another with two of them exchanged.
//!
//! Runs are made from the beginning: nothing here holds a process. Several can be under way at once.

use std::collections::BTreeSet;

use crate::op::touch::Touch;

mod alike;
mod conflicts;
mod memory;
mod races;

pub use alike::Alike;
use alike::Beginnings;
use conflicts::Touches;
use memory::{Memory, Remembered, Trace};
use races::{Race, Run, clocks};

/// A program of the race, by its place among them.
pub type Side = usize;

/// More programs than this cannot race.
pub const MOST_SIDES: usize = 8;

/// A set of programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sides(u8);

impl Sides {
    /// Nobody.
    pub const NONE: Sides = Sides(0);

    /// Only this one.
    pub fn one(side: Side) -> Sides {
        Sides(1 << side)
    }

    /// Whether the program is among them.
    pub fn has(self, side: Side) -> bool {
        self.0 & (1 << side) != 0
    }

    /// With this one.
    pub fn with(self, side: Side) -> Sides {
        Sides(self.0 | 1 << side)
    }

    /// Takes one in.
    pub fn insert(&mut self, side: Side) {
        *self = self.with(side);
    }

    /// Takes those in.
    pub fn join(&mut self, others: Sides) {
        *self = self.and(others);
    }

    /// Without those.
    pub fn but(self, others: Sides) -> Sides {
        Sides(self.0 & !others.0)
    }

    /// Those and these.
    pub fn and(self, others: Sides) -> Sides {
        Sides(self.0 | others.0)
    }

    /// Those that are in both.
    pub fn common(self, others: Sides) -> Sides {
        Sides(self.0 & others.0)
    }

    /// Nobody is in it.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// From the first to the last.
    pub fn iter(self) -> impl Iterator<Item = Side> {
        (0..MOST_SIDES).filter(move |side| self.has(*side))
    }
}

impl FromIterator<Side> for Sides {
    fn from_iter<I: IntoIterator<Item = Side>>(sides: I) -> Sides {
        sides.into_iter().fold(Sides::NONE, Sides::with)
    }
}

/// Where all programs stand before a step.
#[derive(Debug, Clone, Default)]
pub struct Moment {
    /// Those that can make their next step.
    pub enabled: Sides,
    /// The next step of each that is known to have one, also where it has to wait.
    pub next: Vec<Option<Touch>>,
    /// What else says who is enabled, as a digest: two moments after the same steps in orders that commute are the same only
    /// where this is.
    pub history: u64,
}

impl Moment {
    /// Of those that sleep, who still does once this program has made its step: what they would do commutes with it.
    fn still_asleep(&self, asleep: Sides, side: Side, touch: &Touch) -> Sides {
        let still = |other: &Side| {
            let next = self.next.get(*other).and_then(Option::as_ref);
            *other != side && next.is_none_or(|next| !next.conflicts(touch))
        };
        asleep.iter().filter(still).collect()
    }
}

/// A step of a run, with the moment before it.
#[derive(Debug, Clone)]
pub struct Made {
    /// Before the step.
    pub before: Moment,
    /// Who made it.
    pub side: Side,
    /// What it touched.
    pub touch: Touch,
}

/// A moment of the tree of all runs.
#[derive(Debug)]
struct Node {
    parent: Option<(usize, Side)>,
    depth: usize,
    enabled: Sides,
    /// Who made the step before.
    last: Option<Side>,
    /// Preemptions on the way here.
    preemptions: u32,
    /// To be tried from here.
    wanted: Sides,
    /// Tried, or being tried.
    taken: Sides,
    /// What they would do was done in another order already.
    sleep: Sides,
    /// What was done on the way here, whatever the order of what commutes, with the moment's history.
    trace: Trace,
}

impl Node {
    /// The preemptions on the way to where this program has made its step.
    fn cost(&self, side: Side) -> u32 {
        let leaves = self.last.is_some_and(|last| last != side && self.enabled.has(last));
        self.preemptions + u32::from(leaves)
    }
}

/// A run that is to be made.
#[derive(Debug, Clone)]
pub struct Walk {
    /// The steps that lead to where it is new.
    prefix: Vec<Side>,
    /// The node that the last of them starts from.
    from: Option<usize>,
    /// Those that sleep there.
    sleep: Sides,
    /// What the run has made so far.
    made: Vec<Made>,
    /// Who sleeps now.
    asleep: Sides,
    /// Sleep sets are in use.
    sleeps: bool,
    /// Who has made a step.
    begun: Sides,
    alike: Alike,
    /// The step that it is made for cannot be made.
    is_void: bool,
}

/// What a run should do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// This program makes its step.
    Go(Side),
    /// Everything from here on has been run in another order.
    Known,
    /// The program whose step is due cannot make one: the run has departed from the one that it follows.
    Departed,
}

impl Walk {
    /// Chooses who goes on; nobody can only be asked for if somebody is enabled.
    pub fn choose(&mut self, moment: Moment) -> Choice {
        let at = self.made.len();
        if self.is_void {
            return Choice::Known;
        }
        let enabled = self.alike.may_go(moment.enabled, self.begun);
        let moment = Moment { enabled, ..moment };
        let choice = match self.prefix.get(at) {
            Some(side) if moment.enabled.has(*side) => Choice::Go(*side),
            Some(_) => return Choice::Departed,
            None => {
                let awake = moment.enabled.but(self.asleep);
                let last = self.made.last().map(|made| made.side);
                let goes_on = last.filter(|last| awake.has(*last));
                match goes_on.or_else(|| awake.iter().next()) {
                    Some(side) => Choice::Go(side),
                    None => Choice::Known,
                }
            }
        };
        if let Choice::Go(side) = choice {
            let touch = moment.next.get(side).cloned().flatten().unwrap_or_default();
            if at + 1 == self.prefix.len() {
                self.asleep = self.sleep;
            }
            if at + 1 >= self.prefix.len() {
                self.asleep = moment.still_asleep(self.asleep, side, &touch);
            }
            self.begun.insert(side);
            self.made.push(Made { before: moment, side, touch });
        }
        choice
    }

    /// What the last step really touched, where that is known better now.
    pub fn correct(&mut self, touch: Touch) {
        if let Some(last) = self.made.last_mut() {
            last.touch = touch;
        }
    }

    /// The last step could not be made after all: who was to make it has to wait. Where it was the one that was to be
    /// tried, there is nothing to try.
    pub fn retract(&mut self) {
        self.made.pop();
        self.begun = self.made.iter().map(|made| made.side).collect();
        self.is_void |= self.made.len() < self.prefix.len();
    }
}

/// How far an exploration came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Runs that were made to their end.
    pub runs: u64,
    /// Runs that were broken off, since the rest was known.
    pub known: u64,
    /// Places where another order is due, and would cost more preemptions than are allowed.
    pub beyond_bound: u64,
    /// Places where another order is due, and was not tried.
    pub left: u64,
    /// Runs that were not made, since all their steps were made in an order that is the same.
    pub same: u64,
}

/// The tree of all runs, with what is still to be tried.
#[derive(Debug)]
pub struct Exploration {
    nodes: Vec<Node>,
    /// Nodes with something to try: the fewest preemptions first, then the deepest.
    open: BTreeSet<(u32, std::cmp::Reverse<usize>, usize)>,
    bound: Option<u32>,
    alike: Alike,
    begun: bool,
    counts: Counts,
    /// The runs that were made, with a bound: without one, sleep sets see to it that none is made twice.
    memory: Memory,
}

impl Exploration {
    /// With at most so many preemptions in a schedule, or any number.
    pub fn new(bound: Option<u32>, alike: Alike) -> Exploration {
        Exploration {
            nodes: Vec::new(),
            open: BTreeSet::new(),
            bound,
            alike,
            begun: false,
            counts: Counts::default(),
            memory: Memory::default(),
        }
    }

    /// One that makes every run, also where another was the same.
    #[cfg(test)]
    fn forgetful(bound: Option<u32>, alike: Alike) -> Exploration {
        Exploration { memory: Memory::of_nothing(), ..Exploration::new(bound, alike) }
    }

    /// The next run, if there is one to make now. Another may come from a run that is under way.
    pub fn claim(&mut self) -> Option<Walk> {
        loop {
            let walk = self.claim_any()?;
            match self.remembered(&walk) {
                Some((made, last)) => {
                    self.counts.same += 1;
                    self.take_in(&walk, &made, &last);
                }
                None => return Some(walk),
            }
        }
    }

    /// What a run would be, from one that was made.
    fn remembered(&self, walk: &Walk) -> Option<(Vec<Made>, Moment)> {
        let (from, side) = (walk.from?, *walk.prefix.last()?);
        let Remembered { made, last, at } = self.memory.find(&self.nodes[from].trace, side)?;
        let ids = self.path_to(Some(from));
        // Its steps so far are the same, in the order in which this one makes them.
        let mut begun = [0; MOST_SIDES];
        let mut whole: Vec<Made> = Vec::with_capacity(made.len());
        for (id, side) in ids.iter().zip(&walk.prefix).take(at) {
            let own = made[..at].iter().filter(|step| step.side == *side).nth(begun[*side])?;
            begun[*side] += 1;
            let before = Moment { enabled: self.nodes[*id].enabled, ..Moment::default() };
            whole.push(Made { before, side: *side, touch: own.touch.clone() });
        }
        whole.extend_from_slice(&made[at..]);
        Some((whole, last.clone()))
    }

    fn claim_any(&mut self) -> Option<Walk> {
        let (sleeps, alike) = (self.bound.is_none(), self.alike);
        let walk = |prefix, from, sleep| Walk {
            prefix,
            from,
            sleep,
            made: Vec::new(),
            asleep: Sides::NONE,
            sleeps,
            begun: Sides::NONE,
            alike,
            is_void: false,
        };
        if !self.begun {
            self.begun = true;
            return Some(walk(Vec::new(), None, Sides::NONE));
        }
        let (.., id) = *self.open.first()?;
        let node = &self.nodes[id];
        let side = self.to_try(node).min_by_key(|side| node.cost(*side))?;
        let sleep = if sleeps { node.sleep.and(node.taken) } else { Sides::NONE };
        let mut prefix = vec![side];
        let mut at = node;
        while let Some((parent, step)) = at.parent {
            prefix.push(step);
            at = &self.nodes[parent];
        }
        prefix.reverse();
        self.change(id, |node| node.taken = node.taken.with(side));
        Some(walk(prefix, Some(id), sleep))
    }

    /// Takes in what a run came to, at the `last` moment of which nobody could go on.
    pub fn finish(&mut self, walk: Walk, last: Moment, is_known: bool) {
        match is_known {
            true => self.counts.known += 1,
            false => self.counts.runs += 1,
        }
        let mut walk = walk;
        let made = std::mem::take(&mut walk.made);
        let traces = self.take_in(&walk, &made, &last);
        if self.bound.is_some() && !is_known {
            // From the last step of its prefix on it went on by itself.
            self.memory.add(made, last, walk.prefix.len().saturating_sub(1), &traces);
        }
    }

    /// Takes in the steps of a run, and what they say of other orders; gives what was done before each.
    fn take_in(&mut self, walk: &Walk, made: &[Made], last: &Moment) -> Vec<Trace> {
        let Walk { prefix, from, sleep, sleeps, .. } = walk;
        let first = prefix.len();
        let touches = Touches::of(made);
        let beginnings = Beginnings::of(made, self.alike);
        let clocks = clocks(made, &touches, &beginnings);
        let traces = if self.bound.is_some() { memory::traces(made, &clocks) } else { Vec::new() };
        // Nodes of this run: of the prefix those that are there already.
        let mut ids = self.path_to(*from);
        let mut asleep = *sleep;
        for at in ids.len()..made.len() {
            if at > 0 && *sleeps {
                let step = &made[at - 1];
                asleep = step.before.still_asleep(asleep, step.side, &step.touch);
            }
            let parent = at.checked_sub(1).map(|parent| (ids[parent], made[parent].side));
            let (preemptions, before) = match parent {
                Some((id, side)) => (self.nodes[id].cost(side), Some(side)),
                None => (0, None),
            };
            let side = made[at].side;
            self.nodes.push(Node {
                parent,
                depth: at,
                enabled: made[at].before.enabled,
                last: before,
                preemptions,
                wanted: Sides::one(side),
                taken: Sides::one(side),
                sleep: if *sleeps { asleep } else { Sides::NONE },
                trace: traces.get(at).copied().unwrap_or_default(),
            });
            ids.push(self.nodes.len() - 1);
        }
        let run = Run { made, touches: &touches, clocks: &clocks, beginnings: &beginnings };
        for (at, race) in run.races(last, first, self.bound.is_some()) {
            self.want(&ids, &run, last, at, race);
        }
        traces
    }

    /// What is known of the exploration so far.
    pub fn counts(&self) -> Counts {
        let left = self.open.iter().map(|(.., id)| self.to_try(&self.nodes[*id]).count() as u64);
        Counts { left: left.sum(), ..self.counts }
    }

    fn path_to(&self, node: Option<usize>) -> Vec<usize> {
        let mut ids: Vec<usize> =
            std::iter::successors(node, |id| self.nodes[*id].parent.map(|(parent, _)| parent))
                .collect();
        ids.reverse();
        ids
    }

    fn to_try<'n>(&self, node: &'n Node) -> impl Iterator<Item = Side> + use<'n> {
        let bound = self.bound;
        let open = node.wanted.but(node.taken).but(node.sleep);
        open.iter().filter(move |side| bound.is_none_or(|bound| node.cost(*side) <= bound))
    }

    fn key(&self, id: usize) -> Option<(u32, std::cmp::Reverse<usize>, usize)> {
        let node = &self.nodes[id];
        let least = self.to_try(node).map(|side| node.cost(side)).min()?;
        Some((least, std::cmp::Reverse(node.depth), id))
    }

    fn change(&mut self, id: usize, change: impl FnOnce(&mut Node)) {
        if let Some(key) = self.key(id) {
            self.open.remove(&key);
        }
        change(&mut self.nodes[id]);
        if let Some(key) = self.key(id) {
            self.open.insert(key);
        }
    }

    /// At this place the order is to be turned.
    fn want<'m>(
        &mut self,
        ids: &[usize],
        run: &Run<'m, '_>,
        last: &'m Moment,
        at: usize,
        race: Race,
    ) {
        let made = run.made;
        let node = &self.nodes[ids[at]];
        let enabled = node.enabled;
        let race = Race { first: race.first.common(enabled), ..race };
        let wanted = match self.bound {
            // One of those that could come first is enough, and also where what it would do is known.
            None if !race.first.common(node.wanted.and(node.sleep)).is_empty() => return,
            None if race.first.has(race.side) => Sides::one(race.side),
            None => race.first.iter().next().map_or(enabled, Sides::one),
            Some(_) if enabled.has(race.side) => Sides::one(race.side),
            Some(_) => enabled,
        };
        let mut places = vec![at];
        if self.bound.is_some() {
            // Where the one that goes second was let on: a switch there may cost nothing.
            let block = (1..=at).rev().find(|step| made[*step].side != made[*step - 1].side);
            let block = block.unwrap_or(0);
            places.push(block);
            // Or where it comes to wait for what the other has locked, so that the other goes on at no cost.
            places.extend(run.locked_for(race.side, last, block, at));
        }
        for place in places {
            let enabled = made[place].before.enabled;
            let wanted = match place == at {
                true => wanted,
                false if enabled.has(race.side) => Sides::one(race.side),
                false => enabled,
            };
            let node = &self.nodes[ids[place]];
            let new = wanted.but(node.wanted);
            if let Some(bound) = self.bound {
                let beyond = new.iter().filter(|side| node.cost(*side) > bound).count();
                self.counts.beyond_bound += beyond as u64;
            }
            self.change(ids[place], |node| node.wanted = node.wanted.and(wanted));
        }
    }
}

/// How many interleavings there are of programs that make so many steps each, as a power of ten.
pub fn interleavings(steps: &[usize]) -> f64 {
    let log_factorial = |count: usize| (1..=count).map(|k| (k as f64).log10()).sum::<f64>();
    log_factorial(steps.iter().sum()) - steps.iter().map(|count| log_factorial(*count)).sum::<f64>()
}

#[cfg(test)]
mod tests;
