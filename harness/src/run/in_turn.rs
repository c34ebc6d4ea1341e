//! Kills and power cuts judged, then those of their recoveries, as deep as the scenario says.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::LabError;
use super::cases::Case;
use super::confirm::Confirmation;
use super::controls::more_versions;
use super::derive::Run;
use super::disks::DiskResult;
use super::kill::{Ground, Killed};
use super::power::{PowerCut, Wanted, found};
use crate::interrupt::is_requested;
use crate::judge::{Controls, Ends, Grade, Outcome, Verdict, Versions, Word};

/// So many states are looked at to make one finding smaller.
const SHRINKS_MAX: usize = 200;

/// Judges kills, then those of their recoveries as deep as the settings say, and makes some of all these for real.
pub(super) fn judge_kills(
    ground: &Ground<'_>,
    kills: Vec<Killed>,
    controls: &mut Controls,
) -> Result<(Vec<Case>, Confirmation), LabError> {
    let settings = ground.stage.settings();
    let vouched = ground.vouched()?;
    let mut known: HashSet<[u8; 32]> = kills.iter().map(|kill| kill.hash).collect();
    let mut cases = Vec::new();
    let mut judged: Vec<(Killed, Verdict)> = Vec::new();
    let mut level = kills;
    for depth in 1.. {
        let now = judge_level(ground, &mut level, controls, &vouched)?;
        let grades = graded(&level, &now);
        let verdicts = now.iter().map(|case| case.verdict.clone());
        judged.extend(level.into_iter().zip(verdicts));
        cases.extend(now);
        if depth >= ground.stage.scenario.recovery.depth || is_requested() {
            break;
        }
        level = Vec::new();
        for run in ground.recoveries_of(&grades)? {
            match killed_in_turn(ground, &run, controls, &mut known) {
                Err(LabError::Interrupted) => break,
                kills => level.extend(kills?),
            }
        }
    }
    let confirmation = match settings.live || !settings.confirms || is_requested() {
        true => Confirmation::default(),
        false => ground.confirm(&judged, settings.confirm)?,
    };
    Ok((cases, confirmation))
}

/// The kills of a recovery.
fn killed_in_turn(
    ground: &Ground<'_>,
    run: &Run,
    controls: &mut Controls,
    known: &mut HashSet<[u8; 32]>,
) -> Result<Vec<Killed>, LabError> {
    control(ground, run, controls)?;
    ground.derive(run, ground.every_place(run)?, known)
}

/// The ends from what a recovery passes through.
fn control(ground: &Ground<'_>, run: &Run, controls: &mut Controls) -> Result<(), LabError> {
    let (before, like) = (run.before(), &ground.recording.after);
    more_versions(controls, ground.recoveries, before, like, run.own_versions())
}

/// Judges power cuts, then those of their recoveries as deep as the settings say; with what all came to on each disk.
pub(super) fn judge_power(
    ground: &Ground<'_>,
    cut: PowerCut,
    wanted: Wanted<'_>,
    controls: &mut Controls,
    expected: &[Word],
) -> Result<(Vec<Case>, Vec<DiskResult>), LabError> {
    let vouched = ground.vouched()?;
    let mut first = cut;
    let mut cases = judge_level(ground, &mut first.killed, controls, &vouched)?;
    shrink(ground, &mut first, &mut cases, controls, &vouched, expected)?;
    let mut known = first.killed.iter().map(|kill| (kill.hash, kill.promised)).collect();
    let mut later: Vec<PowerCut> = Vec::new();
    for _ in 1..ground.stage.scenario.recovery.depth {
        if is_requested() {
            break;
        }
        let level = later.last().unwrap_or(&first);
        let from = cases.len() - level.killed.len();
        let grades = graded(&level.killed, &cases[from..]);
        let mut next = ground
            .power_in_turn(&grades, wanted, &mut known, |run| control(ground, run, controls))?;
        cases.extend(judge_level(ground, &mut next.killed, controls, &vouched)?);
        later.push(next);
    }
    let killed = first.killed.iter().chain(later.iter().flat_map(|cut| &cut.killed));
    let judged: Vec<(&Killed, &Case)> = killed.zip(&cases).collect();
    let disks = ground.on_disks(&first, &later, &judged, wanted, expected)?;
    Ok((cases, disks))
}

