//! One process of the subject is killed, and the others go on: a run for each such place.

use std::path::Path;
use std::sync::Arc;

use super::controls::FirstRound;
use super::kill::{Ground, Killed};
use super::stage::Stage;
use super::{LabError, check_interrupt};
use crate::fault::process::{KillOne, program_of};
use crate::judge::{Origin, Version, versions};
use crate::op::{Event, What};
use crate::recording::{Trace, marks};
use crate::scenario::KillPoint;
use crate::subject::Exit;
use crate::tree::{Tree, unaccounted};

/// A run in which one process was killed, with what all left.
struct Lived {
    director: KillOne,
    trace: Trace,
    left: Tree,
}

/// Processes that go in another order each time may not come to a place at once.
const TRIES: usize = 4;

/// Runs the subject, and kills one process at its place.
fn run(
    stage: &Stage<'_>,
    before: &Tree,
    recorded: &[Event],
    place: &KillPoint,
) -> Result<Lived, LabError> {
    let mut tried = 0;
    loop {
        check_interrupt()?;
        tried += 1;
        let director = match place {
            KillPoint::Process(number, nth) => KillOne::new(recorded, *number, *nth),
            _ => None,
        };
        let Some(mut director) = director else {
            return Err(LabError::Lab(format!("the recording has no place `{place}`")));
        };
        let (trace, left) = stage.run_subject(before, &mut director)?;
        let hung = trace.ends.first().is_some_and(|end| end.exit == Exit::TimedOut);
        if director.killed.is_some() || hung || tried == TRIES {
            return Ok(Lived { director, trace, left });
        }
    }
}

impl Ground<'_> {
    /// A kill at each of these places that are of one process alone.
    ///
    /// # Errors
    ///
    /// As [`Stage::run`](super::Stage::run).
    pub fn kill_each(
        &self,
        places: &[KillPoint],
        controls: &mut FirstRound,
    ) -> Result<Vec<Killed>, LabError> {
        let runs = self.runs(places)?;
        places.iter().zip(runs).map(|(place, run)| self.killed(place, run, controls)).collect()
    }

    /// The runs, as many at once as there may be.
    fn runs(&self, places: &[KillPoint]) -> Result<Vec<Lived>, LabError> {
        let progress = &self.stage.settings().progress;
        progress.plan(places.len());
        let (before, recorded) = (&self.recording.before, self.recording.trace.events.as_slice());
        let runs = self.recoveries.spread(places, |stage, place| {
            let run = run(stage, before, recorded, place)?;
            progress.done();
            Ok(run)
        })?;
        match runs.len() == places.len() {
            true => Ok(runs),
            false => Err(LabError::Interrupted),
        }
    }

    /// Runs the recovery on what the others left when they had ended. Judged is against the versions of that very run.
    fn killed(
        &self,
        point: &KillPoint,
        run: Lived,
        controls: &mut FirstRound,
    ) -> Result<Killed, LabError> {
        let before = &self.recording.before;
        let Lived { director, mut trace, left } = run;
        let at = director.place_in(&trace.events).unwrap_or(trace.events.len());
        let mut unseen = unseen(&trace, before, &left, director.killed);
        if let Some(victim) = director.killed {
            forget_closing(&mut trace.events, at, victim);
        }
        let mut own =
            versions(before, &trace.events, &self.stage.state, self.promises, Some(self.versions))
                .map_err(|misfit| unseen.get_or_insert(misfit.to_string()).clone())
                .unwrap_or_default();
        for version in &mut own.all {
            self.doubt(version, at);
        }
        self.go_on_as_recorded(&mut own);
        controls.add(self.recoveries, before, &self.recording.after, &own.all)?;
        let (hash, survivor, left) = (left.hash(), self.stage.state.image(&left), Arc::new(left));
        let (mut after, mut check_failed) = (None, None);
        let marks = marks(&trace.events);
        if unseen.is_none() {
            let done = self.recover(hash, &left, &self.familiar()?)?;
            check_failed = self.recoveries.check(&done.outcome.end, &marks)?;
            after = Some(Arc::new(done));
        }
        Ok(Killed {
            id: format!("kill@{point}"),
            point: point.clone(),
            unseen,
            of_recovery: false,
            others_hung: trace.ends.first().is_some_and(|end| end.exit == Exit::TimedOut),
            before: self.before.clone(),
            at,
            events: trace.events.len(),
            trace: Arc::new(trace),
            left,
            hash,
            survivor,
            promised: own.promised,
            versions: Arc::new(own),
            after,
            marks,
            check_failed,
            power: None,
        })
    }

    /// What others put in place after one had died, and no undisturbed run does, was perhaps not meant: then it stands only
    /// if the recovery can use it.
    fn doubt(&self, version: &mut Version, killed_at: usize) {
        let is_recorded = self.versions.all.iter().any(|known| known.image == version.image);
        if version.at_event > killed_at && !is_recorded {
            version.origin = Origin::Close;
        }
    }
}

/// The kernel closes the descriptors of the dead; that was not its doing, and makes no version.
fn forget_closing(events: &mut Vec<Event>, killed_at: usize, victim: i32) {
    let mut position = 0;
    events.retain(|event| {
        position += 1;
        let closes = matches!(event.what, What::Close { .. }) && event.actor.pid == victim;
        position <= killed_at || !closes
    });
}

fn unseen(trace: &Trace, before: &Tree, left: &Tree, killed: Option<i32>) -> Option<String> {
    if killed.is_none() {
        return Some(format!(
            "none of {TRIES} runs came to this place: they are not the same each time"
        ));
    }
    if let Some(gap) = trace.gaps.iter().find(|gap| gap.path.is_some()) {
        return Some(format!("the tracer could not see: {}", gap.what));
    }
    unaccounted(before, &trace.events, left)
}

/// How a process is called in reports: its number, and the program that it was in the recording.
pub(super) fn called(events: &[Event], number: u32, nth: u32) -> String {
    let program = program_of(events, number, nth);
    let name = program.as_deref().and_then(Path::file_name);
    match name {
        Some(name) => format!("process {number} ({})", name.to_string_lossy()),
        None => format!("process {number}"),
    }
}
