//! Programs that are the same.
//!
//! While none of two programs with one command has made a step, each of them stands where the other does: an order in which the one
//! goes first is the order in which the other does, with the two exchanged. One of the two orders is enough (Ip and Dill, "Better
//! verification through symmetry", Formal Methods in System Design 9, 1996). So of those that are the same the first one begins, then the
//! second, and so on: as if each were started by the first step of the one before it.

use super::{MOST_SIDES, Made, Side, Sides};

/// Which programs of a race are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Alike {
    /// For each the one before it that is the same.
    before: [Option<Side>; MOST_SIDES],
}

impl Alike {
    /// Programs with equal commands.
    pub fn of<C: PartialEq>(commands: &[C]) -> Alike {
        let mut alike = Alike::default();
        for (side, command) in commands.iter().enumerate().take(MOST_SIDES) {
            alike.before[side] = commands[..side].iter().rposition(|other| other == command);
        }
        alike
    }

    /// The one that begins right before this one.
    pub fn before(&self, side: Side) -> Option<Side> {
        self.before.get(side).copied().flatten()
    }

    /// Of those that can make a step who may, once these have begun. Nobody is kept from it for one that cannot begin itself.
    pub(super) fn may_go(&self, enabled: Sides, begun: Sides) -> Sides {
        let waits = |side: Side| self.before(side).is_some_and(|before| !begun.has(before));
        let may: Sides = enabled.iter().filter(|side| begun.has(*side) || !waits(*side)).collect();
        if may.is_empty() { enabled } else { may }
    }
}

/// Where each program of a run begins.
#[derive(Debug)]
pub(super) struct Beginnings {
    alike: Alike,
    first: [Option<usize>; MOST_SIDES],
}

impl Beginnings {
    pub(super) fn of(made: &[Made], alike: Alike) -> Beginnings {
        let mut first = [None; MOST_SIDES];
        for (at, made) in made.iter().enumerate() {
            first[made.side].get_or_insert(at);
        }
        Beginnings { alike, first }
    }

    /// Another is to begin before it.
    pub(super) fn is_started(&self, side: Side) -> bool {
        self.alike.before(side).is_some()
    }

    /// A step without which the program could not have begun.
    pub(super) fn started_by(&self, side: Side) -> Option<usize> {
        self.alike.before(side).and_then(|before| self.first[before])
    }

    /// Whether the step is the first of its program, and could not have been made without the other.
    pub(super) fn starts(&self, earlier: usize, at: usize, side: Side) -> bool {
        self.first[side] == Some(at) && self.started_by(side) == Some(earlier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides<const N: usize>(sides: [Side; N]) -> Sides {
        sides.into_iter().collect()
    }

    #[test]
    fn of_those_that_are_the_same_the_first_begins() {
        let alike = Alike::of(&["run", "resolve", "run", "run"]);
        assert_eq!(
            (0..4).map(|side| alike.before(side)).collect::<Vec<_>>(),
            [None, None, Some(0), Some(2)]
        );
        let all = sides([0, 1, 2, 3]);
        assert_eq!(alike.may_go(all, Sides::NONE), sides([0, 1]));
        assert_eq!(alike.may_go(all, sides([0])), sides([0, 1, 2]));
        assert_eq!(alike.may_go(sides([1, 2, 3]), sides([0, 2])), sides([1, 2, 3]));
        // The first cannot begin, and nobody else could go on.
        assert_eq!(alike.may_go(sides([2, 3]), Sides::NONE), sides([2, 3]));
    }
}
