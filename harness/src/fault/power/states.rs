//! The legal states at one moment, those from which the least is missing first.

use std::cell::OnceCell;
use std::collections::BTreeSet;

/// The parts of a run up to a moment, with what they need and what is durable.
#[derive(Debug, Clone)]
pub(super) struct Moment<'a> {
    /// How many parts there are by then.
    count: usize,
    /// The parts that may be missing.
    free: Vec<usize>,
    needs: &'a [Vec<usize>],
    /// For each of the free: itself and all that needs it, as positions in `free`.
    with_it: OnceCell<Vec<Set>>,
}

impl<'a> Moment<'a> {
    /// The first `count` parts, of which those are durable of which it is said.
    pub(super) fn new(
        needs: &'a [Vec<usize>],
        count: usize,
        is_durable: impl Fn(usize) -> bool,
    ) -> Moment<'a> {
        let free = (0..count).filter(|part| !is_durable(*part)).collect();
        Moment { count, free, needs, with_it: OnceCell::new() }
    }

    /// The parts that may be missing.
    pub(super) fn free(&self) -> &[usize] {
        &self.free
    }

    /// Every set of parts that can be missing where so many are missing for no other's sake, each once: the parts' numbers
    /// in order.
    pub(super) fn missing_of(self, size: usize) -> impl Iterator<Item = Vec<usize>> + use<'a> {
        let missing = vec![Set::empty(self.free.len())];
        Choices { moment: self, size, chosen: Vec::new(), missing, next: 0, done: false }
    }

    /// These parts, as far as they may be missing, and all that needs them: what is missing where they are.
    pub(super) fn without(&self, parts: impl IntoIterator<Item = usize>) -> Vec<usize> {
        let parts = parts.into_iter().filter(|part| self.free.binary_search(part).is_ok());
        let parts: BTreeSet<usize> = parts.collect();
        let Some(first) = parts.first().copied() else { return Vec::new() };
        let mut is_missing = vec![false; self.count - first];
        let from = self.free.partition_point(|part| *part < first);
        let mut missing = Vec::new();
        for part in &self.free[from..] {
            let lacks = |need: &usize| *need >= first && is_missing[need - first];
            if parts.contains(part) || self.needs[*part].iter().any(lacks) {
                is_missing[part - first] = true;
                missing.push(*part);
            }
        }
        missing
    }

    /// The binary logarithm of a number of states that is not exceeded: where each part that needs the one before it makes a
    /// chain with that, of a chain no more can be there than its first so many.
    pub(super) fn states_at_most(&self) -> f64 {
        let mut chains: Vec<u32> = Vec::new();
        // The chain that ends with a part, by its position in `free`.
        let mut ends: Vec<Option<usize>> = vec![None; self.free.len()];
        for (place, part) in self.free.iter().enumerate() {
            let before = self.needs[*part].iter().filter_map(|need| {
                let place = self.free.binary_search(need).ok()?;
                ends[place].take()
            });
            let chain = { before }.next().unwrap_or_else(|| {
                chains.push(0);
                chains.len() - 1
            });
            chains[chain] += 1;
            ends[place] = Some(chain);
        }
        chains.iter().map(|len| f64::from(len + 1).log2()).sum()
    }

    fn with_it(&self) -> &[Set] {
        self.with_it.get_or_init(|| {
            let count = self.free.len();
            let mut with_it: Vec<Set> = (0..count).map(|one| Set::of(one, count)).collect();
            for (place, part) in self.free.iter().enumerate().rev() {
                let all = with_it[place].clone();
                for needed in &self.needs[*part] {
                    if let Ok(needed) = self.free.binary_search(needed) {
                        with_it[needed].add(&all);
                    }
                }
            }
            with_it
        })
    }

    fn numbers(&self, set: &Set) -> Vec<usize> {
        (0..self.free.len()).filter(|place| set.has(*place)).map(|place| self.free[place]).collect()
    }
}

/// Sets of so many parts of which none needs another.
struct Choices<'a> {
    moment: Moment<'a>,
    size: usize,
    chosen: Vec<usize>,
    /// What is missing with none of the chosen, with the first, with the first two, and so on.
    missing: Vec<Set>,
    next: usize,
    done: bool,
}

