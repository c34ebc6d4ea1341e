//! Power cuts of one recording: what the disk may hold, one recovery for each distinct tree.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::LabError;
use super::cases::Case;
use super::derive::{Hash, Run};
use super::kill::{Ground, Killed, PowerFailed};
use crate::fault::crash_state::moments;
use crate::fault::power::{DiskModel, PowerCuts, PowerState};
use crate::judge::{Grade, Word};
use crate::scenario::PowerFault;
use crate::wrap::counted;

/// For each state that is told, so many legal ones are looked at, most of which are equal to one before.
const LOOKED_AT: usize = 5;

/// Power cuts that were tried, and what was left out.
#[derive(Debug)]
pub(super) struct PowerCut {
    pub(super) killed: Vec<Killed>,
    /// For each disk, how much of it was tried.
    shares: Vec<Share>,
    /// So many at most, on each.
    states: usize,
}

#[derive(Debug)]
struct Share {
    model: &'static DiskModel,
    /// All that is legal was tried.
    complete: bool,
}

/// A tree, and how many versions are older than the last one promised by then.
type Found = (Hash, usize);

impl Ground<'_> {
    /// Every power cut of the subject's run, on each of the disks.
    ///
    /// # Errors
    ///
    /// As [`Stage::run`](super::Stage::run), and [`LabError::Lab`] where the log does not fit the tree.
    pub(super) fn power(
        &self,
        wanted: &PowerFault,
        wants: impl Fn(&str) -> bool,
    ) -> Result<PowerCut, LabError> {
        let run = self.run();
        let mut killed: Vec<Killed> = Vec::new();
        let mut places: HashMap<Found, usize> = HashMap::new();
        let mut shares = Vec::new();
        for model in &wanted.models {
            let cuts = self.cuts(&run, model)?;
            let mut of_model: HashSet<Found> = HashSet::new();
            let mut left = cuts.states();
            let mut looked = 0;
            let complete = loop {
                if of_model.len() >= wanted.states || looked >= wanted.states * LOOKED_AT {
                    break left.next().is_none();
                }
                let Some(state) = left.next() else { break true };
                looked += 1;
                let found = found(&run, &state);
                if !of_model.insert(found) {
                    continue;
                }
                let place = *places.entry(found).or_insert(killed.len());
                if place == killed.len() {
                    killed.push(self.failed(&run, state, found));
                }
                let power = killed[place].power.as_mut();
                power.into_iter().for_each(|power| power.disks.push(model.name));
            };
            shares.push(Share { model, complete });
        }
        killed.retain(|kill| wants(&kill.id));
        let mut trees = Vec::new();
        let mut known = HashSet::new();
        for kill in &killed {
            if known.insert(kill.hash) {
                trees.push((kill.hash, kill.left.clone()));
            }
        }
        self.recover_all(&mut killed, &trees)?;
        Ok(PowerCut { killed, shares, states: wanted.states })
    }

    fn cuts<'r>(&self, run: &'r Run, model: &'static DiskModel) -> Result<PowerCuts<'r>, LabError> {
        let places = moments(&run.trace().events, self.every_place(run)?);
        PowerCuts::new(run.before(), &run.trace().events, model, &places)
            .map_err(|misfit| self.does_not_fit(&misfit))
    }

    fn failed(&self, run: &Run, state: PowerState, (hash, promised): Found) -> Killed {
        let point = crate::scenario::KillPoint::All;
        let survivor = self.stage.state.image(&state.tree);
        let power = PowerFailed { disks: Vec::new(), missing: state.missing };
        Killed {
            id: format!("power@{}", state.id),
            survivor,
            promised,
            power: Some(power),
            ..run.cut(point, state.events, Arc::new(state.tree), hash)
        }
    }

    /// What a reader should know of the power cuts beside their cases: of a disk on which something came out that was not
    /// expected, how all came out and which fsync would have kept it from that; and what was not tried.
    pub(super) fn told(
        &self,
        cut: &PowerCut,
        cases: &[Case],
        expected: &[Word],
    ) -> Result<Vec<String>, LabError> {
        let run = self.run();
        let mut notes = Vec::new();
        for share in &cut.shares {
            let is_on = |kill: &Killed| {
                kill.power.as_ref().is_some_and(|power| power.disks.contains(&share.model.name))
            };
            let judged = cut.killed.iter().zip(cases).filter(|(kill, _)| is_on(kill));
            let mut bad: HashSet<Found> = HashSet::new();
            let mut counts: BTreeMap<Word, usize> = BTreeMap::new();
            for (kill, case) in judged {
                let word = case.verdict.word;
                *counts.entry(word).or_default() += 1;
                if case.verdict.grade == Grade::Fault && !expected.contains(&word) {
                    bad.insert((kill.hash, kill.promised));
                }
            }
            if bad.is_empty() {
                continue;
            }
            let counts = counts.iter().map(|(word, count)| format!("{word} {count}"));
            let counts: Vec<String> = counts.collect();
            let cuts = self.cuts(&run, share.model)?;
            let is_bad = |state: &PowerState| bad.contains(&found(&run, state));
            let repair = match cuts.repair(is_bad, cut.states * LOOKED_AT) {
                Some(repairs) => {
                    let all: Vec<String> = repairs.iter().map(ToString::to_string).collect();
                    format!("mended by {}", all.join(" and "))
                }
                None => "no fsync alone mends it".to_owned(),
            };
            notes.push(format!("power cut on {}: {}; {repair}", share.model, counts.join(", ")));
        }
        let partly = cut.shares.iter().filter(|share| !share.complete);
        let partly: Vec<&str> = partly.map(|share| share.model.name).collect();
        if !partly.is_empty() {
            notes.push(format!(
                "power cut on {}: only the first {} were tried (`states` tries more)",
                partly.join(", "),
                counted(cut.states, "different state")
            ));
        }
        Ok(notes)
    }
}

fn found(run: &Run, state: &PowerState) -> Found {
    let promised = match state.ended {
        true => run.versions().promised,
        false => run.versions().promised_at(state.events),
    };
    (state.tree.hash(), promised)
}
