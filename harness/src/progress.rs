//! How far a run has come, for whoever watches it: counted by those who work, read by whoever tells.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts of one run. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    scenarios: AtomicUsize,
    scenarios_done: AtomicUsize,
    planned: AtomicUsize,
    done: AtomicUsize,
    schedules: AtomicUsize,
    due: AtomicUsize,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// How many scenarios are tried; 0 while they are built.
    pub scenarios: usize,
    /// How many of them are done.
    pub scenarios_done: usize,
    /// How many distinct states are to be recovered from, as far as that is known, and how many runs are to be made.
    pub planned: usize,
    /// How many of them are done.
    pub done: usize,
    /// How many schedules of races are run.
    pub schedules: usize,
    /// How many more are known to be due: each that is run can make more of them known.
    pub due: usize,
}

impl Progress {
    /// So many scenarios begin.
    pub fn begin(&self, scenarios: usize) {
        self.0.scenarios.fetch_add(scenarios, Ordering::Relaxed);
    }

    /// One of them is done.
    pub fn scenario_done(&self) {
        self.0.scenarios_done.fetch_add(1, Ordering::Relaxed);
    }

    /// So many more states are to be recovered from.
    pub fn plan(&self, states: usize) {
        self.0.planned.fetch_add(states, Ordering::Relaxed);
    }

    /// One of them is done.
    pub fn done(&self) {
        self.0.done.fetch_add(1, Ordering::Relaxed);
    }

    /// One schedule of a race is run.
    pub fn schedule_done(&self) {
        self.0.schedules.fetch_add(1, Ordering::Relaxed);
    }

    /// So many schedules of one race are due now, where so many were.
    pub fn due(&self, before: usize, now: usize) {
        self.0.due.fetch_add(now, Ordering::Relaxed);
        self.0.due.fetch_sub(before, Ordering::Relaxed);
    }

    /// How far it is now.
    pub fn counts(&self) -> Counts {
        let now = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        Counts {
            scenarios: now(&self.0.scenarios),
            scenarios_done: now(&self.0.scenarios_done),
            planned: now(&self.0.planned),
            done: now(&self.0.done),
            schedules: now(&self.0.schedules),
            due: now(&self.0.due),
        }
    }
}
