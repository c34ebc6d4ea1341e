//! Damage: the state file is damaged, then the recovery runs.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use super::LabError;
use super::cases::{Case, Evidence, said};
use super::kill::Ground;
use super::stage::{Stage, show};
use crate::fault::damage::{Chosen, Damage, DoesNotApply, Original, Remains, Whole, Wish};
use crate::judge::{
    Content, Controls, DamageCase, Image, Outcome, Validity, Verdict, judge_damage,
};
use crate::scenario::{CommandLine, DamageFault};
use crate::tree::{Model, Tree};
use crate::wrap::thousands;

/// A damage that was done, and what the recovery made of it.
#[derive(Debug)]
pub struct Damaged {
    damage: Damage,
    file: PathBuf,
    place: PathBuf,
    before: Arc<Tree>,
    start: Image,
    image: Image,
    outcome: Outcome,
    validity: Validity,
}

/// The damages of a fault that were tried.
#[derive(Debug, Default)]
pub struct Tried {
    /// Those that were done.
    pub damaged: Vec<Damaged>,
    /// Those that do not apply to the file: skipped, which is no pass.
    pub skipped: Vec<Case>,
    /// What else a reader should know.
    pub note: Option<String>,
}

/// What every damage of one fault needs.
struct Victim<'a> {
    ground: &'a Ground<'a>,
    fault: &'a DamageFault,
}

/// Damages the file of a fault as it was before the run, in each way that the fault asks for, or in this `one` alone,
/// and runs the recovery on it.
///
/// # Errors
///
/// [`LabError::Scenario`] where the file is not there, and where the `valid` command fails on the undamaged one.
pub fn damage(
    ground: &Ground<'_>,
    fault: &DamageFault,
    one: Option<&Damage>,
) -> Result<Tried, LabError> {
    let (state, recording) = (&ground.stage.state, ground.recording);
    let (start, end) = (state.image(&recording.before), state.image(&recording.after));
    let Some(bytes) = bytes_of(&start, fault) else {
        let (scenario, file) = (ground.stage.scenario.file.display(), fault.file.display());
        return Err(LabError::Scenario(format!(
            "{scenario}: nothing to damage: {file} is not there before the run"
        )));
    };
    let later = bytes_of(&end, fault);
    let file = Original { bytes: &bytes, later: later.as_deref() };
    let victim = Victim { ground, fault };
    victim.must_be_valid()?;
    let chosen = match one {
        Some(damage) => Wish::choose(&[Wish::One(damage.clone())], file, 1),
        None => Wish::choose(&fault.damages, file, fault.at_most),
    };
    let mut tried = Tried { note: note(fault, &chosen), ..Tried::default() };
    tried.skipped.extend(chosen.nowhere.into_iter().map(skipped));
    for damage in chosen.damages {
        match damage.apply(file) {
            Ok(remains) => tried.damaged.push(victim.put(damage, &remains)?),
            Err(why) => tried.skipped.push(skipped(why)),
        }
    }
    Ok(tried)
}

fn bytes_of<'a>(image: &'a Image, fault: &DamageFault) -> Option<Cow<'a, [u8]>> {
    image.files.get(&fault.file).and_then(Content::bytes)
}

fn skipped(why: DoesNotApply) -> Case {
    Case {
        id: format!("damage:{}", why.name),
        verdict: Verdict::skipped(why.to_string()),
        warnings: Vec::new(),
        evidence: Evidence::default(),
    }
}

/// Which families were not tried at every place.
fn note(fault: &DamageFault, chosen: &Chosen) -> Option<String> {
    let families = chosen.bounded.iter().map(|(family, tried, count)| {
        format!("{family} at {tried} of {} places", thousands(*count))
    });
    let families: Vec<String> = families.collect();
    let (file, families) = (fault.file.display(), families.join(", "));
    (!families.is_empty()).then(|| format!("damage of {file} tried: {families} (`at-most`)"))
}

impl Victim<'_> {
    /// A `valid` command that fails on the undamaged file would let every damage count as noticed.
    fn must_be_valid(&self) -> Result<(), LabError> {
        let (stage, recording) = (self.ground.stage, self.ground.recording);
        let Some(valid) = &self.fault.valid else {
            return Ok(());
        };
        let outcome = stage.outcome(valid, &Arc::new(recording.before.clone()))?;
        if outcome.success() {
            return Ok(());
        }
        let what = format!("the `valid` command {}", show(valid));
        Err(LabError::failed(&stage.scenario.file, &what, &outcome.finish))
    }

    /// Puts what is left of the file into its place, and runs the recovery.
    fn put(&self, damage: Damage, remains: &Remains) -> Result<Damaged, LabError> {
        let Ground { stage, recording, recoveries, .. } = self.ground;
        let before = match damage {
            Damage::Whole(Whole::OlderVersion) => &recording.after,
            _ => &recording.before,
        };
        let file = self.fault.file.clone();
        let place = stage.state.place(&Model::new(before), &file).unwrap_or_else(|| file.clone());
        let tree = Arc::new(remains.put(before, &place));
        let outcome = match remains {
            Remains::Unreadable => stage.outcome_by_modes(recoveries.command(), &tree)?,
            _ => recoveries.on(&tree)?,
        };
        let validity = self.validity(&damage, remains, &outcome)?;
        let (before, image) = (Arc::new(before.clone()), stage.state.image(&tree));
        let start = stage.state.image(&recording.before);
        Ok(Damaged { damage, file, place, before, start, image, outcome, validity })
    }

    /// Asks the scenario's `valid` command, where its word counts.
    fn validity(
        &self,
        damage: &Damage,
        remains: &Remains,
        outcome: &Outcome,
    ) -> Result<Validity, LabError> {
        if Damage::SEVEN.contains(damage) {
            return Ok(Validity::Invalid);
        }
        let stage = self.ground.stage;
        let run = |valid: &CommandLine| match remains {
            Remains::Unreadable => stage.outcome_by_modes(valid, &outcome.start),
            _ => stage.outcome(valid, &outcome.start),
        };
        let asked = self.fault.valid.as_ref().filter(|_| outcome.success()).map(run).transpose()?;
        Ok(match (asked.map(|said| said.success()), damage) {
            (Some(false), _) => Validity::Invalid,
            (_, Damage::Whole(Whole::OlderVersion)) => Validity::Older,
            (Some(true), _) => Validity::Valid,
            (None, _) => Validity::Unknown,
        })
    }
}

impl Damaged {
    /// Judges it, now that the controls are complete.
    pub fn judge(self, stage: &Stage<'_>, controls: &Controls) -> Case {
        let named = stage.state.paths.iter().filter(|path| self.file.starts_with(path)).cloned();
        let files: Vec<PathBuf> = named.chain([self.file.clone()]).collect();
        let verdict = judge_damage(&DamageCase {
            controls,
            start: &self.start,
            damaged: &self.image,
            outcome: &self.outcome,
            files: &files,
            place: &self.place,
            validity: self.validity,
        });
        let evidence = Evidence {
            before: Some(self.before),
            crashed: Some(self.outcome.start.clone()),
            ended: Some(self.outcome.end.clone()),
            said: said(&self.outcome.finish),
            ..Evidence::default()
        };
        Case { id: format!("damage:{}", self.damage), verdict, warnings: Vec::new(), evidence }
    }
}
