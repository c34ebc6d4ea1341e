//! Claims: who works on which question, until when, and the number that tells a claim from every other.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, params};

use super::create::create;
use super::database::{Database, Found, in_place};
use super::rows::Rows;
use super::trouble::Trouble;
use super::{Entered, SqliteStore, loaded, lock_path};
use crate::checkpoint::Checkpoint;
use crate::choice::Choice;
use crate::digest;
use crate::store::alive::{self, Alive};
use crate::store::lock::Lock;
use crate::store::replace::failed;
use crate::store::{
    Applied, Claim, ClaimError, Holder, Loaded, StoreError, Terms, Wait, file, mark,
};

/// A claim as it stands in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClaimRow {
    pub(super) epoch: i64,
    question: String,
    /// When its lease ends, in milliseconds since 1970.
    until_ms: i64,
    /// The boot of the machine on which a lock tells whether its session lives; empty: none does.
    boot: String,
}

impl ClaimRow {
    pub(super) fn read_all(connection: &Connection) -> Result<Vec<ClaimRow>, Trouble> {
        let mut statement = connection
            .prepare("SELECT epoch, question, until_ms, boot FROM claims ORDER BY epoch")?;
        let rows = statement.query_map([], |row| {
            Ok(ClaimRow {
                epoch: row.get(0)?,
                question: row.get(1)?,
                until_ms: row.get(2)?,
                boot: row.get(3)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    pub(super) fn insert(&self, connection: &Connection) -> Result<(), Trouble> {
        connection.execute(
            "INSERT INTO claims (epoch, question, until_ms, boot) VALUES (?, ?, ?, ?)",
            params![self.epoch, self.question, self.until_ms, self.boot],
        )?;
        Ok(())
    }

    /// Makes these the claims of the database, in their order. All anew, so that nothing is left of those that are gone, not even the order
    /// in which they went.
    fn write_all<'c>(
        claims: impl Iterator<Item = &'c ClaimRow>,
        connection: &Connection,
    ) -> Result<(), Trouble> {
        connection.execute("DELETE FROM claims", [])?;
        for claim in claims {
            claim.insert(connection)?;
        }
        Ok(())
    }

    /// Whether its session may still be at work: neither is its lease over nor is the session known to be dead.
    fn holds(&self, store: &SqliteStore, lock: &Path) -> bool {
        let in_time = store.clock.now().as_millisecond() < self.until_ms;
        let asked = !self.boot.is_empty() && self.boot == store.boot;
        // What cannot be told counts as alive: then the lease decides.
        in_time && (!asked || alive::lives(lock, self.epoch).unwrap_or(true))
    }
}

/// Who works on the checkpoint now, the oldest claim first.
pub(super) fn holders(store: &SqliteStore) -> Result<Vec<Holder>, StoreError> {
    let target = file::resolve(&store.path)?;
    let Some(database) = store.open(&target)? else { return Ok(Vec::new()) };
    database.begin_to_read(&store.path)?;
    let claims = ClaimRow::read_all(database.connection())
        .map_err(|trouble| trouble.reading(&store.path))?;
    let lock = lock_path(&target.path);
    let holding = claims.iter().filter(|claim| claim.holds(store, &lock));
    Ok(holding.map(|claim| holder(claim.epoch)).collect())
}

fn holder(epoch: i64) -> Holder {
    Holder { pid: None, claim: u64::try_from(epoch).ok() }
}

/// A question that is claimed by this session.
#[derive(Debug)]
pub(super) struct Leased<'s> {
    store: &'s SqliteStore,
    target: PathBuf,
    loaded: Option<Loaded>,
    before: Option<String>,
    row: ClaimRow,
    session: u64,
    alive: Option<Alive>,
    /// Held from the claim until it is announced, and again from the decision on.
    lock: Option<Lock>,
    decided: Option<Decided>,
    applied: Option<Applied>,
    /// Whether the claim is out of the database.
    over: bool,
}

/// What is to be written.
#[derive(Debug)]
struct Decided {
    database: Database,
    found: Found,
    rows: Rows,
}

impl<'s> Leased<'s> {
    /// Claims the first question of the queue that nobody works on; `None`: the queue is empty.
    pub(super) fn claim(
        store: &'s SqliteStore,
        terms: &Terms<'_>,
    ) -> Result<Option<Self>, StoreError> {
        // Those who hold the lock let it go soon, so that there is nothing to be refused for.
        let Entered { target, lock, database, found } = store.enter_first(Wait::Block)?;
        let lock_path = lock_path(&target);
        let (Some(database), Some(found)) = (database, found) else {
            return Leased::first(store, terms, target, lock);
        };
        let held: Vec<&ClaimRow> =
            found.claims.iter().filter(|claim| claim.holds(store, &lock_path)).collect();
        let free = |question: &String| !held.iter().any(|claim| claim.question == *question);
        let mut questions = found.rows.queue.values().map(|queued| &queued.0);
        let Some(question) = questions.find(|question| free(question)) else {
            return match held.first() {
                Some(first) if !found.rows.queue.is_empty() => {
                    Err(StoreError::Busy { path: store.path.clone(), holder: holder(first.epoch) })
                }
                _ => Ok(None),
            };
        };
        let mut epoch = found.epoch;
        let (row, alive) = new_claim(store, &lock_path, question, terms.lease, &mut epoch)?;
        // Without those that are over.
        let claims = held.iter().copied().chain([&row]);
        let written = ClaimRow::write_all(claims, database.connection())
            .and_then(|()| database.seal(found.rows.sessions_run, epoch, &found.digest));
        written.map_err(|trouble| trouble.writing(&store.path, "write to the database"))?;
        let session = found.rows.sessions_run.saturating_add(held.len() as u64).saturating_add(1);
        database.commit(&store.path, &found.digest)?;
        mark("claimed");
        Ok(Some(Leased {
            store,
            target,
            loaded: Some(found.loaded),
            before: Some(found.digest),
            row,
            session,
            alive,
            lock: Some(lock),
            decided: None,
            applied: None,
            over: false,
        }))
    }

    /// The claim that makes the database.
    fn first(
        store: &'s SqliteStore,
        terms: &Terms<'_>,
        target: PathBuf,
        lock: Lock,
    ) -> Result<Option<Self>, StoreError> {
        let Some(question) = terms.fresh.first() else { return Ok(None) };
        let fresh = Checkpoint::fresh(terms.fresh.to_vec());
        let lock_path = lock_path(&target);
        let mut alive = None;
        let (_, row) = create(&store.path, &target, &fresh, |epoch| {
            let (row, sign) = new_claim(store, &lock_path, question, terms.lease, epoch)?;
            alive = sign;
            Ok(Some(row))
        })?;
        mark("claimed");
        Ok(row.map(|row| Leased {
            store,
            target,
            loaded: None,
            before: None,
            row,
            session: 1,
            alive,
            lock: Some(lock),
            decided: None,
            applied: None,
            over: false,
        }))
    }

    /// The database in a transaction, with the claim still in it as it was made.
    fn enter_again(&mut self, wait: Wait) -> Result<(Database, Found), StoreError> {
        let path = &self.store.path;
        // The lock of before, where the claim was never announced.
        drop(self.lock.take());
        let entered = self.store.enter(wait)?;
        let (target, database, found) = (entered.target, entered.database, entered.found);
        self.lock = Some(entered.lock);
        let (Some(database), Some(found)) = (database, found) else {
            return Err(StoreError::Deleted { path: path.clone() });
        };
        if target != self.target {
            return Err(StoreError::Unreadable {
                path: path.clone(),
                why: format!(
                    "its link led to {} before, and leads to {} now",
                    self.target.display(),
                    target.display()
                ),
                remedy: "nothing was written; run again".to_owned(),
            });
        }
        if !found.claims.contains(&self.row) {
            self.over = true;
            return Err(self.overtaken());
        }
        Ok((database, found))
    }

    fn decide(&mut self, choice: &Choice) -> Result<Applied, ClaimError> {
        let (database, found) = self.enter_again(Wait::Block).map_err(meanwhile)?;
        let mut queue = found.rows.queue.iter();
        let position = queue.find(|(_, queued)| queued.0 == self.row.question);
        // It was taken out of the queue by hand.
        let Some((position, _)) = position else { return Err(self.overtaken().into()) };
        let mut rows = found.rows.clone();
        rows.record(*position, self.row.epoch, choice)?;
        let next = rows.checkpoint().map_err(|trouble| trouble.reading(&self.store.path))?;
        let next = loaded(next);
        let after = digest::sha256(next.bytes.as_deref().map_or(&[], Vec::as_slice));
        let before = Some(found.digest.clone());
        self.decided = Some(Decided { database, found, rows });
        mark("checked");
        Ok(Applied { before, after, next: next.checkpoint })
    }

    /// All claims but this one.
    fn others<'f>(&self, found: &'f Found) -> impl Iterator<Item = &'f ClaimRow> {
        let ours = self.row.epoch;
        found.claims.iter().filter(move |claim| claim.epoch != ours)
    }

    fn overtaken(&self) -> StoreError {
        StoreError::Overtaken { path: self.store.path.clone(), question: self.row.question.clone() }
    }

    /// Takes the claim out of the database, so that the question is free at once. If that fails, or another is at it right now, the end
    /// of the sign of life tells, or the lease.
    fn give_back(&mut self) -> Result<(), StoreError> {
        let (database, found) = self.enter_again(Wait::Fail)?;
        ClaimRow::write_all(self.others(&found), database.connection())
            .map_err(|trouble| trouble.writing(&self.store.path, "write to the database"))?;
        database.commit(&self.store.path, &found.digest)
    }
}

/// A claim with the next number after `epoch`, and the sign that its session lives, where the file system carries one.
fn new_claim(
    store: &SqliteStore,
    lock: &Path,
    question: &str,
    lease: Duration,
    epoch: &mut i64,
) -> Result<(ClaimRow, Option<Alive>), StoreError> {
    let (alive, boot) = loop {
        *epoch += 1;
        match Alive::begin(lock, &store.path, *epoch) {
            Ok(Some(alive)) => break (Some(alive), store.boot.clone()),
            // The number of a living session, whose claim was in a database that another has replaced since.
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                break (None, String::new());
            }
            Err(error) => return Err(failed(lock, "lock a byte of the lock file", error)),
        }
    };
    let lease_ms = i64::try_from(lease.as_millis()).unwrap_or(i64::MAX);
    let until_ms = store.clock.now().as_millisecond().saturating_add(lease_ms);
    Ok((ClaimRow { epoch: *epoch, question: question.to_owned(), until_ms, boot }, alive))
}

