//! A strict reader of JSON that knows at every moment where it is.
//!
//! The caller says what must come next, so nothing is ever read that was not expected: a value of the wrong type ends the
//! reading at its first byte, whatever is nested in it. Hence no recursion, and no stack that a hostile file could exhaust.

use std::borrow::Cow;
use std::ops::Range;

use super::encode::is_written_as;
use super::scan::{plain_in_json, plain_in_text};
use super::{Damage, show};

/// What is wrong, where. Boxed where it travels, since it is rare and a result should be small.
#[derive(Debug)]
pub(super) struct Fault {
    /// Offset of the offending byte.
    at: usize,
    found: String,
    /// Grows at its front while the fault travels up.
    pointer: String,
}

pub(super) type Parsed<T> = Result<T, Box<Fault>>;

impl Fault {
    /// The same fault, seen from the container that holds its place under `name`.
    pub(super) fn under(mut self: Box<Self>, name: &str) -> Box<Self> {
        let name = name.replace('~', "~0").replace('/', "~1");
        self.pointer.insert_str(0, &format!("/{name}"));
        self
    }
}

#[derive(Debug)]
pub(super) struct Reader<'a> {
    /// The beginning of the file that is UTF-8: all of it, if it is sound.
    text: &'a str,
    /// The whole file.
    file: &'a [u8],
    at: usize,
    /// In how many containers.
    depth: usize,
    /// Since it was last set, everything stood as it would be written.
    as_written: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(file: &'a [u8]) -> Self {
        // The part before a broken byte is read all the same: what is wrong in it comes first.
        let text = match std::str::from_utf8(file) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&file[..error.valid_up_to()]).unwrap_or_default(),
        };
        Reader { text, file, at: 0, depth: 0, as_written: false }
    }

    /// Reads a container. With it comes what is inside of it, from behind its opening bracket to the end of its last element, if
    /// all of that stands as it would be written.
    pub(super) fn inside_if_as_written<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Parsed<T>,
    ) -> Parsed<(T, Option<Range<usize>>)> {
        self.as_written = true;
        let start = self.at;
        let value = read(self)?;
        let end = self.at - 1;
        // The last line feed, and the indentation of the closing bracket.
        let inside = start + 1..end.saturating_sub(1 + 2 * self.depth);
        let inside = (self.as_written && !inside.is_empty()).then_some(inside);
        Ok((value, inside))
    }

    /// What was read last would not be written like that.
    pub(super) fn differs(&mut self) {
        self.as_written = false;
    }

    /// A fault with the place worked out.
    pub(super) fn damage(&self, fault: Fault) -> Damage {
        let before = &self.text[..fault.at];
        let line_start = before.rfind('\n').map_or(0, |feed| feed + 1);
        Damage {
            found: fault.found,
            line: before.bytes().filter(|&b| b == b'\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            pointer: fault.pointer,
        }
    }

    /// An object. Returns the offset of its brace. `member` is called after each colon with the name and its offset; it
    /// reads the value. Faults that it returns are put under the name, so it must not do so itself.
    pub(super) fn object(
        &mut self,
        expected: &str,
        mut member: impl FnMut(&mut Self, &str, usize) -> Parsed<()>,
    ) -> Parsed<usize> {
        let start = self.open(b'{', expected)?;
        let mut comma = None;
        loop {
            self.line_of_element(b'}', comma);
            match (self.next_byte(), comma) {
                (Some(b'}'), None) => break,
                (Some(b'}'), Some(comma)) => {
                    return Err(self.fault(comma, "a comma with nothing after it"));
                }
                (Some(b'"'), _) => {}
                _ => return Err(self.instead_of("a name in double quotes")),
            }
            let name_at = self.at;
            let name = self.string("a name")?;
            let value = match self.next_byte() {
                Some(b':') => {
                    self.at += 1;
                    self.pass(b" ");
                    member(self, &name, name_at)
                }
                _ => Err(self.instead_of("a colon")),
            };
            value.map_err(|fault| fault.under(&name))?;
            self.line_of_end();
            match self.next_byte() {
                Some(b',') => comma = Some(self.at),
                Some(b'}') => break,
                _ => return Err(self.instead_of("a comma or a closing brace")),
            }
            self.at += 1;
        }
        self.close();
        Ok(start)
    }

    /// A list of strings.
    pub(super) fn strings(&mut self, expected: &str) -> Parsed<Vec<String>> {
        self.open(b'[', expected)?;
        let mut list = Vec::new();
        let mut comma = None;
        loop {
            self.line_of_element(b']', comma);
            match (self.next_byte(), comma) {
                (Some(b']'), None) => break,
                (Some(b']'), Some(comma)) => {
                    return Err(self.fault(comma, "a comma with nothing after it"));
                }
                _ => {}
            }
            let element = self.string("a string");
            list.push(element.map_err(|fault| fault.under(&list.len().to_string()))?.into_owned());
            self.line_of_end();
            match self.next_byte() {
                Some(b',') => comma = Some(self.at),
                Some(b']') => break,
                _ => return Err(self.instead_of("a comma or a closing bracket")),
            }
            self.at += 1;
        }
        self.close();
        Ok(list)
    }

    /// A whole number from 0 to 2^64-1, digits only.
    pub(super) fn count(&mut self) -> Parsed<u64> {
        self.next_byte();
        let token = show::number(&self.text[self.at..]);
        let only_digits = token.bytes().all(|b| b.is_ascii_digit());
        let leading_zero = token.len() > 1 && token.starts_with('0');
        match token.parse() {
            Ok(count) if only_digits && !leading_zero => {
                self.at += token.len();
                Ok(count)
            }
            _ => Err(self.instead_of(&format!("a whole number from 0 to {}", u64::MAX))),
        }
    }

    /// A string; borrowed where it holds no escape.
    pub(super) fn string(&mut self, expected: &str) -> Parsed<Cow<'a, str>> {
        self.begin(b'"', expected)?;
        let mut unescaped = String::new();
        loop {
            let start = self.at;
            self.at = self.run_end(start);
            let plain = &self.text[start..self.at];
            match self.text.as_bytes().get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    if unescaped.is_empty() {
                        return Ok(Cow::Borrowed(plain));
                    }
                    unescaped.push_str(plain);
                    return Ok(Cow::Owned(unescaped));
                }
                Some(b'\\') => {
                    unescaped.push_str(plain);
                    let start = self.at;
                    let c = self.escape()?;
                    self.as_written &= is_written_as(c, &self.text.as_bytes()[start..self.at]);
                    unescaped.push(c);
                }
                Some(b'\0') => {
                    return Err(
                        self.fault(self.at, "a NUL byte in a string (a power cut can leave them)")
                    );
                }
                Some(&control) => {
                    let name = show::code_point(char::from(control));
                    return Err(self.fault(
                        self.at,
                        format!("the control character {name} in a string, not escaped"),
                    ));
                }
                None => return Err(self.cut_off("inside a string")),
            }
        }
    }

    /// Nothing but white space up to the end of the file.
    pub(super) fn end(&mut self) -> Parsed<()> {
        match self.next_byte() {
            None if self.text.len() == self.file.len() => Ok(()),
            _ => Err(self.instead_of("the end of the file")),
        }
    }

    /// A fault at an offset, in the container at hand.
    pub(super) fn fault(&self, at: usize, found: impl Into<String>) -> Box<Fault> {
        Box::new(Fault { at, found: found.into(), pointer: String::new() })
    }

    /// The next byte after white space; `None` at the end of the text.
    fn next_byte(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
            self.at += 1;
            self.as_written = false;
        }
        None
    }

    /// Steps over white space that is written here.
    fn pass(&mut self, written: &[u8]) {
        match self.text.as_bytes()[self.at..].starts_with(written) {
            true => self.at += written.len(),
            false => self.as_written = false,
        }
    }

    /// Steps over the line feed and the indentation that are written at a depth.
    fn pass_line(&mut self, depth: usize) {
        const LINE: &[u8] = b"\n                ";
        match LINE.get(..1 + 2 * depth) {
            Some(line) => self.pass(line),
            None => self.as_written = false,
        }
    }

    /// Before an element, which has a line of its own, or before the bracket that closes an empty container.
    fn line_of_element(&mut self, closing: u8, comma: Option<usize>) {
        let here = |reader: &Self| reader.text.as_bytes().get(reader.at) == Some(&closing);
        if comma.is_none() && here(self) {
            return;
        }
        self.pass_line(self.depth);
        self.as_written &= !here(self);
    }

    /// After an element: a comma follows at once, or the closing bracket on a line of its own.
    fn line_of_end(&mut self) {
        let comma = |reader: &Self| reader.text.as_bytes().get(reader.at) == Some(&b',');
        if comma(self) {
            return;
        }
        self.pass_line(self.depth - 1);
        self.as_written &= !comma(self);
    }

    /// The end of the run in a string that begins at `start` and needs no attention.
    fn run_end(&mut self, start: usize) -> usize {
        let bytes = self.text.as_bytes();
        let end = plain_in_text(bytes, start);
        if matches!(bytes.get(end), Some(b'"' | b'\\') | None) {
            return end;
        }
        // What is not ASCII would have been escaped.
        self.as_written = false;
        plain_in_json(bytes, end)
    }

    /// Steps into a container. Returns the offset of its bracket.
    fn open(&mut self, bracket: u8, expected: &str) -> Parsed<usize> {
        let start = self.begin(bracket, expected)?;
        self.depth += 1;
        Ok(start)
    }

    /// Steps over the bracket at hand, out of its container.
    fn close(&mut self) {
        self.at += 1;
        self.depth -= 1;
    }

    /// Steps over `first`, the byte that begins what is expected. Returns its offset.
    fn begin(&mut self, first: u8, expected: &str) -> Parsed<usize> {
        if self.next_byte() != Some(first) {
            return Err(self.instead_of(expected));
        }
        self.at += 1;
        Ok(self.at - 1)
    }

    /// The character that the escape at hand stands for. Faults are at its backslash.
    fn escape(&mut self) -> Parsed<char> {
        let start = self.at;
        self.at += 1;
        let Some(&letter) = self.text.as_bytes().get(self.at) else {
            return Err(self.cut_off("inside a string"));
        };
        self.at += 1;
        Ok(match letter {
            b'"' | b'\\' | b'/' => char::from(letter),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.code_unit_escape(start),
            _ => {
                let shown =
                    self.text[start + 1..].chars().next().map(show::code_point).unwrap_or_default();
                return Err(self.fault(
                    start,
                    format!("a backslash before {shown}, which JSON does not have"),
                ));
            }
        })
    }

    /// The character of one `\uXXXX`, or of two that are a surrogate pair. The first one's `\u` has been read.
    fn code_unit_escape(&mut self, start: usize) -> Parsed<char> {
        let first = self.hex4(start)?;
        let lone = || format!("the lone surrogate \\u{first:04x}, which is no character");
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first).ok_or_else(|| self.fault(start, lone()));
        }
        let second_start = self.at;
        let rest = self.text.as_bytes().get(second_start..).unwrap_or_default();
        if rest.is_empty() || rest == b"\\" {
            return Err(self.cut_off("inside a string"));
        }
        if !rest.starts_with(b"\\u") {
            return Err(self.fault(start, lone()));
        }
        self.at += 2;
        let second = self.hex4(second_start)?;
        if !(0xdc00..0xe000).contains(&second) {
            return Err(self.fault(start, lone()));
        }
        let beyond = ((first - 0xd800) << 10) | (second - 0xdc00);
        char::from_u32(0x1_0000 + beyond).ok_or_else(|| self.fault(start, lone()))
    }

    /// The four hex digits of the escape that began at `start`.
    fn hex4(&mut self, start: usize) -> Parsed<u32> {
        let mut value = 0;
        for _ in 0..4 {
            let Some(&byte) = self.text.as_bytes().get(self.at) else {
                return Err(self.cut_off("inside a string"));
            };
            let Some(digit) = char::from(byte).to_digit(16) else {
                return Err(self.fault(start, "a \\u without four hexadecimal digits after it"));
            };
            value = value << 4 | digit;
            self.at += 1;
        }
        Ok(value)
    }

    /// The fault that something else stands here, or nothing.
    fn instead_of(&self, expected: &str) -> Box<Fault> {
        let rest = &self.text[self.at..];
        if rest.is_empty() {
            return self.cut_off(&format!("where {expected} was expected"));
        }
        self.fault(self.at, format!("{} instead of {expected}", show::what(rest)))
    }

    /// The fault that the text ends: the file does, or it goes on with a byte that is not UTF-8.
    fn cut_off(&self, place: &str) -> Box<Fault> {
        let end = self.text.len();
        if let Some(byte) = self.file.get(end) {
            let unfinished = std::str::from_utf8(&self.file[end..])
                .is_err_and(|error| error.error_len().is_none());
            return self.fault(
                end,
                if unfinished {
                    "a file that was cut off inside a character".to_owned()
                } else {
                    format!("the byte 0x{byte:02x}, which is not UTF-8,")
                },
            );
        }
        let found = if self.file.is_empty() {
            "an empty file instead of a JSON object".to_owned()
        } else if self.text.trim_ascii().is_empty() {
            "nothing but white space instead of a JSON object".to_owned()
        } else {
            format!("a file that was cut off {place}")
        };
        self.fault(end, found)
    }
}
