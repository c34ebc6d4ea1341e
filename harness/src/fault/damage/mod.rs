//! Damages of a state file, by name: pure functions from a file to what stands in its place.
//!
//! A damage changes one thing. Some are there once for a file ([`Whole`]), some at each of its places ([`Family`]): a
//! length, a bit, a block, or a place in a JSON text, told by a JSON pointer (RFC 6901). Those that presuppose JSON edit
//! its text, so that order, indentation, line ends and escapes of everything else stay byte for byte as they were. What
//! would leave the file as it is does not apply to it.

mod bytes;
mod edit;
mod family;
mod json;
mod pointer;
mod remains;
mod whole;
mod wish;

use std::fmt;
use std::str::FromStr;

pub use bytes::BLOCK_BYTES;
pub use family::Family;
pub use pointer::{NoPointer, Pointer};
pub use remains::Remains;
pub use whole::Whole;
pub use wish::{Chosen, Wish};

/// A damage. Its text is its name in scenarios, in case ids and on the command line: `truncated`, `truncated/57`,
/// `wrong-type/queue/0`. A pointer to the whole document is empty: `wrong-type`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Damage {
    /// One that has no place.
    Whole(Whole),
    /// Cut to this many bytes.
    Truncated(usize),
    /// This bit is another one, counted from the lowest of the first byte.
    BitFlip(usize),
    /// This block of [`BLOCK_BYTES`] is all NULs.
    ZeroedBlock(usize),
    /// The value at this place is of another type.
    WrongType(Pointer),
    /// The member or element at this place is taken out.
    Missing(Pointer),
    /// The object or list at this place has one member or element more.
    Extra(Pointer),
}

/// A file that is to be damaged.
#[derive(Debug, Clone, Copy)]
pub struct Original<'a> {
    /// What is in it.
    pub bytes: &'a [u8],
    /// What is in it later, if that is known; it is here that `older-version` puts the bytes back.
    pub later: Option<&'a [u8]>,
}

/// A file cannot be damaged in this way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the damage `{name}` does not apply: {why}")]
pub struct DoesNotApply {
    /// The damage, or the family that has no place in this file.
    pub name: String,
    /// What the file lacks.
    pub why: String,
}

/// A text that names no damage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// There is no such damage.
    #[error("there is no damage `{name}`; {}", suggestion(near.as_deref()))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The nearest right name.
        near: Option<String>,
    },
    /// There is such a damage, but not at such a place.
    #[error("there is no damage `{name}`: expected {expected}")]
    Place {
        /// What was asked for.
        name: String,
        /// Which places there are.
        expected: &'static str,
    },
}

fn suggestion(near: Option<&str>) -> String {
    match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`crashlab damage --list FILE` says which there are".to_owned(),
    }
}

/// The names of all damages; those that have places end in `/*`.
pub fn names() -> impl Iterator<Item = String> {
    let families = Family::ALL.iter().map(Family::to_string);
    Whole::ALL.iter().map(|whole| whole.name().to_owned()).chain(families)
}

impl Damage {
    /// The seven that are always faults when they are taken for good: no file with one of them is a state file.
    pub const SEVEN: [Damage; 7] = [
        Damage::Whole(Whole::Truncated),
        Damage::Whole(Whole::Empty),
        Damage::Whole(Whole::NotAnObject),
        Damage::Whole(Whole::UnknownField),
        Damage::Whole(Whole::MissingQueue),
        Damage::Whole(Whole::QueueIsAString),
        Damage::Whole(Whole::AnswersIsAList),
    ];

    /// What stands in the place of the file.
    ///
    /// # Errors
    ///
    /// [`DoesNotApply`] where it would leave the file as it is, or cannot be done to it.
    pub fn apply(&self, file: Original<'_>) -> Result<Remains, DoesNotApply> {
        let bytes = file.bytes;
        let damaged = match self {
            Damage::Whole(whole) => whole.apply(file),
            Damage::Truncated(length) => bytes::cut_to(*length, bytes).map(Remains::Bytes),
            Damage::BitFlip(bit) => bytes::with_bit_flipped(*bit, bytes).map(Remains::Bytes),
            Damage::ZeroedBlock(block) => {
                bytes::with_block_zeroed(*block, bytes).map(Remains::Bytes)
            }
            Damage::WrongType(place) => edit::with_wrong_type(bytes, place).map(Remains::Bytes),
            Damage::Missing(place) => edit::without(bytes, place).map(Remains::Bytes),
            Damage::Extra(place) => edit::with_extra(bytes, place).map(Remains::Bytes),
        };
        let undamaged = match self {
            Damage::Whole(Whole::OlderVersion) => file.later,
            _ => Some(bytes),
        };
        match damaged {
            Ok(Remains::Bytes(same)) if Some(&*same) == undamaged => {
                Err("it leaves the file as it is".into())
            }
            other => other,
        }
        .map_err(|why| DoesNotApply { name: self.to_string(), why })
    }

