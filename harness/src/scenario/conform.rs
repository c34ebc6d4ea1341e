//! Walks a parsed file along the JSON Schema and names every place where the two differ.
//!
//! The schema is the one that editors get, so parser and schema cannot drift apart. Only the keywords that occur in it are
//! understood; a test holds that no other occurs.

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::Mistake;
use super::expect;
use super::forms::Form;
use super::nearest::nearest;

/// Every way in which the document differs from the schema.
pub(super) fn mistakes(document: &Spanned<DeTable<'_>>, schema: &Value) -> Vec<Mistake> {
    let mut walk = Walk { root: schema, mistakes: Vec::new() };
    walk.table(document.get_ref(), document.span(), schema, "");
    walk.mistakes.sort_by_key(|mistake| mistake.span.start);
    walk.mistakes
}

struct Walk<'s> {
    root: &'s Value,
    mistakes: Vec<Mistake>,
}

impl<'s> Walk<'s> {
    /// The schema behind references.
    fn resolve(&self, schema: &'s Value) -> &'s Value {
        let inner = schema.get("allOf").and_then(|all| all.get(0));
        let schema = inner.unwrap_or(schema);
        match schema.get("$ref").and_then(Value::as_str) {
            Some(reference) => self
                .root
                .pointer(reference.trim_start_matches('#'))
                .map_or(schema, |target| self.resolve(target)),
            None => schema,
        }
    }

    /// `name` is how messages call the value.
    fn value(&mut self, value: &Spanned<DeValue<'_>>, schema: &'s Value, name: &str) {
        let schema = self.resolve(schema);
        if let Some(words) = words(schema) {
            return self.word(value, &words, name);
        }
        if let Some(branches) = schema.get("oneOf").and_then(Value::as_array) {
            return self.tagged(value, branches, name);
        }
        if let Some(branches) = schema.get("anyOf").and_then(Value::as_array) {
            let fits = |branch: &&Value| is_of_type(value.get_ref(), branch);
            return match branches.iter().map(|branch| self.resolve(branch)).find(fits) {
                Some(branch) => self.value(value, branch, name),
                None => self.wrong_type(value, schema, name),
            };
        }
        if !is_of_type(value.get_ref(), schema) {
            return self.wrong_type(value, schema, name);
        }
        match value.get_ref() {
            DeValue::String(text) => self.text(text, value, schema, name),
            DeValue::Integer(number) => {
                let parsed = i64::from_str_radix(number.as_str(), number.radix()).ok();
                self.integer(parsed, value, schema, name);
            }
            DeValue::Array(items) => self.array(items, value, schema, name),
            DeValue::Table(table) => self.table(table, value.span(), schema, name),
            _ => {}
        }
    }

    fn wrong_type(&mut self, value: &Spanned<DeValue<'_>>, schema: &'s Value, name: &str) {
        let mistake = Mistake::new(
            value.span(),
            format!("{name} is {}", described(value.get_ref())),
            self.expected(schema),
        );
        let items = self.resolve(&schema["items"]);
        let of_tables = items.get("oneOf").is_some() && words(items).is_none();
        let repair = match (value.get_ref(), schema["type"].as_str()) {
            (DeValue::String(text), Some("array")) if !of_tables => Some(format!("[{text:?}]")),
            (DeValue::Table(_), Some("array")) if of_tables => Some("[[fault]]".to_owned()),
            (DeValue::String(text), Some("integer")) if text.parse::<i64>().is_ok() => {
                Some(text.to_string())
            }
            (DeValue::String(text), Some("boolean")) if matches!(&**text, "true" | "false") => {
                Some(text.to_string())
            }
            _ => None,
        };
        self.mistakes.push(mistake.or(repair));
    }

    /// One of a closed list of words.
    fn word(&mut self, value: &Spanned<DeValue<'_>>, words: &[&str], name: &str) {
        let text = value.get_ref().as_str();
        if text.is_some_and(|text| words.contains(&text)) {
            return;
        }
        let mut found = format!("{name} is {}", described(value.get_ref()));
        if name.ends_with("`expect`")
            && let Some(reason) = text.and_then(expect::why_not)
        {
            found += &format!(" ({reason})");
        }
        let expected = format!("one of {}", quoted(words));
        let near = text.and_then(|text| nearest(text, words.iter().copied()));
        self.mistakes.push(Mistake::new(value.span(), found, expected).or(near));
    }

    /// A table that says by `kind` which of several it is.
    fn tagged(&mut self, value: &Spanned<DeValue<'_>>, branches: &'s [Value], name: &str) {
        const TAG: &str = "kind";
        let kind_of = |branch: &'s Value| branch["properties"][TAG]["const"].as_str();
        let kinds: Vec<&str> = branches.iter().filter_map(kind_of).collect();
        let Some(table) = value.get_ref().as_table() else {
            let found = format!("{name} is {}", described(value.get_ref()));
            self.mistakes.push(Mistake::new(value.span(), found, "a table, `[[fault]]`"));
            return;
        };
        let Some(kind) = table.get(TAG) else {
            let found = format!("{name} has no `{TAG}`");
            let expected = format!("`{TAG}`: one of {}", quoted(&kinds));
            self.mistakes.push(Mistake::new(value.span(), found, expected));
            return;
        };
        let wanted = kind.get_ref().as_str();
        match branches.iter().find(|branch| wanted == kind_of(branch)) {
            Some(branch) => {
                let name = format!("the fault `{}`", wanted.unwrap_or_default());
                self.table(table, value.span(), branch, &name);
            }
            None => self.word(kind, &kinds, &format!("`{TAG}`")),
        }
    }

    fn table(
        &mut self,
        table: &DeTable<'_>,
        span: std::ops::Range<usize>,
        schema: &'s Value,
        name: &str,
    ) {
        let fields = schema.get("properties").and_then(Value::as_object);
        let others = schema.get("additionalProperties");
        let mut meant = Vec::new();
        for (key, value) in table {
            let shown = match value.get_ref() {
                DeValue::Table(_) if name.is_empty() => format!("`[{}]`", key.get_ref()),
                _ => format!("`{}`", key.get_ref()),
            };
            match (fields.and_then(|fields| fields.get(&**key.get_ref())), others) {
                (Some(field), _) if field.get("const").is_some() => {}
                (Some(field), _) => self.value(value, field, &shown),
                (None, Some(Value::Bool(false))) => meant.extend(self.unknown(key, schema, name)),
                (None, Some(other)) => {
                    if let Some(form) = schema.get("propertyNames").and_then(form_of) {
                        self.form(form, key.get_ref(), key.span(), "the key");
                    }
                    self.value(value, other, &shown);
                }
                (None, None) => {}
            }
        }
        let present = |key: &str| table.contains_key(key) || meant.contains(&key);
        self.missing(present, &span, schema, name);
        let least = schema.get("minProperties").and_then(Value::as_u64);
        if least.is_some_and(|least| (table.len() as u64) < least) {
            let found = format!("{name} has {}", counted(table.len(), "entry", "entries"));
            let expected = format!("at least {} entries", least.unwrap_or_default());
            self.mistakes.push(Mistake::new(span, found, expected));
        }
    }

    /// Says that the key does not exist here, and returns the one that was probably meant.
    fn unknown(
        &mut self,
        key: &Spanned<std::borrow::Cow<'_, str>>,
        schema: &'s Value,
        name: &str,
    ) -> Option<&'s str> {
        let wrong = &**key.get_ref();
        let fields = keys_of(schema);
        let place = match name {
            "" => "at the top level".to_owned(),
            _ => format!("in {name}"),
        };
        let homes: Vec<String> = homes(self.root)
            .into_iter()
            .filter(|(_, keys)| keys.contains(&wrong))
            .map(|(home, _)| home)
            .collect();
        let mut found = format!("unknown key `{wrong}` {place}");
        if !homes.is_empty() {
            found += &format!(" (it belongs to {})", homes.join(", "));
        }
        let expected = format!("one of {}", quoted(&fields));
        let near = nearest(wrong, fields);
        self.mistakes.push(Mistake::new(key.span(), found, expected).or(near));
        near
    }

