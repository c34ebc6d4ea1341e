//! One question, claimed for one session: from the moment it is chosen until its outcome is recorded.
//!
//! A store that locks the whole checkpoint has one claim at a time, which is its transaction ([`Whole`], what [`Store::claim`] gives
//! unless a store knows better). A store in which several sessions work side by side gives each a question of its own.
//!
//! [`Store::claim`]: super::Store::claim

use std::fmt::Debug;
use std::time::Duration;

use super::{Loaded, StoreError, Transaction};
use crate::checkpoint::Checkpoint;
use crate::choice::Choice;
use crate::digest;
use crate::queue::{self, StepError};

/// What a session needs to claim a question.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// The queue where there is no checkpoint yet.
    pub fresh: &'a [String],
    /// How long the session can take at most. After that a store with leases may give the question to another.
    pub lease: Duration,
}

/// A question that this session alone works on. Dropped without [`commit`](Self::commit), nothing is recorded and the question is
/// free again.
pub trait Claim: Debug {
    /// What was found when the question was claimed; `None`: there truly was no file.
    fn loaded(&self) -> Option<&Loaded>;

    /// SHA-256 of what was found.
    fn before(&self) -> Option<&str>;

    /// The question.
    fn question(&self) -> &str;

    /// Which session this is: what `sessions_run` will be if those that claimed before it and this one succeed.
    fn session(&self) -> u64;

    /// The number of the claim, which no other claim of this checkpoint ever had; `None` where one session at a time has it all.
    fn number(&self) -> Option<u64> {
        None
    }

    /// Lets others claim. To be called once what must be recorded before another session begins is recorded.
    fn announced(&mut self) {}

    /// Makes sure that the claim still holds, and applies the decision to the checkpoint as it is now. Nothing is saved yet, but from now
    /// until this is dropped no other changes the checkpoint. Once only.
    ///
    /// # Errors
    ///
    /// [`ClaimError`]; nothing was written.
    fn apply(&mut self, choice: &Choice) -> Result<&Applied, ClaimError>;

    /// Saves what [`apply`](Self::apply) gave; durable on return. Others are kept out until this is dropped, for what must be recorded
    /// before.
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::replace`].
    fn commit(&mut self) -> Result<(), StoreError>;
}

/// A decision, applied and not yet saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// SHA-256 of the checkpoint that it was applied to; `None` where there was no file.
    pub before: Option<String>,
    /// SHA-256 of what will be saved.
    pub after: String,
    /// What will be saved.
    pub next: Checkpoint,
}

/// Why a decision was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// The store refused, or could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The decision cannot be applied.
    #[error(transparent)]
    Step(#[from] StepError),
}

/// The claim on the first question of a checkpoint that one transaction holds as a whole.
#[derive(Debug)]
pub struct Whole<'s> {
    transaction: Box<dyn Transaction + 's>,
    checkpoint: Checkpoint,
    before: Option<String>,
    question: String,
    applied: Option<Applied>,
}

impl<'s> Whole<'s> {
    /// Claims the first question; `None`: there is none.
    pub fn new(transaction: Box<dyn Transaction + 's>, fresh: &[String]) -> Option<Self> {
        let checkpoint = match transaction.loaded() {
            Some(loaded) => loaded.checkpoint.clone(),
            None => Checkpoint::fresh(fresh.to_vec()),
        };
        let question = checkpoint.queue.first()?.clone();
        let found = transaction.loaded().and_then(|loaded| loaded.bytes.as_deref());
        let before = found.map(|bytes| digest::sha256(bytes));
        Some(Whole { transaction, checkpoint, before, question, applied: None })
    }
}

impl Claim for Whole<'_> {
    fn loaded(&self) -> Option<&Loaded> {
        self.transaction.loaded()
    }

    fn before(&self) -> Option<&str> {
        self.before.as_deref()
    }

    fn question(&self) -> &str {
        &self.question
    }

    fn session(&self) -> u64 {
        self.checkpoint.sessions_run.saturating_add(1)
    }

    fn apply(&mut self, choice: &Choice) -> Result<&Applied, ClaimError> {
        let next = queue::apply(&self.checkpoint, choice)?;
        let before = self.before.clone();
        let after = digest::sha256_of_parts(&next.encoded().parts());
        Ok(self.applied.insert(Applied { before, after, next }))
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        match &self.applied {
            Some(applied) => self.transaction.replace(&applied.next),
            // Nothing was decided, so there is nothing to save.
            None => Ok(()),
        }
    }
}
