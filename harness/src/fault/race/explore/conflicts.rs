//! Which of a run's touches conflict, asked once for each pair: a run of many steps has few that are different.

use std::cell::RefCell;
use std::collections::HashMap;

use super::Made;
use crate::op::touch::Touch;

/// A touch, by its place among those of a run that are different.
pub(super) type Id = usize;

/// What is known of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pair {
    Unasked,
    Conflict,
    Commute,
}

/// The touches of a run, those of its steps and those that came next.
#[derive(Debug)]
pub(super) struct Touches<'m> {
    ids: RefCell<HashMap<&'m Touch, Id>>,
    all: RefCell<Vec<&'m Touch>>,
    /// A row for each touch, with those before it and itself.
    pairs: RefCell<Vec<Vec<Pair>>>,
    /// Of each step.
    steps: Vec<Id>,
}

impl<'m> Touches<'m> {
    /// Those of these steps.
    pub(super) fn of(made: &'m [Made]) -> Touches<'m> {
        let (ids, all, pairs) = (RefCell::default(), RefCell::default(), RefCell::default());
        let mut touches = Touches { ids, all, pairs, steps: Vec::new() };
        touches.steps = made.iter().map(|made| touches.id(&made.touch)).collect();
        touches
    }

    /// This one's place.
    pub(super) fn id(&self, touch: &'m Touch) -> Id {
        *self.ids.borrow_mut().entry(touch).or_insert_with(|| {
            let mut all = self.all.borrow_mut();
            all.push(touch);
            self.pairs.borrow_mut().push(vec![Pair::Unasked; all.len()]);
            all.len() - 1
        })
    }

    /// That of a step.
    pub(super) fn step(&self, at: usize) -> Id {
        self.steps[at]
    }

    /// The order of the two matters.
    pub(super) fn conflict(&self, one: Id, other: Id) -> bool {
        let (high, low) = (one.max(other), one.min(other));
        let pair = &mut self.pairs.borrow_mut()[high][low];
        if *pair == Pair::Unasked {
            let all = self.all.borrow();
            let conflicts = all[one].conflicts(all[other]);
            *pair = if conflicts { Pair::Conflict } else { Pair::Commute };
        }
        *pair == Pair::Conflict
    }
}
