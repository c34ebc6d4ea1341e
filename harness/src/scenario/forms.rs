//! The forms of single texts: each with the regular expression that the JSON Schema carries and the check that the
//! parser makes. The schema names the form of a text by `format`, and that is how the parser finds the check.

use std::path::Path;

use schemars::{Schema, json_schema};

use super::point::{self, FormError};
use super::{KillPoint, Turn};
use crate::fault::damage::{Family, Whole, Wish};
use crate::fault::power::{DiskModel, MODELS};

/// What a text in a scenario file can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// One line that is not blank.
    OneLine,
    /// Anything that can be an argument: no NUL.
    Argument,
    /// A line for `sh -c`.
    ShellLine,
    /// The name or path of a program.
    Program,
    /// The name of an environment variable.
    Variable,
    /// A path in the folders that are watched: below the work folder, or, where there are others, absolute or up from it.
    Watched,
    /// A path to a folder outside: relative or absolute, with `..` if need be.
    Folder,
    /// The name of a mark.
    Mark,
    /// The name of a process, an overlap or an alert.
    Name,
    /// A [`KillPoint`].
    KillPoint,
    /// A [`Turn`].
    Turn,
    /// A regular expression.
    Regex,
    /// `mark:NAME` or a regular expression.
    Acknowledgement,
    /// A [`Wish`].
    Damage,
    /// The name of a [`DiskModel`](crate::fault::power::DiskModel), or `all`.
    Disk,
}

/// All disk models.
pub(super) const ALL_DISKS: &str = "all";

impl Form {
    pub(super) const ALL: [Form; 15] = [
        Form::OneLine,
        Form::Argument,
        Form::ShellLine,
        Form::Program,
        Form::Variable,
        Form::Watched,
        Form::Folder,
        Form::Mark,
        Form::Name,
        Form::KillPoint,
        Form::Turn,
        Form::Regex,
        Form::Acknowledgement,
        Form::Damage,
        Form::Disk,
    ];

    /// The form that the schema calls so.
    pub(super) fn named(name: &str) -> Option<Form> {
        Form::ALL.into_iter().find(|form| form.name() == name)
    }

    /// Its name in the schema.
    pub(super) fn name(self) -> &'static str {
        match self {
            Form::OneLine => "one-line",
            Form::Argument => "argument",
            Form::ShellLine => "shell-line",
            Form::Program => "program",
            Form::Variable => "variable",
            Form::Watched => "watched-path",
            Form::Folder => "folder",
            Form::Mark => "mark-name",
            Form::Name => "name",
            Form::KillPoint => "kill-point",
            Form::Turn => "turn",
            Form::Regex => "rust-regex",
            Form::Acknowledgement => "acknowledgement",
            Form::Damage => "damage",
            Form::Disk => "disk-model",
        }
    }

    /// What the schema asks of the text. Weaker than [`check`](Self::check) only in that it cannot tell whether a regular
    /// expression compiles, and whether a number is too large for its type.
    pub(super) fn pattern(self) -> String {
        let name = point::NAME;
        let mark = point::MARK_NAME;
        match self {
            Form::OneLine => r"^[^\r\n\x00]*[^\s\x00][^\r\n\x00]*$".into(),
            Form::Argument => r"^[^\x00]*$".into(),
            Form::ShellLine => r"^[^\x00]*[^\s\x00][^\x00]*$".into(),
            Form::Variable => r"^[^=\x00]+$".into(),
            Form::Watched => {
                let part = r"(\.?[^./\x00][^/\x00]*|\.\.[^/\x00]+)";
                format!(r"^(/|(\.\./)*){part}(/{part})*$")
            }
            Form::Folder | Form::Program => r"^[^\x00]+$".into(),
            Form::Mark => format!("^{mark}$"),
            Form::Name => format!("^{name}$"),
            Form::KillPoint => {
                let words = point::words().collect::<Vec<_>>().join("|");
                format!(
                    "^(all|0|[1-9][0-9]*|[1-9][0-9]*\\+[1-9][0-9]*|({words})#[1-9][0-9]*|mark:{mark}(#[1-9][0-9]*)?|process:(\\*|[1-9][0-9]*#(0|[1-9][0-9]*)))$"
                )
            }
            Form::Turn => format!("^{name} until (end|mark:{mark})$"),
            Form::Regex => r"^[^\x00]+$".into(),
            Form::Acknowledgement => {
                let other = r"([^m\x00]|m[^a\x00]|ma[^r\x00]|mar[^k\x00]|mark[^:\x00])[^\x00]*";
                format!("^(mark:{mark}|m|ma|mar|mark|{other})$")
            }
            Form::Damage => damage_pattern(),
            Form::Disk => {
                format!("^({ALL_DISKS}|{})$", MODELS.each_ref().map(|model| model.name).join("|"))
            }
        }
    }

    /// Whether the text is of this form.
    ///
    /// # Errors
    ///
    /// [`FormError`] with what was expected.
    pub(super) fn check(self, text: &str) -> Result<(), FormError> {
        if text.contains('\0') {
            return Err(FormError::new("a text without NUL characters"));
        }
        match self {
            Form::OneLine if text.trim().is_empty() || text.contains(['\r', '\n']) => {
                Err(FormError::new("one line that is not blank"))
            }
            Form::ShellLine if text.trim().is_empty() => Err(FormError::new("a line for `sh -c`")),
            Form::Variable if text.is_empty() || text.contains('=') => {
                Err(FormError::new("the name of an environment variable: not empty, no `=`"))
            }
            Form::Folder if text.is_empty() => Err(FormError::new("the path of a folder")),
            Form::Program if text.is_empty() => {
                Err(FormError::new("the name of a program in `PATH`, or a path"))
            }
            Form::OneLine
            | Form::Argument
            | Form::ShellLine
            | Form::Program
            | Form::Variable
            | Form::Folder => Ok(()),
            Form::Watched => check_watched(text),
            Form::Mark => point::check_mark_name(text),
            Form::Name => point::check_name(text),
            Form::KillPoint => text.parse::<KillPoint>().map(drop),
            Form::Turn => text.parse::<Turn>().map(drop),
            Form::Regex => check_regex(text),
            Form::Damage => text.parse::<Wish>().map(drop).map_err(FormError::from),
            Form::Disk if text == ALL_DISKS => Ok(()),
            Form::Disk => text.parse::<&DiskModel>().map(drop).map_err(FormError::from),
            Form::Acknowledgement => match text.strip_prefix("mark:") {
                Some(name) => point::check_mark_name(name)
                    .map_err(|error| error.within::<String>(|name| format!("mark:{name}"))),
                None => check_regex(text),
            },
        }
    }

    /// A text of this form, in the schema.
    pub(super) fn schema(self) -> Schema {
        json_schema!({ "type": "string", "format": self.name(), "pattern": self.pattern() })
    }

    /// An array of texts of this form with at least `min` of them, in the schema.
    pub(super) fn list(self, min: usize) -> Schema {
        match min {
            0 => json_schema!({ "type": "array", "items": self.schema() }),
            _ => json_schema!({ "type": "array", "items": self.schema(), "minItems": min }),
        }
    }
}

