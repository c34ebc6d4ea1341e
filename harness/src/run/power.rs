//! Power cuts of one run: what the disk may hold, one recovery for each distinct tree.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::LabError;
use super::derive::{Hash, Run};
use super::kill::{Ground, Killed, PowerFailed};
use crate::fault::crash_state::moments;
use crate::fault::power::{
    Budget, DiskModel, EXHAUSTIVE_PARTS, Looked, PowerCuts, PowerState, Share,
};
use crate::judge::Grade;
use crate::scenario::{KillPoint, PowerFault};
use crate::tree::Tree;

/// So many distinct trees are recovered before it is looked whether time is up.
const TREES_AT_ONCE: usize = 64;

/// Of the states of each recovery, so many are tried at least.
const OF_RECOVERY_MIN: usize = 8;

/// A tree, and how many versions are older than the last one promised by then.
pub(super) type Found = (Hash, usize);

/// Power cuts that were tried, and how much that is of what is legal.
#[derive(Debug, Default)]
pub(super) struct PowerCut {
    pub(super) killed: Vec<Killed>,
    /// For each disk, how much of it was tried.
    pub(super) shares: Vec<(&'static DiskModel, Share)>,
    /// When time is up.
    pub(super) until: Option<Instant>,
    /// It was before all of these were tried.
    pub(super) late: bool,
}

/// What is tried of a run.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'w> {
    pub(super) fault: &'w PowerFault,
    /// When it is to end.
    pub(super) until: Option<Instant>,
    /// Kills are tried as well: they leave what is found where everything is on the disk.
    pub(super) with_kills: bool,
    /// So many states at most: each recovery has its part of what the subject's own run had.
    part: Option<usize>,
}

impl<'w> Wanted<'w> {
    pub(super) fn of(fault: &'w PowerFault, with_kills: bool) -> Wanted<'w> {
        let until = fault.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        Wanted { fault, until, with_kills, part: None }
    }

    /// The same, with the time that was begun.
    pub(super) fn until(self, until: Option<Instant>) -> Wanted<'w> {
        Wanted { until, ..self }
    }

    /// How much of a run's states is tried: of one that has few parts, all, unless it is said otherwise.
    pub(super) fn budget(&self, cuts: &PowerCuts<'_>) -> Budget {
        let states = match self.part.or(self.fault.states) {
            Some(states) => states,
            None if cuts.is_small() => PowerFault::STATES.max(1 << EXHAUSTIVE_PARTS),
            None => PowerFault::STATES,
        };
        Budget { states, seed: self.fault.seed }
    }

    fn is_late(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until) || crate::interrupt::is_requested()
    }
}

