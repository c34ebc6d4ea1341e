//! Schedules by chance, with a guarantee: priorities that change at few places.
//!
//! Each program gets a priority, and the one with the highest that can go on does; at `depth - 1` places, drawn beforehand,
//! the one at hand falls behind all others. A fault that needs `depth` steps in a certain order is found by a run of `steps`
//! steps of `programs` programs with a probability of at least 1 / (programs x steps^(depth - 1)) (Burckhardt, Kothari,
//! Musuvathi and Nagarakatte, "A randomized scheduler with probabilistic guarantees of finding bugs", ASPLOS 2010).

use super::explore::{Side, Sides};

/// Priorities for one run.
#[derive(Debug, Clone)]
pub struct Priorities {
    /// The higher goes first.
    of_side: Vec<i64>,
    /// The steps before which the one at hand falls behind.
    changes: Vec<usize>,
}

impl Priorities {
    /// Draws them for a run of about so many steps.
    pub fn draw(seed: u64, programs: usize, steps: usize, depth: u32) -> Priorities {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut of_side: Vec<i64> =
            (0..programs as i64).map(|rank| rank + i64::from(depth)).collect();
        random.shuffle(&mut of_side);
        let changes = (1..depth).map(|_| random.usize(0..steps.max(1))).collect();
        Priorities { of_side, changes }
    }

    /// Who goes on.
    pub fn choose(&mut self, enabled: Sides, at: usize) -> Option<Side> {
        loop {
            let first = enabled.iter().max_by_key(|side| self.of_side.get(*side).copied())?;
            let Some(change) = self.changes.iter().position(|change| *change == at) else {
                return Some(first);
            };
            // The change that was drawn first puts it last of all.
            self.of_side[first] = -(self.changes.len() as i64) + change as i64 - 1;
            self.changes[change] = usize::MAX;
        }
    }
}

/// The least probability with which one run finds a fault of this depth.
pub fn chance(programs: usize, steps: usize, depth: u32) -> f64 {
    let places = (steps.max(1) as f64).powi(depth.saturating_sub(1) as i32);
    1.0 / (programs.max(1) as f64 * places)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fault of depth 2 in two programs of 5 steps each: the second must come between two given steps of the first.
    #[test]
    fn a_fault_is_found_as_often_as_is_promised() {
        let runs = 20_000;
        let mut found = 0;
        for seed in 0..runs {
            let mut priorities = Priorities::draw(seed, 2, 10, 2);
            let (mut done, mut order) = ([0, 0], Vec::new());
            for at in 0..10 {
                let enabled = (0..2).filter(|side| done[*side] < 5).collect();
                let side = priorities.choose(enabled, at).expect("somebody can");
                done[side] += 1;
                order.push(side);
            }
            // The first program makes two steps, then the second begins.
            found += u32::from(order.starts_with(&[0, 0, 1]));
        }
        let share = f64::from(found) / runs as f64;
        // Exactly as often; a tenth less is four standard deviations.
        assert!(share >= 0.9 * chance(2, 10, 2), "{share} of {}", chance(2, 10, 2));
    }

    #[test]
    fn one_seed_gives_one_order() {
        let order = |seed| {
            let mut priorities = Priorities::draw(seed, 3, 8, 3);
            (0..8)
                .map(|at| priorities.choose([0, 1, 2].into_iter().collect(), at))
                .collect::<Vec<_>>()
        };
        assert_eq!(order(7), order(7));
        assert!((0..20).any(|seed| order(seed) != order(7)));
    }
}
