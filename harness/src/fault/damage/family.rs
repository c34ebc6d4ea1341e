//! Families: damages that are there at each of a file's places. The places are found one after another, as they are
//! asked for, so that a large file costs no memory.

use std::fmt;

use super::json::Text;
use super::{Damage, DoesNotApply, NameError, Pointer, bytes};

/// A damage at every place of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Every length that is shorter.
    Truncated,
    /// Every bit.
    BitFlip,
    /// Every block that is not all NULs.
    ZeroedBlock,
    /// Every value of a JSON text.
    WrongType,
    /// Every member and element of a JSON text.
    Missing,
    /// Every object and list of a JSON text.
    Extra,
}

impl Family {
    /// All of them.
    pub const ALL: [Family; 6] = [
        Family::Truncated,
        Family::BitFlip,
        Family::ZeroedBlock,
        Family::WrongType,
        Family::Missing,
        Family::Extra,
    ];

    /// Its name, without a place.
    pub fn name(self) -> &'static str {
        match self {
            Family::Truncated => "truncated",
            Family::BitFlip => "bit-flip",
            Family::ZeroedBlock => "zeroed-block",
            Family::WrongType => "wrong-type",
            Family::Missing => "missing",
            Family::Extra => "extra",
        }
    }

    /// What it does at a place, as a phrase.
    pub fn what(self) -> &'static str {
        match self {
            Family::Truncated => "cut to this many bytes",
            Family::BitFlip => "this bit flipped",
            Family::ZeroedBlock => "this block (512 bytes) all NULs",
            Family::WrongType => "this value of another type",
            Family::Missing => "this member or element taken out",
            Family::Extra => "one more member or element in this object or list",
        }
    }

    /// What a place of it is, as what follows "expected".
    fn expected(self) -> &'static str {
        match self {
            Family::Truncated => "`truncated/N` with a number of bytes",
            Family::BitFlip => "`bit-flip/N` with the number of a bit",
            Family::ZeroedBlock => "`zeroed-block/N` with the number of a block",
            Family::WrongType => {
                "`wrong-type/POINTER` with a JSON pointer, in which ~0 stands for ~ and ~1 for /"
            }
            Family::Missing => {
                "`missing/POINTER` with a JSON pointer, in which ~0 stands for ~ and ~1 for /"
            }
            Family::Extra => {
                "`extra/POINTER` with a JSON pointer, in which ~0 stands for ~ and ~1 for /"
            }
        }
    }

    /// Its places are numbers, and no JSON pointers.
    pub fn is_numbered(self) -> bool {
        matches!(self, Family::Truncated | Family::BitFlip | Family::ZeroedBlock)
    }

    /// The damage at the place that is written so, from its slash on.
    pub(super) fn at(self, place: &str) -> Result<Damage, NameError> {
        let number = || {
            let text = place.strip_prefix('/')?;
            text.parse().ok().filter(|number: &usize| number.to_string() == text)
        };
        let pointer = || place.parse::<Pointer>().ok();
        let damage = match self {
            Family::Truncated => number().map(Damage::Truncated),
            Family::BitFlip => number().map(Damage::BitFlip),
            Family::ZeroedBlock => number().map(Damage::ZeroedBlock),
            Family::WrongType => pointer().map(Damage::WrongType),
            Family::Missing => pointer().map(Damage::Missing),
            Family::Extra => pointer().map(Damage::Extra),
        };
        let name = || format!("{}{place}", self.name());
        damage.ok_or_else(|| NameError::Place { name: name(), expected: self.expected() })
    }

    /// The damages of these bytes, one for each place, in the order of the file.
    ///
    /// # Errors
    ///
    /// [`DoesNotApply`] where there is no place.
    pub fn places(
        self,
        bytes: &[u8],
    ) -> Result<Box<dyn Iterator<Item = Damage> + '_>, DoesNotApply> {
        let refuse = |why: String| DoesNotApply { name: self.to_string(), why };
        let found: Box<dyn Iterator<Item = Damage> + '_> = match self {
            Family::Truncated => Box::new((0..bytes.len()).map(Damage::Truncated)),
            Family::BitFlip => Box::new((0..bytes::bits(bytes)).map(Damage::BitFlip)),
            Family::ZeroedBlock => {
                Box::new(bytes::blocks(bytes).map_err(refuse)?.map(Damage::ZeroedBlock))
            }
            Family::WrongType | Family::Missing | Family::Extra => {
                let places = Text::parse(bytes).map_err(refuse)?.places();
                Box::new(
                    places.filter_map(move |(place, is_holder)| self.in_json(place, is_holder)),
                )
            }
        };
        let mut found = found.peekable();
        match found.peek() {
            Some(_) => Ok(Box::new(found)),
            None => Err(refuse(self.nowhere().into())),
        }
    }

    /// Why it has no place.
    fn nowhere(self) -> &'static str {
        match self {
            Family::Truncated | Family::BitFlip => "the file is empty",
            Family::ZeroedBlock => "the file is all NULs already",
            Family::WrongType | Family::Missing => "the file has no member and no element",
            Family::Extra => "the file has no object and no list",
        }
    }

    /// The damage of a place in a JSON text, if this family has one there.
    fn in_json(self, place: Pointer, is_holder: bool) -> Option<Damage> {
        match self {
            Family::WrongType => Some(Damage::WrongType(place)),
            Family::Missing if !place.tokens().is_empty() => Some(Damage::Missing(place)),
            Family::Extra if is_holder => Some(Damage::Extra(place)),
            _ => None,
        }
    }
}

