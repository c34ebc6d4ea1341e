//! The reduction is held against all schedules of small random programs.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::op::FileId;
use crate::op::touch::{Access, Locks, Object, Waits};

/// A step of a small program with one register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Variable to register.
    Read(u32),
    /// Register plus a number to variable.
    Write(u32, i32),
    /// Waits until it is free.
    Lock(u32),
    /// One to the register where it was free, zero where not.
    TryLock(u32),
    Unlock(u32),
    /// Ends where the register is zero.
    Unless,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct World {
    variables: BTreeMap<u32, i32>,
    locks: BTreeMap<u32, Side>,
    at: Vec<usize>,
    registers: Vec<i32>,
}

struct System(Vec<Vec<Step>>);

impl System {
    fn begin(&self) -> World {
        let count = self.0.len();
        World {
            variables: BTreeMap::new(),
            locks: BTreeMap::new(),
            at: vec![0; count],
            registers: vec![0; count],
        }
    }

    fn touch(&self, world: &World, side: Side) -> Option<Touch> {
        let content = |variable| Object::Content(FileId(variable));
        let lock = |lock| Access::change(Object::Lock(FileId(lock), Locks::Whole));
        Some(match *self.0[side].get(world.at[side])? {
            Step::Read(variable) => Touch::new(vec![Access::look(content(variable))], Waits::Never),
            Step::Write(variable, _) => {
                Touch::new(vec![Access::change(content(variable))], Waits::Never)
            }
            Step::Lock(name) => Touch::new(vec![lock(name)], Waits::ForLock),
            Step::TryLock(name) => Touch::new(vec![lock(name)], Waits::Never),
            Step::Unlock(name) if world.locks.get(&name) == Some(&side) => {
                Touch::new(vec![lock(name)], Waits::LetsGo)
            }
            Step::Unlock(_) => Touch::default(),
            Step::Unless => Touch::default(),
        })
    }

    fn moment(&self, world: &World) -> Moment {
        let next: Vec<_> = (0..self.0.len()).map(|side| self.touch(world, side)).collect();
        let can = |side: &Side| match self.0[*side].get(world.at[*side]) {
            Some(Step::Lock(name)) => !world.locks.contains_key(name),
            step => step.is_some(),
        };
        Moment { enabled: (0..self.0.len()).filter(can).collect(), next, history: 0 }
    }

    fn step(&self, world: &mut World, side: Side) {
        let step = self.0[side][world.at[side]];
        world.at[side] += 1;
        match step {
            Step::Read(variable) => {
                world.registers[side] = world.variables.get(&variable).copied().unwrap_or(0);
            }
            Step::Write(variable, plus) => {
                world.variables.insert(variable, world.registers[side] + plus);
            }
            Step::Lock(name) => _ = world.locks.insert(name, side),
            Step::TryLock(name) => {
                world.registers[side] = i32::from(!world.locks.contains_key(&name));
                world.locks.entry(name).or_insert(side);
            }
            Step::Unlock(name) => {
                if world.locks.get(&name) == Some(&side) {
                    world.locks.remove(&name);
                }
            }
            Step::Unless if world.registers[side] == 0 => world.at[side] = self.0[side].len(),
            Step::Unless => {}
        }
    }

    fn alike(&self) -> Alike {
        Alike::of(&self.0)
    }

    /// The world in which programs that are the same are exchanged, of all these the least.
    fn whoever_is_who(&self, world: &World) -> World {
        let orders = crate::judge::orders(self.0.len());
        let whole = orders.into_iter().filter(|order| order.len() == self.0.len());
        let same = whole
            .filter(|order| order.iter().enumerate().all(|(to, from)| self.0[to] == self.0[*from]));
        let exchanged = same.map(|order| {
            let place = |side: &Side| order.iter().position(|from| from == side).unwrap();
            World {
                variables: world.variables.clone(),
                locks: world.locks.iter().map(|(name, side)| (*name, place(side))).collect(),
                at: order.iter().map(|from| world.at[*from]).collect(),
                registers: order.iter().map(|from| world.registers[*from]).collect(),
            }
        });
        exchanged.min().unwrap()
    }

