//! For people: a line for each fault of each scenario, findings in full, and a last line that sums up.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};

use anstyle::{AnsiColor, Style};

use super::finding::tell_result;
use super::summary::{Strictness, Summary};
use super::{Event, Reporter};
use crate::judge::{Grade, Word};
use crate::run::{FaultResult, ScenarioResult};

/// Prints to standard output; progress goes to standard error, if that is a terminal.
#[derive(Debug)]
pub struct Terminal<W> {
    out: W,
    colour: bool,
    progress: bool,
    strictness: Strictness,
    /// So far.
    pub summary: Summary,
    rows: BTreeMap<String, String>,
    findings: BTreeMap<String, String>,
    total: usize,
    seen: usize,
    begun: std::time::Instant,
}

impl<W: Write> Terminal<W> {
    /// A reporter that writes to `out`, with colours or without.
    pub fn new(out: W, colour: bool, strictness: Strictness) -> Terminal<W> {
        let progress = std::io::stderr().is_terminal();
        Terminal {
            out,
            colour,
            progress,
            strictness,
            summary: Summary::default(),
            rows: BTreeMap::new(),
            findings: BTreeMap::new(),
            total: 0,
            seen: 0,
            begun: std::time::Instant::now(),
        }
    }

    fn paint(&self, style: Style, text: &str) -> String {
        if self.colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    fn print(&mut self, text: &str) {
        // A reader that went away ends the report, not the run.
        _ = self.out.write_all(text.as_bytes());
    }

    fn show_progress(&self, text: &str) {
        if self.progress {
            _ = write!(std::io::stderr(), "\r\x1b[K{text}");
        }
    }

    fn row(&self, result: &ScenarioResult, holds: bool) -> String {
        let mut text = String::new();
        let (mark, style) = match holds {
            true => ("ok  ", AnsiColor::Green.on_default()),
            false => ("FAIL", AnsiColor::Red.on_default().bold()),
        };
        let mark = self.paint(style, mark);
        for (position, fault) in result.faults.iter().enumerate() {
            let (mark, name) =
                if position == 0 { (mark.as_str(), result.name.as_str()) } else { ("    ", "") };
            // A long name gets a line of its own, so that the verdicts stay in their column.
            if name.len() > 40 {
                _ = writeln!(text, "{mark} {name}");
                _ = writeln!(text, "{:45} {:7} {}", "", fault.kind, self.tally(fault));
            } else {
                _ = writeln!(text, "{mark} {name:40} {:7} {}", fault.kind, self.tally(fault));
            }
        }
        text
    }

    /// `old 12, new 3, torn 4*`: the star says that it was expected.
    fn tally(&self, fault: &FaultResult) -> String {
        let mut counts: BTreeMap<Word, usize> = BTreeMap::new();
        for case in &fault.cases {
            *counts.entry(case.verdict.word).or_default() += 1;
            let mut warned: Vec<Word> = case.warnings.iter().map(|(word, _)| *word).collect();
            warned.dedup();
            warned.into_iter().for_each(|word| *counts.entry(word).or_default() += 1);
        }
        let is_fault = |word: Word| {
            fault
                .cases
                .iter()
                .any(|case| case.verdict.word == word && case.verdict.grade == Grade::Fault)
        };
        let one =
            |(word, count): (&Word, &usize)| match (fault.expect.contains(word), is_fault(*word)) {
                (true, _) => self.paint(AnsiColor::Cyan.on_default(), &format!("{word} {count}*")),
                (false, true) => {
                    self.paint(AnsiColor::Red.on_default().bold(), &format!("{word} {count}"))
                }
                (false, false) if word.grade() != Grade::Good => {
                    self.paint(AnsiColor::Yellow.on_default(), &format!("{word} {count}"))
                }
                _ => format!("{word} {count}"),
            };
        let mut words: Vec<String> = counts.iter().map(one).collect();
        words.extend(
            fault
                .missing()
                .into_iter()
                .map(|word| self.paint(AnsiColor::Red.on_default().bold(), &format!("no {word}"))),
        );
        words.join(", ")
    }

    fn finish(&mut self) {
        self.show_progress("");
        let rows: String = std::mem::take(&mut self.rows).into_values().collect();
        let findings: Vec<String> = std::mem::take(&mut self.findings).into_values().collect();
        self.print(&rows);
        if !findings.is_empty() {
            self.print(&format!("\n{}", findings.join("\n")));
        }
        let line = self.last_line();
        self.print(&format!("\n{line}\n"));
        _ = self.out.flush();
    }

    fn last_line(&self) -> String {
        let summary = &self.summary;
        let mut parts = vec![format!("{} of {} scenarios held", summary.held, self.total)];
        parts.push(format!("{} cases", summary.cases));
        parts.push(format!("{} planted faults found (*)", summary.found));
        let counts = [
            (summary.failed, "failed"),
            (summary.broken, "wrong themselves"),
            (summary.unable, "could not run here"),
            (summary.not_measured, "cases not measured"),
            (summary.warnings, "warnings"),
        ];
        parts.extend(
            counts
                .iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, what)| format!("{count} {what}")),
        );
        if summary.interrupted {
            parts.push("interrupted".to_owned());
        }
        format!("{} ({:.1} s)", parts.join(", "), self.begun.elapsed().as_secs_f64())
    }
}

impl<W: Write> Reporter for Terminal<W> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Building { command } => self.show_progress(&format!("building: {command}")),
            Event::Begun { scenarios } => {
                self.total = scenarios;
                self.begun = std::time::Instant::now();
            }
            Event::Ended { result, .. } => {
                let holds = self.summary.add(result, &self.strictness);
                let row = self.row(result, holds);
                self.rows.insert(result.name.clone(), row);
                let findings = tell_result(result);
                if !findings.is_empty() {
                    self.findings.insert(result.name.clone(), findings);
                }
                self.seen += 1;
                self.show_progress(&format!("{} of {} scenarios", self.seen, self.total));
            }
            Event::Failed { scenario, error } => {
                self.summary.add_error(error);
                let name = scenario.map_or("build", |scenario| scenario.name.as_str()).to_owned();
                let mark = self.paint(AnsiColor::Red.on_default().bold(), "FAIL");
                self.rows.insert(name.clone(), format!("{mark} {name:40} could not be run\n"));
                self.findings.insert(name.clone(), format!("{name}\n  {error}\n"));
                self.seen += 1;
                if scenario.is_none() {
                    self.finish();
                }
            }
            Event::Done => self.finish(),
        }
    }
}
