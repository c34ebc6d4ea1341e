//! Kills derived from one recording: the tree after each place of the log, one recovery for each distinct tree.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::LabError;
use super::kill::{After, Ground, Killed};
use crate::fault::kill::{crash_states, points};
use crate::judge::{Grade, Outcome, Version, Versions, versions, vouched};
use crate::recording::{Trace, marks};
use crate::scenario::KillPoint;
use crate::tree::{Misfit, Tree};

/// What identifies a tree.
type Hash = [u8; 32];

/// A run whose every kill state is known: the subject's, or that of a recovery.
#[derive(Debug, Clone)]
pub struct Run {
    /// What its cases are called: `kill@`, or `kill@3/` for the recovery after a kill at 3.
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

impl Ground<'_> {
    /// The subject's own run.
    pub fn run(&self) -> Run {
        Run {
            prefix: "kill@".to_owned(),
            before: self.before.clone(),
            trace: Arc::new(self.recording.trace.clone()),
            versions: Arc::new(self.versions.clone()),
            promised: 0,
            marks: Vec::new(),
            earlier: 0,
        }
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
        for state in crash_states(&run.before, &run.trace.events, points) {
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
            let gap = run
                .trace
                .gaps
                .iter()
                .find(|gap| gap.path.is_some() && gap.at_event <= state.events);
            let cut = matches!(state.point, KillPoint::Inside(..));
            let promised = run.versions.promised_at(state.events - usize::from(cut));
            killed.push(Killed {
                id: format!("{}{}", run.prefix, state.point),
                unseen: gap.map(|gap| format!("the tracer could not see: {}", gap.what)),
                of_recovery: run.earlier > 0,
                others_hung: false,
                before: run.before.clone(),
                trace: run.trace.clone(),
                at: state.events,
                events: state.events,
                survivor: self.stage.state.image(left),
                left: left.clone(),
                hash,
                versions: run.versions.clone(),
                promised: run.promised.max(promised),
                after: None,
                marks: [run.marks.clone(), marks(&run.trace.events[..state.events])].concat(),
                check_failed: None,
                point: state.point,
            });
        }
        known.extend(trees.into_keys());
        self.recoveries.ahead(&order, self.jobs)?;
        let familiar = self.familiar()?;
        let mut afters: HashMap<Hash, Arc<After>> = HashMap::new();
        for (hash, tree) in &order {
            afters.insert(*hash, Arc::new(self.recover(*hash, tree, &familiar)?));
        }
        for kill in &mut killed {
            kill.after = afters.get(&kill.hash).cloned().filter(|_| kill.unseen.is_none());
            if let Some(after) = &kill.after {
                kill.check_failed = self.recoveries.check(&after.outcome.end, &kill.marks)?;
            }
        }
        Ok(killed)
    }

    /// What the recovery makes of the trees at which the run vouched for a journal.
    ///
    /// # Errors
    ///
    /// As [`derive`](Self::derive).
    pub fn vouched(&self) -> Result<Vec<Outcome>, LabError> {
        let (before, events) = (&self.recording.before, &self.recording.trace.events);
        let ops = vouched(before, events, &self.stage.state, self.versions)
            .map_err(|misfit| self.does_not_fit(&misfit))?;
        let points = ops.into_iter().map(KillPoint::After).collect();
        let states = crash_states(before, events, points);
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

    fn does_not_fit(&self, misfit: &Misfit) -> LabError {
        LabError::Lab(format!("{}: {misfit}", self.stage.scenario.file.display()))
    }
}

impl Run {
    /// The versions that this run passes through itself.
    pub fn own_versions(&self) -> &[Version] {
        &self.versions.all[self.earlier..]
    }

    /// The tree that it began with.
    pub fn before(&self) -> &Tree {
        &self.before
    }
}
