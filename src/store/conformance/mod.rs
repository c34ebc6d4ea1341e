//! What must hold of any store, as cases that any store can be held against, one of another crate as well.
//!
//! A [`Subject`] says how its store is opened and what it [promises](Promises). [`run`] tries every case that these ask for, each in a
//! folder of its own, and tells what failed. The cases use nothing but the trait, so that they see what a caller sees; time is injected,
//! and who comes when is told by the case: nothing sleeps.
//!
//! | part | what is tried |
//! |---|---|
//! | [`contract`] | what is saved is read, byte for byte, and a session does to it what [`queue`](crate::queue) says |
//! | [`damage`] | what is no checkpoint, or is gone, is refused by name and left as it is |
//! | [`race`] | two or more at once, in an order that the case gives: nothing is lost, and the late one is refused |
//! | [`death`] | a process that is killed with a claim in its hand |
//! | [`lab`] | kills, power cuts and races at every file operation, which need a tracer: scenarios for `crashlab`, as text |
//!
//! The last part is text because it is about a program, not about a value: a store is killed in the process that uses it, and what is
//! looked at afterwards is its files. So this module needs no tracer, and a store in another crate is tried by `crashlab run` with its
//! own program, or by the library `crashlab` in a test, as `tests/conformance` does it here for every store.
//!
//! ```
//! use std::path::Path;
//! use long_horizon::clock::Clock;
//! use long_horizon::store::conformance::{self, Promises, Subject};
//! use long_horizon::store::{JsonStore, Store};
//!
//! #[derive(Debug)]
//! struct Json;
//!
//! impl Subject for Json {
//!     fn open(&self, folder: &Path, _: Clock) -> Box<dyn Store> {
//!         Box::new(JsonStore::new(folder.join("state.json")))
//!     }
//!     fn file(&self) -> &str {
//!         "state.json"
//!     }
//!     fn promises(&self) -> Promises {
//!         Promises { sees_every_change: true, ..Promises::default() }
//!     }
//! }
//!
//! # fn main() -> std::io::Result<()> {
//! let folder = tempfile::tempdir()?;
//! assert_eq!(conformance::run(&Json, folder.path())?, []);
//! # Ok(())
//! # }
//! ```

pub mod contract;
pub mod damage;
pub mod death;
pub mod lab;
pub mod race;
mod samples;

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Child;

use super::Store;
use crate::clock::Clock;

/// A store that is held against the suite.
pub trait Subject: Debug + Sync {
    /// The store of the checkpoint in `folder`, as one more process would open it.
    fn open(&self, folder: &Path, clock: Clock) -> Box<dyn Store>;

    /// The name of the checkpoint's file. What else the store leaves in the folder begins with that name.
    fn file(&self) -> &str;

    /// What the store is for.
    fn promises(&self) -> Promises;

    /// Starts a process that claims a question in `folder` and then does [`death::claim_and_wait`]. `None`: cases of the part [`death`]
    /// are left out.
    fn claimer(&self, folder: &Path) -> Option<io::Result<Child>> {
        let _no_process_needed = folder;
        None
    }
}

/// What a store promises beyond the contract that all have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Promises {
    /// Several sessions work at the same time, each on a question of its own, and a claim ends with its lease.
    pub side_by_side: bool,
    /// A change by anyone between load and save is seen and refused, not only that of a session.
    pub sees_every_change: bool,
    /// Any bit that falls over is found, unless the content is the same without it.
    pub finds_every_bit: bool,
}

/// One case.
#[derive(Clone, Copy)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// Whether a store with these promises must pass it.
    pub applies: fn(&Promises) -> bool,
    run: fn(&Bench<'_>) -> Result<(), Failed>,
}

impl Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Case").field(&self.name).finish()
    }
}

/// Why a case was not passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The case.
    pub case: &'static str,
    /// What did not hold.
    pub why: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.case, self.why)
    }
}

