//! The second round of a race's controls, as early as it tells what times do: whoever stops the lab later still gets verdicts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::super::LabError;
use super::super::controls::CONTROLS_APART;
use super::super::stage::Stage;
use super::{Oracle, unless_stopped};
use crate::judge::Masks;
use crate::scenario::RaceFault;
use crate::tree::Tree;

/// A second round that is due some time after the first.
#[derive(Debug)]
pub(super) struct SecondRound<'a> {
    oracle: &'a Oracle,
    before: &'a Tree,
    fault: &'a RaceFault,
    first: Instant,
    begun: AtomicBool,
    masks: Mutex<Option<Masks>>,
}

impl<'a> SecondRound<'a> {
    /// The first has just been run.
    pub(super) fn later(
        oracle: &'a Oracle,
        before: &'a Tree,
        fault: &'a RaceFault,
    ) -> SecondRound<'a> {
        let (first, begun, masks) = (Instant::now(), AtomicBool::new(false), Mutex::new(None));
        SecondRound { oracle, before, fault, first, begun, masks }
    }

    /// Runs it on this stage, where it is due and nobody else does.
    ///
    /// # Errors
    ///
    /// As [`Stage::run`].
    pub(super) fn run_if_due(&self, stage: &Stage<'_>) -> Result<(), LabError> {
        if self.first.elapsed() < CONTROLS_APART || self.begun.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let masks = unless_stopped(self.oracle.masks(stage, self.before, self.fault))?;
        *self.masks.lock().unwrap_or_else(PoisonError::into_inner) = masks;
        Ok(())
    }

    /// What differs between equal orders, once it was run.
    pub(super) fn known(&self) -> Option<Masks> {
        self.masks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What differs between equal orders, where it was run.
    pub(super) fn masks(self) -> Option<Masks> {
        self.masks.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