    fn missing(
        &mut self,
        present: impl Fn(&str) -> bool,
        span: &std::ops::Range<usize>,
        schema: &'s Value,
        name: &str,
    ) {
        let required = schema.get("required").and_then(Value::as_array);
        for key in required.into_iter().flatten().filter_map(Value::as_str) {
            if present(key) {
                continue;
            }
            let field = &schema["properties"][key];
            let meaning = field["description"].as_str().unwrap_or_default();
            let owner = if name.is_empty() { "the file" } else { name };
            self.mistakes.push(Mistake::new(
                span.clone(),
                format!("{owner} has no `{key}`"),
                format!("`{key}`, {}: {}", self.expected(field), meaning.trim_end_matches('.')),
            ));
        }
    }

    fn array(
        &mut self,
        items: &[Spanned<DeValue<'_>>],
        value: &Spanned<DeValue<'_>>,
        schema: &'s Value,
        name: &str,
    ) {
        let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        if (items.len() as u64) < least {
            let found = format!("{name} has {}", counted(items.len(), "element", "elements"));
            self.mistakes.push(Mistake::new(value.span(), found, self.expected(schema)));
        }
        if let Some(item_schema) = schema.get("items") {
            for (index, item) in items.iter().enumerate() {
                let element = format!("element {} of {name}", index + 1);
                self.value(item, item_schema, &element);
            }
        }
    }

    fn integer(
        &mut self,
        number: Option<i64>,
        value: &Spanned<DeValue<'_>>,
        schema: &'s Value,
        name: &str,
    ) {
        let least = schema["minimum"].as_i64().unwrap_or(i64::MIN);
        let most = schema["maximum"].as_i64().unwrap_or(i64::MAX);
        if number.is_some_and(|number| (least..=most).contains(&number)) {
            return;
        }
        let found = format!("{name} is {}", described(value.get_ref()));
        self.mistakes.push(Mistake::new(value.span(), found, self.expected(schema)));
    }

    fn text(&mut self, text: &str, value: &Spanned<DeValue<'_>>, schema: &'s Value, name: &str) {
        if let Some(form) = form_of(schema) {
            self.form(form, text, value.span(), name);
        }
    }

    fn form(&mut self, form: Form, text: &str, span: std::ops::Range<usize>, name: &str) {
        if let Err(error) = form.check(text) {
            let found = format!("{name} is {}", shown(text));
            self.mistakes.push(Mistake::new(span, found, error.expected).or(error.nearest));
        }
    }

    /// What a schema asks for, in words.
    fn expected(&self, schema: &'s Value) -> String {
        let schema = self.resolve(schema);
        if let Some(branches) = schema.get("anyOf").and_then(Value::as_array) {
            let branches: Vec<String> =
                branches.iter().map(|branch| self.expected(branch)).collect();
            return branches.join(" or ");
        }
        if let Some(words) = words(schema) {
            return format!("one of {}", quoted(&words));
        }
        match schema["type"].as_str() {
            Some("string") => "a string".into(),
            Some("boolean") => "true or false".into(),
            Some("integer") => match (schema["minimum"].as_i64(), schema["maximum"].as_i64()) {
                (Some(least), Some(most)) => format!("a whole number from {least} to {most}"),
                _ => "a whole number".into(),
            },
            Some("array") => {
                let items = self.resolve(&schema["items"]);
                let of = match items["type"].as_str() {
                    Some("string") => " of strings",
                    None if items["oneOf"][0]["properties"].is_object() => " of tables",
                    None if words(items).is_some() => " of words",
                    _ => "",
                };
                match schema["minItems"].as_u64() {
                    Some(_) => format!("an array{of} with at least one element"),
                    None => format!("an array{of}"),
                }
            }
            _ => "a table".into(),
        }
    }
}

/// The words of a closed list, if the schema is one.
fn words(schema: &Value) -> Option<Vec<&str>> {
    let branches = schema.get("oneOf")?.as_array()?;
    branches.iter().map(|branch| branch.get("const")?.as_str()).collect()
}

fn form_of(schema: &Value) -> Option<Form> {
    Form::named(schema.get("format")?.as_str()?)
}

/// All tables of the format, as messages call them, with their keys.
fn homes(root: &Value) -> Vec<(String, Vec<&str>)> {
    let definitions = &root["definitions"];
    let mut homes = vec![
        ("the top level".to_owned(), keys_of(root)),
        ("`[subject]`".to_owned(), keys_of(&definitions["Subject"])),
        ("`[recovery]`".to_owned(), keys_of(&definitions["Recovery"])),
    ];
    let faults = definitions["Fault"]["oneOf"].as_array();
    homes.extend(faults.into_iter().flatten().map(|fault| {
        let kind = fault["properties"]["kind"]["const"].as_str();
        let home = format!("the fault `{}`", kind.unwrap_or_default());
        (home, keys_of(fault))
    }));
    homes
}

fn keys_of(table: &Value) -> Vec<&str> {
    let fields = table["properties"].as_object();
    fields.into_iter().flat_map(|fields| fields.keys().map(String::as_str)).collect()
}

fn is_of_type(value: &DeValue<'_>, schema: &Value) -> bool {
    match schema["type"].as_str() {
        Some("string") => value.is_str(),
        Some("integer") => value.is_integer(),
        Some("boolean") => value.is_bool(),
        Some("array") => value.is_array(),
        Some("object") => value.is_table(),
        _ => true,
    }
}

/// A value as messages show it.
fn described(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the string {}", shown(text)),
        DeValue::Integer(number) => format!("the number {}", number.as_str()),
        DeValue::Float(number) => format!("the number {}", number.as_str()),
        DeValue::Boolean(truth) => truth.to_string(),
        DeValue::Datetime(_) => "a date or time".into(),
        DeValue::Array(_) => "an array".into(),
        DeValue::Table(_) => "a table".into(),
    }
}

/// A text in quotes, cut where it is long.
fn shown(text: &str) -> String {
    const MOST: usize = 40;
    if text.chars().count() <= MOST {
        return format!("{text:?}");
    }
    let beginning: String = text.chars().take(MOST - 3).collect();
    format!("{:?}", beginning + "...")
}

fn quoted(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

fn counted(count: usize, one: &str, many: &str) -> String {
    match count {
        0 => format!("no {one}"),
        1 => format!("only one {one}"),
        _ => format!("only {count} {many}"),
    }
}
