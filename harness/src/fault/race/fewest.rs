//! The same run with fewer switches: steps that commute are moved to those of their program.

use std::collections::{HashMap, VecDeque};

use super::explore::Side;
use super::steer::Made;

/// More places than this are not looked at.
const MOST_PLACES: usize = 200_000;

/// How far each program has come, and who made the last step.
type Place = (Vec<usize>, Option<Side>);

/// An order of the same steps, each after all that it conflicts with as before, in which the programs take turns as rarely
/// as possible; `None` where there are too many to look at. The order is told by who makes each step.
pub fn fewest_switches(made: &[Made]) -> Option<Vec<Side>> {
    let sides = made.iter().map(|made| made.taken.side + 1).max()?;
    let of_side: Vec<Vec<usize>> = (0..sides)
        .map(|side| (0..made.len()).filter(|at| made[*at].taken.side == side).collect())
        .collect();
    let places: usize = of_side
        .iter()
        .map(|steps| steps.len() + 1)
        .try_fold(sides, |all, count| all.checked_mul(count).filter(|all| *all <= MOST_PLACES))?;
    // For each step, how many of each other program's come before it.
    let needs: Vec<Vec<usize>> = (0..made.len())
        .map(|at| {
            let count = |side: &Vec<usize>| {
                let conflicts =
                    |other: &&usize| **other < at && made[**other].touch.conflicts(&made[at].touch);
                side.iter().rfind(conflicts).map_or(0, |last| {
                    side.iter().position(|one| one == last).map_or(0, |position| position + 1)
                })
            };
            of_side.iter().map(count).collect()
        })
        .collect();
    let mut from: HashMap<Place, Place> = HashMap::with_capacity(places);
    let start: Place = (vec![0; sides], None);
    let mut open = VecDeque::from([(0u32, start.clone())]);
    let mut best: HashMap<Place, u32> = [(start, 0)].into();
    while let Some((cost, place)) = open.pop_front() {
        if best.get(&place).is_some_and(|known| *known < cost) {
            continue;
        }
        let (counts, last) = &place;
        if counts.iter().sum::<usize>() == made.len() {
            return Some(way_back(&from, place));
        }
        for side in 0..sides {
            let Some(step) = of_side[side].get(counts[side]) else { continue };
            if needs[*step]
                .iter()
                .zip(counts)
                .enumerate()
                .any(|(other, (need, have))| other != side && need > have)
            {
                continue;
            }
            let mut counts = counts.clone();
            counts[side] += 1;
            let switches = last.is_some_and(|last| last != side);
            let (next, cost) = ((counts, Some(side)), cost + u32::from(switches));
            if best.get(&next).is_none_or(|known| cost < *known) {
                best.insert(next.clone(), cost);
                from.insert(next.clone(), place.clone());
                match switches {
                    true => open.push_back((cost, next)),
                    false => open.push_front((cost, next)),
                }
            }
        }
    }
    None
}

fn way_back(from: &HashMap<Place, Place>, end: Place) -> Vec<Side> {
    let places = std::iter::successors(Some(&end), |place| from.get(place));
    let mut order: Vec<Side> = places.filter_map(|(_, last)| *last).collect();
    order.reverse();
    order
}

/// How often another goes on.
pub fn switches(order: &[Side]) -> usize {
    order.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::race::explore::Sides;
    use crate::fault::race::schedule::Taken;
    use crate::op::FileId;
    use crate::op::touch::{Access, Object, Touch, Waits};

    fn step(side: Side, file: u32, changes: bool) -> Made {
        let object = Object::Content(FileId(file));
        let access = if changes { Access::change(object) } else { Access::look(object) };
        let touch = Touch::new(vec![access], Waits::Never);
        let taken = Taken { side, enabled: Sides::NONE, text: String::new() };
        Made { taken, result: 0, touch }
    }

    #[test]
    fn what_commutes_is_put_together() {
        let run = [step(0, 1, false), step(1, 2, true), step(0, 1, true), step(1, 2, true)];
        let order = fewest_switches(&run).expect("small");
        assert_eq!(switches(&order), 1);
    }

    #[test]
    fn what_conflicts_stays_in_its_order() {
        // Both read, then both write: a lost update needs two switches.
        let run = [step(0, 1, false), step(1, 1, false), step(0, 1, true), step(1, 1, true)];
        let order = fewest_switches(&run).expect("small");
        assert_eq!(switches(&order), 2);
        assert_eq!(order, [1, 0, 0, 1], "the second writes last");
    }
}
