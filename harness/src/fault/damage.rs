//! Damages of a checkpoint file, by name: pure functions from bytes to other bytes.
//!
//! A damage changes one thing. Those that presuppose a JSON object edit its text, so that order, indentation, line
//! ends and escapes of everything else stay byte for byte as they were.

use std::ops::Range;

use serde::de::IgnoredAny;

/// A damage.
#[derive(Debug)]
pub struct Damage {
    /// Its name in scenarios, case ids and on the command line.
    pub name: &'static str,
    /// What it does, as a phrase.
    pub what: &'static str,
    apply: fn(&[u8]) -> Result<Vec<u8>, String>,
}

/// All damages.
pub static NAMES: [Damage; 7] = [
    Damage {
        name: TRUNCATED,
        what: "cut at half, as by a write that was not finished",
        apply: truncated,
    },
    Damage { name: "empty", what: "cut to no bytes at all", apply: empty },
    Damage { name: "not-an-object", what: "the JSON object put into a list", apply: not_an_object },
    Damage {
        name: "unknown-field",
        what: "one more field at the end of the JSON object",
        apply: unknown_field,
    },
    Damage { name: "missing-queue", what: "the field `queue` taken out", apply: missing_queue },
    Damage {
        name: "queue-is-a-string",
        what: "a string as the value of `queue`",
        apply: queue_is_a_string,
    },
    Damage {
        name: "answers-is-a-list",
        what: "an empty list as the value of `answers`",
        apply: answers_is_a_list,
    },
];

const TRUNCATED: &str = "truncated";

/// Why bytes were not damaged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DamageError {
    /// There is no such damage.
    #[error("there is no damage `{name}`; {}", suggestion(near))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The names that are nearly the same, the nearest first.
        near: Vec<&'static str>,
    },
    /// These bytes cannot be damaged in this way.
    #[error("the damage `{name}` does not apply: {why}")]
    DoesNotApply {
        /// The damage.
        name: String,
        /// What the bytes lack.
        why: String,
    },
}

/// Damages the bytes of a file.
///
/// `truncated/57` cuts at 57 bytes instead of at half.
///
/// # Errors
///
/// [`DamageError`] where there is no such damage, and where it would leave these bytes as they are or cannot be done
/// to them.
pub fn apply(name: &str, bytes: &[u8]) -> Result<Vec<u8>, DamageError> {
    let refuse = |why| DamageError::DoesNotApply { name: name.into(), why };
    if let Some(length) = name.strip_prefix(TRUNCATED).and_then(|rest| rest.strip_prefix('/')) {
        return cut_at(length, bytes).map_err(refuse);
    }
    let damage = NAMES.iter().find(|damage| damage.name == name).ok_or_else(|| unknown(name))?;
    (damage.apply)(bytes).map_err(refuse)
}

