//! Whether work was done again: a line or a JSON array element that stands in a state more often than it may.

use std::collections::{BTreeMap, HashMap};

use super::image::Image;

/// How often each line, or each element of a JSON array, stands in each file of an image.
#[derive(Debug, Default)]
pub struct Counts(HashMap<(std::path::PathBuf, String), usize>);

impl Counts {
    /// Counts an image. A file that is JSON is counted by array elements, any other by lines that are not blank.
    pub fn of(image: &Image) -> Counts {
        let mut counts = HashMap::new();
        for (path, content) in &image.files {
            let Some(bytes) = content.bytes() else {
                continue;
            };
            let mut found = BTreeMap::new();
            match serde_json::from_slice::<serde_json::Value>(&bytes) {
                Ok(value @ (serde_json::Value::Array(_) | serde_json::Value::Object(_))) => {
                    elements(&value, "", &mut found)
                }
                _ => lines(&bytes, &mut found),
            }
            counts.extend(found.into_iter().map(|(word, count)| ((path.clone(), word), count)));
        }
        Counts(counts)
    }

    /// What stands in `self` at least twice, and more often than in each of the others: the first in order.
    pub fn repeated<'a>(&self, others: impl Iterator<Item = &'a Counts> + Clone) -> Option<String> {
        let mut more: Vec<_> = self
            .0
            .iter()
            .filter(|(key, count)| {
                **count > 1
                    && others.clone().all(|other| other.0.get(*key).copied().unwrap_or(0) < **count)
            })
            .map(|((path, word), count)| {
                let word = word.rsplit('\u{0}').next().unwrap_or(word);
                format!("{count} times in {}: {word}", path.display())
            })
            .collect();
        more.sort();
        more.into_iter().next()
    }
}

fn lines(bytes: &[u8], found: &mut BTreeMap<String, usize>) {
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        *found.entry(String::from_utf8_lossy(line).into_owned()).or_default() += 1;
    }
}

/// Elements are counted for each array by itself; indices on the way to it are left out of its name.
fn elements(value: &serde_json::Value, place: &str, found: &mut BTreeMap<String, usize>) {
    match value {
        serde_json::Value::Array(items) => {
            for item in items {
                *found.entry(format!("{place}/\u{0}{item}")).or_default() += 1;
                elements(item, &format!("{place}/*"), found);
            }
        }
        serde_json::Value::Object(members) => {
            members
                .iter()
                .for_each(|(name, member)| elements(member, &format!("{place}/{name}"), found));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::image::Content;

    fn counts(text: &str) -> Counts {
        let mut image = Image::default();
        image.files.insert("f".into(), Content::Bytes(text.as_bytes().to_vec().into()));
        Counts::of(&image)
    }

    #[test]
    fn more_often_than_in_any_other() {
        let others = [counts("a\nb\n"), counts("a\na\nb\n")];
        assert_eq!(counts("a\na\nb\n").repeated(others.iter()), None);
        assert_eq!(counts("a\na\na\n").repeated(others.iter()).as_deref(), Some("3 times in f: a"));
        assert_eq!(counts("c\n").repeated(others.iter()), None, "once is not again");
        let others = [counts(r#"{"done":["q1"]}"#)];
        assert_eq!(
            counts(r#"{"done":["q1","q1"]}"#).repeated(others.iter()).as_deref(),
            Some("2 times in f: \"q1\"")
        );
        assert_eq!(
            counts(r#"{"done":["q1"],"open":["q1"]}"#).repeated(others.iter()),
            None,
            "two arrays"
        );
    }
}
