//! A scenario in the matrix: a row for each kind of fault, with its verdicts counted.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use crate::judge::{Grade, Word};
use crate::run::{FaultResult, ScenarioResult};

/// As wide as a name may be beside its verdicts; a longer one gets a line of its own.
const NAME_COLUMNS: usize = 40;

/// Colours, or none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Palette(pub(super) bool);

impl Palette {
    pub(super) fn bad(self, text: &str) -> String {
        self.paint(AnsiColor::Red.on_default().bold(), text)
    }

    fn good(self, text: &str) -> String {
        self.paint(AnsiColor::Green.on_default(), text)
    }

    fn paint(self, style: Style, text: &str) -> String {
        if self.0 { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

/// The rows of a scenario.
pub(super) fn rows(result: &ScenarioResult, holds: bool, palette: Palette) -> String {
    let mark = if holds { palette.good("ok  ") } else { palette.bad("FAIL") };
    let mut kinds: Vec<(&str, Vec<&FaultResult>)> = Vec::new();
    for fault in &result.faults {
        match kinds.iter_mut().find(|(kind, _)| *kind == fault.kind) {
            Some((_, faults)) => faults.push(fault),
            None => kinds.push((fault.kind, vec![fault])),
        }
    }
    let mut text = String::new();
    let mut head = (mark.as_str(), result.name.as_str());
    for (kind, faults) in kinds {
        let (mark, name) = std::mem::replace(&mut head, ("    ", ""));
        let tally = tally(&faults, palette);
        if name.chars().count() > NAME_COLUMNS {
            _ = writeln!(text, "{mark} {name}\n     {:NAME_COLUMNS$} {kind:7} {tally}", "");
        } else {
            _ = writeln!(text, "{mark} {name:NAME_COLUMNS$} {kind:7} {tally}");
        }
    }
    text
}

/// `old 12, new 3, torn 4*`: the star says that it was expected.
fn tally(faults: &[&FaultResult], palette: Palette) -> String {
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
    let mut words: Vec<String> =
        counts.iter().map(|(word, count)| count.show(*word, palette)).collect();
    let missing = faults.iter().flat_map(|fault| fault.missing());
    words.extend(missing.map(|word| palette.bad(&format!("no {word}"))));
    words.join(", ")
}

#[derive(Debug, Default)]
struct Count {
    cases: usize,
    expected: bool,
    /// The worst.
    grade: Option<Grade>,
}

impl Count {
    fn show(&self, word: Word, palette: Palette) -> String {
        let text = format!("{word} {}", self.cases);
        match self.grade {
            _ if self.expected => palette.paint(AnsiColor::Cyan.on_default(), &format!("{text}*")),
            Some(Grade::Fault) => palette.bad(&text),
            Some(Grade::Warning | Grade::Unknown) => {
                palette.paint(AnsiColor::Yellow.on_default(), &text)
            }
            _ => text,
        }
    }
}
