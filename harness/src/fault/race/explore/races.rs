//! Which steps of a run could have come in another order.

use super::alike::Beginnings;
use super::conflicts::{Id, Touches};
use super::{Made, Moment, Side, Sides};
use crate::op::touch::{Touch, Waits};

/// A program that could have made its step earlier.
pub(super) struct Race {
    /// Who.
    pub(super) side: Side,
    /// Those that could go first on the way there.
    pub(super) first: Sides,
}

/// A run that was made, with what is known of its steps.
pub(super) struct Run<'m, 'r> {
    /// Its steps.
    pub(super) made: &'m [Made],
    /// What they touch.
    pub(super) touches: &'r Touches<'m>,
    /// What each of them can have seen.
    pub(super) clocks: &'r [Vec<usize>],
    /// Where its programs begin.
    pub(super) beginnings: &'r Beginnings,
}

impl<'m> Run<'m, '_> {
    /// Steps that could have come before one that they conflict with: the place of that one, and who would have led there.
    /// Only what is new in this run: its first `known` steps but the last were made before. `bounded`: preemptions are.
    pub(super) fn races(
        &self,
        last: &'m Moment,
        known: usize,
        bounded: bool,
    ) -> Vec<(usize, Race)> {
        let made = self.made;
        let mut races = Vec::new();
        let mut look = |at: usize, side: Side, next: &'m Touch| {
            let next = (next, self.touches.id(next));
            for step in self.conflicts(at, side, next) {
                races.push((step, Race { side, first: self.initials(step, at, side, next.1) }));
            }
        };
        for (at, step) in made.iter().enumerate().skip(known.saturating_sub(1)) {
            look(at, step.side, &step.touch);
        }
        // With a bound, a step may come too late for one that it conflicts with: then where it could have come counts.
        let from = if bounded { known.max(1) } else { made.len() };
        for at in from..=made.len() {
            let moment = made.get(at).map_or(last, |made| &made.before);
            for (side, next) in moment.next.iter().enumerate() {
                if let Some(next) = next {
                    look(at, side, next);
                }
            }
        }
        races
    }

    /// The places between these right behind or before a step that locks or lets go what a program waits for at some time.
    pub(super) fn locked_for(
        &self,
        side: Side,
        last: &'m Moment,
        from: usize,
        to: usize,
    ) -> Vec<usize> {
        let own = self.made.iter().enumerate().filter(|(_, made)| made.side == side);
        let own = own.map(|(at, made)| (&made.touch, self.touches.step(at)));
        let next = last.next.get(side).and_then(Option::as_ref);
        let all = own.chain(next.map(|next| (next, self.touches.id(next))));
        let mut waits: Vec<Id> =
            all.filter(|(touch, _)| touch.waits == Waits::ForLock).map(|(_, id)| id).collect();
        waits.sort_unstable();
        waits.dedup();
        let locks = |step: usize| {
            let step = self.touches.step(step);
            waits.iter().any(|wait| self.touches.conflict(*wait, step))
        };
        if waits.is_empty() {
            return Vec::new();
        }
        (from + 1..to).filter(|place| locks(*place - 1) || locks(*place)).collect()
    }

    /// The step `by` has seen another.
    fn sees(&self, by: usize, step: usize) -> bool {
        self.clocks[by].get(self.made[step].side).is_some_and(|seen| *seen > step)
    }

    /// The step before `at` that has let a program begin.
    fn started_by(&self, side: Side, at: usize) -> Option<usize> {
        self.beginnings.started_by(side).filter(|step| *step < at)
    }

    /// The steps before `at` that conflict with this next one of a program, whose order is not given by anything else.
    fn conflicts(&self, at: usize, side: Side, (next, id): (&Touch, Id)) -> Vec<usize> {
        let made = self.made;
        let own = made[..at].iter().rposition(|made| made.side == side);
        // What happened before the one that is the same began is ordered by that.
        let started = if own.is_none() { self.started_by(side, at) } else { None };
        if own.is_none() && started.is_none() && self.beginnings.is_started(side) {
            // The one that is to begin before it stands before the same step.
            return Vec::new();
        }
        let mut found: Vec<usize> = Vec::new();
        // What conflicts with the step, the latest first; what happened before one of them is ordered by it.
        let mut between: Vec<usize> = own.into_iter().chain(started).collect();
        for step in (0..at).rev() {
            let other = &made[step];
            if other.side == side
                || !self.touches.conflict(self.touches.step(step), id)
                || other.touch.excludes(next)
            {
                continue;
            }
            // It has to wait right before: the two were never next at the same time.
            if own.is_none_or(|own| own < step) && !other.before.enabled.has(side) {
                continue;
            }
            if !between.iter().any(|later| self.sees(*later, step)) {
                found.push(step);
            }
            between.push(step);
        }
        found
    }

    /// Who could go first at `step` on the way to the next step of the program at `at`, with nothing that follows from `step`.
    fn initials(&self, step: usize, at: usize, side: Side, next: Id) -> Sides {
        let free: Vec<usize> = (step + 1..at).filter(|later| !self.sees(*later, step)).collect();
        let mut first = Sides::NONE;
        let mut begun = Sides::NONE;
        for later in &free {
            let other = self.made[*later].side;
            let follows = free.iter().any(|before| before < later && self.sees(*later, *before));
            if !begun.has(other) && !follows {
                first = first.with(other);
            }
            begun = begun.with(other);
        }
        let started = self.started_by(side, at);
        let follows = free.iter().any(|before| {
            let touch = self.touches.step(*before);
            let conflicts = || self.touches.conflict(touch, next);
            self.made[*before].side == side || started == Some(*before) || conflicts()
        });
        if follows { first } else { first.with(side) }
    }
}

/// For each step, how much of each program it can have seen: one more than the place of the last step of that program
/// that happened before it, itself included.
pub(super) fn clocks(
    made: &[Made],
    touches: &Touches<'_>,
    beginnings: &Beginnings,
) -> Vec<Vec<usize>> {
    let sides = made.iter().map(|made| made.side + 1).max().unwrap_or(0);
    let mut clocks: Vec<Vec<usize>> = Vec::with_capacity(made.len());
    for (at, step) in made.iter().enumerate() {
        let mut clock = vec![0; sides];
        for earlier in (0..at).rev() {
            let other = &made[earlier];
            if clock[other.side] > earlier {
                continue;
            }
            let conflict = || touches.conflict(touches.step(earlier), touches.step(at));
            let starts = || beginnings.starts(earlier, at, step.side);
            if other.side == step.side || starts() || conflict() {
                for (mine, its) in clock.iter_mut().zip(&clocks[earlier]) {
                    *mine = (*mine).max(*its);
                }
            }
        }
        clock[step.side] = at + 1;
        clocks.push(clock);
    }
    clocks
}
