//! Each damage changes what it says, and nothing else.
#![allow(
    clippy::unwrap_used,
    reason = "tests may, and what helps them is no test by itself to the lint"
)]

use crashlab::fault::damage::{DamageError, NAMES, apply};
use proptest::prelude::*;
use serde_json::Value;

const CHECKPOINT: &str = r#"{
  "queue": [
    "Does rename \"replace\"?",
    "Gr\u00f6\u00dfe [1, {2"
  ],
  "notes": [],
  "answers": {},
  "pending": {},
  "sessions_run": 0
}
"#;

fn damaged(name: &str, text: &str) -> String {
    String::from_utf8(apply(name, text.as_bytes()).unwrap()).unwrap()
}

fn refused(name: &str, text: &str) -> String {
    apply(name, text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn the_seven_are_these() {
    let names: Vec<&str> = NAMES.iter().map(|damage| damage.name).collect();
    let seven = [
        "truncated",
        "empty",
        "not-an-object",
        "unknown-field",
        "missing-queue",
        "queue-is-a-string",
    ];
    assert_eq!(names, [&seven[..], &["answers-is-a-list"]].concat());
}

#[test]
fn each_damage_of_a_checkpoint() {
    let shown: String = NAMES
        .iter()
        .map(|damage| {
            format!("## {}: {}\n{}\n", damage.name, damage.what, damaged(damage.name, CHECKPOINT))
        })
        .collect();
    insta::assert_snapshot!(shown);
}

#[test]
fn fields_are_taken_out_with_their_comma() {
    assert_eq!(damaged("missing-queue", r#"{"queue":[],"a":1}"#), r#"{"a":1}"#);
    assert_eq!(damaged("missing-queue", r#"{"a":1 , "queue":[]}"#), r#"{"a":1}"#);
    assert_eq!(damaged("missing-queue", r#"{"a":1,"queue":[],"b":2}"#), r#"{"a":1,"b":2}"#);
    assert_eq!(damaged("missing-queue", r#"{ "queue": [] }"#), "{  }");
    assert_eq!(
        damaged("missing-queue", r#"{"\u0071ueue":[],"a":{"queue":1}}"#),
        r#"{"a":{"queue":1}}"#
    );
}

#[test]
fn a_new_field_follows_the_style_of_the_file() {
    assert_eq!(damaged("unknown-field", "{}"), r#"{"unknown": true}"#);
    assert_eq!(damaged("unknown-field", "{ }\n"), "{\"unknown\": true }\n");
    assert_eq!(damaged("unknown-field", r#"{"a":1}"#), r#"{"a":1,"unknown":true}"#);
    assert_eq!(
        damaged("unknown-field", "{\r\n\t\"a\" : [1]\r\n}"),
        "{\r\n\t\"a\" : [1],\r\n\t\"unknown\" : true\r\n}"
    );
    assert_eq!(damaged("unknown-field", r#"{"unknown":1}"#), r#"{"unknown":1,"unknown2":true}"#);
}

#[test]
fn what_json_allows_is_understood() {
    let odd = "\r\n {\"a\\\"}\\\\\":\"\\ud800\",\"queue\" :-1.5e+300,\"n\":123456789012345678901234567890}\t";
    assert_eq!(damaged("queue-is-a-string", odd), odd.replace("-1.5e+300", "\"not a list\""));
    assert_eq!(damaged("not-an-object", odd), odd.replace("{\"a", "[{\"a").replace("0}", "0}]"));
    for value in ["true", "null", "0", "[]", "[[],{}]", "{\"queue\":[\"]}\"]}"] {
        let text = format!("{{\"queue\":{value}}}");
        assert_eq!(damaged("queue-is-a-string", &text), r#"{"queue":"not a list"}"#);
    }
}

#[test]
fn white_space_at_the_end_does_not_make_a_cut_harmless() {
    let text = format!("{{\"a\":1}}{}", "\n".repeat(50));
    assert_eq!(damaged("truncated", &text), "{\"a");
    assert_eq!(damaged("truncated", "   "), "");
    assert_eq!(damaged("truncated", "x"), "");
}

#[test]
fn a_cut_can_be_told_its_place() {
    assert_eq!(damaged("truncated/5", "0123456789"), "01234");
    assert_eq!(damaged("truncated/0", "0123456789"), "");
    assert!(refused("truncated/10", "0123456789").contains("the file has 10 bytes"));
    assert!(refused("truncated/-1", "0123456789").contains("`-1` is no number of bytes"));
    assert!(refused("truncated/", "0123456789").contains("no number"));
}

#[test]
fn what_does_not_apply_says_why() {
    let shown: String = [
        ("truncated", ""),
        ("empty", ""),
        ("not-an-object", "[]"),
        ("not-an-object", ""),
        ("unknown-field", "{\"a\":1} x"),
        ("missing-queue", "{\"Queue\":[]}"),
        ("missing-queue", "{\"queue\":[],\"queue\":[]}"),
        ("queue-is-a-string", "{\"queue\":\"x\"}"),
        ("answers-is-a-list", "{\"answers\":[1]}"),
        ("answers-is-a-list", "\u{feff}{\"answers\":{}}"),
        ("truncate", CHECKPOINT),
        ("Not_An_Object", CHECKPOINT),
        ("queue-is-a-list", CHECKPOINT),
        ("bit-rot", CHECKPOINT),
    ]
    .map(|(name, text)| format!("{}\n", refused(name, text)))
    .concat();
    insta::assert_snapshot!(shown);
    let near = DamageError::Unknown { name: "truncate".into(), near: vec!["truncated"] };
    assert_eq!(apply("truncate", b"x").unwrap_err(), near);
}

/// White space as JSON allows it.
fn blanks() -> impl Strategy<Value = String> {
    "[ \t\r\n]{0,3}"
}

/// The text of any JSON value, with white space and escapes that no printer of ours would write.
fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("true".to_owned()),
        Just("null".to_owned()),
        Just("-0".to_owned()),
        Just("1e5".to_owned()),
        any::<u64>().prop_map(|number| number.to_string()),
        string(),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec((blanks(), inner.clone(), blanks()), 0..4).prop_map(
                |items| {
                    let items: Vec<String> =
                        items.into_iter().map(|(a, item, b)| a + &item + &b).collect();
                    format!("[{}]", items.join(","))
                }
            ),
            proptest::collection::vec((blanks(), string(), blanks(), inner), 0..4).prop_map(
                |members| {
                    let members: Vec<String> = members
                        .into_iter()
                        .map(|(a, name, b, value)| format!("{a}{name}{b}:{value}"))
                        .collect();
                    format!("{{{}}}", members.join(","))
                }
            ),
        ]
    })
}

fn string() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("\\\"".to_owned()),
        Just("\\\\".to_owned()),
        Just("\\u00fC".to_owned()),
        Just("{[,:]}".to_owned()),
        "[a-z\u{e4}\u{1f600}]{1,3}",
    ];
    proptest::collection::vec(part, 0..4).prop_map(|parts| format!("\"{}\"", parts.concat()))
}

/// An object as a list of fields, each with the text before its name, and the text around all.
#[derive(Debug, Clone)]
struct Rendered {
    front: String,
    fields: Vec<(String, String, String, String)>,
    back: (String, String),
}

impl Rendered {
    fn text(&self) -> String {
        let fields: Vec<String> = self
            .fields
            .iter()
            .map(|(lead, name, colon, value)| format!("{lead}{name}{colon}{value}"))
            .collect();
        format!("{}{{{}{}}}{}", self.front, fields.join(","), self.back.0, self.back.1)
    }

    fn position(&self, name: &str) -> usize {
        self.fields.iter().position(|field| field.1 == format!("\"{name}\"")).unwrap()
    }
}

fn objects() -> impl Strategy<Value = Rendered> {
    let field =
        (blanks(), "\"[x-z]{3}\"", blanks().prop_map(|blank| format!("{blank}:{blank}")), value());
    let others = proptest::collection::vec(field, 0..4);
    let queue = (
        blanks(),
        Just("\"queue\"".to_owned()),
        Just(": ".to_owned()),
        Just("[\"one\", \"]\"]".to_owned()),
    );
    let answers =
        (blanks(), Just("\"answers\"".to_owned()), Just(":".to_owned()), Just("{}".to_owned()));
    (
        others,
        queue,
        answers,
        any::<(prop::sample::Index, prop::sample::Index)>(),
        blanks(),
        blanks(),
        blanks(),
    )
        .prop_map(|(mut fields, queue, answers, (first, second), front, inner, back)| {
            fields.insert(first.index(fields.len() + 1), queue);
            fields.insert(second.index(fields.len() + 1), answers);
            Rendered { front, fields, back: (inner, back) }
        })
}

fn json(text: &[u8]) -> Value {
    serde_json::from_slice(text).unwrap()
}

proptest! {
    #[test]
    fn every_damage_changes_the_bytes(object in objects()) {
        let text = object.text();
        for damage in &NAMES {
            let bytes = apply(damage.name, text.as_bytes()).unwrap();
            prop_assert_ne!(&bytes[..], text.as_bytes(), "{}", damage.name);
        }
    }

    #[test]
    fn a_cut_leaves_no_json(object in objects()) {
        let bytes = apply("truncated", object.text().as_bytes()).unwrap();
        prop_assert!(object.text().as_bytes().starts_with(&bytes));
        prop_assert!(serde_json::from_slice::<Value>(&bytes).is_err());
    }

    #[test]
    fn a_list_holds_the_object(object in objects()) {
        let text = object.text();
        let bytes = apply("not-an-object", text.as_bytes()).unwrap();
        prop_assert_eq!(json(&bytes), Value::Array(vec![json(text.as_bytes())]));
        let (start, end) = (object.front.len(), text.len() - object.back.1.len());
        let expected = format!("{}[{}]{}", &text[..start], &text[start..end], &text[end..]);
        prop_assert_eq!(&bytes[..], expected.as_bytes());
    }

    #[test]
    fn one_more_field_is_all_that_is_new(object in objects()) {
        let text = object.text();
        let bytes = apply("unknown-field", text.as_bytes()).unwrap();
        let (mut new, old) = (json(&bytes), json(text.as_bytes()));
        prop_assert_eq!(new.as_object_mut().unwrap().pop_last(), true);
        prop_assert_eq!(new, old);
        let tail = object.back.0.len() + 1 + object.back.1.len();
        let place = text.len() - tail;
        prop_assert!(bytes.starts_with(&text.as_bytes()[..place]));
        prop_assert!(bytes.ends_with(&text.as_bytes()[place..]));
    }

    #[test]
    fn other_fields_stay_as_they_are(object in objects()) {
        let text = object.text();
        let mut without = object.clone();
        let position = without.position("queue");
        let (lead, ..) = without.fields.remove(position);
        // What is taken out begins with the name, and the field that follows moves to its place.
        match without.fields.get_mut(position) {
            Some(next) => next.0 = lead,
            None if position == 0 => without.back.0.insert_str(0, &lead),
            None => {}
        }
        prop_assert_eq!(String::from_utf8(apply("missing-queue", text.as_bytes()).unwrap()).unwrap(), without.text());
        for (damage, field, value) in
            [("queue-is-a-string", "queue", "\"not a list\""), ("answers-is-a-list", "answers", "[]")]
        {
            let mut changed = object.clone();
            let position = changed.position(field);
            changed.fields[position].3 = value.to_owned();
            let bytes = apply(damage, text.as_bytes()).unwrap();
            prop_assert_eq!(String::from_utf8(bytes).unwrap(), changed.text());
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(prop_oneof![Just(b'{'), Just(b'"'), any::<u8>()], 0..40)) {
        for damage in &NAMES {
            if let Ok(damaged) = apply(damage.name, &bytes) {
                prop_assert_ne!(damaged, bytes.clone());
            }
        }
    }
}

/// The last field of an object, taken out.
trait PopLast {
    fn pop_last(&mut self) -> bool;
}

impl PopLast for serde_json::Map<String, Value> {
    fn pop_last(&mut self) -> bool {
        let last = self.keys().next_back().cloned();
        last.and_then(|name| self.shift_remove(&name)) == Some(Value::Bool(true))
    }
}
