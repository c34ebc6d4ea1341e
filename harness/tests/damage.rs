//! Each damage changes what it says, and nothing else.
#![allow(
    clippy::unwrap_used,
    reason = "tests may, and what helps them is no test by itself to the lint"
)]

use crashlab::fault::damage::{
    BLOCK_BYTES, Chosen, Damage, Family, Original, Pointer, Remains, Whole, Wish,
};
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

/// What is left of the bytes, or why there is no such damage of them.
fn remains(name: &str, bytes: &[u8]) -> Result<Remains, String> {
    let damage: Damage = name.parse().map_err(|error| format!("{error}"))?;
    damage.apply(Original { bytes, later: None }).map_err(|error| error.to_string())
}

fn apply(name: &str, bytes: &[u8]) -> Result<Vec<u8>, String> {
    match remains(name, bytes)? {
        Remains::Bytes(bytes) => Ok(bytes),
        other => panic!("{name} leaves {other:?}"),
    }
}

fn damaged(name: &str, text: &str) -> String {
    String::from_utf8(apply(name, text.as_bytes()).unwrap()).unwrap()
}

fn refused(name: &str, text: &str) -> String {
    apply(name, text.as_bytes()).unwrap_err()
}

#[test]
fn the_seven_are_these() {
    let seven = [
        "truncated",
        "empty",
        "not-an-object",
        "unknown-field",
        "missing-queue",
        "queue-is-a-string",
        "answers-is-a-list",
    ];
    assert_eq!(Damage::SEVEN.map(|damage| damage.to_string()), seven);
}

#[test]
fn each_damage_of_a_checkpoint() {
    let later = CHECKPOINT.replace("0\n}", "1\n}");
    let shown = |whole: Whole| {
        let later = Some(later.as_bytes());
        let file = Original { bytes: CHECKPOINT.as_bytes(), later };
        match Damage::Whole(whole).apply(file) {
            Ok(Remains::Bytes(bytes)) => visible(&bytes),
            Ok(other) => format!("{other:?}\n"),
            Err(error) => format!("{error}\n"),
        }
    };
    let shown = Whole::ALL
        .map(|whole| format!("## {}: {}\n{}\n", whole.name(), whole.what(), shown(whole)));
    insta::assert_snapshot!(shown.concat());
}

/// Bytes with everything that a reader would not see written out.
fn visible(bytes: &[u8]) -> String {
    let show =
        |line: &[u8]| line.escape_ascii().to_string().replace("\\\"", "\"").replace("\\\\", "\\");
    let lines: Vec<String> = bytes.split(|byte| *byte == b'\n').map(show).collect();
    lines.join("\n")
}

#[test]
fn blocks_are_those_of_a_disk() {
    let [a, b, c] = [b'a', b'b', b'c'].map(|byte| vec![byte; BLOCK_BYTES]);
    let file = [&a[..], &b, &c[..100]].concat();
    let zeroed = |block: usize| apply(&format!("zeroed-block/{block}"), &file).unwrap();
    assert_eq!(zeroed(0), [&[0; BLOCK_BYTES][..], &b, &c[..100]].concat());
    assert_eq!(zeroed(2), [&a[..], &b, &[0; 100]].concat());
    assert_eq!(apply("swapped-blocks", &file).unwrap(), [&b[..], &a, &c[..100]].concat());
    // What filled up the second block on the disk is a part of the file in its new place.
    let short = [&a[..], &b[..100]].concat();
    let swapped = [&b[..100], &[0; BLOCK_BYTES - 100], &a[..100]].concat();
    assert_eq!(apply("swapped-blocks", &short).unwrap(), swapped);
    assert_eq!(swapped.len(), short.len());
}

#[test]
fn bits_are_counted_from_the_lowest_of_the_first_byte() {
    assert_eq!(damaged("bit-flip/0", "ab"), "`b");
    assert_eq!(damaged("bit-flip/6", "ab"), "!b");
    assert_eq!(damaged("bit-flip/8", "ab"), "ac");
}

