//! The content of a checkpoint as rows with positions: how it is read, changed and written.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use rusqlite::{Connection, Row, ToSql};

use super::trouble::Trouble;
use crate::checkpoint::{Answer, Checkpoint};
use crate::choice::Choice;
use crate::queue::{MAX_NOTES, StepError, note};

/// The rows of one table, by their position.
type Table<T> = BTreeMap<i64, T>;

/// A row of one of the tables.
trait Record: Sized + PartialEq + Clone {
    const READ: &'static str;
    const WRITE: &'static str;
    const DELETE: &'static str;
    const DELETE_ALL: &'static str;
    /// Whether all rows are written anew whenever one changes: there are few, and the oldest falls out.
    const ALL_ANEW: bool = false;

    /// From the columns behind the position.
    fn read(row: &Row<'_>) -> Result<Self, Trouble>;
    fn columns(&self) -> Vec<Box<dyn ToSql>>;
}

/// A line of text: a question of the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Queued(pub(super) String);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Noted(String);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Answered {
    question: String,
    answer: Answer,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Waiting {
    question: String,
    reason: String,
}

impl Record for Queued {
    const READ: &'static str = "SELECT position, question FROM queue ORDER BY position";
    const WRITE: &'static str = "INSERT INTO queue (position, question) VALUES (?, ?)";
    const DELETE: &'static str = "DELETE FROM queue WHERE position = ?";
    const DELETE_ALL: &'static str = "DELETE FROM queue";

    fn read(row: &Row<'_>) -> Result<Self, Trouble> {
        Ok(Queued(row.get(1)?))
    }

    fn columns(&self) -> Vec<Box<dyn ToSql>> {
        vec![Box::new(self.0.clone())]
    }
}

impl Record for Noted {
    const READ: &'static str = "SELECT position, note FROM notes ORDER BY position";
    const WRITE: &'static str = "INSERT INTO notes (position, note) VALUES (?, ?)";
    const DELETE: &'static str = "DELETE FROM notes WHERE position = ?";
    const DELETE_ALL: &'static str = "DELETE FROM notes";
    const ALL_ANEW: bool = true;

    fn read(row: &Row<'_>) -> Result<Self, Trouble> {
        Ok(Noted(row.get(1)?))
    }

    fn columns(&self) -> Vec<Box<dyn ToSql>> {
        vec![Box::new(self.0.clone())]
    }
}

impl Record for Answered {
    const READ: &'static str =
        "SELECT position, question, text, citations FROM answers ORDER BY position";
    const WRITE: &'static str =
        "INSERT INTO answers (position, question, text, citations) VALUES (?, ?, ?, ?)";
    const DELETE: &'static str = "DELETE FROM answers WHERE position = ?";
    const DELETE_ALL: &'static str = "DELETE FROM answers";

    fn read(row: &Row<'_>) -> Result<Self, Trouble> {
        let (question, text, citations): (String, String, String) =
            (row.get(1)?, row.get(2)?, row.get(3)?);
        let citations = serde_json::from_str(&citations).map_err(|error| {
            Trouble::Flaw(format!("the citations of an answer are no list of texts ({error})"))
        })?;
        Ok(Answered { question, answer: Answer { text, citations } })
    }

    fn columns(&self) -> Vec<Box<dyn ToSql>> {
        // A list of strings can always be written.
        let citations = serde_json::to_string(&self.answer.citations).unwrap_or_default();
        vec![
            Box::new(self.question.clone()),
            Box::new(self.answer.text.clone()),
            Box::new(citations),
        ]
    }
}

impl Record for Waiting {
    const READ: &'static str = "SELECT position, question, reason FROM pending ORDER BY position";
    const WRITE: &'static str = "INSERT INTO pending (position, question, reason) VALUES (?, ?, ?)";
    const DELETE: &'static str = "DELETE FROM pending WHERE position = ?";
    const DELETE_ALL: &'static str = "DELETE FROM pending";

