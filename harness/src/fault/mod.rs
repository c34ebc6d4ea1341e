//! Faults: what is done to a subject. Pure functions from a recording, or from bytes, to cases.

pub mod crash_state;
pub mod damage;
pub mod kill;
pub mod overlap;
pub mod power;
pub mod process;
pub mod race;

/// Of so many places at most so many, spread evenly from the first to the last.
fn evenly(count: usize, at_most: usize) -> impl Iterator<Item = usize> {
    let chosen = count.min(at_most);
    let (steps, last) = (chosen.saturating_sub(1).max(1), count.saturating_sub(1));
    (0..chosen).map(move |step| (step as u128 * last as u128 / steps as u128) as usize)
}

#[cfg(test)]
mod tests {
    use super::evenly;

    #[test]
    fn places_are_spread_from_the_first_to_the_last() {
        let of = |count, at_most| evenly(count, at_most).collect::<Vec<_>>();
        assert_eq!(of(0, 64), Vec::<usize>::new());
        assert_eq!(of(3, 64), [0, 1, 2]);
        assert_eq!(of(1000, 1), [0]);
        assert_eq!(of(1000, 4), [0, 333, 666, 999]);
        assert_eq!(of(usize::MAX, 2), [0, usize::MAX - 1]);
    }
}
