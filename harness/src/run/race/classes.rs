//! Runs of a race by how they ended, taken in as they come: of those that ended alike one is kept whole, and of the others
//! their schedules.

use std::collections::HashMap;

use super::outcome::{Outcome, Ran, size};
use super::{Class, Oracle, SecondRound};
use crate::fault::race::schedule::Block;
use crate::fault::race::steer::{Contested, Ending, Made};
use crate::judge::{Grade, Image, Masks};

/// What is compared of an outcome: its images without what is masked, and all else in words.
type Key = (Image, Vec<Image>, String);

/// The less, the easier to read: a run's size and its order; of those that are equally easy always the same comes first.
pub(super) type Rank = ((usize, usize), Vec<Block>);

/// All runs so far.
#[derive(Debug)]
pub(super) struct Classes<'a> {
    oracle: &'a Oracle,
    names: &'a [String],
    all: Vec<Class>,
    /// Those of equal outcomes, by their places.
    places: HashMap<Key, Vec<usize>>,
    /// What differs between equal runs, once that is known.
    masks: Option<Masks>,
    /// How many steps each program made in the first run.
    pub(super) steps: Vec<usize>,
    /// Runs that did not do what they had done before.
    pub(super) departed: usize,
    /// What is contested by all of them, and by what was known before.
    pub(super) contested: Contested,
    /// That is more than was known before.
    pub(super) knows_more: bool,
    /// The steps of each, where they are asked for.
    pub(super) made: Option<Vec<Vec<Made>>>,
}

impl<'a> Classes<'a> {
    /// None yet, of programs that are held for what is `contested`; `keeps` the steps of each run.
    pub(super) fn new(
        oracle: &'a Oracle,
        names: &'a [String],
        contested: Contested,
        keeps: bool,
    ) -> Classes<'a> {
        Classes {
            oracle,
            names,
            all: Vec::new(),
            places: HashMap::new(),
            masks: None,
            steps: Vec::new(),
            departed: 0,
            contested,
            knows_more: false,
            made: keeps.then(Vec::new),
        }
    }

    /// Takes a run in; `second` knows what differs between equal runs, by some time.
    pub(super) fn add(&mut self, ran: Ran, second: &SecondRound<'_>) {
        if self.masks.is_none()
            && let Some(masks) = second.known()
        {
            self.masks = Some(masks);
            self.places.clear();
            std::mem::take(&mut self.all).into_iter().for_each(|class| self.join(class));
        }
        if self.steps.is_empty() {
            let of_side = |side| ran.made.iter().filter(|made| made.taken.side == side).count();
            self.steps = (0..self.names.len()).map(of_side).collect();
        }
        self.departed += usize::from(matches!(ran.outcome.ending, Ending::Departed(_)));
        self.knows_more |= self.contested.learn(&ran.touched);
        if let Some(made) = &mut self.made {
            made.push(ran.made.clone());
        }
        let rank = (size(&ran.made), ran.schedule().blocks);
        let schedules = vec![rank.1.clone()];
        self.join(Class { best: ran, rank, schedules, is_good: false });
    }

    /// The first of the classes is the one whose best run is the easiest to read.
    pub(super) fn sorted(self) -> Vec<Class> {
        let mut all = self.all;
        all.sort_by(|one, other| one.rank.cmp(&other.rank));
        for class in &mut all {
            // By chance an order may be drawn that was made before: it is one case.
            class.schedules.sort();
            class.schedules.dedup();
        }
        all
    }

    fn join(&mut self, class: Class) {
        let outcome = &class.best.outcome;
        let places = self.places.entry(key(outcome, self.masks.as_ref())).or_default();
        let alike = |place: &usize| {
            let known = &self.all[*place];
            known.is_good || known.best.outcome == *outcome
        };
        match places.iter().copied().find(alike) {
            Some(place) => {
                let known = &mut self.all[place];
                known.schedules.extend(class.schedules);
                if class.rank < known.rank {
                    (known.best, known.rank) = (class.best, class.rank);
                }
            }
            None => {
                let judged = |masks| self.oracle.judge(outcome, self.names, masks);
                let is_good =
                    self.masks.as_ref().is_some_and(|masks| judged(masks).grade == Grade::Good);
                places.push(self.all.len());
                self.all.push(Class { is_good, ..class });
            }
        }
    }
}

/// What is compared of an outcome.
pub(super) fn key(outcome: &Outcome, masks: Option<&Masks>) -> Key {
    let masked = |image: &Image| masks.map_or_else(|| image.clone(), |masks| masks.apply(image));
    let Outcome { image, told, exits, refuses_again, ending, died, gap } = outcome;
    let rest = format!("{exits:?} {refuses_again:?} {ending:?} {died:?} {gap:?}");
    (masked(image), told.iter().map(masked).collect(), rest)
}