/// Its name for all places together.
impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/*", self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(family: Family, bytes: &[u8]) -> Vec<String> {
        family
            .places(bytes)
            .map(|found| found.map(|it| it.to_string()).collect())
            .unwrap_or_default()
    }

    #[test]
    fn every_place_once_and_in_order() {
        let json = br#"{"a": {"b/c": [1, {}]}, "~": "x", "a2": [], "twice": 1, "twice": 2}"#;
        let places = ["", "/a", "/a/b~1c", "/a/b~1c/0", "/a/b~1c/1", "/~0", "/a2"];
        let of = |places: &[&str], name: &str| -> Vec<String> {
            places.iter().map(|place| format!("{name}{place}")).collect()
        };
        assert_eq!(names(Family::WrongType, json), of(&places, "wrong-type"));
        assert_eq!(names(Family::Missing, json), of(&places[1..], "missing"));
        let holders = ["", "/a", "/a/b~1c", "/a/b~1c/1", "/a2"];
        assert_eq!(names(Family::Extra, json), of(&holders, "extra"));
        assert_eq!(names(Family::Truncated, b"ab"), ["truncated/0", "truncated/1"]);
        assert_eq!(names(Family::BitFlip, b"ab").len(), 16);
        let blocks = [[1; 512], [0; 512], [2; 512]].concat();
        assert_eq!(
            names(Family::ZeroedBlock, &blocks[..1025]),
            ["zeroed-block/0", "zeroed-block/2"]
        );
    }

    #[test]
    fn a_family_without_a_place_says_why() {
        let why = |family: Family, bytes: &[u8]| {
            family.places(bytes).map(|_| ()).expect_err("no place").to_string()
        };
        for (family, bytes, said) in [
            (Family::Truncated, &b""[..], "`truncated/*` does not apply: the file is empty"),
            (Family::ZeroedBlock, b"short", "the file is not longer than one block of 512 bytes"),
            (Family::ZeroedBlock, &[0; 1024], "the file is all NULs already"),
            (Family::WrongType, b"{", "the file is not JSON: EOF while parsing"),
            (Family::Missing, b"{}", "the file has no member and no element"),
            (Family::Extra, b"1", "the file has no object and no list"),
        ] {
            assert!(why(family, bytes).contains(said), "{}", why(family, bytes));
        }
    }

    #[test]
    fn a_text_of_any_depth_has_places() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!(names(Family::Extra, deep.as_bytes()).len(), 129);
    }
}
