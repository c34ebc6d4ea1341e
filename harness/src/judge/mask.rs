//! Masks: what differs between two equal controls (times, process ids) says nothing about a crash.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::image::{Content, Image};

/// What to leave out when ends are compared. Never applied to survivors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Masks {
    /// JSON pointers (indices of records as `*`), lines (`line 3`, from 1) or, where there are none, rows of bytes
    /// (`bytes 16 to 31`, from 0) by file.
    pub of_file: BTreeMap<PathBuf, BTreeSet<String>>,
    /// Files whose ends still differ: no end can be compared.
    pub unstable: BTreeSet<PathBuf>,
}

impl Masks {
    /// Takes in a pair of ends that should have been equal.
    pub fn learn(&mut self, one: &Image, other: &Image) {
        let paths: BTreeSet<&PathBuf> = one.files.keys().chain(other.files.keys()).collect();
        for path in paths {
            let (a, b) = (one.files.get(path), other.files.get(path));
            if a == b {
                continue;
            }
            match differing(a, b) {
                Some(places) => self.of_file.entry(path.clone()).or_default().extend(places),
                None => _ = self.unstable.insert(path.clone()),
            }
        }
    }

    /// The image with what is masked blanked out.
    pub fn apply(&self, image: &Image) -> Image {
        let masked = |(path, places): (&PathBuf, &BTreeSet<String>)| {
            let bytes = image.files.get(path)?.bytes()?;
            Some((path.clone(), Content::Bytes(blank(&bytes, places).into())))
        };
        let mut files = image.files.clone();
        files.extend(self.of_file.iter().filter_map(masked));
        Image { files }
    }

    /// Every mask as a line for the report.
    pub fn lines(&self) -> Vec<String> {
        let masked = self
            .of_file
            .iter()
            .flat_map(|(path, places)| places.iter().map(move |place| line(path, place)));
        let unstable = self
            .unstable
            .iter()
            .map(|path| format!("{}: differs between equal runs", path.display()));
        masked.chain(unstable).collect()
    }
}

fn line(path: &Path, place: &str) -> String {
    format!("{}: {}", path.display(), if place.is_empty() { "the whole value" } else { place })
}

fn differing(a: Option<&Content>, b: Option<&Content>) -> Option<BTreeSet<String>> {
    let (a, b) = (a?.bytes()?, b?.bytes()?);
    let (a, b): (&[u8], &[u8]) = (&a, &b);
    let mut places = BTreeSet::new();
    if let (Some(a), Some(b)) = (structure(a), structure(b)) {
        pointers(&a, &b, "", &mut places);
        return Some(places);
    }
    if is_binary(a) || is_binary(b) {
        let rows = a.chunks(ROW).zip(b.chunks(ROW)).enumerate();
        let differing = rows.filter(|(_, (a, b))| a != b).map(|(number, _)| row(number));
        return (a.len() == b.len()).then(|| differing.collect());
    }
    let (a, b): (Vec<_>, Vec<_>) = (a.split(is_newline).collect(), b.split(is_newline).collect());
    if a.len() != b.len() {
        return None;
    }
    places.extend(
        (1..)
            .zip(a.iter().zip(&b))
            .filter(|(_, (a, b))| a != b)
            .map(|(number, _)| format!("line {number}")),
    );
    Some(places)
}

/// It has no lines: a newline in it is a byte like any other.
fn is_binary(bytes: &[u8]) -> bool {
    bytes.contains(&0) || std::str::from_utf8(bytes).is_err()
}

/// As many bytes without lines are masked together: two times or checksums that differ may have single bytes in common.
const ROW: usize = 16;

fn row(number: usize) -> String {
    format!("bytes {} to {}", number * ROW, (number + 1) * ROW - 1)
}

/// JSON that has places to point to; a number or a word by itself is a line of text.
fn structure(bytes: &[u8]) -> Option<Value> {
    serde_json::from_slice(bytes).ok().filter(is_record)
}

fn is_newline(byte: &u8) -> bool {
    *byte == b'\n'
}

fn pointers(a: &Value, b: &Value, at: &str, places: &mut BTreeSet<String>) {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            a.iter()
                .zip(b.values())
                .for_each(|((key, a), b)| pointers(a, b, &format!("{at}/{}", escape(key)), places));
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                // Records are alike, and there may be more of them elsewhere; a scalar stands for itself.
                let at = match is_record(a) && is_record(b) {
                    true => format!("{at}/*"),
                    false => format!("{at}/{index}"),
                };
                pointers(a, b, &at, places);
            }
        }
        (a, b) if a == b => {}
        _ => _ = places.insert(at.to_owned()),
    }
}

