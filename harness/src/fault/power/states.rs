//! The legal states at one moment, those from which the least is missing first.

use std::cell::OnceCell;

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
    pub(super) fn new(needs: &'a [Vec<usize>], durable: &[bool], count: usize) -> Moment<'a> {
        let free = (0..count).filter(|part| !durable[*part]).collect();
        Moment { count, free, needs, with_it: OnceCell::new() }
    }

    /// The parts that may be missing.
    pub(super) fn free(&self) -> &[usize] {
        &self.free
    }

    /// How many parts there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Every set of parts that can be missing where so many are missing for no other's sake, each once: the parts' numbers
    /// in order.
    pub(super) fn missing_of(self, size: usize) -> impl Iterator<Item = Vec<usize>> + use<'a> {
        let missing = vec![Set::empty(self.free.len())];
        Choices { moment: self, size, chosen: Vec::new(), missing, next: 0, done: false }
    }

    /// These parts and all that needs them: what is missing where they are.
    pub(super) fn without(&self, parts: impl IntoIterator<Item = usize>) -> Vec<usize> {
        let mut missing = Set::empty(self.free.len());
        for part in parts {
            if let Ok(place) = self.free.binary_search(&part) {
                missing.add(&self.with_it()[place]);
            }
        }
        self.numbers(&missing)
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
    use std::collections::BTreeSet;

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
            let moment = Moment::new(&needs, &durable, count);
            let sizes = 0..=moment.free().len();
            let found: Vec<Vec<usize>> = sizes.flat_map(|size| moment.clone().missing_of(size)).collect();
            prop_assert_eq!(found.len(), expected.len());
            prop_assert_eq!(found.first(), Some(&Vec::new()));
            prop_assert_eq!(BTreeSet::from_iter(found), expected);
        }
    }
}