/// All cases, in the order of the parts.
pub fn cases() -> impl Iterator<Item = Case> {
    let parts = [contract::CASES, damage::CASES, race::CASES, death::CASES];
    parts.into_iter().flatten().copied()
}

/// Tries all cases that the subject's promises ask for, each in a folder of its own below `folder`. Returns what failed.
///
/// # Errors
///
/// Where a folder cannot be made.
pub fn run(subject: &dyn Subject, folder: &Path) -> io::Result<Vec<Failure>> {
    let promises = subject.promises();
    let mut failures = Vec::new();
    for case in cases().filter(|case| (case.applies)(&promises)) {
        failures.extend(case.try_on(subject, folder)?);
    }
    Ok(failures)
}

impl Case {
    /// Tries this case alone, in a folder of its own below `folder`. `None`: it is passed.
    ///
    /// # Errors
    ///
    /// Where the folder cannot be made.
    pub fn try_on(&self, subject: &dyn Subject, folder: &Path) -> io::Result<Option<Failure>> {
        let folder = folder.join(self.name);
        fs::create_dir(&folder)?;
        let tried = (self.run)(&Bench { subject, folder });
        Ok(tried.err().map(|Failed(why)| Failure { case: self.name, why }))
    }
}

/// What did not hold.
#[derive(Debug)]
struct Failed(String);

impl<E: std::error::Error> From<E> for Failed {
    fn from(error: E) -> Self {
        Failed(format!("failed where it should not: {error}"))
    }
}

/// Fails the case with these words unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($words:tt)+) => {
        if !$condition {
            return Err($crate::store::conformance::Failed(format!($($words)+)));
        }
    };
}
use ensure;

/// A store in a folder of its own.
#[derive(Debug)]
struct Bench<'s> {
    subject: &'s dyn Subject,
    folder: PathBuf,
}

impl Bench<'_> {
    /// One more process with the store, at the first second of the case.
    fn store(&self) -> Box<dyn Store> {
        self.store_at(0)
    }

    /// One more, so many seconds later.
    fn store_at(&self, second: i64) -> Box<dyn Store> {
        let begin = samples::BEGIN_SECONDS;
        let moment = jiff::Timestamp::from_second(begin + second).unwrap_or(jiff::Timestamp::MAX);
        self.subject.open(&self.folder, Clock::Fixed(moment))
    }

    fn promises(&self) -> Promises {
        self.subject.promises()
    }

    fn state(&self) -> PathBuf {
        self.folder.join(self.subject.file())
    }

    /// Saves a checkpoint where there is none.
    fn begin_with(&self, checkpoint: &crate::checkpoint::Checkpoint) -> Result<(), Failed> {
        let store = self.store();
        let mut transaction = store.begin(super::Wait::Fail)?;
        ensure!(transaction.loaded().is_none(), "there is a checkpoint where nothing is");
        Ok(transaction.replace(checkpoint)?)
    }

    /// That the store holds exactly this.
    fn holds(&self, checkpoint: &crate::checkpoint::Checkpoint, when: &str) -> Result<(), Failed> {
        let Some(loaded) = self.store().read()? else {
            return Err(Failed(format!("{when}: there is no checkpoint")));
        };
        ensure!(
            loaded.checkpoint == *checkpoint,
            "{when}: it holds {:?}, not {checkpoint:?}",
            loaded.checkpoint
        );
        let bytes = loaded.bytes.as_deref();
        ensure!(
            bytes == Some(&checkpoint.encode()),
            "{when}: its bytes are not those of the reference's format"
        );
        Ok(())
    }

    /// Every file in the folder with its bytes; what is no file has none.
    fn files(&self) -> Result<BTreeMap<String, Vec<u8>>, Failed> {
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let bytes = if entry.file_type()?.is_file() { fs::read(entry.path())? } else { vec![] };
            files.insert(entry.file_name().to_string_lossy().into_owned(), bytes);
        }
        Ok(files)
    }
}
