//! Kills derived from one recording: the tree after each place of the log, one recovery for each distinct tree.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::LabError;
use super::kill::{After, Ground, Killed};
use crate::fault::crash_state::crash_states;
use crate::fault::kill::points;
use crate::judge::{Grade, Image, Outcome, Version, Versions, versions, vouched};
use crate::recording::{Gap, Trace, marks};
use crate::scenario::KillPoint;
use crate::tree::{Misfit, Tree};

/// What identifies a tree.
pub(super) type Hash = [u8; 32];

/// A run whose every kill state is known: the subject's, or that of a recovery.
#[derive(Debug, Clone)]
pub struct Run {
    /// What its cases are called: nothing, or `kill@3/` for the recovery after a kill at 3.
    prefix: String,
    before: Arc<Tree>,
    trace: Arc<Trace>,
    versions: Arc<Versions>,
    /// What had been promised when it began.
    promised: usize,
    /// The marks that had been passed when it began.
    marks: Vec<String>,
    /// Among the versions, how many are from earlier runs.
    earlier: usize,
}

impl Run {
    /// The subject's own.
    pub fn of_subject(before: Arc<Tree>, trace: Trace, versions: Versions) -> Run {
        Run {
            prefix: String::new(),
            before,
            trace: Arc::new(trace),
            versions: Arc::new(versions),
            promised: 0,
            marks: Vec::new(),
            earlier: 0,
        }
    }
}

impl Ground<'_> {
    /// The subject's own run.
    pub fn run(&self) -> &Run {
        self.run
    }

    /// Every kill of a run at these points, with one recovery for each distinct tree. Trees in `known` are left out, and
    /// the others join them.
    ///
    /// # Errors
    ///
    /// As [`Stage::run`](super::Stage::run), and [`LabError::Lab`] where the log does not fit the tree.
    pub fn derive(
        &self,
        run: &Run,
        points: Vec<KillPoint>,
        known: &mut HashSet<Hash>,
    ) -> Result<Vec<Killed>, LabError> {
        let mut trees: HashMap<Hash, Arc<Tree>> = HashMap::new();
        let mut order = Vec::new();
        let mut killed = Vec::new();
        let state_files = &self.stage.state;
        for state in crash_states(&run.before, &run.trace.events, state_files, points) {
            let state = state.map_err(|misfit| self.does_not_fit(&misfit))?;
            let hash = state.tree.hash();
            if known.contains(&hash) {
                continue;
            }
            let left = trees.entry(hash).or_insert_with(|| {
                let left = Arc::new(state.tree);
                order.push((hash, left.clone()));
                left
            });
            let cut = matches!(state.point, KillPoint::Inside(..));
            let promised = run.versions.promised_at(state.events - usize::from(cut));
            killed.push(Killed {
                survivor: state.survivor,
                promised: run.promised.max(promised),
                ..run.cut(state.point, state.events, left.clone(), hash)
            });
        }
        known.extend(trees.into_keys());
        self.recover_all(&mut killed, &order)?;
        Ok(killed)
    }

    /// Runs the recovery on each of the trees, and tells those that were left with them what came of it.
    pub(super) fn recover_all(
        &self,
        killed: &mut [Killed],
        trees: &[(Hash, Arc<Tree>)],
    ) -> Result<(), LabError> {
        self.recover_each(&mut killed.iter_mut().collect::<Vec<_>>(), trees)
    }

    /// The same of some of them.
    pub(super) fn recover_each(
        &self,
        killed: &mut [&mut Killed],
        trees: &[(Hash, Arc<Tree>)],
    ) -> Result<(), LabError> {
        self.recoveries.ahead_by_copies(trees)?;
        let familiar = self.familiar()?;
        let mut afters: HashMap<Hash, Arc<After>> = HashMap::new();
        for (hash, tree) in trees {
            match self.recover(*hash, tree, &familiar) {
                Err(LabError::Interrupted) => break,
                after => _ = afters.insert(*hash, Arc::new(after?)),
            }
        }
        for kill in killed {
            kill.after = afters.get(&kill.hash).cloned().filter(|_| kill.unseen.is_none());
            if let Some(after) = &kill.after {
                kill.check_failed = self.recoveries.check(&after.outcome.end, &kill.marks)?;
            }
            if kill.after.is_none() && crate::interrupt::is_requested() {
                kill.unseen.get_or_insert("interrupted before its recovery was over".to_owned());
            }
        }
        Ok(())
    }

    /// What the recovery makes of the trees at which the run vouched for a journal.
    ///
    /// # Errors
    ///
    /// As [`derive`](Self::derive).
    pub fn vouched(&self) -> Result<Vec<Outcome>, LabError> {
        if crate::interrupt::is_requested() {
            return Ok(Vec::new());
        }
        let (before, events) = (&self.recording.before, &self.recording.trace.events);
        let ops = vouched(before, events, &self.stage.state, self.versions)
            .map_err(|misfit| self.does_not_fit(&misfit))?;
        let points = ops.into_iter().map(KillPoint::After).collect();
        let states = crash_states(before, events, &self.stage.state, points);
        states
            .map(|state| {
                let tree = state.map_err(|misfit| self.does_not_fit(&misfit))?.tree;
                self.recoveries.on(&tree)
            })
            .collect()
    }

    /// The recoveries of kills that came out well, as runs that can be killed in their turn.
    pub fn recoveries_of(&self, kills: &[(Killed, Grade)]) -> Result<Vec<Run>, LabError> {
        let mut seen = HashSet::new();
        let mut runs = Vec::new();
        for (kill, grade) in kills {
            let Some(after) = kill.after.as_ref().filter(|_| *grade == Grade::Good) else {
                continue;
            };
            if seen.insert(kill.hash) {
                runs.push(self.recovery_of(kill, after)?);
            }
        }
        Ok(runs)
    }

    /// What had been promised stays promised; what the recovery passes through comes to it.
    fn recovery_of(&self, kill: &Killed, after: &After) -> Result<Run, LabError> {
        let trace = after.outcome.trace.clone();
        let own = versions(&kill.left, &trace.events, &self.stage.state, self.promises, None)
            .map_err(|misfit| self.does_not_fit(&misfit))?;
        let mut all = Versions::clone(&kill.versions);
        let earlier = all.all.len();
        for version in &mut all.all {
            version.after_op = 0;
        }
        all.all.extend(own.all.iter().map(|version| Version { ..version.clone() }));
        all.promises = own.promises;
        for promise in &mut all.promises {
            promise.version += earlier;
        }
        for (path, contents) in own.of_file {
            all.of_file.entry(path).or_default().extend(contents);
        }
        all.promised = own.promised + earlier;
        all.premature = own.premature;
        all.changed.extend(own.changed);
        let prefix = format!("{}/", kill.id);
        let (before, promised, marks) = (kill.left.clone(), kill.promised, kill.marks.clone());
        Ok(Run { prefix, before, trace, versions: Arc::new(all), promised, marks, earlier })
    }

    /// Every place of a run.
    ///
    /// # Errors
    ///
    /// None for a run that was recorded whole.
    pub fn every_place(&self, run: &Run) -> Result<Vec<KillPoint>, LabError> {
        points(&run.trace.events, &run.versions.promising_outputs(), &KillPoint::All)
            .map_err(LabError::Lab)
    }

    pub(super) fn does_not_fit(&self, misfit: &Misfit) -> LabError {
        LabError::Lab(format!("{}: {misfit}", self.stage.scenario.file.display()))
    }
}