    /// Where every schedule within the bound ends, and how many there are.
    fn all(&self, bound: Option<u32>) -> (BTreeSet<World>, u64) {
        let (mut ends, mut count) = (BTreeSet::new(), 0);
        let mut open = vec![(self.begin(), None, 0)];
        while let Some((world, last, spent)) = open.pop() {
            let enabled = self.moment(&world).enabled;
            if enabled.is_empty() {
                ends.insert(world);
                count += 1;
                continue;
            }
            for side in enabled.iter() {
                let leaves = last.is_some_and(|last| last != side && enabled.has(last));
                let spent = spent + u32::from(leaves);
                if bound.is_none_or(|bound| spent <= bound) {
                    let mut world = world.clone();
                    self.step(&mut world, side);
                    open.push((world, Some(side), spent));
                }
            }
        }
        (ends, count)
    }

    /// The same by the reduction, with so many runs under way at once.
    fn reduced(&self, bound: Option<u32>, at_once: usize) -> (BTreeSet<World>, Counts) {
        self.explored(Exploration::new(bound, Alike::default()), at_once)
    }

    fn explored(&self, mut exploration: Exploration, at_once: usize) -> (BTreeSet<World>, Counts) {
        let mut ends = BTreeSet::new();
        let mut under_way = std::collections::VecDeque::new();
        loop {
            while under_way.len() < at_once
                && let Some(walk) = exploration.claim()
            {
                under_way.push_back(walk);
            }
            let Some(mut walk) = under_way.pop_front() else { break };
            let mut world = self.begin();
            let (last, is_known) = loop {
                let moment = self.moment(&world);
                if moment.enabled.is_empty() {
                    break (moment, false);
                }
                match walk.choose(moment.clone()) {
                    Choice::Go(side) => self.step(&mut world, side),
                    Choice::Known => break (moment, true),
                    Choice::Departed => panic!("programs are the same each time"),
                }
            };
            exploration.finish(walk, last, is_known);
            if !is_known {
                ends.insert(world);
            }
        }
        (ends, exploration.counts())
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..3u32).prop_map(Step::Read),
        3 => (0..3u32, 0..4).prop_map(|(variable, plus)| Step::Write(variable, plus)),
        1 => (0..2u32).prop_map(Step::Lock),
        1 => (0..2u32).prop_map(Step::TryLock),
        2 => (0..2u32).prop_map(Step::Unlock),
        1 => Just(Step::Unless),
    ]
}

fn systems(sides: std::ops::RangeInclusive<usize>, steps: usize) -> impl Strategy<Value = System> {
    let program = prop::collection::vec(step(), 1..=steps);
    prop::collection::vec(program, sides).prop_map(System)
}

impl std::fmt::Debug for System {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Some of them are the same.
fn with_same(
    programs: std::ops::RangeInclusive<usize>,
    which: usize,
    steps: usize,
) -> impl Strategy<Value = System> {
    let program = prop::collection::vec(step(), 1..=steps);
    let sides = prop::collection::vec(0..which, programs);
    (prop::collection::vec(program, which), sides).prop_map(|(programs, sides)| {
        System(sides.iter().map(|side| programs[*side].clone()).collect())
    })
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, cases, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(800))]

    #[test]
    fn two_programs_end_everywhere_where_they_can(system in systems(2..=2, 6), at_once in 1..4usize) {
        for bound in [None, Some(0), Some(1), Some(2)] {
            let (ends, count) = system.all(bound);
            let (reduced, counts) = system.reduced(bound, at_once);
            prop_assert_eq!(&reduced, &ends, "{:?}", bound);
            prop_assert!(bound.is_some() || counts.runs <= count);
            prop_assert_eq!(counts.left, 0);
        }
    }

    #[test]
    fn three_programs_end_everywhere_where_they_can(system in systems(3..=3, 4), at_once in 1..4usize) {
        for bound in [None, Some(0), Some(1), Some(2)] {
            let (ends, count) = system.all(bound);
            let (reduced, counts) = system.reduced(bound, at_once);
            prop_assert_eq!(&reduced, &ends, "{:?}", bound);
            prop_assert!(bound.is_some() || counts.runs <= count);
        }
    }
}

