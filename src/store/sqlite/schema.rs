//! The tables of a database, and the proof that they are ours.
//!
//! The rows of each table stand in the order of `position`. What a session records has the epoch of its claim for its position.

use rusqlite::config::DbConfig;
use rusqlite::{Connection, params};

use super::trouble::Trouble;

/// What the file says that it is, at byte 68: `long`.
const APPLICATION_ID: i32 = i32::from_be_bytes(*b"long");
/// The version of the tables.
const VERSION: i32 = 1;

/// Name and SQL of each table.
const TABLES: [(&str, &str); 6] = [
    (
        "state",
        "CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 1), sessions_run TEXT NOT NULL, epoch INTEGER NOT NULL, sha256 TEXT) STRICT",
    ),
    ("queue", "CREATE TABLE queue (position INTEGER PRIMARY KEY, question TEXT NOT NULL) STRICT"),
    ("notes", "CREATE TABLE notes (position INTEGER PRIMARY KEY, note TEXT NOT NULL) STRICT"),
    (
        "answers",
        "CREATE TABLE answers (position INTEGER PRIMARY KEY, question TEXT NOT NULL, text TEXT NOT NULL, citations TEXT NOT NULL) STRICT",
    ),
    (
        "pending",
        "CREATE TABLE pending (position INTEGER PRIMARY KEY, question TEXT NOT NULL, reason TEXT NOT NULL) STRICT",
    ),
    (
        "claims",
        "CREATE TABLE claims (epoch INTEGER PRIMARY KEY, question TEXT NOT NULL, until_ms INTEGER NOT NULL, boot TEXT NOT NULL) STRICT",
    ),
];

/// The tables whose rows are the content of a checkpoint.
const CONTENT: [&str; 4] = ["queue", "notes", "answers", "pending"];

/// Type, name and SQL of everything that is in a database, in the order in which it is made.
fn objects() -> Vec<(&'static str, String, String)> {
    let tables = TABLES.iter().map(|(name, sql)| ("table", (*name).to_owned(), (*sql).to_owned()));
    let forget = "BEGIN UPDATE state SET sha256 = NULL; END";
    let triggers = CONTENT.iter().flat_map(|table| {
        ["INSERT", "UPDATE", "DELETE"].map(|change| {
            let name = format!("{table}_{}", change.to_lowercase());
            let sql = format!("CREATE TRIGGER {name} AFTER {change} ON {table} {forget}");
            ("trigger", name, sql)
        })
    });
    let counter =
        format!("CREATE TRIGGER state_update AFTER UPDATE OF sessions_run ON state {forget}");
    let counter = ("trigger", "state_update".to_owned(), counter);
    tables.chain(triggers).chain([counter]).collect()
}

/// Lets this connection fire no triggers: it notes the digest itself.
pub(super) fn fire_no_triggers(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    Ok(())
}

/// Makes the tables in an empty database.
pub(super) fn create(connection: &Connection) -> Result<(), Trouble> {
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", VERSION)?;
    for (_, _, sql) in objects() {
        connection.execute(&sql, [])?;
    }
    connection.execute(
        "INSERT INTO state (id, sessions_run, epoch, sha256) VALUES (1, ?1, ?2, NULL)",
        params!["0", 0],
    )?;
    Ok(())
}

/// That the database has the structure of one, and exactly our tables.
pub(super) fn check(connection: &Connection) -> Result<(), Trouble> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let found = number("application_id")?;
    if found != i64::from(APPLICATION_ID) {
        return Err(Trouble::Flaw(format!(
            "it is a database of another program (its application id is {found}, not {APPLICATION_ID})"
        )));
    }
    let found = number("user_version")?;
    if found != i64::from(VERSION) {
        return Err(Trouble::Flaw(format!(
            "its tables are of version {found}, and this program knows version {VERSION}"
        )));
    }
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    if mode != "delete" {
        return Err(Trouble::Flaw(format!(
            "its journal mode is `{mode}`, not `delete`; `PRAGMA journal_mode = DELETE` puts that right"
        )));
    }
    let whole: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if whole != "ok" {
        return Err(Trouble::Flaw(whole.replace('\n', " ")));
    }
    objects_are_ours(connection)
}

fn objects_are_ours(connection: &Connection) -> Result<(), Trouble> {
    let mut found = connection.prepare("SELECT type, name, sql FROM sqlite_schema")?;
    let found = found.query_map([], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, Option<String>>(2)?))
    })?;
    let mut missing = objects();
    for object in found {
        let (kind, name, sql) = object?;
        let known = missing.iter().position(|(ours, called, written)| {
            (*ours, called) == (kind.as_str(), &name) && Some(written) == sql.as_ref()
        });
        match known {
            Some(index) => missing.swap_remove(index),
            None => {
                return Err(Trouble::Flaw(format!("its {kind} `{name}` is not as it was made")));
            }
        };
    }
    match missing.first() {
        None => Ok(()),
        Some((kind, name, _)) => Err(Trouble::Flaw(format!("it has no {kind} `{name}`"))),
    }
}
