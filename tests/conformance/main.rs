//! Every store, held against the conformance suite; and the suite, held against stores with a fault in them.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, also in what tests share")]

mod faulty;
mod lab;

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use long_horizon::clock::Clock;
use long_horizon::store::conformance::{self, Promises, Subject, death};
use long_horizon::store::{self, SqliteStore, Store, StoreKind};

/// Tells a test that was started again in a process of its own which folder it is about.
const AGAIN: &str = "LONG_HORIZON_TEST_FOLDER";

/// One of our own stores.
#[derive(Debug)]
struct Ours(StoreKind);

impl Subject for Ours {
    fn open(&self, folder: &Path, clock: Clock) -> Box<dyn Store> {
        let path = folder.join(self.file());
        match self.0 {
            StoreKind::Sqlite => Box::new(SqliteStore::new(path).with_clock(clock)),
            kind => store::open(kind, path),
        }
    }

    fn file(&self) -> &str {
        "queue.state"
    }

    fn promises(&self) -> Promises {
        match self.0 {
            StoreKind::Json => Promises { sees_every_change: true, ..Promises::default() },
            StoreKind::Reference => Promises::default(),
            StoreKind::Sqlite => {
                Promises { side_by_side: true, sees_every_change: true, finds_every_bit: true }
            }
        }
    }

    fn claimer(&self, folder: &Path) -> Option<io::Result<Child>> {
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args([&format!("claims_and_waits_{}", self.0), "--exact", "--nocapture"]);
        again.env(AGAIN, folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        Some(again.spawn())
    }
}

/// What a test does that was started again as a claimer.
fn claim_and_wait(kind: StoreKind) {
    if let Some(folder) = std::env::var_os(AGAIN) {
        let store = Ours(kind).open(&PathBuf::from(folder), Clock::System);
        death::claim_and_wait(&*store).unwrap();
    }
}

#[test]
fn claims_and_waits_json() {
    claim_and_wait(StoreKind::Json);
}

#[test]
fn claims_and_waits_reference() {
    claim_and_wait(StoreKind::Reference);
}

#[test]
fn claims_and_waits_sqlite() {
    claim_and_wait(StoreKind::Sqlite);
}

fn conforms(kind: StoreKind) {
    let folder = tempfile::tempdir().unwrap();
    let failures = conformance::run(&Ours(kind), folder.path()).unwrap();
    let told: Vec<String> = failures.iter().map(ToString::to_string).collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
}

#[test]
fn json_conforms() {
    conforms(StoreKind::Json);
}

#[test]
fn reference_conforms() {
    conforms(StoreKind::Reference);
}

#[test]
fn sqlite_conforms() {
    conforms(StoreKind::Sqlite);
}