    fn read(row: &Row<'_>) -> Result<Self, Trouble> {
        Ok(Waiting { question: row.get(1)?, reason: row.get(2)? })
    }

    fn columns(&self) -> Vec<Box<dyn ToSql>> {
        vec![Box::new(self.question.clone()), Box::new(self.reason.clone())]
    }
}

/// All content.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Rows {
    pub(super) queue: Table<Queued>,
    notes: Table<Noted>,
    answers: Table<Answered>,
    pending: Table<Waiting>,
    pub(super) sessions_run: u64,
}

impl Rows {
    /// Reads all rows; `sessions_run` is what the database says it is.
    pub(super) fn read(connection: &Connection, sessions_run: &str) -> Result<Rows, Trouble> {
        let count: u64 = sessions_run
            .parse()
            .ok()
            .filter(|count: &u64| count.to_string() == sessions_run)
            .ok_or_else(|| Trouble::Flaw("`sessions_run` is no count".to_owned()))?;
        Ok(Rows {
            queue: read(connection)?,
            notes: read(connection)?,
            answers: read(connection)?,
            pending: read(connection)?,
            sessions_run: count,
        })
    }

    /// As a checkpoint, unless a question has two answers, or waits twice.
    pub(super) fn checkpoint(&self) -> Result<Checkpoint, Trouble> {
        let mut answers = IndexMap::with_capacity(self.answers.len());
        for Answered { question, answer } in self.answers.values() {
            if answers.insert(question.clone(), answer.clone()).is_some() {
                return Err(Trouble::Flaw("a question has two answers".to_owned()));
            }
        }
        let mut pending = IndexMap::with_capacity(self.pending.len());
        for Waiting { question, reason } in self.pending.values() {
            if pending.insert(question.clone(), reason.clone()).is_some() {
                return Err(Trouble::Flaw("a question waits twice for a person".to_owned()));
            }
        }
        Ok(Checkpoint {
            queue: self.queue.values().map(|queued| queued.0.clone()).collect(),
            notes: self.notes.values().map(|noted| noted.0.clone()).collect(),
            answers: answers.into(),
            pending,
            sessions_run: self.sessions_run,
        })
    }

    /// What [`queue::apply`](crate::queue::apply) does, for the question at `position` of the queue. The outcome comes to stand at
    /// `epoch`.
    pub(super) fn record(
        &mut self,
        position: i64,
        epoch: i64,
        choice: &Choice,
    ) -> Result<(), StepError> {
        let Queued(question) = self.queue.get(&position).cloned().ok_or(StepError::Empty)?;
        self.sessions_run = self.sessions_run.checked_add(1).ok_or(StepError::CounterFull)?;
        self.queue.remove(&position);
        match choice {
            Choice::Answer { text, citations } => {
                self.notes.insert(epoch, Noted(note(&question, text)));
                while self.notes.len() > MAX_NOTES {
                    self.notes.pop_first();
                }
                let answer = Answer { text: text.clone(), citations: citations.clone() };
                // A question that was answered before keeps its place.
                let at = place_of(&self.answers, |row| row.question == question).unwrap_or(epoch);
                self.answers.insert(at, Answered { question, answer });
            }
            Choice::Flag { reason } => {
                let at = place_of(&self.pending, |row| row.question == question).unwrap_or(epoch);
                self.pending.insert(at, Waiting { question, reason: reason.clone() });
            }
        }
        Ok(())
    }

