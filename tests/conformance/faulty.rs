//! The suite itself: each of these stores has one fault, and the suite must find it, by the case that is for it.

use std::fs;
use std::path::{Path, PathBuf};

use long_horizon::checkpoint::Checkpoint;
use long_horizon::choice::Choice;
use long_horizon::clock::Clock;
use long_horizon::store::conformance::{self, Promises, Subject};
use long_horizon::store::{
    Applied, Claim, ClaimError, Holder, JsonStore, Loaded, SqliteStore, Store, StoreError, Terms,
    Transaction, Wait,
};

/// What is wrong with a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// It says that it has saved, and has not.
    SavesNothing,
    /// What cannot be read is taken for nothing.
    StartsAfresh,
    /// It writes over whatever is there.
    NeverLooks,
    /// The first question in the queue is dropped when it is claimed.
    PopsFirst,
    /// It claims for as long as it likes.
    LeasesNeverEnd,
    /// A claim is taken for held by whoever has it.
    ClaimsAreNotChecked,
}

impl Fault {
    const ALL: [(Fault, &'static str); 6] = [
        (Fault::SavesNothing, "what-is-saved-is-read"),
        (Fault::StartsAfresh, "damage-is-refused"),
        (Fault::NeverLooks, "load-load-save-save"),
        (Fault::PopsFirst, "a-claim-that-is-dropped-is-free"),
        (Fault::LeasesNeverEnd, "a-lease-ends"),
        (Fault::ClaimsAreNotChecked, "a-late-session-is-refused"),
    ];

    fn has_leases(self) -> bool {
        matches!(self, Fault::LeasesNeverEnd | Fault::ClaimsAreNotChecked)
    }
}

#[test]
fn each_fault_is_found_by_the_case_that_is_for_it() {
    for (fault, case) in Fault::ALL {
        let folder = tempfile::tempdir().unwrap();
        let case = conformance::cases().find(|known| known.name == case).unwrap();
        assert!(case.try_on(&fault, folder.path()).unwrap().is_some(), "{fault:?}: {case:?}");
    }
}

#[test]
fn every_case_has_a_name_of_its_own() {
    let mut names: Vec<&str> = conformance::cases().map(|case| case.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

impl Subject for Fault {
    fn open(&self, folder: &Path, clock: Clock) -> Box<dyn Store> {
        let path = folder.join(self.file());
        let inner: Box<dyn Store> = if self.has_leases() {
            let clock = match self {
                // Time stands still for it.
                Fault::LeasesNeverEnd => Clock::Fixed(jiff::Timestamp::UNIX_EPOCH),
                _ => clock,
            };
            Box::new(SqliteStore::new(&path).with_clock(clock))
        } else {
            Box::new(JsonStore::new(&path))
        };
        Box::new(Faulty { fault: *self, inner, path })
    }

    fn file(&self) -> &str {
        "state"
    }

    fn promises(&self) -> Promises {
        let side_by_side = self.has_leases();
        Promises { side_by_side, sees_every_change: true, finds_every_bit: false }
    }
}

#[derive(Debug)]
struct Faulty {
    fault: Fault,
    inner: Box<dyn Store>,
    path: PathBuf,
}

impl Store for Faulty {
    fn read(&self) -> Result<Option<Loaded>, StoreError> {
        match self.inner.read() {
            Err(_) if self.fault == Fault::StartsAfresh => Ok(None),
            read => read,
        }
    }

    fn begin(&self, wait: Wait) -> Result<Box<dyn Transaction + '_>, StoreError> {
        if matches!(self.fault, Fault::NeverLooks | Fault::SavesNothing) {
            let loaded = self.inner.read()?;
            return Ok(Box::new(Blind { store: self, loaded }));
        }
        self.inner.begin(wait)
    }

    fn claim(&self, terms: &Terms<'_>) -> Result<Option<Box<dyn Claim + '_>>, StoreError> {
        if self.fault == Fault::PopsFirst {
            // Popped and saved, before anything is done.
            if let Some(loaded) = self.inner.read()?.filter(|l| !l.checkpoint.queue.is_empty()) {
                let mut popped = loaded.checkpoint;
                popped.queue.remove(0);
                self.inner.begin(Wait::Fail)?.save(&popped)?;
            }
        }
        let claim = self.inner.claim(terms)?;
        if self.fault != Fault::ClaimsAreNotChecked {
            return Ok(claim);
        }
        let path = &self.path;
        Ok(claim.map(|claim| Box::new(Unchecked { claim, path }) as Box<dyn Claim>))
    }

    fn target(&self) -> Result<PathBuf, StoreError> {
        self.inner.target()
    }

    fn holders(&self) -> Result<Vec<Holder>, StoreError> {
        self.inner.holders()
    }
}

/// Looks at nothing when it saves.
#[derive(Debug)]
struct Blind<'s> {
    store: &'s Faulty,
    loaded: Option<Loaded>,
}

impl Transaction for Blind<'_> {
    fn loaded(&self) -> Option<&Loaded> {
        self.loaded.as_ref()
    }

    fn replace(&mut self, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        if self.store.fault == Fault::NeverLooks {
            fs::write(&self.store.path, checkpoint.encode()).unwrap();
        }
        Ok(())
    }
}

/// Where it is refused, it records all the same, as whoever holds the claim now.
#[derive(Debug)]
struct Unchecked<'s> {
    claim: Box<dyn Claim + 's>,
    path: &'s Path,
}

impl Claim for Unchecked<'_> {
    fn loaded(&self) -> Option<&Loaded> {
        self.claim.loaded()
    }

    fn before(&self) -> Option<&str> {
        self.claim.before()
    }

    fn question(&self) -> &str {
        self.claim.question()
    }

    fn session(&self) -> u64 {
        self.claim.session()
    }

    fn number(&self) -> Option<u64> {
        self.claim.number()
    }

    fn announced(&mut self) {
        self.claim.announced();
    }

    fn apply(&mut self, choice: &Choice) -> Result<&Applied, ClaimError> {
        let refused = matches!(
            self.claim.apply(choice),
            Err(ClaimError::Store(StoreError::Overtaken { .. }))
        );
        if refused {
            let store = SqliteStore::new(self.path);
            let now = store.read()?.unwrap().checkpoint;
            let next = long_horizon::queue::apply(&now, choice)?;
            store.begin(Wait::Fail)?.save(&next)?;
        }
        self.claim.apply(choice)
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.claim.commit()
    }
}