#[test]
fn an_earlier_version_is_one_where_the_run_made_another() {
    let older = Damage::Whole(Whole::OlderVersion);
    let of = |later: Option<&[u8]>| older.apply(Original { bytes: b"one", later });
    assert_eq!(of(Some(b"two")), Ok(Remains::Bytes(b"one".to_vec())));
    assert!(of(Some(b"one")).unwrap_err().to_string().contains("leaves the file as it is"));
    assert!(of(None).unwrap_err().to_string().contains("no other version is known"));
}

#[test]
fn a_place_in_a_json_text_is_told_by_a_pointer() {
    let text = "{\r\n\t\"a/b\" : [1, {\"x\":\"~\"} ],\r\n\t\"~\" : {}\r\n}";
    for (name, from, to) in [
        ("wrong-type/a~1b", "[1, {\"x\":\"~\"} ]", "\"of another type\""),
        ("wrong-type/a~1b/0", "[1", "[\"of another type\""),
        ("wrong-type/a~1b/1/x", "\"~\"}", "0}"),
        ("wrong-type/~0", "{}", "\"of another type\""),
        ("missing/a~1b", "\"a/b\" : [1, {\"x\":\"~\"} ],\r\n\t", ""),
        ("missing/a~1b/0", "1, ", ""),
        ("missing/a~1b/1", ", {\"x\":\"~\"}", ""),
        ("missing/a~1b/1/x", "{\"x\":\"~\"}", "{}"),
        ("missing/~0", ",\r\n\t\"~\" : {}", ""),
        ("extra", " {}\r\n", " {},\r\n\t\"unknown\" : true\r\n"),
        ("extra/a~1b", "} ]", "}, true ]"),
        ("extra/a~1b/1", "\"~\"}", "\"~\",\"unknown\":true}"),
        ("extra/~0", "{}", "{\"unknown\": true}"),
    ] {
        assert_eq!(damaged(name, text), text.replacen(from, to, 1), "{name}");
    }
    assert_eq!(damaged("wrong-type", " 1 "), " \"of another type\" ");
    assert_eq!(damaged("extra", "[]"), "[true]");
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
    for wrong in ["truncated/-1", "truncated/", "truncated/05"] {
        assert!(refused(wrong, "0123456789").contains("expected `truncated/N`"), "{wrong}");
    }
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
        ("duplicated-tail", ""),
        ("nul-filled", ""),
        ("nul-filled", "\0\0"),
        ("swapped-blocks", "short"),
        ("crlf", "a\r\n"),
        ("byte-order-mark", "\u{feff}"),
        ("not-utf8", "12 \u{fc}"),
        ("older-version", "{}"),
        ("truncated/3", "abc"),
        ("bit-flip/24", "abc"),
        ("zeroed-block/0", "abc"),
        ("zeroed-block/7", CHECKPOINT),
        ("missing", CHECKPOINT),
        ("missing/queu/0", CHECKPOINT),
        ("missing/queue/2", CHECKPOINT),
        ("missing/queue/00", CHECKPOINT),
        ("missing/notes/0", CHECKPOINT),
        ("wrong-type/queue/0/text", CHECKPOINT),
        ("wrong-type/a", "{\"a\":1,\"a\":1}"),
        ("extra/sessions_run", CHECKPOINT),
        ("extra", "{"),
        ("truncate", CHECKPOINT),
        ("Not_An_Object", CHECKPOINT),
        ("queue-is-a-list", CHECKPOINT),
        ("bit-rot", CHECKPOINT),
    ]
    .map(|(name, text)| format!("{}\n", refused(name, text)))
    .concat();
    insta::assert_snapshot!(shown);
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
                        .enumerate()
                        .map(|(nth, (a, name, b, value))| {
                            // Names that differ.
                            let name = format!("\"{nth}{}", &name[1..]);
                            format!("{a}{name}{b}:{value}")
                        })
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
        for damage in Damage::SEVEN {
            let bytes = apply(&damage.to_string(), text.as_bytes()).unwrap();
            prop_assert_ne!(&bytes[..], text.as_bytes(), "{}", damage);
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
    fn every_place_of_a_family_is_one_and_nothing_else_changes(text in value()) {
        let old = json(text.as_bytes());
        for family in [Family::WrongType, Family::Missing, Family::Extra] {
            let found = family.places(text.as_bytes());
            let found: Vec<Damage> = found.map(Iterator::collect).unwrap_or_default();
            prop_assert_eq!(found.len(), places(&old, family), "{}", family);
            for damage in found {
                let new = json(&apply(&damage.to_string(), text.as_bytes()).unwrap());
                changed_alone(&damage, &old, &new)?;
            }
        }
    }

    #[test]
    fn at_most_so_many_places_are_tried(length in 0_usize..200, at_most in 1_usize..100) {
        let bytes = vec![b'x'; length];
        let wishes = [Wish::Every(Family::Truncated), Wish::Every(Family::Truncated)];
        let Chosen { damages, nowhere, bounded, .. } =
            Wish::choose(&wishes, Original { bytes: &bytes, later: None }, at_most);
        prop_assert_eq!(damages.len(), length.min(at_most));
        prop_assert_eq!(nowhere.len(), if length == 0 { 2 } else { 0 });
        let bound = (Family::Truncated, at_most, length);
        prop_assert_eq!(bounded, if length > at_most { vec![bound] } else { vec![] });
        if at_most > 1 && length > 1 {
            prop_assert_eq!(damages.first(), Some(&Damage::Truncated(0)));
            prop_assert_eq!(damages.last(), Some(&Damage::Truncated(length - 1)));
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(prop_oneof![Just(b'{'), Just(b'"'), any::<u8>()], 0..40)) {
        let file = Original { bytes: &bytes, later: None };
        let chosen = Wish::choose(&[Wish::All], file, usize::MAX);
        for damage in chosen.damages {
            prop_assert_ne!(damage.apply(file), Ok(Remains::Bytes(bytes.clone())), "{}", damage);
        }
    }
}

/// How many places a family has in a value whose names differ.
fn places(value: &Value, family: Family) -> usize {
    let below: usize = match value {
        Value::Array(list) => list.iter().map(|value| 1 + below(value)).sum(),
        Value::Object(map) => map.values().map(|value| 1 + below(value)).sum(),
        _ => 0,
    };
    match family {
        Family::WrongType => 1 + below,
        Family::Missing => below,
        _ => holders(value),
    }
}

fn below(value: &Value) -> usize {
    places(value, Family::Missing)
}

fn holders(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(holders).sum::<usize>(),
        Value::Object(map) => 1 + map.values().map(holders).sum::<usize>(),
        _ => 0,
    }
}

