//! What else a database can be, and what others do to it.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use long_horizon::checkpoint::Checkpoint;
use long_horizon::choice::Choice;
use long_horizon::store::{SqliteStore, Store, StoreError, Terms, Wait};
use rusqlite::Connection;
use tempfile::TempDir;

const TERMS: Terms<'static> = Terms { fresh: &[], lease: Duration::from_secs(60) };

struct Folder(TempDir);

impl Folder {
    /// With a database of these questions.
    fn of(questions: &[&str]) -> Folder {
        let folder = Folder(TempDir::new().unwrap());
        let questions = questions.iter().map(|q| (*q).to_owned()).collect();
        let store = folder.store();
        store.begin(Wait::Fail).unwrap().save(&Checkpoint::fresh(questions)).unwrap();
        folder
    }

    fn state(&self) -> PathBuf {
        self.0.path().join("q.db")
    }

    fn store(&self) -> SqliteStore {
        SqliteStore::new(self.state()).with_patience(Duration::ZERO)
    }

    fn sql(&self, sql: &str) {
        Connection::open(self.state()).unwrap().execute_batch(sql).unwrap();
    }

    fn checkpoint(&self) -> Checkpoint {
        self.store().read().unwrap().unwrap().checkpoint
    }

    /// Why it is refused.
    fn damage(&self) -> String {
        let error = self.store().read().unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        assert!(self.store().begin(Wait::Fail).is_err());
        let text = error.to_string();
        let text = text.strip_prefix(&format!("{}: ", self.state().display())).unwrap();
        text.split("; nothing was changed").next().unwrap().to_owned()
    }
}

fn answer() -> Choice {
    Choice::Answer { text: "yes".to_owned(), citations: vec![] }
}

#[test]
fn what_was_changed_by_sql_is_taken_and_what_fell_over_is_not() {
    let folder = Folder::of(&["q", "r"]);
    folder.sql("UPDATE queue SET question = 'changed' WHERE question = 'q'");
    assert_eq!(folder.checkpoint().queue, ["changed", "r"]);
    folder.sql("UPDATE state SET sessions_run = '7'");
    assert_eq!(folder.checkpoint().sessions_run, 7);
    // The next save notes the digest anew, and from then on a change that no trigger saw is found.
    folder.store().begin(Wait::Fail).unwrap().save(&folder.checkpoint()).unwrap();
    let mut bytes = fs::read(folder.state()).unwrap();
    let at = bytes.windows(7).position(|window| window == b"changed").unwrap();
    bytes[at] = b'C';
    fs::write(folder.state(), bytes).unwrap();
    insta::assert_snapshot!(folder.damage(), @"the checkpoint is damaged: its content is not what its SHA-256 says, and was not changed by SQL");
}

#[test]
fn a_database_that_is_not_as_it_was_made_is_told_apart() {
    let damages = [
        ("PRAGMA application_id = 7", "another program"),
        ("PRAGMA user_version = 2", "version 2"),
        ("CREATE TABLE more (x)", "table `more` is not as it was made"),
        ("DROP TRIGGER queue_insert", "it has no trigger `queue_insert`"),
        ("DROP TABLE claims", "it has no table `claims`"),
        ("PRAGMA journal_mode = WAL", "its journal mode is `wal`"),
        ("UPDATE state SET epoch = 0", "its last number is 0"),
        ("UPDATE state SET sessions_run = '07'", "`sessions_run` is no count"),
        ("DELETE FROM state", "Query returned no rows"),
        ("INSERT INTO answers VALUES (9, 'q', 't', '[1]')", "citations of an answer are no list"),
        ("INSERT INTO answers VALUES (8, 'q', 't', '[]'), (9, 'q', 't', '[]')", "two answers"),
        ("INSERT INTO pending VALUES (8, 'q', 't'), (9, 'q', 't')", "waits twice"),
    ];
    for (sql, why) in damages {
        let folder = Folder::of(&["q"]);
        folder.sql("UPDATE state SET epoch = 100");
        folder.sql(sql);
        let damage = folder.damage();
        assert!(damage.contains(why), "{sql}: {damage}");
    }
}

#[test]
fn an_empty_file_is_told_as_such() {
    let folder = Folder::of(&["q"]);
    fs::write(folder.state(), "").unwrap();
    insta::assert_snapshot!(folder.damage(), @"the checkpoint is damaged: it is empty, 0 bytes");
}

#[test]
fn a_journal_without_its_database_is_no_fresh_start() {
    let folder = Folder::of(&["q"]);
    fs::remove_file(folder.state()).unwrap();
    let journal = folder.0.path().join("q.db-journal");
    fs::write(&journal, "").unwrap();
    assert!(folder.damage().contains("it is gone, and its journal"), "{}", folder.damage());
    assert!(!folder.state().exists());
    fs::remove_file(journal).unwrap();
    assert!(folder.store().read().unwrap().is_none());
}

