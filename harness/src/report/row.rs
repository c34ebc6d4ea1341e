//! A scenario in the matrix: a row for each kind of fault, with its verdicts counted.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use super::summary::Strictness;
use crate::judge::{Grade, Word};
use crate::run::{FaultResult, ScenarioResult};
use crate::wrap::{COLUMNS, wrapped};

/// As wide as a name may be beside its verdicts; a longer one gets a line of its own.
const NAME_COLUMNS: usize = 40;
/// The mark of what holds.
pub(super) const OK: &str = "ok  ";
/// Where the words of a row begin: behind the mark, the name and the kind.
const WORDS_BEGIN: usize = 5 + NAME_COLUMNS + 1 + 7 + 1;

/// Colours, or none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Palette(pub(super) bool);

impl Palette {
    pub(super) fn bad(self, text: &str) -> String {
        self.paint(AnsiColor::Red.on_default().bold(), text)
    }

    pub(super) fn good(self, text: &str) -> String {
        self.paint(AnsiColor::Green.on_default(), text)
    }

    fn paint(self, style: Style, text: &str) -> String {
        if self.0 { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

/// The rows of a scenario.
pub(super) fn rows(result: &ScenarioResult, holds: bool, palette: Palette) -> String {
    let mark = if holds { palette.good(OK) } else { palette.bad("FAIL") };
    let mut kinds: Vec<((&str, &str), Vec<&FaultResult>)> = Vec::new();
    for fault in &result.faults {
        let key = (fault.about.as_str(), fault.kind);
        match kinds.iter_mut().find(|(known, _)| *known == key) {
            Some((_, faults)) => faults.push(fault),
            None => kinds.push((key, vec![fault])),
        }
    }
    let mut text = String::new();
    let mut head = (mark.as_str(), result.name.as_str());
    let mut last = "";
    for ((about, kind), faults) in kinds {
        if !about.is_empty() && !head.1.is_empty() {
            _ = writeln!(text, "{} {}", head.0, head.1);
            head = ("    ", "");
        }
        let (mark, name) = std::mem::replace(&mut head, ("    ", ""));
        let is_new = std::mem::replace(&mut last, about) != about;
        let name = if is_new { about } else { name };
        let tally = tally(&faults, palette);
        let long = name.chars().count() > NAME_COLUMNS;
        let gap = if long { format!("\n     {:NAME_COLUMNS$}", "") } else { String::new() };
        _ = writeln!(text, "{mark} {name:NAME_COLUMNS$}{gap} {kind:7} {}", lines(&tally));
    }
    text
}

/// The row of a scenario that was not tried, for want of what it needs: no pass, and a failure only where that is denied.
pub(super) fn skipped_row(
    name: &str,
    why: &str,
    strictness: &Strictness,
    palette: Palette,
) -> String {
    let mark = match strictness.deny.contains(&Word::Skipped) {
        true => palette.bad("FAIL"),
        false => palette.paint(AnsiColor::Yellow.on_default(), "skip"),
    };
    let told = wrapped("     ", &format!("skipped: {why}"), COLUMNS);
    format!("{mark} {name}\n{told}")
}

/// `old 12, new 3, torn 4*`: the star says that it was expected.
fn tally(faults: &[&FaultResult], palette: Palette) -> Vec<Part> {
    let mut counts: BTreeMap<Word, Count> = BTreeMap::new();
    for fault in faults {
        for case in &fault.cases {
            let mut found = vec![(case.verdict.word, case.verdict.grade)];
            for (word, _) in &case.warnings {
                if !found.contains(&(*word, Grade::Warning)) {
                    found.push((*word, Grade::Warning));
                }
            }
            for (word, grade) in found {
                let count = counts.entry(word).or_default();
                count.cases += 1;
                count.expected |= fault.expect.contains(&word);
                count.grade = count.grade.max(Some(grade));
            }
        }
    }
    let mut words: Vec<Part> =
        counts.iter().map(|(word, count)| count.show(*word, palette)).collect();
    let missing = faults.iter().flat_map(|fault| fault.missing());
    words.extend(
        missing.map(|word| Part::new(format!("{word} not found"), |text| palette.bad(text))),
    );
    words
}

/// One word of a row, and how wide it is without its colour.
#[derive(Debug)]
struct Part {
    text: String,
    columns: usize,
}

impl Part {
    fn new(text: String, paint: impl Fn(&str) -> String) -> Part {
        Part { columns: text.chars().count(), text: paint(&text) }
    }
}

/// The words with commas between them, on as many lines as they need.
fn lines(parts: &[Part]) -> String {
    let mut text = String::new();
    let mut column = WORDS_BEGIN;
    for (position, part) in parts.iter().enumerate() {
        let comma = usize::from(position + 1 < parts.len());
        if position > 0 && column + 1 + part.columns + comma > COLUMNS {
            _ = write!(text, "\n{:WORDS_BEGIN$}", "");
            column = WORDS_BEGIN;
        } else if position > 0 {
            text.push(' ');
            column += 1;
        }
        text += &part.text;
        text += if comma > 0 { "," } else { "" };
        column += part.columns + comma;
    }
    text
}

#[derive(Debug, Default)]
struct Count {
    cases: usize,
    expected: bool,
    /// The worst.
    grade: Option<Grade>,
}

impl Count {
    fn show(&self, word: Word, palette: Palette) -> Part {
        let star = if self.expected { "*" } else { "" };
        Part::new(format!("{word} {}{star}", self.cases), |text| match self.grade {
            _ if self.expected => palette.paint(AnsiColor::Cyan.on_default(), text),
            Some(Grade::Fault) => palette.bad(text),
            Some(Grade::Warning | Grade::Unknown) => {
                palette.paint(AnsiColor::Yellow.on_default(), text)
            }
            _ => text.to_owned(),
        })
    }
}
