//! Findings: cases of one fault with the same cause and the same verdict, told together, the smallest first.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::contents;
use super::disks::tell_disks;
use crate::judge::{Grade, Word, shape};
use crate::run::{Called, Case, Cause, Evidence, FaultResult, Repaired, ScenarioResult};
use crate::tree::difference;
use crate::wrap::{COLUMNS, counted, shell_word, wrapped};

/// How many ids of a group are printed.
const IDS_MAX: usize = 8;
/// How many lines of a program's output are printed.
const SAID_LINES_MAX: usize = 6;
/// The same of what a race's view says.
const VIEW_LINES_MAX: usize = 40;
/// How many ops before the place are printed.
const OPS_MAX: usize = 12;
/// How many differences are printed.
const DIFFERENCES_MAX: usize = 4;

/// Everything in a result that a person should look at: unexpected faults, what was not measured, expected faults that
/// were not found, and warnings. Empty where there is nothing.
pub fn tell_result(result: &ScenarioResult) -> String {
    let mut text = String::new();
    for fault in &result.faults {
        let unexpected =
            groups(fault, |case| fault.is_unexpected(case) || case.verdict.grade == Grade::Unknown);
        let why = |group: &Group<'_>| (group.word, group.cases[0].verdict.why.clone());
        for (position, group) in unexpected.iter().enumerate() {
            // What differs in the place alone is told once.
            let is_new = unexpected[..position].iter().all(|known| why(known) != why(group));
            text.push_str(&tell(group, &result.replay, is_new));
        }
        if fault.disks.iter().any(|disk| disk.repair != Repaired::NoNeed) {
            text += &tell_disks(fault);
        }
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

/// Cases with the same verdict and the same cause.
#[derive(Debug)]
struct Group<'a> {
    word: Word,
    cases: Vec<&'a Case>,
}

impl Group<'_> {
    fn cause(&self) -> Option<&Cause> {
        self.cases.first()?.evidence.cause.as_ref()
    }

    /// Where its cases lie, from the first to the last.
    fn place(&self) -> Option<String> {
        let first = self.cause()?;
        let last = self.cases.last()?.evidence.cause.as_ref()?;
        let mut place = match (&first.after, &last.before) {
            (Some(after), Some(before)) if after == before => format!("inside {after}"),
            (Some(after), Some(before)) => format!("between {after} and {before}"),
            (None, Some(before)) => format!("before {before}"),
            (Some(after), None) => format!("after {after}"),
            (None, None) => "before any op".to_owned(),
        };
        let differ =
            |case: &&Case| case.evidence.cause.as_ref().is_some_and(|cause| cause.who != first.who);
        match self.cases.iter().any(differ) {
            true => place = format!("when one process died {place}"),
            false if first.who == "the power" => place = format!("when the power failed {place}"),
            false if !first.who.is_empty() => place = format!("when {} died {place}", first.who),
            false => {}
        }
        Some(place)
    }
}

/// The fault's cases that pass the filter, grouped by verdict and cause: the order is that of their first cases, which
/// need the fewest ops.
fn groups<'a>(fault: &'a FaultResult, wanted: impl Fn(&Case) -> bool) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for case in fault.cases.iter().filter(|case| wanted(case)) {
        let kind = |case: &Case| case.evidence.cause.as_ref().map(|cause| cause.kind.clone());
        let alike = |group: &&mut Group<'a>| {
            group.word == case.verdict.word && kind(group.cases[0]) == kind(case)
        };
        match groups.iter_mut().find(alike) {
            Some(group) => group.cases.push(case),
            None => groups.push(Group { word: case.verdict.word, cases: vec![case] }),
        }
    }
    groups
}

