//! Checkpoint to bytes, written straight into one buffer: a session saves once, and this is all that it computes for it.

use super::scan::plain_in_text;
use super::{Answer, Checkpoint};

const HEX: &[u8; 16] = b"0123456789abcdef";

pub(super) fn encode(checkpoint: &Checkpoint) -> Vec<u8> {
    let mut out = Vec::with_capacity(expected_len(checkpoint));
    out.extend_from_slice(b"{\n  \"queue\": ");
    list(&mut out, &checkpoint.queue, 2);
    out.extend_from_slice(b",\n  \"notes\": ");
    list(&mut out, &checkpoint.notes, 2);
    out.extend_from_slice(b",\n  \"answers\": ");
    container(&mut out, b"{}", 2, &checkpoint.answers, |out, (question, answer)| {
        string(out, question);
        out.extend_from_slice(b": ");
        self::answer(out, answer);
    });
    out.extend_from_slice(b",\n  \"pending\": ");
    container(&mut out, b"{}", 2, &checkpoint.pending, |out, (question, reason)| {
        string(out, question);
        out.extend_from_slice(b": ");
        string(out, reason);
    });
    out.extend_from_slice(b",\n  \"sessions_run\": ");
    out.extend_from_slice(checkpoint.sessions_run.to_string().as_bytes());
    out.extend_from_slice(b"\n}\n");
    out
}

/// Exact for text that needs no escapes and a little too much otherwise empty; text that needs them makes the buffer grow.
fn expected_len(checkpoint: &Checkpoint) -> usize {
    const FRAME: usize = 128;
    const PER_STRING: usize = 12;
    const PER_ANSWER: usize = 64;
    let strings = |list: &[String]| list.iter().map(|s| s.len() + PER_STRING).sum::<usize>();
    let answers = checkpoint.answers.iter();
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

/// A list or an object whose own line is indented by `indent` spaces; an empty one stays on that line.
fn container<T>(
    out: &mut Vec<u8>,
    brackets: &[u8; 2],
    indent: usize,
    elements: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut Vec<u8>, T),
) {
    const SPACES: &[u8; 8] = b"        ";
    out.push(brackets[0]);
    let mut empty = true;
    for element in elements {
        out.extend_from_slice(if empty { b"\n" } else { b",\n" });
        out.extend_from_slice(&SPACES[..indent + 2]);
        write(out, element);
        empty = false;
    }
    if !empty {
        out.push(b'\n');
        out.extend_from_slice(&SPACES[..indent]);
    }
    out.push(brackets[1]);
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
    let short = match c {
        '"' => b'"',
        '\\' => b'\\',
        '\u{8}' => b'b',
        '\u{c}' => b'f',
        '\n' => b'n',
        '\r' => b'r',
        '\t' => b't',
        _ => {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let digit = |shift: u16| HEX[usize::from(*unit >> shift & 0xf)];
                out.extend_from_slice(&[b'\\', b'u', digit(12), digit(8), digit(4), digit(0)]);
            }
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}
