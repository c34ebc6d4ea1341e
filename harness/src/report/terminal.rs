//! For people: a line for each fault of each scenario, findings in full, and a last line that sums up.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};

use super::disks::{tell_disks, tell_shares};
use super::finding::tell_result;
use super::row::{OK, Palette, rows, skipped_row};
use super::summary::{Strictness, Summary};
use super::{Event, Reporter};
use crate::run::{DiskResult, LabError, Repaired};
use crate::wrap::{COLUMNS, counted, wrapped};

/// Prints to standard output; progress goes to standard error, if that is a terminal.
#[derive(Debug)]
pub struct Terminal<W> {
    out: W,
    palette: Palette,
    /// There is one program, and no scenario.
    one_program: bool,
    progress: bool,
    strictness: Strictness,
    /// So far.
    pub summary: Summary,
    rows: BTreeMap<String, String>,
    findings: BTreeMap<String, String>,
    /// Masks and notes, with the scenarios that have them.
    notes: BTreeMap<String, Vec<String>>,
    total: usize,
    /// Scenarios that were not tried to their end, since the run was told to stop.
    stopped: usize,
    seen: usize,
    begun: std::time::Instant,
    /// The longest of a scenario: it can have begun before the report.
    elapsed: std::time::Duration,
}

impl<W: Write> Terminal<W> {
    /// A reporter that writes to `out`, with colours or without.
    pub fn new(out: W, colour: bool, strictness: Strictness) -> Terminal<W> {
        Self::with(out, colour, strictness, false)
    }

    /// A reporter of one program that is no scenario.
    pub fn of_one_program(out: W, colour: bool, strictness: Strictness) -> Terminal<W> {
        Self::with(out, colour, strictness, true)
    }

    fn with(out: W, colour: bool, strictness: Strictness, one_program: bool) -> Terminal<W> {
        let progress = std::io::stderr().is_terminal();
        Terminal {
            out,
            palette: Palette(colour),
            one_program,
            progress,
            strictness,
            summary: Summary::default(),
            rows: BTreeMap::new(),
            findings: BTreeMap::new(),
            notes: BTreeMap::new(),
            total: 0,
            stopped: 0,
            seen: 0,
            begun: std::time::Instant::now(),
            elapsed: std::time::Duration::ZERO,
        }
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

    fn finish(&mut self) {
        self.show_progress("");
        let rows: String = std::mem::take(&mut self.rows).into_values().collect();
        let findings: Vec<String> = std::mem::take(&mut self.findings).into_values().collect();
        self.print(&rows);
        if !findings.is_empty() {
            self.print(&format!("\n{}", findings.join("\n")));
        }
        if !self.notes.is_empty() {
            self.print("\n");
        }
        for (note, names) in std::mem::take(&mut self.notes) {
            if self.one_program {
                self.print(&wrapped("note ", &note, COLUMNS));
                continue;
            }
            let names = match names.as_slice() {
                all if all.len() == self.total && all.len() > 1 => "all".to_owned(),
                [one] => one.clone(),
                [first, more @ ..] => format!("{first} and {} more", more.len()),
                [] => continue,
            };
            self.print(&wrapped("note ", &format!("{note} ({names})"), COLUMNS));
        }
        let line = self.last_line();
        self.print(&format!("\n{}", wrapped("", &line, COLUMNS)));
        if self.summary.failed + self.summary.not_measured > 0 {
            self.print("What the words mean: crashlab run --help\n");
        }
        _ = self.out.flush();
    }

    fn last_line(&self) -> String {
        let summary = &self.summary;
        if self.total == 0 {
            return "nothing was tried: the build failed".to_owned();
        }
        let cases = counted(summary.cases, "case");
        let mut parts = match self.one_program {
            true => match summary.faults {
                0 => vec![format!("no fault found in {cases}")],
                some => vec![format!("{} in {cases}", counted(some, "fault"))],
            },
            false => {
                vec![format!("{} of {} held", summary.held, counted(self.total, "scenario")), cases]
            }
        };
        if summary.found > 0 {
            parts.push(format!("{} found (*)", counted(summary.found, "planted fault")));
        }
        let counts = [
            (self.stopped, "stopped"),
            (if self.one_program { 0 } else { summary.failed }, "failed"),
            (summary.broken, "wrong themselves"),
            (summary.unable, "could not run here"),
            (summary.not_measured, "cases not measured"),
            (summary.untried, "not tried, for want of what they need"),
            (summary.skipped, "cases skipped"),
            (summary.warnings, "warnings"),
        ];
        if summary.tried > 0 {
            let (confirmed, tried) = (summary.confirmed, summary.tried);
            let but = match summary.but_for_chance {
                0 => String::new(),
                some => format!(" ({some} but for what is another in each run, such as times)"),
            };
            parts.push(format!("confirmed {confirmed} of {tried} by real kills{but}"));
        }
        parts.extend(
            counts
                .iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, what)| format!("{count} {what}")),
        );
        let elapsed = self.elapsed.max(self.begun.elapsed());
        format!("{} ({:.1} s)", parts.join(", "), elapsed.as_secs_f64())
    }
}

