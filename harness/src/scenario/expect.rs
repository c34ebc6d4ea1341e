//! Which verdicts and warnings a fault may be expected to have.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use crate::judge::{Grade, Word};

/// Whether `expect` may hold the word: faults and warnings can be expected. Good verdicts are the rule already, and what
/// was not measured or not tried is no finding.
fn may_be_expected(word: Word) -> bool {
    matches!(word.grade(), Grade::Fault | Grade::Warning)
}

/// Every word with what it means, as its documentation says.
pub(crate) fn meanings() -> Vec<(Word, String)> {
    let meaning =
        |entry: Value| entry.get("description").and_then(Value::as_str).map(str::to_owned);
    words().into_iter().map(|(word, entry)| (word, meaning(entry).unwrap_or_default())).collect()
}

/// Every word with its entry in the schema of [`Word`], which carries its description.
fn words() -> Vec<(Word, Value)> {
    let schema = Word::json_schema(&mut SchemaGenerator::default());
    let entries = schema.get("oneOf").and_then(Value::as_array);
    entries
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let word = serde_json::from_value(entry.get("const")?.clone()).ok()?;
            Some((word, entry.clone()))
        })
        .collect()
}

/// The schema of an `expect` array.
pub(super) fn schema(_: &mut SchemaGenerator) -> Schema {
    let entries: Vec<Value> = words()
        .into_iter()
        .filter(|&(word, _)| may_be_expected(word))
        .map(|(_, entry)| entry)
        .collect();
    json_schema!({ "type": "array", "items": { "oneOf": entries } })
}

/// Why a text that is no expectation is none, if it is a word at all: its own description.
pub(super) fn why_not(text: &str) -> Option<String> {
    let (word, entry) = words()
        .into_iter()
        .find(|(_, entry)| entry.get("const").and_then(Value::as_str) == Some(text))?;
    let meaning = entry.get("description").and_then(Value::as_str)?;
    (!may_be_expected(word)).then(|| meaning.trim_end_matches('.').replace('\n', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_docs_of_a_word_say_the_same() {
        let words = words();
        assert_eq!(words.len(), 21, "a word got lost on the way through its schema");
        for (word, entry) in words {
            let meaning = entry["description"].as_str().unwrap();
            let finding = meaning.starts_with("Fault:")
                || meaning.starts_with("Warning:")
                || meaning.contains("else a fault");
            assert_eq!(may_be_expected(word), finding, "{word:?}: {meaning}");
        }
    }
}
