//! `crashlab models`: what each disk model guarantees, and where that is from.

use serde_json::json;

use super::{Code, ModelsArgs, Output};
use crate::fault::power::{DiskModel, MODELS};
use crate::wrap::{COLUMNS, wrapped};

/// Prints the table of models.
pub(super) fn models(args: &ModelsArgs, out: &mut Output<'_>) -> Code {
    for (index, model) in MODELS.iter().enumerate() {
        match args.json {
            true => out.line(&as_json(model)),
            false => out.print(&entry(model, index == 0)),
        }
    }
    Code::Held
}

/// A model for people.
fn entry(model: &DiskModel, is_default: bool) -> String {
    let mut entry = if is_default { String::new() } else { "\n".to_owned() };
    let default = if is_default { " (what is tried where none is named)" } else { "" };
    entry += &wrapped("", &format!("{}: {}{default}", model.name, model.about), COLUMNS);
    for rule in model.rules() {
        entry += &wrapped("  - ", rule.text, COLUMNS);
        entry += &wrapped("      ", rule.source, COLUMNS);
    }
    entry
}

fn as_json(model: &DiskModel) -> String {
    let rule = |rule: crate::fault::power::Rule| json!({"text": rule.text, "source": rule.source});
    let rules: Vec<serde_json::Value> = model.rules().into_iter().map(rule).collect();
    json!({"name": model.name, "about": model.about, "rules": rules}).to_string()
}
