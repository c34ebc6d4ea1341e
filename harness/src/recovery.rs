//! Recoveries: what a user would run next, run once for each distinct tree.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;

use crate::judge::{Outcome, account};
use crate::run::brief::{Brevity, is_enough, recovered};
use crate::run::forks::{Alike, Forks, Trust};
use crate::run::{LabError, Stage};
use crate::sandbox::Sandbox;
use crate::scenario::CommandLine;
use crate::trace::{Detail, Undisturbed};
use crate::tree::Tree;

/// An outcome, with the state paths that it was looked at for.
#[derive(Debug, Clone)]
struct Seen {
    paths: Vec<PathBuf>,
    outcome: Outcome,
    /// Its log is a brief one, which was enough for these paths.
    briefly: bool,
}

/// The hash of a tree that was checked, and the marks that had been passed before.
type Checked = ([u8; 32], Vec<String>);

/// What runs came to, by the hash of the tree that they began with.
#[derive(Debug)]
struct Known {
    outcomes: RefCell<HashMap<[u8; 32], Seen>>,
    checks: RefCell<HashMap<Checked, Option<String>>>,
    brevity: Brevity,
    trust: Trust,
    /// Sandboxes in which several recoveries ran at once, for the next time.
    spare: RefCell<Vec<Arc<Sandbox>>>,
}

/// Everything that a scenario's recovery was run on so far.
#[derive(Debug)]
pub struct Recoveries<'a> {
    stage: Stage<'a>,
    known: Rc<Known>,
    jobs: usize,
}

impl<'a> Recoveries<'a> {
    /// None yet.
    pub fn new(stage: &Stage<'a>) -> Recoveries<'a> {
        let known = Known {
            outcomes: RefCell::default(),
            checks: RefCell::default(),
            brevity: Brevity::of(stage),
            trust: Trust::default(),
            spare: RefCell::default(),
        };
        Recoveries { stage: stage.clone(), known: Rc::new(known), jobs: 1 }
    }

    /// So many may run at once.
    #[must_use]
    pub fn with_jobs(self, jobs: usize) -> Recoveries<'a> {
        Recoveries { jobs, ..self }
    }

