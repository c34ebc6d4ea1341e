//! Power cuts in the report: a column for each disk, and what would have kept them from what was found.

use std::collections::BTreeSet;

use crate::judge::Word;
use crate::run::{DiskResult, FaultResult, Repaired};
use crate::wrap::{COLUMNS, wrapped};

/// As wide as what a row is of.
const HEAD_COLUMNS: usize = 14;
/// From this power of two on a number is told as one.
const TOLD_IN_FULL: f64 = 13.0;

/// What a fault's power cuts came to, a column for each disk; empty where there were none.
pub(super) fn tell_disks(fault: &FaultResult) -> String {
    let disks = &fault.disks;
    let words: BTreeSet<Word> = disks.iter().flat_map(|disk| disk.counts.keys()).copied().collect();
    let heads = words.iter().map(|word| word.as_str()).chain(["states tried", "of legal"]);
    let heads: Vec<&str> = [""].into_iter().chain(heads).collect();
    let column = |disk: &DiskResult| -> Vec<String> {
        let count = |word| disk.counts.get(word).map_or("-".into(), usize::to_string);
        let share = [disk.tried.to_string(), of_legal(disk)];
        [disk.model.to_owned()].into_iter().chain(words.iter().map(count)).chain(share).collect()
    };
    let mut text = String::new();
    let mut block = rows_of(&heads);
    for column in disks.iter().map(column) {
        let width = column.iter().map(String::len).max().unwrap_or(0) + 2;
        if block[0].len() > HEAD_COLUMNS && block[0].len() + width > COLUMNS {
            text += &lines(&std::mem::replace(&mut block, rows_of(&heads)));
        }
        block.iter_mut().zip(&column).for_each(|(row, cell)| *row += &format!("{cell:>width$}"));
    }
    if !disks.is_empty() {
        text += &lines(&block);
    }
    for (repair, models) in together(disks, |disk| &disk.repair) {
        text += &wrapped("  ", &format!("on {}: {}", models.join(", "), mended(repair)), COLUMNS);
    }
    text
}

/// Of which disks not all was tried, and how to try more; nothing where all was.
pub(super) fn tell_shares(fault: &FaultResult) -> Option<String> {
    let partly = fault.disks.iter().filter(|disk| !disk.complete);
    let partly: Vec<String> = partly
        .map(|disk| format!("{} ({} of {})", disk.model, disk.tried, of_legal(disk)))
        .collect();
    let first = fault.disks.iter().find(|disk| !disk.complete)?;
    let late = fault.disks.iter().any(|disk| disk.late);
    let more = if late { "time was up: `seconds` and `states`" } else { "`states`" };
    Some(format!(
        "power cuts: not all that is legal was tried on {}, drawn with seed {}; {more} try more, another `seed` others",
        partly.join(", "),
        first.seed
    ))
}

/// Rows with nothing but what they are of.
fn rows_of(heads: &[&str]) -> Vec<String> {
    heads.iter().map(|head| format!("  {head:0$}", HEAD_COLUMNS - 2)).collect()
}

fn lines(rows: &[String]) -> String {
    rows.iter().map(|row| format!("{}\n", row.trim_end())).collect()
}

fn of_legal(disk: &DiskResult) -> String {
    match (disk.complete, disk.at_most > TOLD_IN_FULL) {
        (true, _) => "all".to_owned(),
        (false, true) => format!("2^{:.0}", disk.at_most.ceil()),
        (false, false) => format!("{:.0}", disk.at_most.exp2().ceil()),
    }
}

/// What differs between disks, with those of which it is true.
fn together<'d, T: PartialEq>(
    disks: &'d [DiskResult],
    what: impl Fn(&'d DiskResult) -> &'d T,
) -> Vec<(&'d T, Vec<&'d str>)> {
    let mut all: Vec<(&T, Vec<&str>)> = Vec::new();
    for disk in disks {
        match all.iter_mut().find(|(known, _)| *known == what(disk)) {
            Some((_, models)) => models.push(disk.model),
            None => all.push((what(disk), vec![disk.model])),
        }
    }
    all
}

fn mended(repair: &Repaired) -> String {
    match repair {
        Repaired::NoNeed => "nothing to be mended".to_owned(),
        Repaired::By(repairs) => format!("mended by {}", repairs.join(" and ")),
        Repaired::ByNoSync => "no fsync alone mends it".to_owned(),
    }
}