impl Run {
    /// This run cut short at a place, with what was left; nothing is said of what survived yet.
    pub(super) fn cut(
        &self,
        point: KillPoint,
        events: usize,
        left: Arc<Tree>,
        hash: Hash,
    ) -> Killed {
        let touches = |gap: &&Gap| gap.path.is_some() && gap.at_event <= events;
        let gap = self.trace.gaps.iter().find(touches);
        Killed {
            id: match self.prefix.as_str() {
                "" => format!("kill@{point}"),
                of_recovery => format!("{of_recovery}{point}"),
            },
            unseen: gap.map(|gap| format!("the tracer could not see: {}", gap.what)),
            of_recovery: self.earlier > 0,
            others_hung: false,
            before: self.before.clone(),
            trace: self.trace.clone(),
            at: events,
            events,
            survivor: Image::default(),
            left,
            hash,
            versions: self.versions.clone(),
            promised: self.promised,
            after: None,
            marks: [self.marks.clone(), marks(&self.trace.events[..events])].concat(),
            check_failed: None,
            power: None,
            point,
        }
    }

    /// What its power cuts are called in front of their places.
    pub(super) fn power_prefix(&self) -> &str {
        if self.prefix.is_empty() { "power@" } else { &self.prefix }
    }

    /// How many versions are older than the last one promised when so many events had been, or when it had ended.
    pub(super) fn promised_when(&self, events: usize, ended: bool) -> usize {
        let own = if ended { self.versions.promised } else { self.versions.promised_at(events) };
        self.promised.max(own)
    }

    /// What it did.
    pub(super) fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The versions that this run passes through itself.
    pub fn own_versions(&self) -> &[Version] {
        &self.versions.all[self.earlier..]
    }

    /// The tree that it began with.
    pub fn before(&self) -> &Tree {
        &self.before
    }
}
