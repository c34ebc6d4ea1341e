//! At each step of each schedule, who was to make it dies instead, and the others go on.

use std::collections::HashSet;

use super::super::LabError;
use super::super::stage::Stage;
use super::explore::{Runs, run_each};
use super::outcome::size;
use super::*;

/// A run for each place in runs of these steps, as many as the fault's budget allows; says how many there are.
///
/// # Errors
///
/// As [`Stage::run`]: the first.
pub(super) fn each(
    stage: &Stage<'_>,
    before: &Tree,
    fault: &RaceFault,
    known_runs: Vec<Vec<Made>>,
    runs: &Runs<'_>,
    classes: &mut Classes<'_>,
) -> Result<String, LabError> {
    let mut known: HashSet<(Vec<u8>, Side)> = HashSet::new();
    let mut places = Vec::new();
    let mut order: Vec<(Vec<u8>, Vec<Made>)> = known_runs
        .into_iter()
        .map(|made| (made.iter().map(|made| made.taken.side as u8).collect(), made))
        .collect();
    // Whoever was quicker: it is always the same places that there is room for.
    order.sort_by_cached_key(|(sides, made)| (size(made), sides.clone()));
    for (sides, run) in order {
        let taken: Vec<Taken> = run.iter().map(|made| made.taken.clone()).collect();
        for (at, made) in run.iter().enumerate() {
            let side = made.taken.side;
            if known.insert((sides[..at].to_vec(), side)) {
                places.push(Schedule::of(&taken[..at], Some((at, side))));
            }
        }
    }
    let found = places.len();
    places.truncate(fault.schedules);
    let guide = |number: usize| Guide::Follow(Follow::new(places[number].clone()));
    let died = run_each(stage, before, fault, runs, places.len(), guide, classes)?;
    Ok(format!(
        "one dies: at {} of {} places in these schedules",
        thousands(died),
        thousands(found)
    ))
}