#[test]
fn another_program_that_has_it_locked_is_told() {
    let folder = Folder::of(&["q"]);
    let other = Connection::open(folder.state()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(folder.store().read().unwrap().is_some(), "reading is not kept out");
    let error = folder.store().begin(Wait::Fail).unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error}");
    other.execute_batch("ROLLBACK").unwrap();
    assert!(folder.store().begin(Wait::Fail).is_ok());
}

#[test]
fn a_question_that_was_taken_out_by_hand_is_not_recorded() {
    let folder = Folder::of(&["q", "r"]);
    let store = folder.store();
    let mut claim = store.claim(&TERMS).unwrap().unwrap();
    claim.announced();
    folder.sql("DELETE FROM queue WHERE question = 'q'");
    let error = claim.apply(&answer()).unwrap_err().to_string();
    insta::assert_snapshot!(error.replace(folder.0.path().to_str().unwrap(), "DIR"), @"DIR/q.db: `q` is no longer claimed by this session (its time ran out and another took it over, or it was changed by hand); nothing was written; run again");
    drop(claim);
    assert_eq!(folder.checkpoint(), Checkpoint::fresh(vec!["r".to_owned()]));
}

#[test]
fn on_another_machine_only_the_lease_tells() {
    let folder = Folder::of(&["q"]);
    let (here, there) = (folder.store(), folder.store().on_machine("there"));
    let claim = here.claim(&TERMS).unwrap().unwrap();
    // As a process that died would leave it.
    std::mem::forget(claim);
    let lock = folder.0.path().join("q.db.lock");
    fs::rename(&lock, folder.0.path().join("gone")).unwrap();
    assert!(matches!(there.claim(&TERMS), Err(StoreError::Busy { .. })));
    assert_eq!(there.holders().unwrap().len(), 1);
    assert_eq!(here.holders().unwrap(), []);
    assert_eq!(here.claim(&TERMS).unwrap().unwrap().question(), "q");
}

#[test]
fn a_name_that_means_something_to_sqlite_is_a_name() {
    let folder = TempDir::new().unwrap();
    for name in [":memory:", "file:x?mode=memory", "a b%20", "'"] {
        let store = SqliteStore::new(folder.path().join(name));
        store.begin(Wait::Fail).unwrap().save(&Checkpoint::fresh(vec![])).unwrap();
        assert!(folder.path().join(name).is_file(), "{name}");
        assert!(store.read().unwrap().is_some(), "{name}");
    }
}

/// Nothing of a claim is left in the file once its session is recorded: no time, no machine.
#[test]
fn the_same_sessions_leave_the_same_bytes() {
    let left = || {
        let folder = Folder::of(&["q", "r"]);
        for _ in 0..2 {
            let store = folder.store();
            let mut claim = store.claim(&TERMS).unwrap().unwrap();
            claim.apply(&answer()).unwrap();
            claim.commit().unwrap();
        }
        fs::read(folder.state()).unwrap()
    };
    let first = left();
    assert_eq!(first, left());
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let boot = boot.trim().as_bytes();
    assert!(boot.is_empty() || !first.windows(boot.len()).any(|window| window == boot));
}

/// What looks at bytes alone, such as the lab, sees no difference between sessions side by side and one after another.
#[test]
fn whoever_is_quicker_the_bytes_are_the_same() {
    // With a question left at the end, and with none.
    whoever_is_quicker(&["q", "r", "s", "t"]);
    whoever_is_quicker(&["q", "r", "s"]);
}

fn whoever_is_quicker(questions: &[&str]) {
    let left = |order: [usize; 3]| {
        let folder = Folder::of(questions);
        let notes = (1..=6).map(|number| "note ".repeat(number)).collect();
        let start = Checkpoint { notes, ..folder.checkpoint() };
        folder.store().begin(Wait::Fail).unwrap().save(&start).unwrap();
        let stores = [folder.store(), folder.store(), folder.store()];
        let mut claims = Vec::new();
        for store in &stores {
            let mut claim = store.claim(&TERMS).unwrap().unwrap();
            claim.announced();
            claims.push(Some(claim));
        }
        for index in order {
            let mut claim = claims[index].take().unwrap();
            claim.apply(&answer()).unwrap();
            claim.commit().unwrap();
        }
        fs::read(folder.state()).unwrap()
    };
    let first = left([0, 1, 2]);
    for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let other = left(order);
        let differ = first.iter().zip(&other).position(|(a, b)| a != b);
        assert_eq!((differ, first.len()), (None, other.len()), "{order:?}");
    }
}
