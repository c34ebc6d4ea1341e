//! Judging: recording, state and outcome in, verdict out. No I/O.
//!
//! Nobody has to write a checker. What is right is learnt from undisturbed runs, in three steps:
//!
//! 1. **Versions.** The op log of the undisturbed run tells which states its author meant to leave: what stood before
//!    and after it, and in between whatever a rename put in place, a close or a sync finished, an append completed, or
//!    a mark announced ([`versions`]). Half of a write is none of these.
//! 2. **Controls.** From each version, and from no file at all, the recovery runs without any fault ([`Controls`]).
//!    Where it ends is right, whatever that is: a counter that is run again after a crash may end one higher. Two
//!    equal controls, more than a second apart, show what differs by itself; that is masked and listed ([`Masks`]).
//! 3. **Verdicts.** A crash state is good when its bytes are a version that is not older than what had been
//!    acknowledged, and the recovery takes it where it takes that version undisturbed. Everything else has a
//!    [`Word`]; the first that fits is the verdict ([`judge_crash`]). Damage must be refused, unless what it leaves is a
//!    valid file by the scenario's own word ([`judge_damage`]), several processes must end as some order one after
//!    another does ([`judge_overlap`]), a program with nothing to do must do nothing ([`judge_idle`]), and an alarm must
//!    be raised ([`judge_alert`]).
//!
//! Where one process was killed and the others went on, the versions are those of that very run; what the others put in place
//! then, and no undisturbed run does, stands only if the recovery can use it.
//!
//! An end proves nothing where it would have been the same without the file: then the surviving bytes alone count.
//! A journal beside the state can hold more than any version of it tells; where a recovery goes from a moment at which the
//! run vouched for its journal is right as well ([`vouched`]).

mod alert;
mod control;
mod crash;
mod damage;
mod follow;
mod idle;
mod image;
mod journal;
mod mask;
mod metadata;
mod overlap;
mod overwrites;
mod refusal;
mod repeat;
mod version;
mod word;

pub use alert::{judge_alert, says_it};
pub use control::{Controls, Ends, account, last_lines, overwritten_unread};
pub use crash::{CrashCase, judge_crash};
pub use damage::{DamageCase, Validity, judge_damage};
pub use follow::Follower;
pub use idle::judge_idle;
pub use image::{Content, Image, Shapes, State, shape};
pub use journal::vouched;
pub use mask::Masks;
pub use metadata::metadata_changes;
pub use overlap::{OverlapCase, Serial, Side, judge_overlap, orders, told};
pub(crate) use overwrites::{has_empty_file, tells_overwrites};
pub use refusal::line_that_names;
pub use version::{Origin, Promised, Promises, Version, Versions, versions};
pub use word::{Grade, Word};

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use crate::recording::Trace;
use crate::subject::{End, Exit};
use crate::tree::Tree;

/// What one run of a recovery, or of any undisturbed program, came to.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The tree that it began with.
    pub start: Arc<Tree>,
    /// The tree that it left.
    pub end: Arc<Tree>,
    /// The state files in that tree.
    pub image: Image,
    /// How its program ended.
    pub finish: End,
    /// What it did.
    pub trace: Arc<Trace>,
    /// State files that were there and were changed before they were read.
    pub unread: BTreeSet<PathBuf>,
    /// It began as a copy of a program that stood before its first look at the tree, and not as a program of its own.
    pub forked: bool,
}

impl Outcome {
    /// It ended with exit code 0.
    pub fn success(&self) -> bool {
        self.finish.exit.success()
    }

    /// It was still running when its time was over.
    pub fn hung(&self) -> bool {
        self.finish.exit == Exit::TimedOut
    }

    /// Non-zero exit, and its output names one of these files: how it ended, with that line (see [`line_that_names`]).
    pub fn refusal<'a>(&self, mut files: impl Iterator<Item = &'a PathBuf>) -> Option<String> {
        let (out, err) = (&self.finish.stdout, &self.finish.stderr);
        let exit = self.finish.exit;
        let names =
            |file: &PathBuf| line_that_names(err, file).or_else(|| line_that_names(out, file));
        matches!(exit, Exit::Code(code) if code != 0)
            .then(|| files.find_map(names))
            .flatten()
            .map(|line| format!("{exit}: {line}"))
    }
}

/// What was found of one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The word for it.
    pub word: Word,
    /// How it counts here.
    pub grade: Grade,
    /// Why, in one line.
    pub why: String,
}

impl Verdict {
    pub(crate) fn new(word: Word, why: impl Into<String>) -> Verdict {
        Verdict { word, grade: word.grade(), why: why.into() }
    }

    /// It was not tried, for this reason.
    pub fn skipped(why: impl Into<String>) -> Verdict {
        Verdict::new(Word::Skipped, why)
    }

    /// Something did not end, and had to.
    pub fn hung(why: impl Into<String>) -> Verdict {
        Verdict::new(Word::Hung, why)
    }

    /// Nothing is known, for this reason.
    pub fn not_measured(why: impl Into<String>) -> Verdict {
        Verdict::new(Word::NotMeasured, why)
    }
}
