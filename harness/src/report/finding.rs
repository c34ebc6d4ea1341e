//! Findings: cases of one fault with the same verdict, told together, the smallest first.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::judge::Word;
use crate::run::{Case, FaultResult};
use crate::tree::difference;

/// How many ids of a group are printed.
const IDS_MAX: usize = 8;
/// How many lines of a program's output are printed.
const SAID_LINES_MAX: usize = 6;
/// How many differences are printed.
const DIFFERENCES_MAX: usize = 4;

/// Cases with the same verdict.
#[derive(Debug)]
pub(super) struct Group<'a> {
    pub(super) word: Word,
    pub(super) cases: Vec<&'a Case>,
}

/// The fault's cases that pass the filter, grouped by verdict.
pub(super) fn groups<'a>(fault: &'a FaultResult, wanted: impl Fn(&Case) -> bool) -> Vec<Group<'a>> {
    let mut groups: BTreeMap<Word, Vec<&Case>> = BTreeMap::new();
    for case in fault.cases.iter().filter(|case| wanted(case)) {
        groups.entry(case.verdict.word).or_default().push(case);
    }
    groups
        .into_iter()
        .map(|(word, cases)| Group { word, cases })
        .collect()
}

/// What a person needs to see of a group, indented.
pub(super) fn tell(group: &Group<'_>, scenario: &str) -> String {
    let mut text = String::new();
    let Some(first) = group.cases.first() else {
        return text;
    };
    let ids: Vec<&str> = group
        .cases
        .iter()
        .take(IDS_MAX)
        .map(|case| case.id.as_str())
        .collect();
    let more = group.cases.len().saturating_sub(IDS_MAX);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    _ = writeln!(text, "  {} at {}{more}", group.word, ids.join(", "));
    _ = writeln!(text, "    {}", first.verdict.why);
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
        (Some(crashed), Word::Torn | Word::Crashed | Word::Refused | Word::NotMeasured) => {
            ("what survived", Some(crashed))
        }
        _ => ("the end", evidence.ended.as_ref()),
    };
    if let (Some(before), Some(shown)) = (&evidence.before, shown) {
        let all = difference(before, shown);
        if !all.is_empty() {
            _ = writeln!(text, "    {which}, against the folder before the run:");
        }
        for one in all.iter().take(DIFFERENCES_MAX) {
            one.to_string()
                .lines()
                .for_each(|line| _ = writeln!(text, "      {line}"));
        }
        if all.len() > DIFFERENCES_MAX {
            _ = writeln!(text, "      and {} more", all.len() - DIFFERENCES_MAX);
        }
    }
    said(&mut text, &evidence.said);
    _ = writeln!(text, "    replay: crashlab replay {scenario} {}", first.id);
    text
}

/// All that is known of one case, for people.
pub fn tell_case(case: &Case, scenario: &str) -> String {
    let mut text = tell(
        &Group {
            word: case.verdict.word,
            cases: vec![case],
        },
        scenario,
    );
    for (word, what) in &case.warnings {
        _ = writeln!(text, "    {word}: {what}");
    }
    text
}

fn said(text: &mut String, said: &str) {
    let lines: Vec<&str> = said
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    if lines.is_empty() {
        return;
    }
    _ = writeln!(text, "    what was said:");
    let from = lines.len().saturating_sub(SAID_LINES_MAX);
    lines[from..]
        .iter()
        .for_each(|line| _ = writeln!(text, "      {line}"));
}
