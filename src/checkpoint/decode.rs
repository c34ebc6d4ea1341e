//! Bytes to checkpoint: which fields there are, and of which type.

use std::borrow::Cow;

use indexmap::IndexMap;

use super::reader::{Fault, Parsed, Reader};
use super::{Answer, Checkpoint, Damage, show};

/// The fields of a checkpoint, in the order in which they are written.
const FIELDS: [&str; 5] = ["queue", "notes", "answers", "pending", "sessions_run"];
/// The fields of an answer, in the order in which they are written.
const ANSWER_FIELDS: [&str; 2] = ["text", "citations"];

pub(super) fn decode(bytes: &[u8]) -> Result<Checkpoint, Damage> {
    let mut reader = Reader::new(bytes);
    checkpoint(&mut reader).map_err(|fault| reader.damage(*fault))
}

fn checkpoint(reader: &mut Reader<'_>) -> Parsed<Checkpoint> {
    let mut checkpoint = Checkpoint::default();
    let mut seen = Seen::new("a checkpoint", &FIELDS);
    let start = reader.object("an object", |reader, name, at| {
        match seen.field(reader, name, at)? {
            "queue" => checkpoint.queue = reader.strings("a list of questions")?,
            "notes" => checkpoint.notes = reader.strings("a list of notes")?,
            "answers" => checkpoint.answers = by_question(reader, "an object of answers", answer)?,
            "pending" => checkpoint.pending = by_question(reader, "an object of reasons", reason)?,
            _ => checkpoint.sessions_run = reader.count()?,
        }
        Ok(())
    })?;
    // The others have a default: an older program may not have written them.
    seen.need(reader, start, "queue")?;
    reader.end()?;
    Ok(checkpoint)
}

/// An object with a value for each question.
fn by_question<T: Default>(
    reader: &mut Reader<'_>,
    expected: &str,
    value: impl Fn(&mut Reader<'_>) -> Parsed<T>,
) -> Parsed<IndexMap<String, T>> {
    let mut map = IndexMap::new();
    reader.object(expected, |reader, question, at| {
        let (index, earlier) = map.insert_full(question.to_owned(), T::default());
        if earlier.is_some() {
            return Err(reader.fault(at, "a question that was there before"));
        }
        map[index] = value(reader)?;
        Ok(())
    })?;
    Ok(map)
}

fn answer(reader: &mut Reader<'_>) -> Parsed<Answer> {
    let mut answer = Answer::default();
    let mut seen = Seen::new("an answer", &ANSWER_FIELDS);
    let start = reader.object("an object with text and citations", |reader, name, at| {
        match seen.field(reader, name, at)? {
            "text" => answer.text = reader.string("a string")?.into_owned(),
            _ => answer.citations = reader.strings("a list of citations")?,
        }
        Ok(())
    })?;
    seen.need(reader, start, "text")?;
    seen.need(reader, start, "citations")?;
    Ok(answer)
}

fn reason(reader: &mut Reader<'_>) -> Parsed<String> {
    reader.string("a string").map(Cow::into_owned)
}

/// Which fields of an object were read so far.
struct Seen {
    /// What the object is, for messages.
    whole: &'static str,
    names: &'static [&'static str],
    seen: [bool; FIELDS.len()],
}

impl Seen {
    fn new(whole: &'static str, names: &'static [&'static str]) -> Self {
        Seen { whole, names, seen: [false; FIELDS.len()] }
    }

    /// The field of that name, unless there is none or it was there before.
    fn field(&mut self, reader: &Reader<'_>, name: &str, at: usize) -> Parsed<&'static str> {
        let Some(index) = self.names.iter().position(|known| *known == name) else {
            return Err(self.unknown(reader, name, at));
        };
        if std::mem::replace(&mut self.seen[index], true) {
            return Err(reader.fault(at, format!("a second field '{name}'")));
        }
        Ok(self.names[index])
    }

    fn unknown(&self, reader: &Reader<'_>, name: &str, at: usize) -> Box<Fault> {
        let hint = match show::nearest(name, self.names) {
            Some(meant) => format!("did you mean '{meant}'?"),
            None => format!("{} has {}", self.whole, self.names.join(", ")),
        };
        reader.fault(at, format!("the unknown field '{}' ({hint})", show::short(name)))
    }

    fn need(&self, reader: &Reader<'_>, start: usize, name: &str) -> Parsed<()> {
        let there = self.names.iter().zip(self.seen).any(|(known, seen)| *known == name && seen);
        if there {
            return Ok(());
        }
        Err(reader.fault(start, format!("{} without the field '{name}'", self.whole)))
    }
}
