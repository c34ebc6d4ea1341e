//! What power cuts came to on each disk: how all came out, how much of it was tried, and which syncs would have kept it from
//! what was not expected.

use std::collections::{BTreeMap, HashSet};

use super::LabError;
use super::cases::Case;
use super::kill::{Ground, Killed};
use super::power::{Found, PowerCut, Wanted, found};
use crate::fault::power::{DiskModel, PowerState, Repair, Share};
use crate::judge::{Grade, Word};

/// What power cuts came to on one disk.
#[derive(Debug, Clone)]
pub struct DiskResult {
    /// The disk model's name.
    pub model: &'static str,
    /// How often each verdict was given.
    pub counts: BTreeMap<Word, usize>,
    /// So many different states were tried.
    pub tried: usize,
    /// All that is legal was tried.
    pub complete: bool,
    /// The binary logarithm of a number that the legal states do not exceed, equal ones among them.
    pub at_most: f64,
    /// Where not all was tried, what the sample was drawn by.
    pub seed: u64,
    /// Not all was tried since time was up.
    pub late: bool,
    /// How what was not expected could have been kept from it.
    pub repair: Repaired,
}

/// Which syncs would have kept a run from what was not expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repaired {
    /// There is nothing to be mended.
    NoNeed,
    /// These together, in words.
    By(Vec<String>),
    /// None: kills leave the same.
    ByNoSync,
}

impl Ground<'_> {
    /// What cuts of the subject's run, with these cases, came to on each disk; `later` are those of recoveries.
    pub(super) fn on_disks(
        &self,
        cut: &PowerCut,
        later: &[PowerCut],
        judged: &[(&Killed, &Case)],
        wanted: Wanted<'_>,
        expected: &[Word],
    ) -> Result<Vec<DiskResult>, LabError> {
        let of = |(model, share): &(&'static DiskModel, Share)| {
            let is_on = |kill: &Killed| {
                kill.power.as_ref().is_some_and(|power| power.disks.contains(model))
            };
            let own: Vec<_> = judged.iter().filter(|(kill, _)| is_on(kill)).collect();
            let mut counts = BTreeMap::new();
            let mut bad: HashSet<Found> = HashSet::new();
            for (kill, case) in &own {
                *counts.entry(case.verdict.word).or_default() += 1;
                let is_expected = expected.contains(&case.verdict.word);
                if case.verdict.grade == Grade::Fault && !is_expected && !kill.of_recovery {
                    bad.insert((kill.hash, kill.promised));
                }
            }
            let others = later.iter().flat_map(|cut| &cut.shares).filter(|(of, _)| of == model);
            let all = others.fold(*share, |all, (_, other)| all.and(other));
            Ok(DiskResult {
                model: model.name,
                counts,
                tried: own.len(),
                complete: all.complete && !cut.late && !later.iter().any(|cut| cut.late),
                at_most: all.at_most,
                seed: wanted.fault.seed,
                late: cut.late || later.iter().any(|cut| cut.late),
                repair: self.repaired(model, &bad, wanted)?,
            })
        };
        cut.shares.iter().map(of).collect()
    }

    fn repaired(
        &self,
        model: &'static DiskModel,
        bad: &HashSet<Found>,
        wanted: Wanted<'_>,
    ) -> Result<Repaired, LabError> {
        if bad.is_empty() {
            return Ok(Repaired::NoNeed);
        }
        let run = self.run();
        let cuts = self.cuts(run, model)?;
        let is_bad = |state: &PowerState| bad.contains(&found(run, state));
        Ok(match cuts.repair(is_bad, wanted.budget(&cuts)) {
            Some(repairs) => {
                let calls = &run.trace().calls;
                let told = |repair: &Repair| match calls.site(repair.after) {
                    Some(site) => format!("{repair}, made {site}"),
                    None => repair.to_string(),
                };
                Repaired::By(repairs.iter().map(told).collect())
            }
            None => Repaired::ByNoSync,
        })
    }
}