    /// These rows, changed to those of `checkpoint`: what is the same stays where it is, what is new comes last, at the positions after
    /// `epoch`, which becomes the last one that is taken.
    pub(super) fn following(&self, checkpoint: &Checkpoint, epoch: &mut i64) -> Rows {
        let answered = |(question, answer): (&String, &Answer)| Answered {
            question: question.clone(),
            answer: answer.clone(),
        };
        let waiting = |(question, reason): (&String, &String)| Waiting {
            question: question.clone(),
            reason: reason.clone(),
        };
        Rows {
            queue: follow(&self.queue, checkpoint.queue.iter().cloned().map(Queued), epoch),
            notes: follow(&self.notes, checkpoint.notes.iter().cloned().map(Noted), epoch),
            answers: follow(&self.answers, checkpoint.answers.iter().map(answered), epoch),
            pending: follow(&self.pending, checkpoint.pending.iter().map(waiting), epoch),
            sessions_run: checkpoint.sessions_run,
        }
    }

    /// Changes the rows of the database, which are those of `before`, to these.
    pub(super) fn write(&self, before: &Rows, connection: &Connection) -> Result<(), Trouble> {
        write(&self.queue, &before.queue, connection)?;
        write(&self.notes, &before.notes, connection)?;
        write(&self.answers, &before.answers, connection)?;
        write(&self.pending, &before.pending, connection)
    }

    /// The last position that is taken.
    pub(super) fn last(&self) -> i64 {
        let ends = [
            self.queue.last_key_value().map(|(at, _)| *at),
            self.notes.last_key_value().map(|(at, _)| *at),
            self.answers.last_key_value().map(|(at, _)| *at),
            self.pending.last_key_value().map(|(at, _)| *at),
        ];
        ends.into_iter().flatten().max().unwrap_or(0)
    }
}

fn place_of<T>(table: &Table<T>, is_it: impl Fn(&T) -> bool) -> Option<i64> {
    table.iter().find(|(_, row)| is_it(row)).map(|(at, _)| *at)
}

fn follow<T: Record>(
    table: &Table<T>,
    wanted: impl Iterator<Item = T>,
    epoch: &mut i64,
) -> Table<T> {
    let mut wanted = wanted.peekable();
    let mut rows: Table<T> = Table::new();
    for (at, row) in table {
        if let Some(same) = wanted.next_if_eq(row) {
            rows.insert(*at, same);
        }
    }
    for row in wanted {
        *epoch += 1;
        rows.insert(*epoch, row);
    }
    rows
}

fn read<T: Record>(connection: &Connection) -> Result<Table<T>, Trouble> {
    let mut statement = connection.prepare(T::READ)?;
    let mut rows = statement.query([])?;
    let mut table = Table::new();
    while let Some(row) = rows.next()? {
        table.insert(row.get(0)?, T::read(row)?);
    }
    Ok(table)
}

/// Rows are put in the order of their positions. So a row that comes to stand before others takes these out and in again: then the same
/// content has the same bytes, as far as it fits a page, whichever session was quicker.
fn write<T: Record>(
    table: &Table<T>,
    before: &Table<T>,
    connection: &Connection,
) -> Result<(), Trouble> {
    let new = |at: &i64, row: &T| before.get(at) != Some(row);
    let first_new = table.iter().find(|(at, row)| new(at, row)).map(|(at, _)| *at);
    let anew_from = match first_new {
        _ if T::ALL_ANEW && table != before => i64::MIN,
        Some(first) => first,
        None => i64::MAX,
    };
    let goes = |at: &i64| *at >= anew_from || !table.contains_key(at);
    if !before.is_empty() && before.keys().all(goes) {
        // As a whole, which leaves the table's page as it was when it was made.
        connection.execute(T::DELETE_ALL, [])?;
    } else {
        let mut delete = connection.prepare(T::DELETE)?;
        // From the end, so that what is behind a row is out before it.
        for at in before.keys().rev().filter(|at| goes(at)) {
            delete.execute([at])?;
        }
    }
    let mut insert = connection.prepare(T::WRITE)?;
    for (at, row) in table.range(anew_from..) {
        let mut columns = row.columns();
        columns.insert(0, Box::new(*at));
        insert.execute(rusqlite::params_from_iter(columns))?;
    }
    Ok(())
}