    /// The family that it is one of.
    pub fn family(&self) -> Option<Family> {
        Some(match self {
            Damage::Whole(_) => return None,
            Damage::Truncated(_) => Family::Truncated,
            Damage::BitFlip(_) => Family::BitFlip,
            Damage::ZeroedBlock(_) => Family::ZeroedBlock,
            Damage::WrongType(_) => Family::WrongType,
            Damage::Missing(_) => Family::Missing,
            Damage::Extra(_) => Family::Extra,
        })
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = self.family().map_or("", Family::name);
        match self {
            Damage::Whole(whole) => f.write_str(whole.name()),
            Damage::Truncated(number) | Damage::BitFlip(number) | Damage::ZeroedBlock(number) => {
                write!(f, "{family}/{number}")
            }
            Damage::WrongType(place) | Damage::Missing(place) | Damage::Extra(place) => {
                write!(f, "{family}{place}")
            }
        }
    }
}

impl FromStr for Damage {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Damage, NameError> {
        if let Some(whole) = Whole::ALL.into_iter().find(|whole| whole.name() == text) {
            return Ok(Damage::Whole(whole));
        }
        let (name, place) = text.split_at(text.find('/').unwrap_or(text.len()));
        match Family::ALL.into_iter().find(|family| family.name() == name) {
            Some(family) => family.at(place),
            None => Err(NameError::Unknown { name: text.into(), near: near(name, place) }),
        }
    }
}

/// The nearest right text, with the place as it is.
fn near(name: &str, place: &str) -> Option<String> {
    let families = Family::ALL.into_iter().map(Family::name);
    let wholes = Whole::ALL.iter().map(|whole| whole.name());
    let near = match place {
        "" => crate::scenario::nearest(name, wholes.chain(families))?,
        _ => crate::scenario::nearest(name, families)?,
    };
    let text = format!("{near}{place}");
    text.parse::<Wish>().is_ok().then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read() {
        let texts = [
            "truncated",
            "truncated/0",
            "truncated/57",
            "bit-flip/100",
            "zeroed-block/3",
            "wrong-type",
            "wrong-type/",
            "wrong-type/queue/0",
            "missing/a~1b/~0",
            "extra/answers/x y",
            "older-version",
            "socket",
        ];
        for text in texts {
            let damage: Damage = text.parse().unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(damage.to_string(), text);
        }
        for whole in Whole::ALL {
            assert_eq!(whole.name().parse(), Ok(Damage::Whole(whole)));
        }
    }

    #[test]
    fn what_is_no_name_says_what_was_meant() {
        for (text, said) in [
            ("truncate", "there is no damage `truncate`; did you mean `truncated`?"),
            ("bit-flop/7", "there is no damage `bit-flop/7`; did you mean `bit-flip/7`?"),
            ("Not_An_Object", "there is no damage `Not_An_Object`; did you mean `not-an-object`?"),
            ("missing_queue", "there is no damage `missing_queue`; did you mean `missing-queue`?"),
            (
                "bit-flip",
                "there is no damage `bit-flip`: expected `bit-flip/N` with the number of a bit",
            ),
            (
                "truncated/007",
                "there is no damage `truncated/007`: expected `truncated/N` with a number of bytes",
            ),
            (
                "missing/a~b",
                "there is no damage `missing/a~b`: expected `missing/POINTER` with a JSON pointer, in which ~0 \
                 stands for ~ and ~1 for /",
            ),
        ] {
            let error = text.parse::<Damage>().map(|damage| damage.to_string()).expect_err(text);
            assert_eq!(error.to_string(), said);
        }
        let strange = "gamma-rays".parse::<Damage>().map_err(|error| error.to_string());
        assert!(strange.is_err_and(|said| said.ends_with("--list FILE` says which there are")));
        assert_eq!(
            (names().next(), names().last()),
            (Some("truncated".into()), Some("extra/*".into()))
        );
    }
}
