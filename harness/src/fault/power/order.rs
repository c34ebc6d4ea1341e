//! In which order the legal states are gone through, and which of them where there are too many: those from which the least
//! is missing first, and beyond a bound a sample of each kind.

use std::collections::HashSet;

use super::model::Unwritten;
use super::parts::Change;
use super::{PowerCuts, PowerState};

/// For each state that is told, so many legal ones are looked at, most of which are equal to one before.
const LOOKED_AT: usize = 10;
/// Where so many parts are to be counted through, a bound that needs no counting is told.
const COUNTED_MAX: usize = 4_000_000;
/// From this power of two on it is no number of states that could ever be gone through.
const COUNTLESS: f64 = 60.0;

/// How many states are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// So many different ones at most.
    pub states: usize,
    /// What the sample is drawn by, where it comes to one.
    pub seed: u64,
}

/// What became of a state that was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looked {
    /// It is a new one.
    New,
    /// It is equal to one before.
    Known,
    /// It is one too many: time is up.
    Enough,
}

/// How much of what is legal was looked at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// So many legal states, equal ones among them.
    pub looked: usize,
    /// So many different ones.
    pub states: usize,
    /// All that is legal was looked at.
    pub complete: bool,
    /// The binary logarithm of how many legal states there are at most, equal ones among them.
    pub at_most: f64,
}

/// Kinds of states that can be numbered.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Everything is on the disk.
    Whole,
    /// Nothing but what is durable.
    Durable,
    /// All but the data of one op.
    WithoutData,
    /// All but one part, and what needs it.
    WithoutOne,
}

const KINDS: [Kind; 4] = [Kind::Whole, Kind::Durable, Kind::WithoutData, Kind::WithoutOne];