fn damage_pattern() -> String {
    let wholes = Whole::ALL.map(Whole::name).join("|");
    let families = |numbered: bool| {
        let chosen = Family::ALL.into_iter().filter(|family| family.is_numbered() == numbered);
        chosen.map(Family::name).collect::<Vec<_>>().join("|")
    };
    let (numbered, pointed) = (families(true), families(false));
    format!(r"^(all|{wholes}|({numbered})/(\*|0|[1-9][0-9]*)|({pointed})(/([^~/\x00]|~[01])*)*)$")
}

/// What is expected of such a path.
pub(super) const WATCHED_PATH: &str =
    "a path relative to the work folder, without `.`, `..`, `//` and a slash at its end";

/// The watched folders are the world of a subject, and one path has one spelling: no `.`, no `//`, and `..` only at its
/// begin. Whether it may lead out of the work folder, `watch` tells.
fn check_watched(text: &str) -> Result<(), FormError> {
    let bad = |part: &str| part.is_empty() || part == "." || part == "..";
    let below = match text.strip_prefix('/') {
        Some(below) => below,
        None => text.trim_start_matches("../"),
    };
    if !below.split('/').any(bad) {
        return Ok(());
    }
    let leaves = Path::new(below).components().any(|part| part == std::path::Component::ParentDir);
    let repaired: Vec<&str> = below.split('/').filter(|part| !bad(part)).collect();
    let whole = || format!("{}{}", &text[..text.len() - below.len()], repaired.join("/"));
    let nearest = (!leaves && !repaired.is_empty()).then(whole);
    Err(FormError::new(WATCHED_PATH).or(nearest))
}

fn check_regex(text: &str) -> Result<(), FormError> {
    if text.is_empty() {
        return Err(FormError::new(
            "a regular expression that is not empty, since an empty one is found in every line",
        ));
    }
    regex::Regex::new(text).map(drop).map_err(|error| {
        let report = error.to_string();
        let reason = report.lines().last().unwrap_or_default();
        FormError::new(format!(
            "a regular expression; this one does not compile: {}",
            reason.trim_start_matches("error: ")
        ))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;
    use regex::Regex;

    use super::Form;

    /// Texts made of the pieces that the forms are made of, so that right and nearly right ones are common.
    fn nearly_right() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            prop::sample::select(
                &[
                    "m",
                    "mar",
                    "mark",
                    "all",
                    "0",
                    "1",
                    "12",
                    "007",
                    "+",
                    "#",
                    "mark:",
                    "process:",
                    "rename",
                    "sync-range",
                    "x",
                    "a-b",
                    "-",
                    ".",
                    "..",
                    "/",
                    " ",
                    " until ",
                    "end",
                    "A",
                    "_",
                    "=",
                    "\0",
                    "truncated",
                    "bit-flip",
                    "missing",
                    "*",
                    "~",
                    "~1",
                    "\n",
                    "\r",
                    "\t",
                    "ä",
                    "\u{3000}",
                    "",
                ][..],
            )
            .prop_map(str::to_owned),
            any::<char>().prop_map(String::from),
        ];
        prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2000, ..ProptestConfig::default() })]

        /// What the schema lets through, the parser takes, and the other way round.
        #[test]
        fn pattern_and_check_agree(text in nearly_right()) {
            static PATTERNS: LazyLock<Vec<(Form, Regex)>> = LazyLock::new(|| {
                let compiled = |form: Form| (form, Regex::new(&form.pattern()).unwrap());
                Form::ALL.into_iter().map(compiled).collect()
            });
            for (form, pattern) in &*PATTERNS {
                let taken = match form.check(&text) {
                    Ok(()) => true,
                    Err(error) => error.expected.contains("does not compile"),
                };
                prop_assert_eq!(pattern.is_match(&text), taken, "{:?} on {:?}", form, text);
            }
        }

        #[test]
        fn the_nearest_text_is_of_the_form(text in nearly_right()) {
            for form in Form::ALL {
                if let Err(error) = form.check(&text)
                    && let Some(nearest) = error.nearest
                {
                    prop_assert!(form.check(&nearest).is_ok(), "{:?} on {:?}: {:?}", form, text, nearest);
                }
            }
        }
    }

    #[test]
    fn every_form_is_found_by_its_name() {
        for form in Form::ALL {
            assert_eq!(Form::named(form.name()), Some(form));
        }
    }
}
