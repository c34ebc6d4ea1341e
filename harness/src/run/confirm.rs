//! Confirmation: some of the derived kills are made for real, and what they leave is compared byte for byte.

use std::collections::{BTreeMap, BTreeSet};

use super::LabError;
use super::kill::{Ground, Killed};
use super::live::{end_of_life, goes_alike};
use crate::fault::kill::KillAt;
use crate::judge::{Grade, Verdict, Word, shape};
use crate::scenario::KillPoint;
use crate::tree::{Node, NodeKind, Tree, difference, unaccounted};

/// What real kills said of derived ones.
#[derive(Debug, Clone, Default)]
pub struct Confirmation {
    /// How many kills were made.
    pub tried: usize,
    /// How many of them left what had been derived.
    pub confirmed: usize,
    /// How many of these but for what is another in each run: times, process ids, names and bytes given at random.
    pub but_for_chance: usize,
    /// The others: the case's id, and the first difference.
    pub differing: Vec<(String, String)>,
}

/// How like a real kill's tree is to the derived one.
enum Like {
    Same,
    ButForChance,
    Not(String),
}

impl Confirmation {
    /// What differed, a line each.
    pub fn notes(&self) -> Vec<String> {
        let note = |(id, how): &(String, String)| {
            let first = how.lines().next().unwrap_or_default();
            format!("a real kill at {id} left something else than was derived: {first}")
        };
        self.differing.iter().map(note).collect()
    }
}

impl Ground<'_> {
    /// Makes the first kill of each fault's word for real, and `others` more, spread evenly.
    ///
    /// # Errors
    ///
    /// As [`Stage::run`](super::Stage::run).
    pub fn confirm(
        &self,
        kills: &[(Killed, Verdict)],
        others: usize,
    ) -> Result<Confirmation, LabError> {
        let mut confirmation = Confirmation::default();
        for position in chosen(kills, others) {
            let kill = &kills[position].0;
            let like = match self.compare(kill) {
                Err(LabError::Interrupted) => break,
                like => like?,
            };
            confirmation.tried += 1;
            match like {
                Like::Same => confirmation.confirmed += 1,
                Like::ButForChance => {
                    confirmation.confirmed += 1;
                    confirmation.but_for_chance += 1;
                }
                Like::Not(how) => confirmation.differing.push((kill.id.clone(), how)),
            }
        }
        Ok(confirmation)
    }

    /// Kills for real, and holds what is left against what was derived.
    fn compare(&self, kill: &Killed) -> Result<Like, LabError> {
        let mut director = KillAt::new(kill.point.clone());
        let command = match kill.of_recovery {
            false => &self.stage.scenario.subject.command,
            true => self.recoveries.command(),
        };
        let (mut trace, left) = self.stage.run(
            std::slice::from_ref(command),
            &kill.before,
            kill.of_recovery,
            &mut director,
        )?;
        if !director.reached {
            return Ok(Like::Not("a second run does not come to this place".to_owned()));
        }
        if *kill.left == left {
            return Ok(Like::Same);
        }
        // A run that goes otherwise in names and bytes alone has its own log to be derived from.
        trace.events.truncate(end_of_life(&trace.events, &kill.point));
        let is_derived = || unaccounted(&kill.before, &trace.events, &left).is_none();
        if without_numbers(&kill.left) == without_numbers(&left)
            || (goes_alike(&trace, &kill.trace) && is_derived())
        {
            return Ok(Like::ButForChance);
        }
        let first = difference(&kill.left, &left).into_iter().next();
        Ok(Like::Not(first.map(|first| first.to_string()).unwrap_or_default()))
    }
}

/// Which kills are made for real.
fn chosen(kills: &[(Killed, Verdict)], others: usize) -> BTreeSet<usize> {
    // A kill of one process alone was made for real to begin with.
    let measured = |(_, (kill, _)): &(usize, &(Killed, Verdict))| {
        kill.unseen.is_none() && !matches!(kill.point, KillPoint::Process(..))
    };
    let able: Vec<(usize, &(Killed, Verdict))> =
        kills.iter().enumerate().filter(measured).collect();
    let mut firsts: BTreeMap<Word, usize> = BTreeMap::new();
    for (position, (_, verdict)) in &able {
        if verdict.grade == Grade::Fault {
            firsts.entry(verdict.word).or_insert(*position);
        }
    }
    let mut chosen: BTreeSet<usize> = firsts.into_values().collect();
    let rest: Vec<usize> =
        able.iter().map(|(position, _)| *position).filter(|one| !chosen.contains(one)).collect();
    let count = others.min(rest.len());
    chosen.extend((0..count).map(|nth| rest[(nth * 2 + 1) * rest.len() / (count * 2)]));
    chosen
}

/// A process id in the name of a temp file, a time in a log: such are others in every run.
fn without_numbers(tree: &Tree) -> Vec<(String, Node)> {
    let plain = |node: &Node| {
        let kind = match &node.kind {
            NodeKind::File(content) => NodeKind::File(match content.whole() {
                Some(bytes) => without_digits(&bytes).into(),
                None => content.clone(),
            }),
            kind => kind.clone(),
        };
        Node { kind, hard_link: None, ..node.clone() }
    };
    let mut nodes: Vec<(String, Node)> =
        tree.nodes.iter().map(|(path, node)| (shape(path), plain(node))).collect();
    nodes.sort_by(|one, other| one.0.cmp(&other.0));
    nodes
}

/// Each run of digits as one zero.
fn without_digits(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(bytes.len());
    for (position, byte) in bytes.iter().enumerate() {
        let goes_on = position > 0 && bytes[position - 1].is_ascii_digit();
        match byte.is_ascii_digit() {
            true if goes_on => {}
            true => plain.push(b'0'),
            false => plain.push(*byte),
        }
    }
    plain
}