proptest! {
    #![proptest_config(config(250))]

    /// Of orders that differ in who of those is who, one was run.
    #[test]
    fn of_programs_that_are_the_same_it_matters_not_who_is_who(
        system in prop_oneof![with_same(2..=2, 1, 6), with_same(3..=3, 2, 4), with_same(3..=3, 1, 4)],
        at_once in 1..4usize,
    ) {
        for bound in [None, Some(0), Some(1), Some(2)] {
            let whoever = |ends: BTreeSet<World>| -> BTreeSet<World> {
                ends.iter().map(|end| system.whoever_is_who(end)).collect()
            };
            let ends = whoever(system.all(bound).0);
            let (reduced, counts) = system.explored(Exploration::new(bound, system.alike()), at_once);
            prop_assert_eq!(&whoever(reduced), &ends, "{:?}", bound);
            prop_assert_eq!(counts.left, 0);
        }
    }
}

proptest! {
    #![proptest_config(config(600))]

    /// Runs that are remembered instead of made are those that would have been made, in the same order.
    #[test]
    fn what_is_remembered_leaves_nothing_out(system in systems(2..=3, 4), bound in 0..4u32) {
        let (ends, counts) = system.explored(Exploration::new(Some(bound), system.alike()), 1);
        let forgetful = Exploration::forgetful(Some(bound), system.alike());
        let (all_ends, all) = system.explored(forgetful, 1);
        prop_assert_eq!(ends, all_ends);
        prop_assert_eq!(counts.runs + counts.same, all.runs);
        prop_assert_eq!((counts.beyond_bound, counts.left), (all.beyond_bound, all.left));
        prop_assert_eq!(all.same, 0);
    }
}

/// Three programs that write once each, to files of their own and to one that is common: most of what a bound makes to be
/// tried was there before.
#[test]
fn what_was_made_in_another_order_is_remembered() {
    let program =
        |own| vec![Step::Write(own, 1), Step::Read(0), Step::Write(own, 1), Step::Write(0, 1)];
    let system = System(vec![program(1), program(2), program(3)]);
    let (_, counts) = system.reduced(Some(2), 1);
    let (_, all) = system.explored(Exploration::forgetful(Some(2), Alike::default()), 1);
    assert_eq!(counts.runs + counts.same, all.runs);
    assert!(counts.same > counts.runs, "{counts:?}");
}

/// Programs that have nothing in common need one run; without the reduction these have 252.
#[test]
fn what_commutes_is_run_once() {
    let system = System(vec![vec![Step::Write(0, 1); 5], vec![Step::Write(1, 1); 5]]);
    assert_eq!(system.all(None).1, 252);
    let (_, counts) = system.reduced(None, 1);
    assert_eq!((counts.runs, counts.known), (1, 0));
}

/// Under one lock there is one order of whole programs or the other.
#[test]
fn a_lock_leaves_two_orders() {
    let program = vec![Step::Lock(0), Step::Read(0), Step::Write(0, 1), Step::Unlock(0)];
    let system = System(vec![program.clone(), program]);
    let (ends, counts) = system.reduced(None, 1);
    assert_eq!((ends.len(), counts.runs), (2, 2));
}

/// Of three that are the same the first goes first.
#[test]
fn under_a_lock_who_is_who_leaves_one_order() {
    let program = vec![Step::Lock(0), Step::Read(0), Step::Write(0, 1), Step::Unlock(0)];
    let system = System(vec![program; 3]);
    assert_eq!(system.reduced(None, 1).1.runs, 6);
    let (ends, counts) = system.explored(Exploration::new(None, system.alike()), 1);
    assert_eq!((ends.len(), counts.runs), (1, 1));
}

#[test]
fn interleavings_are_counted() {
    assert!((interleavings(&[5, 5]) - 252f64.log10()).abs() < 1e-9);
    assert_eq!(interleavings(&[7]), 0.0);
}

/// A switch where the lock is held costs nothing when the other comes to wait for it, and the same order of what matters costs
/// one preemption more when the switch comes before or behind.
#[test]
fn a_bound_counts_the_cheapest_of_orders_that_are_the_same() {
    let waits_for_ever = System(vec![
        vec![Step::TryLock(0), Step::Unlock(0), Step::Write(1, 1)],
        vec![Step::Read(1), Step::Lock(0)],
        vec![Step::Write(1, 1), Step::Lock(0)],
    ]);
    let waits = System(vec![
        vec![Step::Write(0, 1), Step::Lock(0), Step::Write(0, 2)],
        vec![Step::Lock(0), Step::Read(0), Step::Write(0, 2), Step::Unlock(0), Step::Read(0)],
    ]);
    for system in [waits_for_ever, waits] {
        assert_eq!(system.reduced(Some(1), 1).0, system.all(Some(1)).0, "{system:?}");
    }
}