/// Judges all of them; no copy's word is taken for anything but good.
fn judge_level(
    ground: &Ground<'_>,
    level: &mut [Killed],
    controls: &Controls,
    vouched: &[Outcome],
) -> Result<Vec<Case>, LabError> {
    let mut cases = judge_each(ground, level.iter(), controls, vouched);
    let is_doubtful = |(kill, case): (&Killed, &Case)| {
        let is_good = case.verdict.grade == Grade::Good && case.warnings.is_empty();
        !is_good && kill.is_by_copy()
    };
    let doubtful: Vec<bool> = level.iter().zip(&cases).map(is_doubtful).collect();
    if !doubtful.contains(&true) || is_requested() {
        return Ok(cases);
    }
    let mut again: Vec<&mut Killed> = level
        .iter_mut()
        .zip(&doubtful)
        .filter(|(_, again)| **again)
        .map(|(kill, _)| kill)
        .collect();
    let trees: HashMap<_, _> = again.iter().map(|kill| (kill.hash, kill.left.clone())).collect();
    let trees: Vec<_> = trees.into_iter().collect();
    ground.recoveries.without_copies(&trees)?;
    ground.recover_each(&mut again, &trees)?;
    let judged = judge_each(ground, again.iter().map(|kill| &**kill), controls, vouched);
    let places = doubtful.iter().enumerate().filter(|(_, again)| **again);
    for ((place, _), case) in places.zip(judged) {
        cases[place] = case;
    }
    Ok(cases)
}

fn judge_each<'k>(
    ground: &Ground<'_>,
    level: impl Iterator<Item = &'k Killed>,
    controls: &Controls,
    vouched: &[Outcome],
) -> Vec<Case> {
    // The kills of one run come one after another.
    let mut last: Option<(Arc<Versions>, Ends)> = None;
    let judge = |kill: &Killed| {
        let known = last.take().filter(|(versions, _)| Arc::ptr_eq(versions, &kill.versions));
        let ends = known.unwrap_or_else(|| (kill.versions.clone(), controls.ends(&kill.versions)));
        let case = kill.judge(ground, controls, &ends.1, vouched);
        last = Some(ends);
        case
    };
    level.map(judge).collect()
}

fn graded(level: &[Killed], cases: &[Case]) -> Vec<(Killed, Grade)> {
    let grades = cases.iter().map(|case| case.verdict.grade);
    level.iter().cloned().zip(grades).collect()
}

/// Where not all was tried, makes the smallest finding of each word smaller: part by part it is put on the disk what is
/// missing, while the verdict holds. What is found on the way joins the cases.
fn shrink(
    ground: &Ground<'_>,
    cut: &mut PowerCut,
    cases: &mut Vec<Case>,
    controls: &Controls,
    vouched: &[Outcome],
    expected: &[Word],
) -> Result<(), LabError> {
    if cut.shares.iter().all(|(_, share)| share.complete) {
        return Ok(());
    }
    let is_bad =
        |case: &&Case| case.verdict.grade == Grade::Fault && !expected.contains(&case.verdict.word);
    let words: BTreeSet<Word> = cases.iter().filter(is_bad).map(|case| case.verdict.word).collect();
    let mut left = SHRINKS_MAX;
    for word in words {
        let Some(place) = cases.iter().position(|case| case.verdict.word == word) else { continue };
        let mut smallest = cut.killed[place].clone();
        loop {
            let mut smaller = smaller(ground, cut, &smallest, &mut left)?;
            let judged = judge_level(ground, &mut smaller, controls, vouched)?;
            let mut judged = smaller.into_iter().zip(judged);
            let Some((kill, case)) = judged.find(|(_, case)| case.verdict.word == word) else {
                break;
            };
            smallest = kill.clone();
            cut.killed.insert(0, kill);
            cases.insert(0, case);
        }
    }
    Ok(())
}

/// What is found with one part more on the disk than there, and was not tried.
fn smaller(
    ground: &Ground<'_>,
    cut: &PowerCut,
    kill: &Killed,
    left: &mut usize,
) -> Result<Vec<Killed>, LabError> {
    let Some(power) = &kill.power else { return Ok(Vec::new()) };
    let Some(disk) = power.disks.first() else { return Ok(Vec::new()) };
    let run = ground.run();
    let cuts = ground.cuts(run, disk)?;
    let known: HashSet<_> = cut.killed.iter().map(|kill| (kill.hash, kill.promised)).collect();
    let mut new = Vec::new();
    for state in cuts.with_one_more(&power.state) {
        let found = found(run, &state);
        if *left == 0 {
            break;
        }
        if known.contains(&found) {
            continue;
        }
        *left -= 1;
        let mut kill = ground.failed(run, &cuts, state, found);
        kill.power.iter_mut().for_each(|power| power.disks.push(disk));
        new.push(kill);
    }
    let trees: Vec<_> = new.iter().map(|kill| (kill.hash, kill.left.clone())).collect();
    ground.recover_all(&mut new, &trees)?;
    Ok(new)
}
