//! Kill of one process of several: the others go on, so that each such kill is a run of its own.
//!
//! Runs of several processes go in another order each time. So a place is told by the process and by how many ops it has
//! done itself, and processes are numbered by who made them: 1 is the first, then come those that it made, each followed
//! by its own.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use crate::op::{Event, What};
use crate::scenario::KillPoint;
use crate::trace::{Director, Step};

/// Which process: the way down from the first one, at each step how many its maker had made with it, threads counted.
type Descent = Vec<u32>;

/// Knows the processes of a run by their ids.
#[derive(Debug, Default)]
struct Family {
    known: HashMap<i32, Descent>,
    made: HashMap<i32, u32>,
}

impl Family {
    /// Who did this event.
    fn actor_of(&mut self, event: &Event) -> Descent {
        let pid = event.actor.pid;
        let first = self.known.is_empty();
        // Whoever came from nowhere is behind all others.
        let unknown = || if first { Descent::new() } else { vec![u32::MAX, pid.unsigned_abs()] };
        let actor = self.known.entry(pid).or_insert_with(unknown).clone();
        if let What::Spawned { child } = event.what {
            let made = self.made.entry(pid).or_default();
            *made += 1;
            self.known.insert(child, [actor.as_slice(), &[*made]].concat());
        }
        actor
    }
}

/// A process of a recording.
#[derive(Debug)]
struct Process {
    /// How many ops it did.
    ops: u32,
    /// The programs that it was, each with how many ops it had done when it became that.
    programs: Vec<(u32, PathBuf)>,
}

fn processes(events: &[Event]) -> BTreeMap<Descent, Process> {
    let mut family = Family::default();
    let mut found: BTreeMap<Descent, Process> = BTreeMap::new();
    // What is made runs what its maker runs.
    let mut born: HashMap<i32, PathBuf> = HashMap::new();
    for event in events {
        let actor = family.actor_of(event);
        let inherited = || born.get(&event.actor.pid).map(|program| (0, program.clone()));
        let new = || Process { ops: 0, programs: inherited().into_iter().collect() };
        let process = found.entry(actor).or_insert_with(new);
        match &event.what {
            What::Op(_) => process.ops += 1,
            What::Executed { path } => process.programs.push((process.ops, path.clone())),
            What::Spawned { child } => {
                if let Some((_, program)) = process.programs.last() {
                    born.insert(*child, program.clone());
                }
            }
            _ => {}
        }
    }
    found
}

/// Every place at which one process can be killed alone: after each of its ops, and, but for the first process, at its
/// birth.
pub fn places(events: &[Event]) -> Vec<KillPoint> {
    let all = processes(events);
    let of_one = |(number, (descent, process)): (u32, (&Descent, &Process))| {
        let first = u32::from(descent.is_empty());
        (first..=process.ops).map(move |nth| KillPoint::Process(number, nth)).collect::<Vec<_>>()
    };
    (1..).zip(&all).flat_map(of_one).collect()
}

/// The program that a process of a recording was when it did an op; for its birth, what it became then.
pub fn program_of(events: &[Event], number: u32, nth: u32) -> Option<PathBuf> {
    let process = processes(events).into_values().nth(number.checked_sub(1)? as usize)?;
    let was = process.programs.into_iter().rev().find(|(ops, _)| *ops < nth.max(1));
    was.map(|(_, program)| program)
}

/// Kills one process at a place, and lets the others go on.
#[derive(Debug)]
pub struct KillOne {
    victim: Descent,
    nth: u32,
    family: Family,
    seen: u32,
    /// The process that was killed, when its place came.
    pub killed: Option<i32>,
}

impl KillOne {
    /// A director for one run like the recorded one; `None` where that has no such process.
    pub fn new(recorded: &[Event], number: u32, nth: u32) -> Option<KillOne> {
        let victim = processes(recorded).into_keys().nth(number.checked_sub(1)? as usize)?;
        Some(KillOne { victim, nth, family: Family::default(), seen: 0, killed: None })
    }

    /// How many of a run's events came up to the place, the one at which it comes among them.
    pub fn place_in(&self, events: &[Event]) -> Option<usize> {
        let mut again = KillOne {
            victim: self.victim.clone(),
            family: Family::default(),
            seen: 0,
            killed: None,
            ..*self
        };
        events.iter().position(|event| again.strikes(event).is_some()).map(|position| position + 1)
    }

    /// The process that is to be killed at this event.
    fn strikes(&mut self, event: &Event) -> Option<i32> {
        let actor = self.family.actor_of(event);
        if self.killed.is_some() {
            return None;
        }
        self.killed = match event.what {
            What::Op(_) if actor == self.victim => {
                self.seen += 1;
                (self.seen == self.nth).then_some(event.actor.pid)
            }
            What::Spawned { child } if self.nth == 0 => {
                (self.family.known.get(&child) == Some(&self.victim)).then_some(child)
            }
            _ => None,
        };
        self.killed
    }
}

impl Director for KillOne {
    fn after(&mut self, event: &Event) -> Step {
        self.strikes(event).map_or(Step::Go, Step::KillProcess)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Actor, Op, OpKind};

    fn event(pid: i32, what: What) -> Event {
        Event { actor: Actor { program: 0, pid, tid: pid }, what }
    }

    fn op(pid: i32) -> Event {
        let kind = OpKind::SyncAll;
        event(pid, What::Op(Op { number: 0, call: "sync".into(), kind }))
    }

    fn spawned(pid: i32, child: i32) -> Event {
        event(pid, What::Spawned { child })
    }

    /// Two children of the first process, and a grandchild, in the order that comes.
    #[test]
    fn a_process_has_one_number_whatever_the_order() {
        let begins = |pid| event(pid, What::Executed { path: PathBuf::from(format!("/{pid}")) });
        let one = [
            begins(9),
            spawned(9, 5),
            op(5),
            spawned(5, 7),
            spawned(9, 3),
            begins(3),
            op(3),
            op(7),
        ];
        let other = [
            begins(9),
            spawned(9, 5),
            spawned(9, 3),
            spawned(5, 7),
            op(7),
            begins(3),
            op(5),
            op(3),
        ];
        let told = |events: &[Event]| {
            places(events).iter().map(KillPoint::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            told(&one),
            "process:2#0 process:2#1 process:3#0 process:3#1 process:4#0 process:4#1"
        );
        assert_eq!(told(&one), told(&other));
        assert_eq!(program_of(&one, 4, 1), Some("/3".into()));
        // A shell can become the last program that it is to run.
        let later = [&one[..], &[event(3, What::Executed { path: "/rm".into() }), op(3)]].concat();
        let programs = [0, 1, 2].map(|nth| program_of(&later, 4, nth));
        assert_eq!(programs, ["/3", "/3", "/rm"].map(|program| Some(PathBuf::from(program))));
        let mut killer = KillOne::new(&one, 3, 1).unwrap();
        let killed = other.iter().position(|event| killer.after(event) == Step::KillProcess(7));
        assert_eq!(
            (killed, killer.place_in(&other), killer.place_in(&one)),
            (Some(4), Some(5), Some(8))
        );
        let mut killer = KillOne::new(&one, 4, 0).unwrap();
        assert_eq!(
            one.iter().position(|event| killer.after(event) == Step::KillProcess(3)),
            Some(4)
        );
        assert!(KillOne::new(&one, 5, 1).is_none());
    }
}
