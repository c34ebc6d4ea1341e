//! Controls: where the recovery ends without any fault, from each version and from no file at all.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use super::follow::Follower;
use super::image::{Content, Image, Shapes};
use super::mask::Masks;
use super::repeat::Counts;
use super::version::{Version, Versions};
use super::{Outcome, State};
use crate::op::{Event, OpKind, What};
use crate::subject::End;

/// The undisturbed ends that crash states are held against.
#[derive(Debug, Clone)]
pub struct Controls {
    /// R(v) by the image of v; a failed recovery is kept, with its exit.
    pub of_version: HashMap<Image, Outcome>,
    /// R(none).
    pub none: Outcome,
    /// What differs between equal controls.
    pub masks: Masks,
    /// Paths that stand where some control ends.
    pub shapes: Shapes,
    /// The run began with some state file.
    pub began_with_state: bool,
}

/// Where the recovery ends from each version of a run, with masks applied: worked out once for all of its cases.
#[derive(Debug, Clone)]
pub struct Ends {
    /// R(v) by the position of v; `None` where the recovery fails.
    pub of: Vec<Option<Image>>,
    /// R(none), if the recovery can do that.
    pub none: Option<Image>,
    /// Which versions stand: a doubtful one is struck off if the recovery fails on it, or ends where it ends without
    /// any file while it does not end there from the start.
    pub standing: Vec<bool>,
}

impl Controls {
    /// The end of the recovery from this image with masks applied, if it succeeded.
    pub fn end(&self, image: &Image) -> Option<Image> {
        self.of_version
            .get(image)
            .filter(|outcome| outcome.success())
            .map(|outcome| self.masks.apply(&outcome.image))
    }

    /// The end from no file with masks applied, if the recovery can do that.
    pub fn end_from_none(&self) -> Option<Image> {
        self.none.success().then(|| self.masks.apply(&self.none.image))
    }

    /// Which versions stand, see [`Ends::standing`].
    pub fn standing(&self, versions: &Versions) -> Vec<bool> {
        self.ends(versions).standing
    }

    /// The ends from all versions of a run, and from no file.
    pub fn ends(&self, versions: &Versions) -> Ends {
        let of: Vec<Option<Image>> =
            versions.all.iter().map(|version| self.end(&version.image)).collect();
        let none = self.end_from_none();
        let from_start = of.first().cloned().flatten();
        let stands = |(version, end): (&Version, &Option<Image>)| {
            let begins_anew = end.is_some() && *end == none && from_start != none;
            !version.origin.is_doubtful() || (end.is_some() && !begins_anew)
        };
        let standing = versions.all.iter().zip(&of).map(stands).collect();
        Ends { of, none, standing }
    }

    /// The counts of lines and elements in every R(v).
    pub(super) fn counts(&self) -> Vec<Counts> {
        self.of_version
            .values()
            .filter(|outcome| outcome.success())
            .map(|outcome| Counts::of(&outcome.image))
            .collect()
    }

    /// The ends can be compared at all.
    pub fn ends_are_stable(&self) -> bool {
        self.masks.unstable.is_empty()
    }
}

/// So many lines from the end on, a line that names an error is looked for.
const LINES_OF_ERROR: usize = 20;

/// How a program ended, with the line of what it said that tells why, for reports: the last that names an error and is not
/// indented, else the last.
pub fn account(outcome: &Outcome) -> String {
    let finish = &outcome.finish;
    let mut said = last_lines(finish, LINES_OF_ERROR);
    let names_an_error = |line: &String| {
        let is_word = |word: &str| line.contains(word);
        !line.starts_with(char::is_whitespace)
            && ["rror", "xception", "anicked"].into_iter().any(is_word)
    };
    let telling = said.iter().rposition(names_an_error).map(|at| said.swap_remove(at));
    match telling.or_else(|| said.pop()) {
        None => finish.exit.to_string(),
        Some(line) => format!("{}: {}", finish.exit, line.trim()),
    }
}

/// The last lines that are not blank of what a program said: on standard error if there is any, else on standard output.
pub fn last_lines(end: &End, most: usize) -> Vec<String> {
    let lines = |bytes: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(bytes);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let from = lines.len().saturating_sub(most);
        lines[from..].iter().map(|line| line.trim_end().to_owned()).collect()
    };
    let said = lines(&end.stderr);
    if said.is_empty() { lines(&end.stdout) } else { said }
}

/// The state files that were there when a run began, and that it changed before it read them.
pub fn overwritten_unread(
    start: &super::Tree,
    events: &[Event],
    state: &State,
) -> BTreeSet<PathBuf> {
    let mut at = Follower::new(start, state);
    let begun = at.image.clone();
    let mut known: BTreeSet<PathBuf> = BTreeSet::new();
    let mut unread = BTreeSet::new();
    for event in events {
        let Ok(changed) = at.apply(event) else {
            return unread;
        };
        let is_there =
            |path: &&PathBuf| begun.files.get(*path).is_some_and(|it| *it != Content::Absent);
        // What is appended leaves what was there.
        let appends = matches!(&event.what, What::Op(op) if matches!(op.kind, OpKind::Write { append: true, .. }));
        if !appends {
            let blindly = changed.iter().filter(is_there).filter(|path| !known.contains(*path));
            unread.extend(blindly.cloned());
            known.extend(changed);
        }
        if let What::Read { file, .. } = &event.what
            && let Some(inode) = at.model.inode(*file)
        {
            known.extend(at.paths_of(inode));
        }
    }
    unread
}
