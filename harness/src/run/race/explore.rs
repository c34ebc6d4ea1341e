//! Runs every schedule that matters, several at once, and what is beyond the budget by chance.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::super::LabError;
use super::super::stage::Stage;
use super::outcome;
use super::*;
use crate::fault::race::explore::Exploration;
use crate::fault::race::random::{Priorities, chance};
use crate::interrupt::is_requested;
use crate::progress::Progress;
use crate::scenario::CommandLine;

/// Of the budget, so large a part goes into schedules by chance where the exploration does not end within it.
const BY_CHANCE: usize = 4;

/// So often an exploration begins again because of what its runs have shown: where that is new each time, it must end as well.
const AGAIN_AT_MOST: usize = 50;

/// How long what is due goes unsaid to whoever watches.
const TELL_DUE_EVERY: Duration = Duration::from_millis(200);

/// All runs of an exploration.
#[derive(Debug)]
pub(super) struct Explored<'a> {
    pub(super) classes: Classes<'a>,
    counts: Counts,
    /// Runs by chance, and about how many steps each has.
    by_chance: Option<(usize, usize)>,
    /// It was told to stop before its end.
    interrupted: bool,
    /// What was run before it began again.
    pub(super) earlier: Earlier,
}

/// Runs of an exploration that began again, since one of them showed more to be contested than they were held for. What they came
/// to is true all the same.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    /// How often it began again.
    times: usize,
    /// How many runs there were.
    runs: usize,
    /// What they came to.
    pub(super) classes: Vec<Class>,
}

/// How runs are made whose guides are known beforehand.
#[derive(Debug)]
pub(super) struct Runs<'a> {
    /// So many at a time.
    pub(super) jobs: usize,
    /// Before what programs are held.
    pub(super) contested: &'a Contested,
    /// Runs between them when it is due.
    pub(super) second: &'a SecondRound<'a>,
}

struct Shared<'a> {
    exploration: Exploration,
    under_way: usize,
    begun: usize,
    classes: Classes<'a>,
    failed: bool,
    told: Told,
    /// It goes on also where its runs show more to be contested than they are held for.
    is_last: bool,
}

/// How many schedules were last said to be due, and when.
struct Told {
    due: usize,
    at: Instant,
}

impl Shared<'_> {
    /// Another exploration follows, of programs that are held for more.
    fn begins_again(&self) -> bool {
        self.classes.knows_more && !self.is_last
    }

    /// To count what is due takes its time: not after each schedule.
    fn tell_due(&mut self, progress: &Progress) {
        if self.told.at.elapsed() >= TELL_DUE_EVERY {
            let due = self.exploration.counts().left as usize;
            progress.due(self.told.due, due);
            self.told = Told { due, at: Instant::now() };
        }
    }
}

/// Explores within the fault's bounds.
///
/// # Errors
///
/// As [`Stage::run`]: the first.
pub(super) fn explore<'a>(
    stage: &Stage<'_>,
    before: &Tree,
    fault: &RaceFault,
    (jobs, second): (usize, &SecondRound<'_>),
    contested: &mut Contested,
    of_none: &dyn Fn(&Contested) -> Classes<'a>,
) -> Result<Explored<'a>, LabError> {
    let mut earlier = Earlier::default();
    // Where a run changes something else than those before, it begins again: others may have looked at that unseen.
    loop {
        let runs = Runs { jobs, contested, second };
        let is_last = earlier.times == AGAIN_AT_MOST;
        let classes = of_none(contested);
        let explored = explore_knowing(stage, before, fault, &runs, (classes, is_last))?;
        *contested = explored.classes.contested.clone();
        if !explored.classes.knows_more || is_last || is_requested() {
            return Ok(Explored { earlier, ..explored });
        }
        earlier.times += 1;
        earlier.runs += explored.counts.runs as usize;
        earlier.classes.extend(explored.classes.sorted());
    }
}

