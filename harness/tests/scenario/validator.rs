//! A validator for the part of JSON Schema (draft 7) that the scenario schema uses, independent of the parser's own walk.

use std::cell::RefCell;
use std::collections::HashMap;

use regex::Regex;
use serde_json::Value;

/// Whether the value is valid. Panics at a keyword that it does not know, so that none is ignored.
pub(crate) fn is_valid(value: &Value, schema: &Value, root: &Value) -> bool {
    let Value::Object(keywords) = schema else {
        return schema == &Value::Bool(true);
    };
    keywords.iter().all(|(keyword, argument)| holds(keyword, argument, value, schema, root))
}

fn holds(keyword: &str, argument: &Value, value: &Value, schema: &Value, root: &Value) -> bool {
    let branches = || argument.as_array().unwrap().iter();
    let valid = |branch: &&Value| is_valid(value, branch, root);
    match keyword {
        "$schema" | "title" | "description" | "default" | "definitions" | "format" => true,
        "$ref" => {
            let pointer = argument.as_str().unwrap().strip_prefix('#').unwrap();
            is_valid(value, root.pointer(pointer).unwrap(), root)
        }
        "allOf" => branches().all(|branch| valid(&branch)),
        "anyOf" => branches().any(|branch| valid(&branch)),
        "oneOf" => branches().filter(valid).count() == 1,
        "const" => value == argument,
        "type" => is_of_type(value, argument.as_str().unwrap()),
        "pattern" => {
            value.as_str().is_none_or(|text| compiled(argument.as_str().unwrap()).is_match(text))
        }
        "minimum" => value.as_f64().is_none_or(|number| number >= argument.as_f64().unwrap()),
        "maximum" => value.as_f64().is_none_or(|number| number <= argument.as_f64().unwrap()),
        "minItems" => {
            value.as_array().is_none_or(|items| items.len() as u64 >= argument.as_u64().unwrap())
        }
        "items" => value
            .as_array()
            .is_none_or(|items| items.iter().all(|item| is_valid(item, argument, root))),
        "minProperties" => {
            value.as_object().is_none_or(|fields| fields.len() as u64 >= argument.as_u64().unwrap())
        }
        "required" => value
            .as_object()
            .is_none_or(|fields| branches().all(|key| fields.contains_key(key.as_str().unwrap()))),
        "properties" => value.as_object().is_none_or(|fields| {
            let known = argument.as_object().unwrap();
            fields.iter().all(|(key, field)| {
                known.get(key).is_none_or(|schema| is_valid(field, schema, root))
            })
        }),
        "propertyNames" => value.as_object().is_none_or(|fields| {
            fields.keys().all(|key| is_valid(&Value::String(key.clone()), argument, root))
        }),
        "additionalProperties" => value.as_object().is_none_or(|fields| {
            let known = schema.get("properties").and_then(Value::as_object);
            let others = fields
                .iter()
                .filter(|(key, _)| known.is_none_or(|known| !known.contains_key(*key)));
            others.into_iter().all(|(_, field)| is_valid(field, argument, root))
        }),
        unknown => panic!("the schema uses `{unknown}`, which neither parser nor validator knows"),
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        unknown => panic!("the schema uses the type `{unknown}`"),
    }
}

/// Each pattern is compiled once.
fn compiled(pattern: &str) -> Regex {
    thread_local!(static COMPILED: RefCell<HashMap<String, Regex>> = RefCell::default());
    COMPILED.with_borrow_mut(|compiled| {
        let compile = || Regex::new(pattern).unwrap();
        compiled.entry(pattern.to_owned()).or_insert_with(compile).clone()
    })
}