impl<W: Write> Reporter for Terminal<W> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Building { command } => self.show_progress(&format!("building: {command}")),
            Event::Begun { scenarios } => {
                self.total = scenarios;
                self.begun = std::time::Instant::now();
                self.show_progress("");
            }
            Event::Ended { result, .. } => {
                self.elapsed = self.elapsed.max(result.elapsed);
                let holds = self.summary.add(result, &self.strictness);
                let row = rows(result, holds, self.palette);
                self.rows.insert(result.name.clone(), row);
                let masks = result.masks.iter().map(|mask| format!("masked: {mask}"));
                let shares = result.faults.iter().filter_map(tell_shares);
                for note in masks.chain(shares).chain(result.notes.iter().cloned()) {
                    self.notes.entry(note).or_default().push(result.name.clone());
                }
                let mut findings = tell_result(result);
                let is_told = |disk: &DiskResult| disk.repair != Repaired::NoNeed;
                for fault in result.faults.iter().filter(|_| self.one_program) {
                    if !fault.disks.iter().any(is_told) {
                        findings += &tell_disks(fault);
                    }
                }
                if !findings.is_empty() {
                    self.findings.insert(result.name.clone(), findings);
                }
                self.seen += 1;
            }
            Event::Failed { scenario: Some(scenario), error: error @ LabError::Missing(why) } => {
                self.summary.add_error(error, &self.strictness);
                let row = skipped_row(&scenario.name, why, &self.strictness, self.palette);
                self.rows.insert(scenario.name.clone(), row);
                self.seen += 1;
            }
            Event::Failed { scenario: Some(scenario), error: error @ LabError::Interrupted } => {
                self.summary.add_error(error, &self.strictness);
                let mark = self.palette.bad("STOP");
                let told = format!("{mark} {:40} not tried to its end\n", scenario.name);
                let known = self.rows.entry(scenario.name.clone()).or_default();
                // What is known of it says nothing of the rest: it is not `ok`.
                *known = match known.strip_prefix(&self.palette.good(OK)) {
                    Some(rest) => format!("{mark}{rest}     not tried to its end\n"),
                    None => format!("{known}{told}"),
                };
                self.stopped += 1;
            }
            Event::Failed { scenario, error } => {
                self.summary.add_error(error, &self.strictness);
                let name = scenario.map_or("build", |scenario| scenario.name.as_str()).to_owned();
                let mark = self.palette.bad("FAIL");
                self.rows.insert(name.clone(), format!("{mark} {name:40} could not be run\n"));
                let error = error.to_string();
                let (first, rest) = error.split_once('\n').unwrap_or((&error, ""));
                let rest = if rest.is_empty() { String::new() } else { format!("{rest}\n") };
                let told = format!("{name}\n{}{rest}", wrapped("  ", first, COLUMNS));
                self.findings.insert(name.clone(), told);
                self.seen += 1;
                if scenario.is_none() {
                    self.finish();
                }
            }
            Event::Done => self.finish(),
        }
    }
}