fn is_record(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

/// A name as a JSON pointer writes it (RFC 6901).
fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn blank(bytes: &[u8], places: &BTreeSet<String>) -> Vec<u8> {
    if let Some(mut value) = structure(bytes) {
        blank_value(&mut value, "", places);
        return value.to_string().into_bytes();
    }
    if is_binary(bytes) {
        let mut bytes = bytes.to_vec();
        let rows = bytes.chunks_mut(ROW).enumerate();
        let masked = rows.filter(|(number, _)| places.contains(&row(*number)));
        masked.for_each(|(_, bytes)| bytes.fill(0));
        return bytes;
    }
    let blank_line =
        |(number, line): (usize, &[u8])| match places.contains(&format!("line {number}")) {
            true => b"(masked)".to_vec(),
            false => line.to_vec(),
        };
    (1..).zip(bytes.split(is_newline)).map(blank_line).collect::<Vec<_>>().join(&b'\n')
}

fn blank_value(value: &mut Value, at: &str, places: &BTreeSet<String>) {
    if places.contains(at) {
        *value = Value::String("(masked)".into());
        return;
    }
    match value {
        Value::Object(members) => {
            members.iter_mut().for_each(|(key, member)| {
                blank_value(member, &format!("{at}/{}", escape(key)), places)
            });
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                if is_record(item) {
                    blank_value(item, &format!("{at}/*"), places);
                } else {
                    blank_value(item, &format!("{at}/{index}"), places);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(text: &str) -> Image {
        Image { files: [("f".into(), Content::Bytes(text.as_bytes().to_vec().into()))].into() }
    }

    #[test]
    fn a_time_in_json_is_masked_and_nothing_else() {
        let mut masks = Masks::default();
        masks.learn(
            &image(r#"{"n":1,"log":[{"t":1,"x":1}]}"#),
            &image(r#"{"n":1,"log":[{"t":2,"x":1}]}"#),
        );
        assert_eq!(masks.lines(), ["f: /log/*/t"]);
        let end = masks.apply(&image(r#"{"n":1,"log":[{"t":3,"x":1},{"t":4,"x":2}]}"#));
        assert_eq!(end, masks.apply(&image(r#"{"n":1,"log":[{"t":5,"x":1},{"t":6,"x":2}]}"#)));
        assert_ne!(end, masks.apply(&image(r#"{"n":1,"log":[{"t":3,"x":1},{"t":4,"x":3}]}"#)));
    }

    #[test]
    fn an_element_that_differs_hides_no_other() {
        let mut masks = Masks::default();
        masks.learn(&image(r#"["at 1","a"]"#), &image(r#"["at 2","a"]"#));
        assert_eq!(masks.lines(), ["f: /0"]);
        assert_eq!(masks.apply(&image(r#"["at 3","a"]"#)), masks.apply(&image(r#"["at 4","a"]"#)));
        assert_ne!(masks.apply(&image(r#"["at 3","a"]"#)), masks.apply(&image(r#"["at 3","b"]"#)));
    }

    #[test]
    fn what_has_another_shape_is_masked_whole() {
        let learnt = |one: &str, other: &str| {
            let mut masks = Masks::default();
            masks.learn(&image(one), &image(other));
            masks.lines()
        };
        assert_eq!(learnt(r#"{"a":1,"b":2}"#, r#"{"a":1,"c":2}"#), ["f: the whole value"]);
        assert_eq!(learnt(r#"{"a":[1,2]}"#, r#"{"a":[1]}"#), ["f: /a"]);
        assert_eq!(learnt(r#"{"a":[{"n":1}]}"#, r#"{"a":[1]}"#), ["f: /a/0"]);
    }

    #[test]
    fn bytes_without_lines_by_row() {
        let bytes = |text: &[u8]| Image {
            files: [("f".into(), Content::Bytes(text.to_vec().into()))].into(),
        };
        let with = |time: &[u8], rest: &str| {
            bytes(&[b"\0head--", time, b"0123456789", rest.as_bytes()].concat())
        };
        let mut masks = Masks::default();
        masks.learn(&with(b"\n1", "same"), &with(b"2\0", "same"));
        assert_eq!(masks.lines(), ["f: bytes 0 to 15"]);
        assert_eq!(masks.apply(&with(b"\n\n", "same")), masks.apply(&with(b"34", "same")));
        assert_ne!(masks.apply(&with(b"34", "same")), masks.apply(&with(b"34", "else")));
        let mut masks = Masks::default();
        masks.learn(&bytes(b"ab\0"), &bytes(b"abc"));
        assert_eq!(masks.lines(), ["f: bytes 0 to 15"], "one without lines is enough");
        masks.learn(&bytes(b"\0"), &bytes(b"\0\0"));
        assert!(masks.unstable.contains(Path::new("f")));
    }

    #[test]
    fn lines_by_number_and_lengths_that_differ() {
        let mut masks = Masks::default();
        masks.learn(&image("a\n12:00\n"), &image("a\n12:01\n"));
        assert_eq!(masks.lines(), ["f: line 2"]);
        assert_eq!(masks.apply(&image("a\n1\n")), masks.apply(&image("a\n2\n")));
        assert_ne!(masks.apply(&image("a\n1\n")), masks.apply(&image("b\n1\n")));
        masks.learn(&image("a\n"), &image("a\nb\n"));
        assert!(masks.unstable.contains(Path::new("f")));
    }
}