fn explore_knowing<'a>(
    stage: &Stage<'_>,
    before: &Tree,
    fault: &RaceFault,
    runs: &Runs<'_>,
    (classes, is_last): (Classes<'a>, bool),
) -> Result<Explored<'a>, LabError> {
    let shared = Mutex::new(Shared {
        exploration: Exploration::new(fault.preemptions, alike(fault)),
        under_way: 0,
        begun: 0,
        classes,
        failed: false,
        told: Told { due: 0, at: Instant::now() },
        is_last,
    });
    let changed = Condvar::new();
    on_each(stage, runs.jobs, |stage| work(stage, before, fault, runs, &shared, &changed))?;
    let shared = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    let begins_again = shared.begins_again();
    let Shared { exploration, mut classes, told, .. } = shared;
    stage.settings().progress.due(told.due, 0);
    let counts = exploration.counts();
    let mut by_chance = None;
    if counts.left > 0 && !begins_again && !is_requested() {
        let count = (fault.schedules / BY_CHANCE).max(1);
        let length: usize = classes.steps.iter().sum();
        let depth = fault.preemptions.unwrap_or(2) + 1;
        let guide = |number: usize| {
            let seed = fault.seed.wrapping_add(number as u64);
            Guide::Priorities(Priorities::draw(seed, fault.processes.len(), length, depth))
        };
        let drawn = run_each(stage, before, fault, runs, count, guide, &mut classes)?;
        by_chance = Some((drawn, length));
    }
    let (earlier, interrupted) = (Earlier::default(), is_requested());
    Ok(Explored { classes, counts, by_chance, interrupted, earlier })
}

/// Does the same on as many stages as may be used at once.
fn on_each(
    stage: &Stage<'_>,
    jobs: usize,
    work: impl Fn(&Stage<'_>) -> Result<(), LabError> + Sync,
) -> Result<(), LabError> {
    let jobs = if stage.has_fixed_place() { jobs.max(1) } else { 1 };
    let like = stage.like();
    std::thread::scope(|scope| {
        let beside = |job: usize| {
            let (like, work) = (&like, &work);
            scope.spawn(move || work(&like.another(job)?))
        };
        let workers: Vec<_> = (1..jobs).map(beside).collect();
        let own = work(stage);
        let others = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        std::iter::once(own).chain(others.collect::<Vec<_>>()).collect()
    })
}

/// So many runs, each by a guide that is known beforehand, or as many as it comes to before it is told to stop; how many
/// those are.
///
/// # Errors
///
/// As [`Stage::run`]: the first.
pub(super) fn run_each(
    stage: &Stage<'_>,
    before: &Tree,
    fault: &RaceFault,
    runs: &Runs<'_>,
    count: usize,
    guide: impl Fn(usize) -> Guide + Sync,
    classes: &mut Classes<'_>,
) -> Result<usize, LabError> {
    let progress = &stage.settings().progress;
    progress.due(0, count);
    let next = AtomicUsize::new(0);
    let made = Mutex::new((0, classes));
    on_each(stage, runs.jobs, |stage| {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count || is_requested() {
                return Ok(());
            }
            runs.second.run_if_due(stage)?;
            let ran = outcome::run(stage, before, fault, guide(number), runs.contested);
            let Some(ran) = unless_stopped(ran)? else { return Ok(()) };
            progress.schedule_done();
            progress.due(1, 0);
            let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
            made.0 += 1;
            made.1.add(ran, runs.second);
        }
    })?;
    Ok(made.into_inner().unwrap_or_else(PoisonError::into_inner).0)
}