impl PowerCuts<'_> {
    /// The legal states, lazily: at every moment, first with everything there, with nothing but what is durable, and without
    /// the data of one write; then without one part, without two, and so on. Equal states come more than once.
    pub fn states(&self) -> impl Iterator<Item = PowerState> {
        let numbered = KINDS.into_iter().flat_map(move |kind| {
            let (_, ends) = self.count(kind);
            let count = ends.last().copied().unwrap_or(0);
            (0..count).filter_map(move |number| self.numbered(kind, &ends, number))
        });
        numbered.chain(self.deeper()).flat_map(|state| self.with_unwritten(state))
    }

    /// Those without two parts, then without three, and so on.
    fn deeper(&self) -> impl Iterator<Item = PowerState> {
        // Only now: most often what is looked for is among those before.
        let deepest = || (0..self.moments.len()).map(|cut| self.moment(cut).free().len()).max();
        let sizes = std::iter::once_with(deepest).flat_map(|deepest| 2..=deepest.unwrap_or(0));
        sizes.flat_map(move |size| {
            (0..self.moments.len()).flat_map(move |cut| {
                let missing = self.moment(cut).missing_of(size);
                missing.map(move |missing| self.state(cut, missing))
            })
        })
    }

    /// Goes through the legal states until the budget is used up, and tells of each, perhaps more than once. Where there are more
    /// than can be tried, a sample of each kind comes first.
    pub fn try_within(&self, budget: Budget, mut look: impl FnMut(PowerState) -> Looked) -> Share {
        let at_most = self.states_at_most();
        let looks_max = budget.states.saturating_mul(LOOKED_AT);
        let mut share = Share { looked: 0, states: 0, complete: false, at_most };
        let mut random = Random(budget.seed);
        let counts = KINDS.map(|kind| (kind, self.count(kind)));
        let all: usize = counts.iter().map(|(_, (count, _))| count).sum();
        if all > budget.states {
            for (kinds_left, (kind, (count, ends))) in (2..=KINDS.len() + 1).rev().zip(&counts) {
                let looks = (looks_max / 2).saturating_sub(share.looked) / kinds_left;
                let room = budget.states.saturating_sub(share.states);
                let until = share.states + room.div_ceil(kinds_left);
                let numbers = random.sample(*count, looks).into_iter();
                let mut drawn = numbers.filter_map(|number| self.numbered(*kind, ends, number));
                if share.go_on(self, &mut drawn, until, &mut look) == Went::UntilTold {
                    return share;
                }
            }
        }
        // As a whole, as far as that goes: most often what was not drawn is equal to what was.
        for (kind, (count, ends)) in &counts {
            let looks = looks_max.saturating_sub(share.looked);
            if *count > looks {
                return self.draw_more(share, looks, budget, &mut random, &mut look);
            }
            let mut own = (0..*count).filter_map(|number| self.numbered(*kind, ends, number));
            if share.go_on(self, &mut own, budget.states, &mut look) != Went::Through {
                return share;
            }
        }
        let looks = looks_max.saturating_sub(share.looked);
        if !self.is_small() && at_most > (looks.max(1) as f64).log2() {
            return self.draw_more(share, looks, budget, &mut random, &mut look);
        }
        let went = share.go_on(self, &mut self.deeper(), budget.states, &mut look);
        Share { complete: went == Went::Through, ..share }
    }

    /// Of what lacks more than one part only a sample.
    fn draw_more(
        &self,
        mut share: Share,
        looks: usize,
        budget: Budget,
        random: &mut Random,
        look: &mut impl FnMut(PowerState) -> Looked,
    ) -> Share {
        let mut drawn = (0..looks).map(|_| self.drawn(random));
        share.go_on(self, &mut drawn, budget.states, look);
        share
    }

    /// A state without some parts that were drawn.
    fn drawn(&self, random: &mut Random) -> PowerState {
        let cut = random.below(self.moments.len());
        let moment = self.moment(cut);
        let free = moment.free();
        if free.is_empty() {
            return self.state(cut, Vec::new());
        }
        let count = 2 + random.below(free.len().min(8));
        let parts: Vec<usize> = (0..count).map(|_| free[random.below(free.len())]).collect();
        self.state(cut, moment.without(parts))
    }

    /// How many states of a kind there are, and up to each moment.
    fn count(&self, kind: Kind) -> (usize, Vec<usize>) {
        let mut all = 0;
        let mut ends = Vec::with_capacity(self.moments.len());
        for (number, cut) in self.moments.iter().enumerate() {
            all += match kind {
                Kind::Whole | Kind::Durable => 1,
                Kind::WithoutData => {
                    self.data_ops.partition_point(|(position, _)| *position <= cut.events)
                }
                Kind::WithoutOne => self.moment(number).free().len(),
            };
            ends.push(all);
        }
        (all, ends)
    }

    /// One of a kind; none where nothing is missing that was to be.
    fn numbered(&self, kind: Kind, ends: &[usize], number: usize) -> Option<PowerState> {
        let cut = ends.partition_point(|end| *end <= number);
        let nth = number - if cut == 0 { 0 } else { ends[cut - 1] };
        let missing = match kind {
            Kind::Whole => return Some(self.state(cut, Vec::new())),
            Kind::Durable => self.moment(cut).free().to_vec(),
            Kind::WithoutData => {
                let (_, op) = self.data_ops[nth];
                let first = self.log.parts.partition_point(|part| part.op < op);
                let own = self.log.parts[first..].iter().take_while(|part| part.op == op);
                let data = own.enumerate().filter_map(|(place, part)| {
                    matches!(part.change, Change::Data { .. }).then_some(first + place)
                });
                self.moment(cut).without(data)
            }
            Kind::WithoutOne => {
                let moment = self.moment(cut);
                moment.without([moment.free()[nth]])
            }
        };
        (!missing.is_empty()).then(|| self.state(cut, missing))
    }

    /// The binary logarithm of how many states there are at most, equal ones among them.
    pub fn states_at_most(&self) -> f64 {
        let countable = self.moments.len() * self.log.parts.len() <= COUNTED_MAX;
        let of = |cut: usize| match countable {
            true => self.moment(cut).states_at_most(),
            false => self.moment(cut).free().len() as f64,
        };
        let all: Vec<f64> = (0..self.moments.len()).map(of).collect();
        let most = all.iter().copied().fold(0.0, f64::max);
        // Each with NULs, and with old blocks.
        let twice = f64::from(u8::from(self.model.unwritten == Unwritten::ZerosOrOld));
        if most > COUNTLESS {
            return most + twice;
        }
        all.iter().map(|one| one.exp2()).sum::<f64>().log2() + twice
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Went {
    Through,
    UntilFull,
    UntilTold,
}

impl Share {
    /// Both together.
    pub fn and(self, other: &Share) -> Share {
        let (more, less) = (self.at_most.max(other.at_most), self.at_most.min(other.at_most));
        Share {
            looked: self.looked + other.looked,
            states: self.states + other.states,
            complete: self.complete && other.complete,
            at_most: more + (1.0 + (less - more).exp2()).log2(),
        }
    }

    /// Looks at them until there are so many different states.
    fn go_on(
        &mut self,
        cuts: &PowerCuts<'_>,
        states: &mut dyn Iterator<Item = PowerState>,
        until: usize,
        look: &mut impl FnMut(PowerState) -> Looked,
    ) -> Went {
        loop {
            let Some(state) = states.next() else { return Went::Through };
            for state in cuts.with_unwritten(state) {
                if self.states >= until {
                    return Went::UntilFull;
                }
                match look(state) {
                    Looked::New => self.states += 1,
                    Looked::Known => {}
                    Looked::Enough => return Went::UntilTold,
                }
                self.looked += 1;
            }
        }
    }
}

/// Numbers that look random and are the same for the same seed: SplitMix64 (Steele et al., Fast splittable pseudorandom number
/// generators, OOPSLA 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One from 0 on, of so many; 0 of none.
    fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.next()) * count as u128) >> 64) as usize
    }

    /// So many different ones of these at most, in no order but for the last, which comes first.
    fn sample(&mut self, count: usize, at_most: usize) -> Vec<usize> {
        if count > at_most && at_most > 0 {
            let drawn = (1..at_most).map(|_| self.below(count));
            let mut known = HashSet::new();
            return [count - 1].into_iter().chain(drawn).filter(|one| known.insert(*one)).collect();
        }
        if at_most == 0 {
            return Vec::new();
        }
        let mut all: Vec<usize> = (0..count).rev().collect();
        (2..count).for_each(|place| all.swap(place, 1 + self.below(place)));
        all
    }
}
