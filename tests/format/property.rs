//! What the reader must do with any bytes, for property tests and for the fuzz target `checkpoint`.

use std::sync::Arc;

use long_horizon::checkpoint::{Answer, Checkpoint, Damage};
use long_horizon::words::misleads;
use serde_json::Value;

use super::{model, strict};

/// Panics unless the bytes load where a generic reader of JSON finds a checkpoint in them, as what it finds, and are
/// written again byte for byte as the model writes that: unchanged, if they were so written; and else are refused, with
/// the first place that is wrong.
pub(crate) fn holds_for(bytes: &[u8]) {
    let expected = strict::read(bytes).filter(model::is_checkpoint);
    match (Checkpoint::decode(bytes), expected) {
        (Ok(loaded), Some(expected)) => {
            is_what_is_there(&loaded, &expected);
            can_be_taken_from(bytes, loaded);
        }
        (Err(damage), None) => {
            is_the_first_place(&damage, bytes);
            can_be_shown(&damage);
        }
        (Ok(_), None) => panic!("loaded, but is none: b\"{}\"", bytes.escape_ascii()),
        (Err(damage), Some(_)) => panic!("refused, but is one: {damage}"),
    }
}

fn is_what_is_there(loaded: &Checkpoint, generic: &Value) {
    // As text: equality of maps does not look at the order.
    let expected = model::printed(&model::completed(generic));
    assert_eq!(model::printed(&model::value(loaded)), expected, "read wrong");
    let written = loaded.encode();
    assert_eq!(String::from_utf8_lossy(&written), expected, "written wrong");
    assert_eq!(Checkpoint::decode(&written).as_ref(), Ok(loaded), "not the same once more");
}

/// Where the answers are not written anew but taken from the file, the bytes are the same: as it was read, with one more
/// answer, and with another in place of one.
fn can_be_taken_from(bytes: &[u8], loaded: Checkpoint) {
    let shared = Checkpoint::decode_shared(&Arc::new(bytes.to_vec())).expect("it was read before");
    assert_eq!(shared, loaded);
    let first = loaded.answers.keys().next().cloned();
    let last = loaded.answers.keys().last().cloned();
    let questions = [None, Some("one that is not there \u{fe}".to_owned()), first, last];
    for question in questions {
        let (mut shared, mut anew) = (shared.clone(), loaded.clone());
        if let Some(question) = question {
            let answer = Answer { text: "\"é\"".to_owned(), citations: vec!["a#1".to_owned()] };
            let earlier = shared.answers.insert(question.clone(), answer.clone());
            assert_eq!(earlier, anew.answers.insert(question, answer));
        }
        let (shared, anew) = (shared.encode(), anew.encode());
        assert_eq!(String::from_utf8_lossy(&shared), String::from_utf8_lossy(&anew));
    }
}

/// Up to the place the file is a good beginning: cut there, it is refused for nothing but its end. Only what follows a
/// whole checkpoint leaves one.
fn is_the_first_place(damage: &Damage, bytes: &[u8]) {
    let before = &bytes[..offset(damage, bytes)];
    match Checkpoint::decode(before) {
        Ok(_) => assert_eq!(damage.pointer, "", "{damage}"),
        Err(cut) => {
            assert_eq!((cut.line, cut.column), (damage.line, damage.column), "{damage}, but {cut}");
        }
    }
}

fn offset(damage: &Damage, bytes: &[u8]) -> usize {
    let text = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let feeds = text.match_indices('\n').map(|(feed, _)| feed + 1);
    let start = [0].into_iter().chain(feeds).nth(damage.line - 1);
    let start = start.unwrap_or_else(|| panic!("no such line: {damage}"));
    let line = text[start..].split('\n').next().unwrap_or_default();
    let mut columns = line.char_indices().map(|(at, _)| at).chain([line.len()]);
    let column = columns.nth(damage.column - 1);
    start + column.unwrap_or_else(|| panic!("no such column: {damage}"))
}

/// On one line of bounded length that no terminal obeys.
fn can_be_shown(damage: &Damage) {
    const LENGTH_MAX: usize = 1500;
    let shown = damage.to_string();
    assert!(!shown.contains(misleads), "{shown:?}");
    assert!(shown.len() <= LENGTH_MAX, "{} bytes: {shown}", shown.len());
    let is_pointer = damage.pointer.is_empty() || damage.pointer.starts_with('/');
    let mut tildes = damage.pointer.split('~').skip(1);
    let escaped = tildes.all(|after| after.starts_with(['0', '1']));
    assert!(is_pointer && escaped, "{:?} is no JSON pointer", damage.pointer);
}
