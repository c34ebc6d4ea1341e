//! Several scenarios at a time: as many as there are processors run, and those that wait let others run.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use super::scenario::{Pause, Plan, run_scenario};
use super::stage::Stage;
use super::{LabError, Settings, check_interrupt};
use crate::report::{Event, Reporter};
use crate::scenario::Scenario;

/// Threads for each processor: most of a scenario's time can be the wait between equal controls.
const THREADS_PER_JOB: usize = 4;

/// Runs the scenarios and tells the reporter, in the order in which they end.
pub fn run(scenarios: &[Scenario], plan: &Plan, settings: &Settings, reporter: &mut dyn Reporter) {
    if settings.build {
        let built = super::build(scenarios, settings, &mut |command| {
            reporter.event(Event::Building { command })
        });
        if let Err(error) = built {
            reporter.event(Event::Failed { scenario: None, error: &error });
            return;
        }
    }
    let queue: Mutex<VecDeque<&Scenario>> = Mutex::new(scenarios.iter().collect());
    let slots = Slots::new(settings.jobs.max(1));
    let (results, inbox) = mpsc::channel();
    settings.progress.begin(scenarios.len());
    reporter.event(Event::Begun { scenarios: scenarios.len() });
    std::thread::scope(|scope| {
        for _ in 0..(settings.jobs.max(1) * THREADS_PER_JOB).min(scenarios.len()) {
            let results = results.clone();
            let (queue, slots) = (&queue, &slots);
            scope.spawn(move || {
                while let Some(scenario) = next(queue) {
                    let result = one(scenario, plan, settings, slots);
                    settings.progress.scenario_done();
                    if results.send((scenario, result)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(results);
        for (scenario, result) in inbox {
            match result {
                Ok(result) => reporter.event(Event::Ended { scenario, result: &result }),
                Err(error) => {
                    reporter.event(Event::Failed { scenario: Some(scenario), error: &error })
                }
            }
        }
    });
    reporter.event(Event::Done);
}

fn next<'a>(queue: &Mutex<VecDeque<&'a Scenario>>) -> Option<&'a Scenario> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}

fn one(
    scenario: &Scenario,
    plan: &Plan,
    settings: &Settings,
    slots: &Slots,
) -> Result<super::ScenarioResult, LabError> {
    let mut seat = slots.take();
    let stage = Stage::new(scenario, settings, Some(seat.processor))?;
    let result = run_scenario(&stage, plan, 1, &mut seat)?;
    check_interrupt()?;
    Ok(result)
}

/// The processors that this thread may run on, at least one: in a container they need not begin with 0.
pub(super) fn processors() -> Vec<usize> {
    let set = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0));
    let is_set = |set: &nix::sched::CpuSet, number: usize| set.is_set(number).unwrap_or(false);
    let numbers =
        |set| (0..nix::sched::CpuSet::count()).filter(move |number| is_set(&set, *number));
    let all: Vec<usize> = set.into_iter().flat_map(numbers).collect();
    if all.is_empty() { vec![0] } else { all }
}

/// The processor that this thread runs on now, so that labs that run at the same time do not all crowd on one.
pub(super) fn own_processor() -> usize {
    let all = processors();
    let now = nix::sched::sched_getcpu().ok().filter(|now| all.contains(now));
    now.unwrap_or(all[0])
}

/// The processor so many behind another one, round about.
pub(super) fn processor_behind(first: usize, number: usize) -> usize {
    let all = processors();
    let begin = all.iter().position(|one| *one == first).unwrap_or(0);
    all[(begin + number) % all.len()]
}

/// The right to run on a processor, one at a time each.
struct Slots {
    free: Mutex<Vec<usize>>,
    freed: Condvar,
}

struct Seat<'a> {
    slots: &'a Slots,
    processor: usize,
}

impl Slots {
    fn new(jobs: usize) -> Slots {
        let allowed = processors();
        let free = (0..jobs).map(|job| allowed[job % allowed.len()]).collect();
        Slots { free: Mutex::new(free), freed: Condvar::new() }
    }

    fn free(&self) -> MutexGuard<'_, Vec<usize>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_processor(&self) -> usize {
        let mut free = self.free();
        loop {
            match free.pop() {
                Some(processor) => return processor,
                None => free = self.freed.wait(free).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn give_back(&self, processor: usize) {
        self.free().push(processor);
        self.freed.notify_one();
    }

    fn take(&self) -> Seat<'_> {
        Seat { slots: self, processor: self.take_processor() }
    }
}

impl Pause for Seat<'_> {
    fn pause(&mut self, time: Duration) -> usize {
        if !time.is_zero() {
            self.slots.give_back(self.processor);
            std::thread::sleep(time);
            self.processor = self.slots.take_processor();
        }
        self.processor
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.slots.give_back(self.processor);
    }
}
