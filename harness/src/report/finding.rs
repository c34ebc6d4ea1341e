//! Findings: cases of one fault with the same verdict, told together, the smallest first.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::judge::{Grade, Word, shape};
use crate::run::{Case, FaultResult, ScenarioResult};
use crate::tree::difference;
use crate::wrap::{COLUMNS, counted, shell_word, wrapped};

/// How many ids of a group are printed.
const IDS_MAX: usize = 8;
/// How many lines of a program's output are printed.
const SAID_LINES_MAX: usize = 6;
/// How many differences are printed.
const DIFFERENCES_MAX: usize = 4;

/// Everything in a result that a person should look at: unexpected faults, what was not measured, expected faults that
/// were not found, and warnings. Empty where there is nothing.
pub fn tell_result(result: &ScenarioResult) -> String {
    let mut text = String::new();
    for fault in &result.faults {
        let unexpected =
            groups(fault, |case| fault.is_unexpected(case) || case.verdict.grade == Grade::Unknown);
        unexpected.iter().for_each(|group| text.push_str(&tell(group, &result.replay)));
        for word in fault.missing() {
            _ = writeln!(text, "  {word} was expected of {}, and was not found", fault.kind);
        }
        for (word, what, ids) in warnings(fault) {
            let cases = counted(ids.len(), "case");
            _ = writeln!(text, "  {word}: {what} ({cases}, first {})", ids[0]);
        }
    }
    let (name, file) = (&result.name, result.file.display());
    match (text.is_empty(), result.file.as_os_str() == result.name.as_str()) {
        (true, _) => text,
        (false, true) => format!("{name}\n{text}"),
        (false, false) => format!("{name} ({file})\n{text}"),
    }
}

/// Warnings that were not expected, with the cases that have them. Names with a process id in them are told once.
fn warnings(fault: &FaultResult) -> Vec<(Word, &str, Vec<&str>)> {
    let mut told: BTreeMap<(Word, String), (&str, Vec<&str>)> = BTreeMap::new();
    for case in &fault.cases {
        for (word, what) in case.warnings.iter().filter(|(word, _)| !fault.expect.contains(word)) {
            let alike = told.entry((*word, shape(Path::new(what)))).or_insert((what, Vec::new()));
            alike.1.push(&case.id);
        }
    }
    told.into_iter().map(|((word, _), (what, ids))| (word, what, ids)).collect()
}

/// Cases with the same verdict.
#[derive(Debug)]
struct Group<'a> {
    word: Word,
    cases: Vec<&'a Case>,
}

/// The fault's cases that pass the filter, grouped by verdict.
fn groups<'a>(fault: &'a FaultResult, wanted: impl Fn(&Case) -> bool) -> Vec<Group<'a>> {
    let mut groups: BTreeMap<Word, Vec<&Case>> = BTreeMap::new();
    for case in fault.cases.iter().filter(|case| wanted(case)) {
        groups.entry(case.verdict.word).or_default().push(case);
    }
    groups.into_iter().map(|(word, cases)| Group { word, cases }).collect()
}

/// What a person needs to see of a group, indented.
fn tell(group: &Group<'_>, replay: &str) -> String {
    let mut text = String::new();
    let Some(first) = group.cases.first() else {
        return text;
    };
    let ids: Vec<&str> = group.cases.iter().take(IDS_MAX).map(|case| case.id.as_str()).collect();
    let more = group.cases.len().saturating_sub(IDS_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let ids = format!("{}{more}", ids.join(", "));
    text += &wrapped(&format!("  {} at ", group.word), &ids, COLUMNS);
    text += &wrapped("    ", &first.verdict.why, COLUMNS);
    let evidence = &first.evidence;
    if !evidence.ops.is_empty() {
        _ = writeln!(text, "    the last of what {} did before:", first.id);
        evidence
            .ops
            .iter()
            .rev()
            .take(12)
            .rev()
            .for_each(|line| _ = writeln!(text, "      {line}"));
    }
    let (which, shown) = match (&evidence.crashed, first.verdict.word) {
        (
            Some(crashed),
            Word::Torn | Word::Crashed | Word::Refused | Word::NotMeasured | Word::Undetectable,
        ) => ("what survived", Some(crashed)),
        _ => ("the end", evidence.ended.as_ref()),
    };
    if let (Some(before), Some(shown)) = (&evidence.before, shown) {
        let all = difference(before, shown);
        if !all.is_empty() {
            _ = writeln!(text, "    {which}, against the folder before the run:");
        }
        for one in all.iter().take(DIFFERENCES_MAX) {
            one.to_string().lines().for_each(|line| _ = writeln!(text, "      {line}"));
        }
        if all.len() > DIFFERENCES_MAX {
            _ = writeln!(text, "      and {} more", all.len() - DIFFERENCES_MAX);
        }
    }
    said(&mut text, &evidence.said);
    _ = writeln!(text, "    replay: {}", replay.replace("{case}", &shell_word(&first.id)));
    text
}

/// All that is known of one case, for people; `replay` is the command that tries it again, with `{case}` for the id.
pub fn tell_case(case: &Case, replay: &str) -> String {
    let mut text = tell(&Group { word: case.verdict.word, cases: vec![case] }, replay);
    for (word, what) in &case.warnings {
        _ = writeln!(text, "    {word}: {what}");
    }
    text
}

fn said(text: &mut String, said: &str) {
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.is_empty() {
        return;
    }
    _ = writeln!(text, "    what was said:");
    let from = lines.len().saturating_sub(SAID_LINES_MAX);
    lines[from..].iter().for_each(|line| _ = writeln!(text, "      {line}"));
}