/// The value at the place is changed as the damage says, and put back it gives the old document.
fn changed_alone(damage: &Damage, old: &Value, new: &Value) -> Result<(), TestCaseError> {
    let mut repaired = new.clone();
    match damage {
        Damage::WrongType(place) => {
            let place = place.to_string();
            let (was, is) = (old.pointer(&place).unwrap(), repaired.pointer_mut(&place).unwrap());
            prop_assert_ne!(std::mem::discriminant(was), std::mem::discriminant(is));
            *is = was.clone();
        }
        Damage::Missing(place) => {
            let whole = place.to_string();
            let (above, _) = whole.rsplit_once('/').unwrap();
            let (name, was) = (place.tokens().last().unwrap(), old.pointer(&whole).unwrap());
            match repaired.pointer_mut(above).unwrap() {
                Value::Array(list) => list.insert(name.parse().unwrap(), was.clone()),
                Value::Object(map) => {
                    prop_assert_eq!(new.pointer(&whole), None);
                    map.insert(name.clone(), was.clone());
                }
                other => panic!("{other} holds nothing"),
            }
        }
        Damage::Extra(place) => match repaired.pointer_mut(&place.to_string()).unwrap() {
            Value::Array(list) => prop_assert_eq!(list.pop(), Some(Value::Bool(true))),
            Value::Object(map) => prop_assert!(map.pop_last()),
            other => panic!("{other} holds nothing"),
        },
        other => panic!("{other} is not told by a pointer"),
    }
    prop_assert_eq!(&repaired, old, "{}", damage);
    Ok(())
}

#[test]
fn a_pointer_can_be_made_by_hand() {
    let place: Pointer = "/a~1b".parse().unwrap();
    assert_eq!(Damage::Missing(place).to_string(), "missing/a~1b");
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