impl Choices<'_> {
    /// Takes the last one back, to go on behind it.
    fn back(&mut self) {
        self.missing.pop();
        match self.chosen.pop() {
            Some(last) => self.next = last + 1,
            None => self.done = true,
        }
    }
}

impl Iterator for Choices<'_> {
    type Item = Vec<usize>;

    fn next(&mut self) -> Option<Vec<usize>> {
        while !self.done {
            let missing = self.missing.last()?;
            if self.chosen.len() == self.size {
                let found = self.moment.numbers(missing);
                self.back();
                return Some(found);
            }
            match (self.next..self.moment.free.len()).find(|place| !missing.has(*place)) {
                Some(place) => {
                    let mut more = missing.clone();
                    more.add(&self.moment.with_it()[place]);
                    self.missing.push(more);
                    self.chosen.push(place);
                    self.next = place + 1;
                }
                None => self.back(),
            }
        }
        None
    }
}

/// A set of small numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Set(Vec<u64>);

impl Set {
    fn empty(len: usize) -> Set {
        Set(vec![0; len.div_ceil(64)])
    }

    fn of(one: usize, len: usize) -> Set {
        let mut set = Set::empty(len);
        set.0[one / 64] |= 1 << (one % 64);
        set
    }

    fn has(&self, one: usize) -> bool {
        self.0[one / 64] >> (one % 64) & 1 == 1
    }

    fn add(&mut self, other: &Set) {
        self.0.iter_mut().zip(&other.0).for_each(|(own, other)| *own |= other);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What up to twelve parts need of those before them, and which are durable with all that they need.
    fn moment() -> impl Strategy<Value = (Vec<Vec<usize>>, Vec<bool>)> {
        let part = |number: usize| prop::collection::vec(0..number.max(1), 0..3.min(number + 1));
        let needs =
            (0..=12usize).prop_flat_map(move |count| (0..count).map(part).collect::<Vec<_>>());
        let with_durable = |needs: Vec<Vec<usize>>| {
            let durable = prop::collection::vec(prop::bool::weighted(0.2), needs.len());
            (Just(needs), durable)
        };
        needs.prop_flat_map(with_durable).prop_map(|(mut needs, mut durable)| {
            needs
                .iter_mut()
                .enumerate()
                .for_each(|(number, needs)| needs.retain(|need| *need < number));
            for number in
                (0..needs.len()).rev().filter(|number| durable[*number]).collect::<Vec<_>>()
            {
                needs[number].iter().for_each(|need| durable[*need] = true);
            }
            for number in (0..needs.len()).rev() {
                if durable[number] {
                    needs[number].iter().for_each(|need| durable[*need] = true);
                }
            }
            (needs, durable)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Of all subsets, those that are closed under what parts need and hold what is durable; each once, and those
        /// with less chosen to be missing first.
        #[test]
        fn every_legal_state_is_found_once((needs, durable) in moment()) {
            let count = needs.len();
            let legal = |kept: u32| (0..count).all(|part| match kept >> part & 1 {
                1 => needs[part].iter().all(|need| kept >> need & 1 == 1),
                _ => !durable[part],
            });
            let expected: BTreeSet<Vec<usize>> = (0..1u32 << count)
                .filter(|kept| legal(*kept))
                .map(|kept| (0..count).filter(|part| kept >> part & 1 == 0).collect())
                .collect();
            let moment = Moment::new(&needs, count, |part| durable[part]);
            for part in moment.free() {
                let without = moment.without([*part]);
                let among: Vec<_> = moment.clone().missing_of(1).collect();
                prop_assert!(among.contains(&without));
            }
            prop_assert!(moment.states_at_most() >= (expected.len() as f64).log2() - 1e-9);
            let sizes = 0..=moment.free().len();
            let found: Vec<Vec<usize>> = sizes.flat_map(|size| moment.clone().missing_of(size)).collect();
            prop_assert_eq!(found.len(), expected.len());
            prop_assert_eq!(found.first(), Some(&Vec::new()));
            prop_assert_eq!(BTreeSet::from_iter(found), expected);
        }
    }
}
