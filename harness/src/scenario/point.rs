//! The short texts that say where: kill points (`rename#1`) and turns of an overlap (`a until mark:loaded`).
//!
//! What `Display` prints is what `FromStr` reads, for every value that `FromStr` can give.

use std::fmt;
use std::str::FromStr;

use super::nearest::nearest;
use super::{KillPoint, Turn, Until};
use crate::fault::damage::{self, NameError};
use crate::fault::power::{DiskModel, NoSuchModel};

/// The words of the op log, as [`OpKind::word`](crate::op::OpKind::word) gives them.
const OP_WORDS: [&str; 18] = [
    "create",
    "write",
    "truncate",
    "allocate",
    "rename",
    "link",
    "symlink",
    "unlink",
    "mkdir",
    "rmdir",
    "mknod",
    "chmod",
    "chown",
    "utimens",
    "xattr",
    "sync",
    "sync-range",
    "lock",
];

/// The word for what the subject prints.
const OUTPUT: &str = "output";

/// Every word that can be counted.
pub(super) fn words() -> impl Iterator<Item = &'static str> {
    OP_WORDS.into_iter().chain([OUTPUT])
}

/// What a mark's name is made of, as a regular expression.
pub(super) const MARK_NAME: &str = "[A-Za-z0-9][A-Za-z0-9._-]*";

/// What the name of a process, an overlap or an alert is made of, as a regular expression.
pub(super) const NAME: &str = "[a-z0-9]+(-[a-z0-9]+)*";

/// A text is not of the form that its place asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormError {
    /// What the place asks for, as what follows "expected".
    pub expected: String,
    /// The nearest right text, where there is one.
    pub nearest: Option<String>,
}

impl FormError {
    pub(super) fn new(expected: impl Into<String>) -> Self {
        FormError { expected: expected.into(), nearest: None }
    }

    pub(super) fn or(mut self, nearest: Option<String>) -> Self {
        self.nearest = nearest;
        self
    }

    /// Proposes the text if it is right itself.
    fn or_right<T: FromStr>(self, text: String) -> Self {
        let right = text.parse::<T>().is_ok();
        self.or(right.then_some(text))
    }

    /// The same error for the whole text of which a part was wrong.
    pub(super) fn within<T: FromStr>(mut self, whole: impl Fn(&str) -> String) -> Self {
        match self.nearest.take() {
            Some(part) => self.or_right::<T>(whole(&part)),
            None => self,
        }
    }
}

impl fmt::Display for FormError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}", self.expected)?;
        match &self.nearest {
            Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for FormError {}

impl From<NameError> for FormError {
    fn from(error: NameError) -> FormError {
        match error {
            NameError::Unknown { near, .. } => {
                let names: Vec<String> = damage::names().map(|name| format!("`{name}`")).collect();
                FormError::new(format!("`all`, or one of {}", names.join(", "))).or(near)
            }
            NameError::Place { expected, .. } => FormError::new(expected),
        }
    }
}

impl From<NoSuchModel> for FormError {
    fn from(_: NoSuchModel) -> FormError {
        FormError::new(format!("`all`, or one of {}", DiskModel::names()))
    }
}

impl fmt::Display for KillPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KillPoint::All => f.write_str("all"),
            KillPoint::After(op) => write!(f, "{op}"),
            KillPoint::Inside(op, bytes) => write!(f, "{op}+{bytes}"),
            KillPoint::Kind(word, nth) => write!(f, "{word}#{nth}"),
            KillPoint::Output(nth) => write!(f, "output#{nth}"),
            KillPoint::Mark(name, 1) => write!(f, "mark:{name}"),
            KillPoint::Mark(name, nth) => write!(f, "mark:{name}#{nth}"),
            KillPoint::EachProcess => f.write_str("process:*"),
            KillPoint::Process(number, nth) => write!(f, "process:{number}#{nth}"),
        }
    }
}

impl FromStr for KillPoint {
    type Err = FormError;

    fn from_str(text: &str) -> Result<Self, FormError> {
        if text == "all" {
            return Ok(KillPoint::All);
        }
        if let Some(mark) = text.strip_prefix("mark:") {
            return marked(mark);
        }
        if let Some(process) = text.strip_prefix("process:") {
            return of_process(process);
        }
        if let Some((op, bytes)) = text.split_once('+') {
            return match (number(op), number(bytes)) {
                (Some(op @ 1..), Some(bytes @ 1..)) => Ok(KillPoint::Inside(op, bytes)),
                _ => Err(FormError::new(
                    "a place inside a write, `12+4096`: the number of the op from 1, and how many bytes were written, from 1",
                )),
            };
        }
        if let Some((word, nth)) = text.split_once('#') {
            return counted(word, nth);
        }
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return number(text).map(KillPoint::After).ok_or_else(|| {
                FormError::new(format!(
                    "the number of an op, at most {}, without leading zeros",
                    u32::MAX
                ))
            });
        }
        Err(FormError::new(
            "`all`, the number of an op (`12`), a place inside a write (`12+4096`), an op of a kind (`rename#1`), an output (`output#1`), a mark (`mark:NAME`, `mark:NAME#2`) or one process alone (`process:*`, `process:2#5`)",
        )
        .or(nearest(text, words().chain(["all"])).map(|word| match word {
            "all" => word.to_owned(),
            word => format!("{word}#1"),
        })))
    }
}

