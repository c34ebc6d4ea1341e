//! What is written is read back the same; what is read is written back the same; nothing makes the reader panic.

use std::collections::BTreeSet;

use long_horizon::checkpoint::Checkpoint;
use proptest::collection::vec;
use proptest::prelude::*;

use super::property::holds_for;
use super::replay::replay;
use super::{model, strategy};

proptest! {
    #[test]
    fn the_bytes_are_those_of_the_model_and_are_read_back(checkpoint in strategy::checkpoint()) {
        let bytes = checkpoint.encode();
        let expected = model::printed(&model::value(&checkpoint));
        prop_assert_eq!(String::from_utf8_lossy(&bytes), expected);
        prop_assert_eq!(Checkpoint::decode(&bytes), Ok(checkpoint));
    }

    #[test]
    fn any_layout_loads(checkpoint in strategy::checkpoint(), crlf in any::<bool>()) {
        let value = model::value(&checkpoint);
        let compact = value.to_string();
        prop_assert_eq!(Checkpoint::decode(compact.as_bytes()), Ok(checkpoint.clone()));
        // Not escaped, and with each of the four kinds of white space.
        let mut wide = serde_json::to_string_pretty(&value).expect("a string").replace('\n', "\t \n");
        if crlf {
            wide = wide.replace('\n', "\r\n");
        }
        prop_assert_eq!(Checkpoint::decode(format!("\r\n {wide}\t").as_bytes()), Ok(checkpoint));
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in vec(any::<u8>(), 0..200)) {
        holds_for(&bytes);
    }

    #[test]
    fn no_json_like_bytes_do(
        tokens in vec(prop::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "d800", "dc00", "\"queue\"", "\"text\"", "\"sessions_run\"",
            "0", "-", "1", "e", ".", "true", "null", " ", "\n", "\r", "\0", "é", "\u{feff}",
        ]), 0..30),
    ) {
        holds_for(tokens.concat().as_bytes());
    }

    #[test]
    fn no_change_of_a_few_bytes_does(
        checkpoint in strategy::checkpoint(),
        changes in vec((any::<prop::sample::Index>(), any::<Option<u8>>()), 1..4),
    ) {
        let mut bytes = checkpoint.encode();
        for (place, change) in changes {
            let place = place.index(bytes.len());
            match change {
                Some(byte) => bytes[place] = byte,
                None => drop(bytes.remove(place)),
            }
        }
        holds_for(&bytes);
    }
}

/// Each beginning of a file is damage, and the place is where it ends.
#[test]
fn a_file_cut_anywhere_is_refused_there() {
    let whole = super::vectors::FULL.as_bytes();
    let mut messages = BTreeSet::new();
    // The last two are the closing brace and the line feed, which may be missing.
    for cut in 0..whole.len() - 1 {
        let beginning = &whole[..cut];
        let damage = Checkpoint::decode(beginning).expect_err("a beginning is no checkpoint");
        let last_line = beginning.rsplit(|&b| b == b'\n').next().unwrap_or_default();
        let line = beginning.iter().filter(|&&b| b == b'\n').count() + 1;
        assert_eq!(
            (damage.line, damage.column),
            (line, last_line.len() + 1),
            "cut at {cut}: {damage}"
        );
        messages.insert(damage.found);
    }
    insta::assert_snapshot!(messages.into_iter().collect::<Vec<_>>().join("\n"), @"
    a file that was cut off inside a string
    a file that was cut off where a colon was expected
    a file that was cut off where a comma or a closing brace was expected
    a file that was cut off where a comma or a closing bracket was expected
    a file that was cut off where a list of citations was expected
    a file that was cut off where a list of notes was expected
    a file that was cut off where a list of questions was expected
    a file that was cut off where a name in double quotes was expected
    a file that was cut off where a string was expected
    a file that was cut off where a whole number from 0 to 18446744073709551615 was expected
    a file that was cut off where an object of answers was expected
    a file that was cut off where an object of reasons was expected
    a file that was cut off where an object with text and citations was expected
    an empty file instead of a JSON object
    ");
    assert!(Checkpoint::decode(&whole[..whole.len() - 1]).is_ok());
}

#[test]
fn no_file_of_the_corpus_does_nor_one_like_it() {
    replay(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/checkpoint"), holds_for);
}
