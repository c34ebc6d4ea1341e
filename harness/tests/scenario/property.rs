//! What must hold for any text as a scenario file, for property tests and for the fuzz target `scenario`.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use crashlab::fault::damage::Wish;
use crashlab::scenario::{FaultKind, KillPoint, Scenario, ScenarioError, Turn, Until, schema_text};
use serde_json::Value;

use super::validator::is_valid;

/// Panics unless the text is a scenario that keeps what the format promises to those who run it, or all that is said to
/// be wrong with it has a place in it and can be shown; and parser and schema say the same.
pub(crate) fn holds_for(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // In a folder that every machine has.
    let read = Scenario::parse(Path::new("/case.toml"), text);
    schema_agrees(text, &read);
    match read {
        Ok(scenario) => keeps_its_promises(&scenario, text),
        Err(errors) => {
            assert!(!errors.is_empty(), "refused for no reason");
            errors.iter().for_each(|error| can_be_shown(error, text));
        }
    }
}

/// The schema lets through what the parser reads; and what it lets through as well, the parser refuses for what no schema
/// could say.
pub(crate) fn schema_agrees(text: &str, read: &Result<Scenario, Vec<ScenarioError>>) {
    let valid = toml::from_str::<toml::Table>(text).is_ok_and(|table| {
        is_valid(&serde_json::to_value(table).expect("TOML fits JSON"), schema(), schema())
    });
    match read {
        Ok(_) => assert!(valid, "only the parser takes this:\n{text}"),
        Err(errors) => {
            let beyond =
                errors.iter().all(|error| beyond_a_schema(error.found(), error.expected()));
            assert_eq!(valid, beyond, "{errors:#?}\n{text}");
        }
    }
}

pub(crate) fn schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> =
        LazyLock::new(|| serde_json::from_str(&schema_text()).expect("the schema is JSON"));
    &SCHEMA
}

/// A number in quotes begins with a zero: that a pattern can tell.
fn has_leading_zero(found: &str) -> bool {
    found.split('"').nth(1).is_some_and(|number| number.starts_with('0') && number.len() > 1)
}

/// What only the parser can see: it says so with one of these.
fn beyond_a_schema(found: &str, expected: &str) -> bool {
    expected.starts_with("a regular expression; this one does not compile")
        || expected.contains("number of an op, at most") && !has_leading_zero(found)
        || expected.starts_with("a name of `processes`")
        || expected.starts_with("a name that no other")
        || expected.starts_with("one of `state`")
        || expected.starts_with("a folder, relative to")
        || expected.starts_with("`folder` as well")
        || found == "the program's name is empty"
        || found.ends_with("nor in a folder of `watch`")
}

/// What the later stations rely on and do not check again.
fn keeps_its_promises(scenario: &Scenario, text: &str) {
    assert_eq!(scenario.name, "case");
    assert!(scenario.root.is_absolute() && scenario.root.is_dir(), "{}", scenario.root.display());
    let subject = &scenario.subject;
    assert!(!subject.state.is_empty() && !scenario.faults.is_empty());
    let watched = subject.state.iter().chain(&subject.volatile).chain(&subject.effects);
    watched.for_each(|path| stays_below(path));
    for ack in subject.ack.iter().filter(|ack| !ack.starts_with("mark:")) {
        regex::Regex::new(ack).expect("an acknowledgement compiles");
    }
    let lines = text.matches('\n').count() + 1;
    let mut names = BTreeSet::new();
    for fault in &scenario.faults {
        let is_usual = fault.line == 0 && scenario.faults.len() == 2;
        assert!(is_usual || (1..=lines).contains(&fault.line), "line {} of {lines}", fault.line);
        if let FaultKind::Overlap { name, .. } | FaultKind::Alert { name, .. } = &fault.kind {
            assert!(names.insert(name), "{name} is there twice");
        }
        is_sound(&fault.kind, &subject.state);
    }
}

fn stays_below(path: &Path) {
    let mut parts = path.components().peekable();
    assert!(parts.peek().is_some(), "an empty path");
    assert!(parts.all(|part| matches!(part, Component::Normal(_))), "{}", path.display());
}

fn is_sound(fault: &FaultKind, state: &[PathBuf]) {
    match fault {
        FaultKind::Kill { at } => {
            assert!(!at.is_empty());
            for point in at {
                assert_eq!(point.to_string().parse::<KillPoint>().as_ref(), Ok(point));
            }
        }
        FaultKind::Power(fault) => assert!(!fault.models.is_empty() && fault.states != Some(0)),
        FaultKind::Race(_) => {}
        FaultKind::Damage(fault) => {
            let file = &fault.file;
            assert!(!fault.damages.is_empty() && fault.at_most > 0);
            assert!(state.iter().any(|state| file.starts_with(state)), "{}", file.display());
            for wish in &fault.damages {
                assert_eq!(wish.to_string().parse::<Wish>().as_ref(), Ok(wish));
            }
        }
        FaultKind::Overlap { processes, order, says, .. } => {
            let is_known = |name: &String| processes.iter().any(|(known, _)| known == name);
            assert!(processes.len() >= 2 && !order.is_empty());
            for turn in order {
                assert!(is_known(&turn.process), "{turn}");
                assert_eq!(turn.to_string().parse::<Turn>().as_ref(), Ok(turn));
            }
            assert!(says.keys().all(is_known));
            says.values().for_each(|saying| drop(regex::Regex::new(saying).expect("it compiles")));
        }
        FaultKind::Idle { never } => {
            for mark in never {
                let turn = Turn { process: "a".to_owned(), until: Until::Mark(mark.clone()) };
                assert_eq!(turn.to_string().parse::<Turn>(), Ok(turn));
            }
        }
        FaultKind::Alert { says, .. } => drop(regex::Regex::new(says).expect("it compiles")),
    }
}

/// The place is in the text, and nothing of the message can mislead who reads it.
fn can_be_shown(error: &ScenarioError, text: &str) {
    let line = error.line().and_then(|line| text.split('\n').nth(line.checked_sub(1)?));
    let line = line.unwrap_or_else(|| panic!("no such line: {error}"));
    let columns = 1..=line.chars().count() + 1;
    assert!(
        error.column().is_some_and(|column| columns.contains(&column)),
        "no such column: {error}"
    );
    assert!(!error.found().is_empty() && !error.expected().is_empty(), "{error}");
    let one_line = error.to_string();
    assert!(!one_line.contains(misleads), "{one_line:?}");
    for columns in [80, text.len() % 80] {
        let rendered = error.render(columns);
        assert!(rendered.contains('^'), "{rendered}");
        for line in rendered.lines() {
            assert!(!line.contains(misleads), "{line:?}");
            assert!(columns < 80 || fits(line, columns), "too wide: {line:?}");
        }
    }
}

/// A terminal obeys it, or writes on from right to left.
fn misleads(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A word that is too long for a line has one to itself.
fn fits(line: &str, columns: usize) -> bool {
    const LABELS: [&str; 3] = ["error: ", "= expected: ", "= did you mean "];
    let line_length = line.chars().count();
    let bare = line.trim_start();
    let words = LABELS.iter().find_map(|label| bare.strip_prefix(label)).unwrap_or(bare);
    line_length <= columns || !words.contains(' ')
}