fn work(
    stage: &Stage<'_>,
    before: &Tree,
    fault: &RaceFault,
    runs: &Runs<'_>,
    shared: &Mutex<Shared<'_>>,
    changed: &Condvar,
) -> Result<(), LabError> {
    let lock =
        || -> MutexGuard<'_, Shared<'_>> { shared.lock().unwrap_or_else(PoisonError::into_inner) };
    let progress = &stage.settings().progress;
    loop {
        let walk = {
            let mut state = lock();
            loop {
                let over = state.begun >= fault.schedules && state.exploration.counts().left > 0;
                if state.failed || state.begins_again() || is_requested() || over {
                    return Ok(());
                }
                if let Some(walk) = state.exploration.claim() {
                    state.under_way += 1;
                    state.begun += 1;
                    break walk;
                }
                if state.under_way == 0 {
                    return Ok(());
                }
                state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        };
        let ran = runs
            .second
            .run_if_due(stage)
            .and_then(|()| outcome::run(stage, before, fault, Guide::Walk(walk), runs.contested));
        progress.schedule_done();
        let mut state = lock();
        state.under_way -= 1;
        match ran {
            Ok(mut ran) => {
                let walked = ran.steer.take().and_then(crate::fault::race::steer::Steer::into_walk);
                if let Some((walk, last, ending)) = walked {
                    let is_known = ending == Ending::Known;
                    if !matches!(ending, Ending::Departed(_)) {
                        state.exploration.finish(walk, last, is_known);
                    }
                    if !is_known {
                        state.classes.add(ran, runs.second);
                    }
                }
                state.tell_due(progress);
            }
            // What this run would have come to is not known; the others are.
            Err(LabError::Interrupted) => {}
            Err(error) => {
                state.failed = true;
                changed.notify_all();
                return Err(error);
            }
        }
        changed.notify_all();
    }
}

/// The names of programs whose command others have as well, a list for each such command.
fn same_command(fault: &RaceFault) -> Vec<String> {
    let mut groups: Vec<(&CommandLine, Vec<String>)> = Vec::new();
    for (name, command) in &fault.processes {
        let name = format!("`{name}`");
        match groups.iter_mut().find(|(known, _)| *known == command) {
            Some((_, names)) => names.push(name),
            None => groups.push((command, vec![name])),
        }
    }
    let names = groups.into_iter().map(|(_, names)| names).filter(|names| names.len() > 1);
    names.map(|names| names.join(", ")).collect()
}

impl Explored<'_> {
    /// What was explored, and what was not.
    pub(super) fn told(&self, fault: &RaceFault) -> String {
        let Counts { runs, known, beyond_bound, left, same } = self.counts;
        let Classes { steps, departed, .. } = &self.classes;
        let all = interleavings(steps);
        let steps: Vec<String> = steps.iter().map(usize::to_string).collect();
        let all = if all < 6.0 {
            thousands(10f64.powf(all).round() as usize)
        } else {
            format!("about 10^{all:.0}")
        };
        let name = if fault.name.is_empty() { String::new() } else { format!(" {}", fault.name) };
        let mut text = format!(
            "race{name}: {} of {all} interleavings of {} steps stand for all",
            counted(runs as usize, "schedule"),
            steps.join(" + "),
        );
        if let Some(bound) = fault.preemptions {
            text += &format!(" with at most {}", counted(bound as usize, "preemption"));
        }
        if left > 0 {
            text = format!(
                "race{name}: {} were run, of {all} interleavings of {} steps; {} more orders were known to be due and were left",
                counted(runs as usize, "schedule"),
                steps.join(" + "),
                thousands(left as usize),
            );
        }
        if self.interrupted {
            text = format!(
                "race{name}: interrupted after {} of {all} interleavings of {} steps: not all orders were tried",
                counted(runs as usize, "schedule"),
                steps.join(" + "),
            );
        }
        for same in same_command(fault) {
            text += &format!(
                "; {same} run one command: orders that differ in which of them is which are one"
            );
        }
        if same > 0 {
            text += &format!(
                "; {} of the same steps were not run again",
                counted(same as usize, "other order")
            );
        }
        if self.earlier.times > 0 {
            text += &format!(
                "; begun again {} after {}, when a run showed more that one changes and another looks at",
                counted(self.earlier.times, "time"),
                counted(self.earlier.runs, "schedule"),
            );
        }
        if self.classes.knows_more {
            text += "; runs showed more that one changes and another looks at to the end: not all orders were tried";
        }
        if known > 0 {
            text += &format!("; {} broken off as known", counted(known as usize, "run"));
        }
        if beyond_bound > 0 {
            text += &format!(
                "; {} beyond the bound (--preemptions all tries them)",
                counted(beyond_bound as usize, "order")
            );
        }
        if let Some((count, steps)) = self.by_chance {
            let depth = fault.preemptions.unwrap_or(2) + 1;
            let one = chance(fault.processes.len(), steps, depth);
            let all = 1.0 - (1.0 - one).powf(count as f64);
            text += &format!(
                "; {} by chance from seed {}: a fault of depth {depth} is found with a probability of at least {all:.2e}",
                counted(count, "schedule"),
                fault.seed,
            );
        }
        if *departed > 0 {
            text +=
                &format!("; {} did not do what they had done before", counted(*departed, "run"));
        }
        text
    }
}
