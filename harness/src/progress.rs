//! How far a run has come, for whoever watches it: counted by those who work, read by whoever tells.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts of one run. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    planned: AtomicUsize,
    done: AtomicUsize,
}

impl Progress {
    /// So many more states are to be recovered from.
    pub fn plan(&self, states: usize) {
        self.0.planned.fetch_add(states, Ordering::Relaxed);
    }

    /// One of them is done.
    pub fn done(&self) {
        self.0.done.fetch_add(1, Ordering::Relaxed);
    }

    /// How many are done, and of how many.
    pub fn counts(&self) -> (usize, usize) {
        (self.0.done.load(Ordering::Relaxed), self.0.planned.load(Ordering::Relaxed))
    }
}