impl Ground<'_> {
    /// Every power cut of a run, on each of these disks. What is in `known` is left out, and the others join it.
    ///
    /// # Errors
    ///
    /// As [`Stage::run`](super::Stage::run), and [`LabError::Lab`] where the log does not fit the tree.
    pub(super) fn power(
        &self,
        run: &Run,
        models: &[&'static DiskModel],
        wanted: Wanted<'_>,
        known: &mut HashSet<Found>,
        wants: impl Fn(&str) -> bool,
    ) -> Result<PowerCut, LabError> {
        let mut killed: Vec<Killed> = Vec::new();
        let mut places: HashMap<Found, usize> = HashMap::new();
        let mut shares = Vec::new();
        for model in models {
            let cuts = self.cuts(run, model)?;
            let mut of_model: HashSet<Found> = HashSet::new();
            let share = cuts.try_within(wanted.budget(&cuts), |state| {
                let found = found(run, &state);
                if wanted.is_late() {
                    return Looked::Enough;
                }
                if !of_model.insert(found) {
                    return Looked::Known;
                }
                let as_killed = wanted.with_kills && state.lacks() == 0 && !state.ended;
                if !as_killed && !known.contains(&found) {
                    let place = *places.entry(found).or_insert(killed.len());
                    if place == killed.len() {
                        killed.push(self.failed(run, &cuts, state, found));
                    }
                    let power = killed[place].power.as_mut();
                    power.into_iter().for_each(|power| power.disks.push(model));
                }
                Looked::New
            });
            shares.push((*model, share));
        }
        known.extend(places.into_keys());
        killed.retain(|kill| wants(&kill.id));
        // What is told first is the smallest, and what is left out where time is up the largest.
        let size = |kill: &Killed| kill.power.as_ref().map_or(0, |power| power.state.lacks());
        killed.sort_by_key(|kill| (size(kill), kill.events));
        let late = self.recover_in_time(&mut killed, wanted)?;
        Ok(PowerCut { killed, shares, until: wanted.until, late })
    }

    /// Runs the recoveries, until time is up: what was not recovered by then is taken out.
    fn recover_in_time(
        &self,
        killed: &mut Vec<Killed>,
        wanted: Wanted<'_>,
    ) -> Result<bool, LabError> {
        let mut trees: Vec<(Hash, Arc<Tree>)> = Vec::new();
        let mut known = HashSet::new();
        for kill in &*killed {
            if known.insert(kill.hash) {
                trees.push((kill.hash, kill.left.clone()));
            }
        }
        if wanted.until.is_none() {
            self.recover_all(killed, &trees)?;
            return Ok(false);
        }
        let mut tried: HashSet<Hash> = HashSet::new();
        for some in trees.chunks(TREES_AT_ONCE) {
            // The first are tried in any case: a fault of which nothing was tried looks like a pass.
            if wanted.is_late() && !tried.is_empty() {
                break;
            }
            tried.extend(some.iter().map(|(hash, _)| *hash));
            let of_these: HashSet<Hash> = some.iter().map(|(hash, _)| *hash).collect();
            let own = killed.iter_mut().filter(|kill| of_these.contains(&kill.hash));
            let mut own: Vec<&mut Killed> = own.collect();
            self.recover_each(&mut own, some)?;
        }
        let all = killed.len();
        killed.retain(|kill| tried.contains(&kill.hash));
        Ok(killed.len() < all)
    }

    /// The power cuts of the recoveries of those power cuts that came out well, each on the disks of its own.
    pub(super) fn power_in_turn(
        &self,
        cuts: &[(Killed, Grade)],
        wanted: Wanted<'_>,
        known: &mut HashSet<Found>,
        mut before: impl FnMut(&Run) -> Result<(), LabError>,
    ) -> Result<PowerCut, LabError> {
        let mut all = PowerCut::default();
        let runs = self.recoveries_after(cuts)?;
        let states = wanted.fault.states.unwrap_or(PowerFault::STATES);
        let part = Some((states / runs.len().max(1)).max(OF_RECOVERY_MIN));
        let wanted = Wanted { part, ..wanted };
        for (run, disks) in runs {
            if wanted.is_late() {
                all.late = true;
                break;
            }
            before(&run)?;
            let cut = match self.power(&run, &disks, wanted, known, |_| true) {
                Err(LabError::Interrupted) => break,
                cut => cut?,
            };
            all.killed.extend(cut.killed);
            all.shares.extend(cut.shares);
            all.late |= cut.late;
        }
        Ok(all)
    }

    /// The recoveries, once each, and the disks on which what they began with can be found.
    fn recoveries_after(
        &self,
        cuts: &[(Killed, Grade)],
    ) -> Result<Vec<(Run, Vec<&'static DiskModel>)>, LabError> {
        let mut disks: HashMap<Hash, Vec<&'static DiskModel>> = HashMap::new();
        for (kill, _) in cuts {
            let own = disks.entry(kill.hash).or_default();
            for disk in kill.power.iter().flat_map(|power| &power.disks) {
                if !own.contains(disk) {
                    own.push(disk);
                }
            }
        }
        let runs = self.recoveries_of(cuts)?.into_iter();
        let with_disks = |run: Run| {
            let disks = disks.remove(&run.before().hash()).unwrap_or_default();
            (run, disks)
        };
        Ok(runs.map(with_disks).collect())
    }

    pub(super) fn cuts<'r>(
        &self,
        run: &'r Run,
        model: &'static DiskModel,
    ) -> Result<PowerCuts<'r>, LabError> {
        let places = moments(&run.trace().events, self.every_place(run)?);
        PowerCuts::new(run.before(), &run.trace().events, model, &places)
            .map_err(|misfit| self.does_not_fit(&misfit))
    }

    pub(super) fn failed(
        &self,
        run: &Run,
        cuts: &PowerCuts<'_>,
        state: PowerState,
        (hash, promised): Found,
    ) -> Killed {
        let id = format!("{}{}", run.power_prefix(), cuts.id(&state));
        let (survivor, tree) = (self.stage.state.image(&state.tree), state.tree.clone());
        let (missing, although) = (cuts.missing(&state), cuts.although(&state));
        let ops = match run.trace().calls.is_empty() {
            true => Vec::new(),
            false => cuts.ops(&state),
        };
        Killed {
            id,
            survivor,
            promised,
            ..run.cut(KillPoint::All, state.events, Arc::new(tree), hash)
        }
        .by_power(PowerFailed { disks: Vec::new(), missing, although, ops, state })
    }
}

/// What identifies a state of a run.
pub(super) fn found(run: &Run, state: &PowerState) -> Found {
    (state.tree.hash(), run.promised_when(state.events, state.ended))
}