/// What a person needs to see of a group, indented; without its evidence where that is like another's that was told.
fn tell(group: &Group<'_>, replay: &str, whole: bool) -> String {
    let mut text = String::new();
    let Some(first) = group.cases.first() else {
        return text;
    };
    let ids: Vec<&str> = group.cases.iter().take(IDS_MAX).map(|case| short(&case.id)).collect();
    let more = group.cases.len().saturating_sub(IDS_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let ids = format!("{}{more}", ids.join(", "));
    match group.place() {
        Some(place) => {
            let cases = counted(group.cases.len(), "case");
            text += &wrapped(&format!("  {} ", group.word), &format!("{place}: {cases}"), COLUMNS);
            text += &wrapped("    ", &ids, COLUMNS);
        }
        None => text += &wrapped(&format!("  {} at ", group.word), &ids, COLUMNS),
    }
    if whole {
        text += &wrapped("    ", &first.verdict.why, COLUMNS);
        calls(&mut text, &first.evidence);
        evidence(&mut text, first);
    } else {
        text += "    as above\n";
    }
    _ = writeln!(text, "    replay: {}", replay.replace("{case}", &shell_word(&first.id)));
    text
}

/// From where the ops were made that the case hangs on.
fn calls(text: &mut String, evidence: &Evidence) {
    for Called { op, what, stack } in &evidence.calls {
        if let Some(site) = stack.site() {
            _ = writeln!(text, "    op {op} ({what}) {site}");
        }
    }
}

/// A case's id without the signs by which the steps of its schedule are known again: they are for the line that replays it.
fn short(id: &str) -> &str {
    // A race's own name can hold hyphens too.
    let schedule = id.strip_prefix("race:").map(|rest| rest.rsplit('/').next().unwrap_or(rest));
    let signs = schedule.and_then(|schedule| schedule.split_once('-')).map(|(_, signs)| signs);
    match signs {
        Some(signs) => &id[..id.len() - signs.len() - 1],
        None => id,
    }
}

/// What was done, what was found, and what was said.
fn evidence(text: &mut String, first: &Case) {
    let evidence = &first.evidence;
    ops(text, first);
    if !evidence.schedule.is_empty() {
        _ = writeln!(text, "    the schedule:");
        evidence.schedule.iter().for_each(|line| _ = writeln!(text, "      {line}"));
    }
    let contents = evidence.around.as_ref().map(contents::told).unwrap_or_default();
    contents.iter().for_each(|line| _ = writeln!(text, "    {line}"));
    let (which, shown) = match (&evidence.crashed, first.verdict.word) {
        (
            Some(crashed),
            Word::Torn | Word::Crashed | Word::Refused | Word::NotMeasured | Word::Undetectable,
        ) => ("what survived", Some(crashed)),
        _ => ("the end", evidence.ended.as_ref()),
    };
    // What survived of the state has been told.
    let is_told = which == "what survived" && !contents.is_empty();
    if let (Some(before), Some(shown), false) = (&evidence.before, shown, is_told) {
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
    lines(text, "the view of the end:", &evidence.view, VIEW_LINES_MAX);
    lines(text, "what was said:", &evidence.said, SAID_LINES_MAX);
}

/// The ops around the place, which is marked.
fn ops(text: &mut String, case: &Case) {
    let Evidence { ops, ops_after, cause, .. } = &case.evidence;
    if ops.is_empty() && cause.is_none() {
        return;
    }
    _ = writeln!(text, "    the ops around {}:", case.id);
    let told = ops.iter().rev().take(OPS_MAX).rev();
    told.for_each(|line| _ = writeln!(text, "      {line}"));
    if let Some(cause) = cause {
        let (who, then) = match cause.who.as_str() {
            "" => ("killed here", ""),
            "the power" => ("the power fails here", ""),
            "the recovery" => ("the recovery was killed here", ""),
            who => (who, " was killed here, and the others went on"),
        };
        _ = writeln!(text, "      ---> {who}{then}");
    }
    ops_after.iter().for_each(|line| _ = writeln!(text, "      {line}"));
}

/// All that is known of one case, for people; `replay` is the command that tries it again, with `{case}` for the id.
pub fn tell_case(case: &Case, replay: &str) -> String {
    let mut text = tell(&Group { word: case.verdict.word, cases: vec![case] }, replay, true);
    for (word, what) in &case.warnings {
        _ = writeln!(text, "    {word}: {what}");
    }
    text
}

/// The last lines of what was said, if anything was.
fn lines(text: &mut String, what: &str, said: &str, most: usize) {
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.is_empty() {
        return;
    }
    _ = writeln!(text, "    {what}");
    let from = lines.len().saturating_sub(most);
    lines[from..].iter().for_each(|line| _ = writeln!(text, "      {line}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_id_is_without_signs_alone() {
        for (id, without) in [
            ("race:a1.b.a-35ec", "race:a1.b.a"),
            ("race:a1.b.a", "race:a1.b.a"),
            ("race:two-containers/b1.a.b-d4e7", "race:two-containers/b1.a.b"),
            ("race:two-containers/b1.a.b", "race:two-containers/b1.a.b"),
            ("power@14-3-7", "power@14-3-7"),
        ] {
            assert_eq!(short(id), without);
        }
    }
}
