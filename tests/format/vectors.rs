//! Fixed bytes, each printed by Python 3.11: `json.dumps(state, indent=2) + "\n"`.

use indexmap::IndexMap;
use long_horizon::checkpoint::{Answer, Checkpoint};

/// Every field filled, in an order that sorting would change.
pub(crate) const FULL: &str = r#"{
  "queue": [
    "Zebra?",
    "Apple?"
  ],
  "notes": [
    "What is \u00e9? -> It is \"e\" with an accent."
  ],
  "answers": {
    "What is \u00e9?": {
      "text": "It is \"e\" with an accent.",
      "citations": [
        "letters.md#2",
        "accents.md#1"
      ]
    },
    "And then?": {
      "text": "",
      "citations": []
    }
  },
  "pending": {
    "Why \ud83e\udd80?": "C:\\sources\\disagree\n\tor say nothing"
  },
  "sessions_run": 3
}
"#;

fn full() -> Checkpoint {
    let answers = [
        (
            "What is é?".to_owned(),
            Answer {
                text: "It is \"e\" with an accent.".to_owned(),
                citations: vec!["letters.md#2".to_owned(), "accents.md#1".to_owned()],
            },
        ),
        ("And then?".to_owned(), Answer::default()),
    ];
    Checkpoint {
        queue: vec!["Zebra?".to_owned(), "Apple?".to_owned()],
        notes: vec!["What is é? -> It is \"e\" with an accent.".to_owned()],
        answers: IndexMap::from(answers).into(),
        pending: IndexMap::from([(
            "Why 🦀?".to_owned(),
            "C:\\sources\\disagree\n\tor say nothing".to_owned(),
        )]),
        sessions_run: 3,
    }
}

#[test]
fn a_full_checkpoint() {
    assert_eq!(String::from_utf8_lossy(&full().encode()), FULL);
    assert_eq!(Checkpoint::decode(FULL.as_bytes()), Ok(full()));
}

#[test]
fn empty_containers_stay_on_their_line() {
    let empty = "{\n  \"queue\": [],\n  \"notes\": [],\n  \"answers\": {},\n  \"pending\": {},\n  \"sessions_run\": 0\n}\n";
    assert_eq!(String::from_utf8_lossy(&Checkpoint::default().encode()), empty);
}

#[test]
fn a_fresh_queue_holds_the_questions_and_nothing_else() {
    let fresh = Checkpoint::fresh(vec!["a".to_owned(), "b".to_owned()]);
    let bytes = "{\n  \"queue\": [\n    \"a\",\n    \"b\"\n  ],\n  \"notes\": [],\n  \"answers\": {},\n  \"pending\": {},\n  \"sessions_run\": 0\n}\n";
    assert_eq!(String::from_utf8_lossy(&fresh.encode()), bytes);
}

#[test]
fn each_kind_of_character_has_its_one_spelling() {
    let vectors = [
        ("plain ASCII ~", "plain ASCII ~"),
        ("/", "/"),
        ("\"", "\\\""),
        ("\\", "\\\\"),
        ("\u{8}\u{c}\n\r\t", "\\b\\f\\n\\r\\t"),
        ("\0\u{1}\u{b}\u{1f}", "\\u0000\\u0001\\u000b\\u001f"),
        ("\u{7e}\u{7f}\u{80}", "~\\u007f\\u0080"),
        ("é ß", "\\u00e9 \\u00df"),
        ("\u{2028}\u{2029}", "\\u2028\\u2029"),
        ("\u{d7ff}\u{e000}\u{feff}\u{ffff}", "\\ud7ff\\ue000\\ufeff\\uffff"),
        ("\u{10000}🦀\u{10ffff}", "\\ud800\\udc00\\ud83e\\udd80\\udbff\\udfff"),
        ("日本語 x", "\\u65e5\\u672c\\u8a9e x"),
        ("1234567\"", "1234567\\\""),
        ("12345678\u{7f}", "12345678\\u007f"),
    ];
    for (text, spelled) in vectors {
        let checkpoint = Checkpoint::fresh(vec![text.to_owned()]);
        let bytes = checkpoint.encode();
        let written = String::from_utf8(bytes.clone()).unwrap();
        assert_eq!(written.lines().nth(2), Some(format!("    \"{spelled}\"").as_str()), "{text:?}");
        assert_eq!(Checkpoint::decode(&bytes), Ok(checkpoint), "{text:?}");
    }
}

#[test]
fn other_spellings_of_a_character_load() {
    for (spelled, text) in [
        ("\\/", "/"),
        ("\\u002F", "/"),
        ("\\u00E9", "é"),
        ("é", "é"),
        ("🦀", "🦀"),
        ("\\uD83E\\uDD80", "🦀"),
        ("\u{7f}", "\u{7f}"),
        ("\\u0000", "\0"),
    ] {
        let bytes = format!("{{\"queue\":[\"{spelled}\"]}}");
        assert_eq!(
            Checkpoint::decode(bytes.as_bytes()),
            Ok(Checkpoint::fresh(vec![text.to_owned()])),
            "{spelled}"
        );
    }
}

#[test]
fn fields_other_than_the_queue_may_be_missing_and_stand_in_any_order() {
    assert_eq!(Checkpoint::decode(b"{\"queue\": []}"), Ok(Checkpoint::default()));
    let swapped = Checkpoint::decode(
        b"{\"sessions_run\": 18446744073709551615, \"answers\": {\"q\": {\"citations\": [], \"text\": \"t\"}}, \"queue\": []}",
    );
    let swapped = swapped.unwrap();
    assert_eq!(swapped.sessions_run, u64::MAX);
    assert_eq!(swapped.answers["q"].text, "t");
}
