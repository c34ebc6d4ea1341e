//! Checkpoint to bytes, written straight into one buffer: a session saves once, and this is all that it computes for it.

use super::scan::plain_in_text;
use super::{Answer, Checkpoint};

/// The bytes of a checkpoint's file, in the order of [`parts`](Self::parts).
#[derive(Debug, Clone)]
pub struct Encoded<'c> {
    head: Vec<u8>,
    kept: &'c [u8],
    tail: Vec<u8>,
}

impl Encoded<'_> {
    /// The parts, which one behind the other are the file. Some can be empty.
    pub fn parts(&self) -> [&[u8]; 3] {
        [&self.head, self.kept, &self.tail]
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

pub(super) fn encode(checkpoint: &Checkpoint) -> Encoded<'_> {
    let (kept, kept_count) = checkpoint.answers.kept();
    let mut out = Vec::with_capacity(expected_len(checkpoint, kept_count));
    out.extend_from_slice(b"{\n  \"queue\": ");
    list(&mut out, &checkpoint.queue, 2);
    out.extend_from_slice(b",\n  \"notes\": ");
    list(&mut out, &checkpoint.notes, 2);
    out.extend_from_slice(b",\n  \"answers\": ");
    let mut head = Vec::new();
    let mut list = Container::open(&mut out, b"{}", 2);
    if kept_count > 0 {
        list.empty = false;
        head = std::mem::take(list.out);
    }
    for (question, answer) in checkpoint.answers.iter().skip(kept_count) {
        let out = list.element();
        string(out, question);
        out.extend_from_slice(b": ");
        self::answer(out, answer);
    }
    list.close();
    out.extend_from_slice(b",\n  \"pending\": ");
    container(&mut out, b"{}", 2, &checkpoint.pending, |out, (question, reason)| {
        string(out, question);
        out.extend_from_slice(b": ");
        string(out, reason);
    });
    out.extend_from_slice(b",\n  \"sessions_run\": ");
    out.extend_from_slice(checkpoint.sessions_run.to_string().as_bytes());
    out.extend_from_slice(b"\n}\n");
    Encoded { head, kept, tail: out }
}

/// The length of what must be written: exact for text that needs no escapes and a little too much otherwise empty; text
/// that needs them makes the buffer grow.
fn expected_len(checkpoint: &Checkpoint, kept_count: usize) -> usize {
    const FRAME: usize = 128;
    const PER_STRING: usize = 12;
    const PER_ANSWER: usize = 64;
    let strings = |list: &[String]| list.iter().map(|s| s.len() + PER_STRING).sum::<usize>();
    let answers = checkpoint.answers.iter().skip(kept_count);
    let pending = checkpoint.pending.iter();
    FRAME
        + strings(&checkpoint.queue)
        + strings(&checkpoint.notes)
        + answers
            .map(|(q, a)| PER_ANSWER + q.len() + a.text.len() + strings(&a.citations))
            .sum::<usize>()
        + pending.map(|(q, r)| PER_STRING + q.len() + r.len()).sum::<usize>()
}

fn answer(out: &mut Vec<u8>, answer: &Answer) {
    out.extend_from_slice(b"{\n      \"text\": ");
    string(out, &answer.text);
    out.extend_from_slice(b",\n      \"citations\": ");
    list(out, &answer.citations, 6);
    out.extend_from_slice(b"\n    }");
}

fn list(out: &mut Vec<u8>, strings: &[String], indent: usize) {
    container(out, b"[]", indent, strings, |out, text| string(out, text));
}

fn container<T>(
    out: &mut Vec<u8>,
    brackets: &'static [u8; 2],
    indent: usize,
    elements: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut Vec<u8>, T),
) {
    let mut container = Container::open(out, brackets, indent);
    elements.into_iter().for_each(|element| write(container.element(), element));
    container.close();
}

/// A list or an object whose own line is indented by `indent` spaces; an empty one stays on that line.
struct Container<'o> {
    out: &'o mut Vec<u8>,
    brackets: &'static [u8; 2],
    indent: usize,
    empty: bool,
}

impl<'o> Container<'o> {
    const SPACES: &'static [u8; 8] = b"        ";

    fn open(out: &'o mut Vec<u8>, brackets: &'static [u8; 2], indent: usize) -> Self {
        out.push(brackets[0]);
        Container { out, brackets, indent, empty: true }
    }

    /// Where the next element is to be written.
    fn element(&mut self) -> &mut Vec<u8> {
        self.out.extend_from_slice(if self.empty { b"\n" } else { b",\n" });
        self.out.extend_from_slice(&Self::SPACES[..self.indent + 2]);
        self.empty = false;
        self.out
    }

    fn close(self) {
        if !self.empty {
            self.out.push(b'\n');
            self.out.extend_from_slice(&Self::SPACES[..self.indent]);
        }
        self.out.push(self.brackets[1]);
    }
}

fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text;
    loop {
        let (plain, special) = rest.split_at(plain_in_text(rest.as_bytes(), 0));
        out.extend_from_slice(plain.as_bytes());
        let mut chars = special.chars();
        match chars.next() {
            None => break,
            Some(c) => escape(out, c),
        }
        rest = chars.as_str();
    }
    out.push(b'"');
}

fn escape(out: &mut Vec<u8>, c: char) {
    let short = match short_escape(c) {
        Some(letter) => letter,
        None => {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let digit = |shift: u16| HEX[usize::from(*unit >> shift & 0xf)];
                out.extend_from_slice(&[b'\\', b'u', digit(12), digit(8), digit(4), digit(0)]);
            }
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

fn short_escape(c: char) -> Option<u8> {
    Some(match c {
        '"' => b'"',
        '\\' => b'\\',
        '\u{8}' => b'b',
        '\u{c}' => b'f',
        '\n' => b'n',
        '\r' => b'r',
        '\t' => b't',
        _ => return None,
    })
}

/// Whether `escape` is what is written for `c`.
pub(super) fn is_written_as(c: char, escape: &[u8]) -> bool {
    match short_escape(c) {
        Some(letter) => escape == [b'\\', letter],
        None if (' '..='~').contains(&c) => false,
        None => {
            let mut written = Vec::new();
            self::escape(&mut written, c);
            written == escape
        }
    }
}