/// What follows `process:` in a kill point.
fn of_process(text: &str) -> Result<KillPoint, FormError> {
    if text == "*" {
        return Ok(KillPoint::EachProcess);
    }
    match text.split_once('#').map(|(process, nth)| (number(process), number(nth))) {
        Some((Some(process @ 1..), Some(nth))) => Ok(KillPoint::Process(process, nth)),
        _ => Err(FormError::new(
            "`process:*`, or a process by its number from 1 and how many ops it has done, as in `process:2#5`",
        )),
    }
}

/// What follows `mark:` in a kill point.
fn marked(text: &str) -> Result<KillPoint, FormError> {
    let (name, nth) = text.split_once('#').unwrap_or((text, "1"));
    check_mark_name(name)
        .map_err(|error| error.within::<KillPoint>(|name| format!("mark:{name}#{nth}")))?;
    match number(nth) {
        Some(nth @ 1..) => Ok(KillPoint::Mark(name.to_owned(), nth)),
        _ => Err(FormError::new(format!("`#` and a count from 1, as in `mark:{name}#2`"))
            .or(Some(format!("mark:{name}")))),
    }
}

/// The n-th op of a kind, or the n-th output.
fn counted(word: &str, nth: &str) -> Result<KillPoint, FormError> {
    if !words().any(|known| known == word) {
        let known = words().collect::<Vec<_>>().join(", ");
        let error = FormError::new(format!("a word of the op log before `#`: {known}"));
        return Err(match nearest(word, words()) {
            Some(word) => error.or_right::<KillPoint>(format!("{word}#{nth}")),
            None => error,
        });
    }
    match number(nth) {
        Some(nth @ 1..) if word == OUTPUT => Ok(KillPoint::Output(nth)),
        Some(nth @ 1..) => Ok(KillPoint::Kind(word.to_owned(), nth)),
        _ => {
            Err(FormError::new(format!("a count from 1 after `{word}#`"))
                .or(Some(format!("{word}#1"))))
        }
    }
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.until {
            Until::Mark(name) => write!(f, "{} until mark:{name}", self.process),
            Until::End => write!(f, "{} until end", self.process),
        }
    }
}

impl FromStr for Turn {
    type Err = FormError;

    fn from_str(text: &str) -> Result<Self, FormError> {
        let form = || FormError::new("`PROCESS until mark:NAME` or `PROCESS until end`");
        let [process, middle, until] = text.split_whitespace().collect::<Vec<_>>()[..] else {
            return Err(form());
        };
        check_name(process)
            .map_err(|error| error.within::<Turn>(|name| format!("{name} {middle} {until}")))?;
        if middle != "until" {
            return Err(form().or_right::<Turn>(format!("{process} until {until}")));
        }
        let until = match until.strip_prefix("mark:") {
            Some(name) => {
                check_mark_name(name).map_err(|error| {
                    error.within::<Turn>(|name| format!("{process} until mark:{name}"))
                })?;
                Until::Mark(name.to_owned())
            }
            None if until == "end" => Until::End,
            None => return Err(form().or_right::<Turn>(format!("{process} until mark:{until}"))),
        };
        let turn = Turn { process: process.to_owned(), until };
        match turn.to_string() {
            one_spaced if one_spaced == text => Ok(turn),
            one_spaced => Err(FormError::new("one blank between the words").or(Some(one_spaced))),
        }
    }
}

/// A decimal number as the lab itself prints it: digits only, no leading zeros.
fn number<N: FromStr>(text: &str) -> Option<N> {
    let plain = text == "0" || !text.starts_with('0');
    (plain && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

/// Whether this can be the name of a mark.
pub(super) fn check_mark_name(name: &str) -> Result<(), FormError> {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if name.starts_with(|first: char| first.is_ascii_alphanumeric()) && name.bytes().all(inner) {
        return Ok(());
    }
    let error = FormError::new(
        "the name of a mark: ASCII letters, digits, `.`, `_` and `-`, a letter or digit first",
    );
    Err(match name.strip_prefix("mark:") {
        Some(bare) if check_mark_name(bare).is_ok() => error.or(Some(bare.to_owned())),
        _ => error,
    })
}

/// Whether this can be the name of a process, an overlap or an alert.
pub(super) fn check_name(name: &str) -> Result<(), FormError> {
    let good = |name: &str| {
        name.split('-').all(|part| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        })
    };
    if good(name) {
        return Ok(());
    }
    let repaired = name.to_lowercase().replace(['_', ' ', '.'], "-");
    Err(FormError::new("a name of lower-case letters and digits, parted by single `-`")
        .or(good(&repaired).then_some(repaired)))
}
