//! What a scenario asks for: one damage, a family of them, or all.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::{Damage, DoesNotApply, Family, NameError, Original, Whole};
use crate::fault::evenly;

/// What a scenario asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// `all`: whatever applies to the file.
    All,
    /// `bit-flip/*`: the places of a family, as many as may be tried.
    Every(Family),
    /// `bit-flip/100`: this one.
    One(Damage),
}

const ALL: &str = "all";

impl fmt::Display for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wish::All => f.write_str(ALL),
            Wish::Every(family) => family.fmt(f),
            Wish::One(damage) => damage.fmt(f),
        }
    }
}

impl FromStr for Wish {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Wish, NameError> {
        if text == ALL {
            return Ok(Wish::All);
        }
        let family = Family::ALL.into_iter().find(|family| family.to_string() == text);
        family.map_or_else(|| text.parse().map(Wish::One), |family| Ok(Wish::Every(family)))
    }
}

/// What wishes come to for one file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// Each damage once, in the order of the wishes.
    pub damages: Vec<Damage>,
    /// Families that were asked for and have no place in this file.
    pub nowhere: Vec<DoesNotApply>,
    /// Families of which not every place is tried: the family, how many are, and how many there are.
    pub bounded: Vec<(Family, usize, usize)>,
    seen: BTreeSet<Damage>,
}

impl Wish {
    /// One of the damages that this asks for, at whatever place.
    pub fn covers(&self, damage: &Damage) -> bool {
        match self {
            Wish::All => true,
            Wish::Every(family) => damage.family() == Some(*family),
            Wish::One(one) => one == damage,
        }
    }

    /// What wishes come to for a file, with at most so many places of each family.
    pub fn choose(wishes: &[Wish], file: Original<'_>, at_most: usize) -> Chosen {
        let mut chosen = Chosen::default();
        for wish in wishes {
            match wish {
                Wish::One(damage) => chosen.add(damage.clone()),
                Wish::Every(family) => {
                    if let Err(nowhere) = chosen.add_places(*family, file.bytes, at_most) {
                        chosen.nowhere.push(nowhere);
                    }
                }
                Wish::All => chosen.add_all(file, at_most),
            }
        }
        chosen
    }
}

impl Chosen {
    fn add(&mut self, damage: Damage) {
        if self.seen.insert(damage.clone()) {
            self.damages.push(damage);
        }
    }

    fn add_places(
        &mut self,
        family: Family,
        bytes: &[u8],
        at_most: usize,
    ) -> Result<(), DoesNotApply> {
        let (damages, count) = spread(family, bytes, at_most)?;
        let bounded = (family, damages.len(), count);
        if damages.len() < count && !self.bounded.contains(&bounded) {
            self.bounded.push(bounded);
        }
        damages.into_iter().for_each(|damage| self.add(damage));
        Ok(())
    }

    /// What does not apply was not asked for by its name, and is left out.
    fn add_all(&mut self, file: Original<'_>, at_most: usize) {
        let wholes = Whole::ALL.map(Damage::Whole).into_iter();
        wholes.filter(|damage| damage.apply(file).is_ok()).for_each(|damage| self.add(damage));
        for family in Family::ALL {
            let _does_not_apply = self.add_places(family, file.bytes, at_most);
        }
    }
}

/// At most so many damages of a family, spread evenly over its places, and how many places there are.
fn spread(
    family: Family,
    bytes: &[u8],
    at_most: usize,
) -> Result<(Vec<Damage>, usize), DoesNotApply> {
    let count = family.places(bytes)?.count();
    let mut wanted = evenly(count, at_most).peekable();
    let places = family.places(bytes)?.enumerate();
    let chosen = places.filter(|(position, _)| wanted.next_if_eq(position).is_some());
    Ok((chosen.map(|(_, damage)| damage).collect(), count))
}
