//! Overlap: several processes at once, each held and released at its marks in an order that the scenario gives.

use crate::op::{Event, What};
use crate::scenario::{Turn, Until};
use crate::trace::{Director, Standing, Step};

/// Lets the processes take their turns.
#[derive(Debug)]
pub struct Turns {
    /// Position of the process, and the mark at which its turn ends (`None`: at its end).
    turns: Vec<(usize, Option<String>)>,
    /// The turn at hand.
    at: usize,
    /// Where a process was held, for the report.
    pub held: Vec<(usize, String)>,
}

impl Turns {
    /// The turns of processes that are known by these names, in the order in which the run starts them.
    pub fn new(names: &[String], order: &[Turn]) -> Turns {
        let position =
            |turn: &Turn| names.iter().position(|name| *name == turn.process).unwrap_or(usize::MAX);
        let until = |turn: &Turn| match &turn.until {
            Until::Mark(name) => Some(name.clone()),
            Until::End => None,
        };
        let turns = order.iter().map(|turn| (position(turn), until(turn))).collect();
        Turns { turns, at: 0, held: Vec::new() }
    }

    /// Turns that were to end by a mark that never came: the process and the mark.
    pub fn never_reached(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut held = self.held.clone();
        self.turns.iter().filter_map(|(process, mark)| Some((*process, mark.as_deref()?))).filter(
            move |(process, mark)| {
                let at = held.iter().position(|(other, name)| other == process && name == mark);
                at.map(|at| held.swap_remove(at)).is_none()
            },
        )
    }
}

impl Director for Turns {
    fn start(&mut self, _program: usize) -> Step {
        Step::Hold
    }

    fn after(&mut self, event: &Event) -> Step {
        let What::Mark(name) = &event.what else {
            return Step::Go;
        };
        match self.turns.get(self.at) {
            Some((process, Some(mark))) if *process == event.actor.program && mark == name => {
                self.held.push((*process, name.clone()));
                self.at += 1;
                Step::Hold
            }
            _ => Step::Go,
        }
    }

    fn next(&mut self, standings: &[Standing]) -> Option<usize> {
        while let Some((process, _)) = self.turns.get(self.at) {
            // A turn is over when its process ended or waits for a lock; its mark ends it in `after`.
            match standings.get(*process) {
                Some(Standing::Held) => return Some(*process),
                _ => self.at += 1,
            }
        }
        None
    }
}
