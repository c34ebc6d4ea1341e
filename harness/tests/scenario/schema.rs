//! The checked-in JSON Schema is the generated one, holds for what is shipped, and says the same as the parser.

use std::path::{Path, PathBuf};

use crashlab::scenario::{load, schema_text};
use proptest::prelude::*;
use serde_json::Value;

use super::property::{schema, schema_agrees};
use super::validator::is_valid;
use crate::{FULL, LEAST, OneFile};

fn as_json(text: &str) -> Value {
    serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap()
}

#[test]
fn the_checked_in_file_is_the_generated_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/scenario.schema.json");
    let checked_in = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        checked_in == schema_text(),
        "{} is out of date; run `cargo run -p crashlab -- schema > harness/schema/scenario.schema.json`",
        path.display()
    );
}

#[test]
fn every_shipped_scenario_conforms() {
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    let schema = schema();
    for file in toml_files(&scenarios) {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(is_valid(&as_json(&text), schema, schema), "{} does not conform", file.display());
        if let Err(errors) = load(std::slice::from_ref(&file)) {
            let errors: Vec<String> = errors.iter().map(|error| error.render(80)).collect();
            panic!("{}", errors.join("\n"));
        }
    }
}

/// Found independently of the loader; packages and their files are none.
fn toml_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    if folder.join("Cargo.toml").exists() {
        return files;
    }
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("files") {
            files.extend(toml_files(&path));
        } else if path.extension().is_some_and(|ending| ending == "toml") {
            files.push(path);
        }
    }
    files
}

#[test]
fn every_field_is_described() {
    fn visit(schema: &Value, place: &str) {
        if let Some(fields) = schema.get("properties").and_then(Value::as_object) {
            for (key, field) in fields.iter().filter(|(_, field)| field.get("const").is_none()) {
                assert!(field.get("description").is_some(), "{place}: `{key}` has no description");
            }
        }
        match schema {
            Value::Object(object) => {
                object.iter().for_each(|(key, inner)| visit(inner, &format!("{place}/{key}")))
            }
            Value::Array(items) => items.iter().for_each(|inner| visit(inner, place)),
            _ => {}
        }
    }
    visit(schema(), "");
}

#[test]
fn nothing_in_the_schema_speaks_of_another_language() {
    let text = schema_text();
    for word in ["null", "Raw", "uint"] {
        assert!(!text.contains(word), "{word:?} in the schema");
    }
}

#[test]
fn whole_files_are_valid() {
    let schema = schema();
    for text in [FULL, LEAST] {
        assert!(is_valid(&as_json(text), schema, schema));
        OneFile::new(text).load().unwrap();
    }
}

/// Something to put in the place of a value: right in some places and wrong in most.
fn replacement() -> impl Strategy<Value = toml::Value> {
    use toml::Value::{Array, Boolean, Float, Integer, String, Table};
    let leaf = prop_oneof![
        prop::sample::select(
            &[
                "",
                "x",
                "a b",
                "state.json",
                "../x",
                "/x",
                "all",
                "rename#1",
                "mark:x",
                "mark:",
                "kill",
                "idle",
                "alert",
                "torn",
                "serial",
                "empty",
                "second until end",
                "12+4096",
                "two\nlines"
            ][..]
        )
        .prop_map(|text| String(text.into())),
        prop::sample::select(&[-1, 0, 1, 12, 3600, 3601, 5_000_000_000_i64][..]).prop_map(Integer),
        any::<bool>().prop_map(Boolean),
        Just(Float(1.5)),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Array),
            prop::collection::btree_map("kind|name|first|second|[a-z]{1,3}|A_B|", inner, 0..3)
                .prop_map(|fields| Table(fields.into_iter().collect())),
        ]
    })
}

#[derive(Debug, Clone)]
enum Edit {
    Replace(toml::Value),
    Remove,
    Add(String, toml::Value),
    Move(usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    const KEYS: [&str; 12] = [
        "title",
        "command",
        "state",
        "expect",
        "at",
        "order",
        "never",
        "name",
        "kind",
        "time-limit",
        "unheard-of",
        "file",
    ];
    prop_oneof![
        3 => replacement().prop_map(Edit::Replace),
        1 => Just(Edit::Remove),
        2 => (prop::sample::select(&KEYS[..]), replacement()).prop_map(|(key, value)| Edit::Add(key.into(), value)),
        1 => any::<prop::sample::Index>().prop_map(|index| Edit::Move(index.index(1000))),
    ]
}

/// All places of the document, as keys and indices.
fn places(value: &toml::Value, here: &[String], all: &mut Vec<Vec<String>>) {
    let children: Vec<(String, &toml::Value)> = match value {
        toml::Value::Table(table) => {
            table.iter().map(|(key, value)| (key.clone(), value)).collect()
        }
        toml::Value::Array(items) => {
            items.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect()
        }
        _ => Vec::new(),
    };
    for (step, child) in children {
        let place = [here, &[step]].concat();
        all.push(place.clone());
        places(child, &place, all);
    }
}

fn at<'v>(value: &'v mut toml::Value, place: &[String]) -> &'v mut toml::Value {
    place.iter().fold(value, |value, step| match value {
        toml::Value::Array(items) => &mut items[step.parse::<usize>().unwrap()],
        table => &mut table[step.as_str()],
    })
}

fn apply(document: &mut toml::Value, place: &[String], edit: Edit, all: &[Vec<String>]) {
    let (step, parent) = place.split_last().unwrap();
    match edit {
        Edit::Replace(new) => *at(document, place) = new,
        Edit::Move(index) => *at(document, place) = at(document, &all[index % all.len()]).clone(),
        Edit::Remove => match at(document, parent) {
            toml::Value::Array(items) => drop(items.remove(step.parse().unwrap())),
            toml::Value::Table(table) => drop(table.remove(step)),
            _ => unreachable!(),
        },
        Edit::Add(key, new) => match at(document, place) {
            toml::Value::Table(table) => drop(table.insert(key, new)),
            toml::Value::Array(items) => items.push(new),
            other => *other = new,
        },
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 600, ..ProptestConfig::default() })]

    /// A file that was changed at one place is refused by the parser if the schema refuses it; and if the schema lets
    /// it through, what the parser finds is nothing that a schema could say.
    #[test]
    fn parser_and_schema_agree(place in any::<prop::sample::Index>(), edit in edit()) {
        let mut document: toml::Value = toml::from_str(FULL).unwrap();
        let mut all = Vec::new();
        places(&document, &[], &mut all);
        apply(&mut document, &all[place.index(all.len())], edit, &all);
        let text = toml::to_string(&document).unwrap();
        schema_agrees(&text, &OneFile::new(&text).load());
    }
}
