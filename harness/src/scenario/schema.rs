//! The JSON Schema of scenario files, generated from the types that read them.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::raw::RawScenario;

/// The schema (draft 7, which editors of TOML understand).
pub(super) fn schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(generate);
    &SCHEMA
}

fn generate() -> Value {
    let root = SchemaSettings::draft07().into_generator().into_root_schema_for::<RawScenario>();
    let mut schema = root.to_value();
    tidy(&mut schema);
    schema
}

/// The text of `harness/schema/scenario.schema.json`, as `crashlab schema` prints it.
pub fn schema_text() -> String {
    let mut text = format!("{:#}", schema());
    text.push('\n');
    text
}

/// Takes out what does not hold for TOML (there is no null) or says nothing to a reader (integer widths, line breaks of
/// doc comments).
fn tidy(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Object(object) => {
            object.values_mut().for_each(tidy);
            if let Some(Value::String(description)) = object.get_mut("description") {
                *description = description.replace('\n', " ");
            }
            if object.get("default").is_some_and(Value::is_null) {
                object.remove("default");
            }
            if matches!(
                object.get("format").and_then(Value::as_str),
                Some("uint64" | "uint32" | "uint")
            ) {
                object.remove("format");
            }
            if let Some(Value::Array(branches)) = object.get_mut("anyOf") {
                branches
                    .retain(|branch| branch.get("type").and_then(Value::as_str) != Some("null"));
                if branches.len() == 1
                    && let Some(only) = object.remove("anyOf")
                {
                    object.insert("allOf".into(), only);
                }
            }
        }
        _ => {}
    }
}
