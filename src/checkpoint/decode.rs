//! Bytes to checkpoint: which fields there are, and of which type.

use std::borrow::Cow;
use std::ops::Range;

use indexmap::IndexMap;

use super::reader::{Fault, Parsed, Reader};
use super::{Answer, Checkpoint, Damage, show};

/// The fields of a checkpoint, in the order in which they are written.
const FIELDS: [&str; 5] = ["queue", "notes", "answers", "pending", "sessions_run"];
/// The fields of an answer, in the order in which they are written.
const ANSWER_FIELDS: [&str; 2] = ["text", "citations"];

/// The checkpoint, and where in the bytes its answers are, if they stand there as they would be written and there are any:
/// from behind the opening brace to the end of the last one.
pub(super) fn decode(bytes: &[u8]) -> Result<(Checkpoint, Option<Range<usize>>), Damage> {
    let mut reader = Reader::new(bytes);
    checkpoint(&mut reader).map_err(|fault| reader.damage(*fault))
}

fn checkpoint(reader: &mut Reader<'_>) -> Parsed<(Checkpoint, Option<Range<usize>>)> {
    let mut checkpoint = Checkpoint::default();
    let mut as_written = None;
    let mut seen = Seen::new("a checkpoint", &FIELDS);
    let start = reader.object("an object", |reader, name, at| {
        match seen.field(reader, name, at)? {
            "queue" => checkpoint.queue = reader.strings("a list of questions")?,
            "notes" => checkpoint.notes = reader.strings("a list of notes")?,
            "answers" => {
                let read =
                    |reader: &mut Reader<'_>| by_question(reader, "an object of answers", answer);
                let (answers, inside) = reader.inside_if_as_written(read)?;
                as_written = inside.filter(|_| !answers.is_empty());
                checkpoint.answers = answers.into();
            }
            "pending" => checkpoint.pending = by_question(reader, "an object of reasons", reason)?,
            _ => checkpoint.sessions_run = reader.count()?,
        }
        Ok(())
    })?;
    // The others have a default: an older program may not have written them.
    seen.need(reader, start, "queue")?;
    reader.end()?;
    Ok((checkpoint, as_written))
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
    if !seen.in_order {
        reader.differs();
    }
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
    /// They came in the order of their names.
    in_order: bool,
}

impl Seen {
    fn new(whole: &'static str, names: &'static [&'static str]) -> Self {
        Seen { whole, names, seen: [false; FIELDS.len()], in_order: true }
    }

    /// The field of that name, unless there is none or it was there before.
    fn field(&mut self, reader: &Reader<'_>, name: &str, at: usize) -> Parsed<&'static str> {
        let Some(index) = self.names.iter().position(|known| *known == name) else {
            return Err(self.unknown(reader, name, at));
        };
        if std::mem::replace(&mut self.seen[index], true) {
            return Err(reader.fault(at, format!("a second field '{name}'")));
        }
        self.in_order &= !self.seen[index + 1..].contains(&true);
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
