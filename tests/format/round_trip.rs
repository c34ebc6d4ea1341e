//! What is written is read back the same; what is read is written back the same; nothing makes the reader panic.

use std::collections::BTreeSet;
use std::sync::Arc;

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

proptest! {
    /// The same checkpoint written in another way, at one place only: what a session adds to it is written in its own.
    #[test]
    fn what_is_written_otherwise_at_one_place_is_read_the_same(
        checkpoint in strategy::checkpoint(),
        place in any::<prop::sample::Index>(),
        white in prop::sample::select(vec![" ", "\n", "\r\n", "\t"]),
        way in 0..4,
    ) {
        let text = String::from_utf8(checkpoint.encode()).expect("ASCII");
        let at = place.index(text.len());
        let (before, rest) = text.split_at(at);
        let changed = match way {
            0 => format!("{before}{white}{rest}"),
            1 if rest.starts_with(['\n', ' ']) => format!("{before}{}", &rest[1..]),
            2 => format!("{before}\\u{:04x}{}", rest.as_bytes()[0], &rest[1..]),
            _ => format!("{before}{}", rest.replacen("\\\"", "\\u0022", 1)),
        };
        holds_for(changed.as_bytes());
    }
}

/// Upper-case digits, an escape that none needs, a text behind its citations: nothing of this is written so.
#[test]
fn only_what_stands_as_it_is_written_is_taken_from_the_file() {
    let written = r#"{
  "queue": [],
  "notes": [],
  "answers": {
    "q\u00e9\n": {
      "text": "\ud83e\udd80",
      "citations": []
    }
  },
  "pending": {},
  "sessions_run": 1
}
"#;
    let taken = |text: &str| {
        let file = Arc::new(text.as_bytes().to_vec());
        let checkpoint = Checkpoint::decode_shared(&file).expect("a checkpoint");
        assert_eq!(String::from_utf8(checkpoint.encode()).expect("ASCII"), written);
        !checkpoint.encoded().parts()[1].is_empty()
    };
    assert!(taken(written));
    assert!(taken(&written.replace("\"queue\": []", "\"queue\":[ ]")));
    for (from, to) in [
        ("00e9", "00E9"),
        ("\\u00e9", "é"),
        ("\\n", "\\u000a"),
        ("{\n    \"q", "{ \n    \"q"),
        ("{\n    \"q", "{\n   \"q"),
        ("\": {\n      \"text", "\":{\n      \"text"),
        ("80\",\n", "80\" ,\n"),
        ("80\",\n", "80\"\n    ,\n"),
        ("80\",\n", "80\",\r\n"),
        ("[]\n    }\n  }", "[ ]\n    }\n  }"),
        ("[]\n    }\n  }", "[\n        ]\n    }\n  }"),
        ("[]\n    }\n  }", "[]\n     }\n  }"),
        ("[]\n    }\n  }", "[]\n    }\n }"),
        (
            "\"text\": \"\\ud83e\\udd80\",\n      \"citations\": []",
            "\"citations\": [],\n      \"text\": \"\\ud83e\\udd80\"",
        ),
    ] {
        assert_ne!(written.replace(from, to), written, "{from:?} is not there");
        assert!(!taken(&written.replace(from, to)), "{from:?} as {to:?}");
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