    /// The same runs, looked at for other state files.
    pub fn seen_by(&self, stage: &Stage<'a>) -> Recoveries<'a> {
        Recoveries { stage: stage.clone(), known: self.known.clone(), jobs: self.jobs }
    }

    /// Does some work, and meanwhile, where more than one may run at once, runs the recovery on a tree on which it will be
    /// asked for in any case. If that fails there, it fails again when it is asked for.
    pub(crate) fn beside<R>(&self, tree: &Tree, work: impl FnOnce() -> R) -> R {
        let hash = tree.hash();
        let is_known = self.known.outcomes.borrow().contains_key(&hash);
        if self.jobs < 2 || is_known || !self.stage.sandbox().is_the_same_in_each_run() {
            return work();
        }
        let (like, tree) = (self.stage.like(), Arc::new(tree.clone()));
        let (command, brevity) = (self.command(), &self.known.brevity);
        let (result, recovered) = std::thread::scope(|scope| {
            let other = scope.spawn(move || -> Result<_, LabError> {
                let stage = like.another(1)?;
                Ok((stage.recovered(command, &tree, brevity)?, stage.sandbox()))
            });
            let result = work();
            (result, other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        if let Ok(((outcome, briefly), sandbox)) = recovered {
            self.know(hash, outcome, briefly);
            self.known.spare.borrow_mut().push(sandbox);
        }
        result
    }

    /// The recovery's outcome on this tree; equal trees are run once.
    ///
    /// # Errors
    ///
    /// As [`Stage::run`].
    pub fn on(&self, tree: &Tree) -> Result<Outcome, LabError> {
        let hash = tree.hash();
        match self.known(&hash) {
            Some(outcome) => Ok(outcome),
            None => self.on_known(hash, &Arc::new(tree.clone())),
        }
    }

    /// What is known of the tree of this hash already, as this stage's state files show it.
    fn known(&self, hash: &[u8; 32]) -> Option<Outcome> {
        let Seen { paths, outcome, briefly } = self.known.outcomes.borrow().get(hash).cloned()?;
        if paths == self.stage.state.paths {
            return Some(outcome);
        }
        let outcome = self.stage.seen(&outcome);
        if briefly && !is_enough(&outcome) {
            return None;
        }
        self.know(*hash, outcome.clone(), briefly);
        Some(outcome)
    }

    fn know(&self, hash: [u8; 32], outcome: Outcome, briefly: bool) {
        let paths = self.stage.state.paths.clone();
        self.known.outcomes.borrow_mut().insert(hash, Seen { paths, outcome, briefly });
    }

    /// As [`on`](Self::on), of a tree whose hash is known.
    ///
    /// # Errors
    ///
    /// As [`Stage::run`].
    pub fn on_known(&self, hash: [u8; 32], tree: &Arc<Tree>) -> Result<Outcome, LabError> {
        if let Some(outcome) = self.known(&hash) {
            return Ok(outcome);
        }
        let (outcome, briefly) = self.stage.recovered(self.command(), tree, &self.known.brevity)?;
        self.know(hash, outcome.clone(), briefly);
        Ok(outcome)
    }

    /// Runs the recovery on those of these trees that it was not run on yet, several at once, or on as many as it comes to
    /// before it is told to stop.
    ///
    /// # Errors
    ///
    /// As [`Stage::run`]: the first.
    pub fn ahead(&self, trees: &[([u8; 32], Arc<Tree>)]) -> Result<(), LabError> {
        self.run_ahead(&self.unknown(trees), &Trust::off())
    }

    /// The same, where the runs may begin as copies ([`Outcome::forked`]).
    ///
    /// # Errors
    ///
    /// As [`Stage::run`]: the first.
    pub fn ahead_by_copies(&self, trees: &[([u8; 32], Arc<Tree>)]) -> Result<(), LabError> {
        let todo = self.unknown(trees);
        let least = self.stage.settings().copies_from;
        match least.is_some_and(|least| todo.len() >= least * self.jobs) {
            true => self.run_ahead(&todo, &self.known.trust),
            false => self.run_ahead(&todo, &Trust::off()),
        }
    }

    /// Runs the recovery by itself on those of these trees on which a copy of it was run.
    ///
    /// # Errors
    ///
    /// As [`Stage::run`]: the first.
    pub fn without_copies(&self, trees: &[([u8; 32], Arc<Tree>)]) -> Result<(), LabError> {
        let mut outcomes = self.known.outcomes.borrow_mut();
        for (hash, _) in trees {
            if outcomes.get(hash).is_some_and(|seen| seen.outcome.forked) {
                outcomes.remove(hash);
            }
        }
        drop(outcomes);
        self.ahead(trees)
    }

    /// A recovery that went well, and was run from its beginning, with how it was traced.
    fn run_by_itself(&self) -> Option<(Outcome, Detail)> {
        let outcomes = self.known.outcomes.borrow();
        let is_good = |seen: &&Seen| {
            let outcome = &seen.outcome;
            !outcome.forked && outcome.success() && outcome.trace.gaps.is_empty()
        };
        let seen = outcomes.values().find(is_good)?;
        let detail = if seen.briefly { Detail::Overwrites } else { Detail::Reads };
        Some((seen.outcome.clone(), detail))
    }

    fn unknown<'t>(&self, trees: &'t [([u8; 32], Arc<Tree>)]) -> Vec<&'t ([u8; 32], Arc<Tree>)> {
        let mut found: HashSet<[u8; 32]> = self.known.outcomes.borrow().keys().copied().collect();
        trees.iter().filter(|(hash, _)| found.insert(*hash)).collect()
    }

    fn run_ahead(&self, todo: &[&([u8; 32], Arc<Tree>)], trust: &Trust) -> Result<(), LabError> {
        let progress = &self.stage.settings().progress;
        progress.plan(todo.len());
        let (command, brevity) = (self.command(), &self.known.brevity);
        let known = self.run_by_itself();
        let starts = todo.iter().map(|(_, tree)| &**tree);
        let starts = starts.chain(known.iter().map(|(outcome, _)| &*outcome.start)).collect();
        let alike = Alike::new(starts, &self.stage.state);
        let ran = self.spread_each(
            todo,
            || Forks::new(trust, &alike, known.as_ref()),
            |stage, forks, (hash, tree)| {
                let run = |detail| match detail == brevity.usual() {
                    true => forks.outcome(stage, command, tree, detail),
                    // For one that is traced otherwise, another to be copied would cost more than it spares.
                    false => stage.outcome_in(command, tree, detail, &mut Undisturbed),
                };
                let recovered = recovered(tree, brevity, run)?;
                progress.done();
                Ok((*hash, recovered))
            },
        )?;
        for (hash, (outcome, briefly)) in ran {
            self.know(hash, outcome, briefly);
        }
        Ok(())
    }

    /// Runs the recovery on each of these trees, whatever is known of them, several at once.
    ///
    /// # Errors
    ///
    /// As [`Stage::run`]: the first.
    pub fn again(&self, trees: &[Arc<Tree>]) -> Result<Vec<Outcome>, LabError> {
        let (command, brevity) = (self.command(), &self.known.brevity);
        let run = |stage: &Stage<'_>, tree: &Arc<Tree>| stage.recovered(command, tree, brevity);
        let ran = self.spread(trees, run)?;
        match ran.len() == trees.len() {
            true => Ok(ran.into_iter().map(|(outcome, _)| outcome).collect()),
            false => Err(LabError::Interrupted),
        }
    }

    /// Does something with each of the items, on as many stages as may be used at once; in the order of the items. Told to stop,
    /// it gives what was done until then.
    pub(crate) fn spread<T: Sync, R: Send>(
        &self,
        items: &[T],
        run: impl Fn(&Stage<'_>, &T) -> Result<R, LabError> + Sync,
    ) -> Result<Vec<R>, LabError> {
        self.spread_each(items, || (), |stage, (), item| run(stage, item))
    }

    /// The same, where each worker has something of its own, which it makes itself and keeps from item to item.
    fn spread_each<T: Sync, R: Send, W>(
        &self,
        items: &[T],
        own: impl Fn() -> W + Sync,
        run: impl Fn(&Stage<'_>, &mut W, &T) -> Result<R, LabError> + Sync,
    ) -> Result<Vec<R>, LabError> {
        let next = AtomicUsize::new(0);
        let work = |stage: &Stage<'_>| -> Result<Vec<(usize, R)>, LabError> {
            let (mut done, mut own) = (Vec::new(), own());
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(item) = items.get(number) else { return Ok(done) };
                match run(stage, &mut own, item) {
                    Err(LabError::Interrupted) => return Ok(done),
                    result => done.push((number, result?)),
                }
            }
        };
        let jobs = self.jobs.min(items.len());
        if jobs < 2 || !self.stage.has_fixed_place() {
            return Ok(work(&self.stage)?.into_iter().map(|(_, result)| result).collect());
        }
        let like = self.stage.like();
        let mut spare = self.known.spare.take().into_iter();
        let (own, others) = std::thread::scope(|scope| {
            let beside = |job: usize, spare: Option<Arc<Sandbox>>| {
                let (like, work) = (&like, &work);
                let stage = spare.map(|sandbox| self.stage.moved(sandbox, job));
                scope.spawn(move || {
                    let stage = stage.map_or_else(|| like.another(job), Ok)?;
                    Ok((work(&stage)?, stage.sandbox()))
                })
            };
            let workers: Vec<_> = (1..jobs).map(|job| beside(job, spare.next())).collect();
            let own = work(&self.stage);
            let join = |worker: ScopedJoinHandle<'_, Result<_, LabError>>| {
                worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            (own, workers.into_iter().map(join).collect::<Vec<_>>())
        });
        let mut results = own?;
        let mut sandboxes: Vec<Arc<Sandbox>> = spare.collect();
        for other in others {
            let (done, sandbox) = other?;
            results.extend(done);
            sandboxes.push(sandbox);
        }
        *self.known.spare.borrow_mut() = sandboxes;
        results.sort_by_key(|(number, _)| *number);
        Ok(results.into_iter().map(|(_, result)| result).collect())
    }

    /// What the scenario's check says of this tree, if it has one and that fails; `marks` had been passed before the crash.
    ///
    /// # Errors
    ///
    /// As [`Stage::run`].
    pub fn check(&self, tree: &Arc<Tree>, marks: &[String]) -> Result<Option<String>, LabError> {
        let Some(command) = &self.stage.scenario.recovery.check else {
            return Ok(None);
        };
        let key = (tree.hash(), marks.to_vec());
        if let Some(said) = self.known.checks.borrow().get(&key) {
            return Ok(said.clone());
        }
        let outcome = self.stage.outcome_knowing(command, tree, &key.1)?;
        let said = (!outcome.success()).then(|| account(&outcome));
        self.known.checks.borrow_mut().insert(key, said.clone());
        Ok(said)
    }

    /// How many may run at once.
    pub(crate) fn jobs(&self) -> usize {
        self.jobs
    }

    /// The stage on which it runs.
    pub fn stage(&self) -> &Stage<'a> {
        &self.stage
    }

    /// The recovery's command.
    pub fn command(&self) -> &CommandLine {
        &self.stage.scenario.recovery.command
    }
}