impl Claim for Leased<'_> {
    fn loaded(&self) -> Option<&Loaded> {
        self.loaded.as_ref()
    }

    fn before(&self) -> Option<&str> {
        self.before.as_deref()
    }

    fn question(&self) -> &str {
        &self.row.question
    }

    fn session(&self) -> u64 {
        self.session
    }

    fn number(&self) -> Option<u64> {
        u64::try_from(self.row.epoch).ok()
    }

    fn announced(&mut self) {
        self.lock = None;
    }

    fn apply(&mut self, choice: &Choice) -> Result<&Applied, ClaimError> {
        match self.decide(choice) {
            Ok(applied) => Ok(self.applied.insert(applied)),
            Err(error) => {
                // Nothing will be saved, so there is nothing to keep others out for.
                self.lock = None;
                Err(error)
            }
        }
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        let path = &self.store.path;
        let (Some(Decided { database, found, rows }), Some(applied)) =
            (self.decided.take(), &self.applied)
        else {
            // Nothing was decided, so there is nothing to save.
            return Ok(());
        };
        in_place(&database, path)?;
        database
            .write(&rows, &found.rows)
            .and_then(|()| ClaimRow::write_all(self.others(&found), database.connection()))
            .and_then(|()| database.seal(rows.sessions_run, found.epoch, &applied.after))
            .map_err(|trouble| trouble.writing(path, "write to the database"))?;
        let saved = database.commit(path, &applied.after);
        if matches!(saved, Ok(()) | Err(StoreError::Unsynced { .. })) {
            self.over = true;
        }
        saved?;
        mark("saved");
        Ok(())
    }
}

/// What was whole when the question was claimed, and is not now.
fn meanwhile(error: StoreError) -> StoreError {
    match error {
        StoreError::Damaged { path, damage } => StoreError::DamagedMeanwhile { path, damage },
        error => error,
    }
}

impl Drop for Leased<'_> {
    fn drop(&mut self) {
        self.decided = None;
        if !self.over {
            let _the_sign_of_life_ends = self.give_back();
        }
        // The sign of life before the lock: whoever comes next finds both as they will be.
        self.alive = None;
        self.lock = None;
    }
}
