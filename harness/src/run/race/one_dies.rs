//! At each step of each schedule, who was to make it dies instead, and the others go on.

use std::collections::HashSet;

use super::super::LabError;
use super::super::stage::Stage;
use super::explore::{Runs, run_each};
use super::outcome::Ran;
use super::*;

/// A run for each place in these known runs, as many as the fault's budget allows; and how many there are.
///
/// # Errors
///
/// As [`Stage::run`]: the first.
pub(super) fn each(
    stage: &Stage<'_>,
    before: &Tree,
    fault: &RaceFault,
    known_runs: &[Ran],
    runs: &Runs<'_>,
) -> Result<(Vec<Ran>, String), LabError> {
    let mut known: HashSet<(Vec<u8>, Side)> = HashSet::new();
    let mut places = Vec::new();
    let mut order: Vec<&Ran> = known_runs.iter().collect();
    order.sort_by_key(|ran| ran.size());
    for ran in order {
        let sides: Vec<u8> = ran.made.iter().map(|made| made.taken.side as u8).collect();
        let taken: Vec<Taken> = ran.made.iter().map(|made| made.taken.clone()).collect();
        for (at, made) in ran.made.iter().enumerate() {
            let side = made.taken.side;
            if known.insert((sides[..at].to_vec(), side)) {
                places.push(Schedule::of(&taken[..at], Some((at, side))));
            }
        }
    }
    let found = places.len();
    places.truncate(fault.schedules);
    let guide = |number: usize| Guide::Follow(Follow::new(places[number].clone()));
    let died = run_each(stage, before, fault, runs, places.len(), guide)?;
    let note = format!(
        "one dies: at {} of {} places in these schedules",
        thousands(died.len()),
        thousands(found)
    );
    Ok((died, note))
}
