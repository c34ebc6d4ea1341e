//! A second writer of the format, slow and in another style: it walks over a generic JSON value, character by character.

use long_horizon::checkpoint::Checkpoint;
use serde_json::{Value, json};

/// The checkpoint as a generic value, its fields in order.
pub(crate) fn value(checkpoint: &Checkpoint) -> Value {
    let answers = checkpoint.answers.iter().map(|(question, answer)| {
        (question.clone(), json!({ "text": answer.text, "citations": answer.citations }))
    });
    json!({
        "queue": checkpoint.queue,
        "notes": checkpoint.notes,
        "answers": answers.collect::<serde_json::Map<_, _>>(),
        "pending": checkpoint.pending.iter().map(|(q, r)| (q.clone(), json!(r))).collect::<serde_json::Map<_, _>>(),
        "sessions_run": checkpoint.sessions_run,
    })
}

/// What `json.dumps(value, indent=2) + "\n"` prints.
pub(crate) fn printed(value: &Value) -> String {
    format!("{}\n", pretty(value, 1))
}

fn pretty(value: &Value, depth: usize) -> String {
    let lines = |parts: Vec<String>, open: &str, close: &str| {
        if parts.is_empty() {
            return format!("{open}{close}");
        }
        let inner = format!("\n{}", "  ".repeat(depth));
        let outer = format!("\n{}", "  ".repeat(depth - 1));
        format!("{open}{inner}{}{outer}{close}", parts.join(&format!(",{inner}")))
    };
    match value {
        Value::String(text) => quoted(text),
        Value::Array(list) => lines(list.iter().map(|v| pretty(v, depth + 1)).collect(), "[", "]"),
        Value::Object(map) => {
            let member = |(name, v): (&String, &Value)| {
                format!("{}: {}", quoted(name), pretty(v, depth + 1))
            };
            lines(map.iter().map(member).collect(), "{", "}")
        }
        other => other.to_string(),
    }
}

fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\u{08}' => "\\b".to_owned(),
        '\u{0c}' => "\\f".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        ' '..='~' => c.to_string(),
        _ if u32::from(c) > 0xffff => {
            let beyond = u32::from(c) - 0x10000;
            format!("\\u{:04x}\\u{:04x}", 0xd800 + beyond / 0x400, 0xdc00 + beyond % 0x400)
        }
        _ => format!("\\u{:04x}", u32::from(c)),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

/// A generic value that is a checkpoint, as a session writes it: with all fields, in their order.
pub(crate) fn completed(value: &Value) -> Value {
    let field = |name: &str, missing: Value| value.get(name).cloned().unwrap_or(missing);
    let mut answers = field("answers", json!({}));
    for answer in answers.as_object_mut().into_iter().flat_map(|map| map.values_mut()) {
        *answer = json!({ "text": answer["text"], "citations": answer["citations"] });
    }
    json!({
        "queue": field("queue", json!([])),
        "notes": field("notes", json!([])),
        "answers": answers,
        "pending": field("pending", json!({})),
        "sessions_run": field("sessions_run", json!(0)),
    })
}

/// Whether a generic value is a checkpoint: the rules once more, in another style.
pub(crate) fn is_checkpoint(value: &Value) -> bool {
    let strings = |v: &Value| v.as_array().is_some_and(|list| list.iter().all(Value::is_string));
    let answer = |v: &Value| {
        v.as_object().is_some_and(|fields| fields.len() == 2)
            && v.get("text").is_some_and(Value::is_string)
            && v.get("citations").is_some_and(strings)
    };
    let each = |v: &Value, rule: &dyn Fn(&Value) -> bool| {
        v.as_object().is_some_and(|map| map.values().all(rule))
    };
    let Some(fields) = value.as_object() else {
        return false;
    };
    fields.contains_key("queue")
        && fields.iter().all(|(name, v)| match name.as_str() {
            "queue" | "notes" => strings(v),
            "answers" => each(v, &answer),
            "pending" => each(v, &Value::is_string),
            "sessions_run" => v.is_u64(),
            _ => false,
        })
}