fn unknown(name: &str) -> DamageError {
    /// How alike two names must be, from 0 to 1.
    const ALIKE: f64 = 0.6;
    let mut near: Vec<(f64, &'static str)> = NAMES
        .iter()
        .map(|damage| {
            (strsim::normalized_damerau_levenshtein(&name.to_lowercase(), damage.name), damage.name)
        })
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    DamageError::Unknown {
        name: name.into(),
        near: near.into_iter().map(|(_, name)| name).collect(),
    }
}

fn suggestion(near: &[&str]) -> String {
    let quoted = |names: Vec<&str>| {
        names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    };
    if near.is_empty() {
        format!("there are {}", quoted(NAMES.iter().map(|damage| damage.name).collect()))
    } else {
        format!("did you mean {}?", quoted(near.to_vec()))
    }
}

/// White space at the end does not count, so that what is left is never the same JSON value.
fn truncated(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let length = bytes.trim_ascii_end().len();
    if bytes.is_empty() {
        return Err("the file is empty already".into());
    }
    Ok(bytes[..length / 2].to_vec())
}

fn cut_at(length: &str, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let length: usize = length.parse().map_err(|_| format!("`{length}` is no number of bytes"))?;
    match bytes.get(..length) {
        Some(start) if length < bytes.len() => Ok(start.to_vec()),
        _ => Err(format!("the file has {} bytes, so it cannot be cut at {length}", bytes.len())),
    }
}

fn empty(bytes: &[u8]) -> Result<Vec<u8>, String> {
    if bytes.is_empty() { Err("the file is empty already".into()) } else { Ok(Vec::new()) }
}

fn not_an_object(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let object = Object::parse(bytes)?;
    let list = [b"[", &bytes[object.span.clone()], b"]"].concat();
    Ok(replaced(bytes, object.span, &list))
}

fn unknown_field(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let object = Object::parse(bytes)?;
    let name = (1..)
        .map(|number| if number == 1 { "unknown".to_owned() } else { format!("unknown{number}") })
        .find(|name| object.members.iter().all(|member| member.name.as_deref() != Some(name)))
        .unwrap_or_default();
    let (place, field) = match object.members.last() {
        None => (object.span.start + 1, format!("\"{name}\": true").into_bytes()),
        Some(last) => {
            // In the style of the last field: what is between two fields, and between a name and its value.
            let before = &bytes[last.lead.clone()];
            let between = &bytes[last.key.end..last.value.start];
            let quoted = format!("\"{name}\"");
            (last.value.end, [b",", before, quoted.as_bytes(), between, b"true"].concat())
        }
    };
    Ok(replaced(bytes, place..place, &field))
}

fn missing_queue(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let object = Object::parse(bytes)?;
    let (position, member) = object.the("queue")?;
    let span = match (position.checked_sub(1), object.members.get(position + 1)) {
        (_, Some(next)) => member.key.start..next.key.start,
        // The comma before the last field goes with it.
        (Some(before), None) => object.members[before].value.end..member.value.end,
        (None, None) => member.key.start..member.value.end,
    };
    Ok(replaced(bytes, span, b""))
}

fn queue_is_a_string(bytes: &[u8]) -> Result<Vec<u8>, String> {
    with_value(bytes, "queue", b'"', "a string", b"\"not a list\"")
}

fn answers_is_a_list(bytes: &[u8]) -> Result<Vec<u8>, String> {
    with_value(bytes, "answers", b'[', "a list", b"[]")
}

/// Another value for a field, unless it is of that kind already, which its first byte tells.
fn with_value(
    bytes: &[u8],
    field: &str,
    first: u8,
    kind: &str,
    value: &[u8],
) -> Result<Vec<u8>, String> {
    let object = Object::parse(bytes)?;
    let (_, member) = object.the(field)?;
    if bytes[member.value.start] == first {
        return Err(format!("the value of `{field}` is {kind} already"));
    }
    Ok(replaced(bytes, member.value.clone(), value))
}

fn replaced(bytes: &[u8], span: Range<usize>, new: &[u8]) -> Vec<u8> {
    [&bytes[..span.start], new, &bytes[span.end..]].concat()
}

/// Where the parts of a JSON object are in its text.
struct Object {
    /// From the opening brace to behind the closing one.
    span: Range<usize>,
    members: Vec<Member>,
}

struct Member {
    /// Decoded; `None` where it is no Unicode text (half of a surrogate pair).
    name: Option<String>,
    /// The white space before the name.
    lead: Range<usize>,
    /// The name, with its quotes.
    key: Range<usize>,
    value: Range<usize>,
}

impl Object {
    fn parse(bytes: &[u8]) -> Result<Object, String> {
        // Checks everything, so that the scanner below need not.
        serde_json::from_slice::<IgnoredAny>(bytes)
            .map_err(|error| format!("the file is not JSON: {error}"))?;
        let mut scanner = Scanner { bytes, at: 0 };
        scanner.blanks();
        if scanner.next() != b'{' {
            return Err("the file is JSON, but not an object".into());
        }
        Ok(scanner.object())
    }

    /// The only member of this name, with its position.
    fn the(&self, name: &str) -> Result<(usize, &Member), String> {
        let mut found = self
            .members
            .iter()
            .enumerate()
            .filter(|(_, member)| member.name.as_deref() == Some(name));
        match (found.next(), found.next()) {
            (Some(found), None) => Ok(found),
            (None, _) => Err(format!("the object has no field `{name}`")),
            (Some(_), Some(_)) => Err(format!("the object has the field `{name}` more than once")),
        }
    }
}

/// Walks through text that is known to be JSON. At the end of the text it sees NULs.
struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    fn next(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    fn blanks(&mut self) -> Range<usize> {
        self.pass(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
    }

    fn pass(&mut self, wanted: impl Fn(u8) -> bool) -> Range<usize> {
        let start = self.at;
        while self.at < self.bytes.len() && wanted(self.next()) {
            self.at += 1;
        }
        start..self.at
    }

    /// From an opening brace.
    fn object(&mut self) -> Object {
        let start = self.at;
        let mut members = Vec::new();
        self.at += 1;
        loop {
            let lead = self.blanks();
            if self.next() != b'"' {
                break;
            }
            let key = self.value();
            self.pass(|byte| byte != b':');
            self.at += 1;
            self.blanks();
            let value = self.value();
            let name = serde_json::from_slice(&self.bytes[key.clone()]).ok();
            members.push(Member { name, lead, key, value });
            self.blanks();
            if self.next() != b',' {
                break;
            }
            self.at += 1;
        }
        Object { span: start..self.at + 1, members }
    }

    /// Any value, from its first byte.
    fn value(&mut self) -> Range<usize> {
        let start = self.at;
        let mut depth = 0;
        loop {
            match self.next() {
                b'"' => self.string(),
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth -= 1;
                    self.at += 1;
                }
                // A number, `true`, `false` or `null`; inside of lists and objects also what separates.
                _ if depth == 0 => drop(self.pass(|byte| {
                    !matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r')
                })),
                _ => self.at += 1,
            }
            if depth == 0 || self.at >= self.bytes.len() {
                return start..self.at;
            }
        }
    }

    fn string(&mut self) {
        self.at += 1;
        loop {
            match self.next() {
                b'\\' => self.at += 2,
                b'"' => break self.at += 1,
                _ if self.at >= self.bytes.len() => break,
                _ => self.at += 1,
            }
        }
    }
}
