//! A schedule as a person reads it: a column for each program, time goes down.

use crate::fault::race::explore::Side;
use crate::fault::race::steer::Made;

/// Columns are indented by six where they are printed.
const WIDTH: usize = 74;
/// More programs than this have no room beside each other.
const MOST_COLUMNS: usize = 3;
/// Of a longer row of steps of one program, the middle is left out.
const MOST_IN_A_ROW: usize = 14;

/// A line for each step, under a heading; `died`: before which step whom.
pub(super) fn columns(names: &[String], made: &[Made], died: Option<Side>) -> Vec<String> {
    let count = names.len().clamp(1, MOST_COLUMNS);
    let width = (WIDTH - 3 * (count - 1)) / count;
    let cell = |side: Side, text: &str| {
        let cells = (0..count).map(|column| {
            let text = if column == side % count { fitted(text, width) } else { String::new() };
            format!("{text:width$}")
        });
        cells.collect::<Vec<_>>().join(" | ").trim_end().to_owned()
    };
    let heads: Vec<String> = match names.len() <= MOST_COLUMNS {
        true => names.iter().map(|name| format!("{:width$}", fitted(name, width))).collect(),
        false => (0..count).map(|_| " ".repeat(width)).collect(),
    };
    let mut lines = vec![heads.join(" | ").trim_end().to_owned()];
    lines.push(vec!["-".repeat(width); count].join("-+-"));
    let mut at = 0;
    while at < made.len() {
        let side = made[at].taken.side;
        let row = made[at..].iter().take_while(|made| made.taken.side == side).count();
        let named = |text: String| match names.len() > MOST_COLUMNS {
            true => format!("{}: {text}", names[side]),
            false => text,
        };
        let steps = &made[at..at + row];
        let (head, tail) = match row > MOST_IN_A_ROW {
            true => (MOST_IN_A_ROW / 2, row - MOST_IN_A_ROW / 2 + 1),
            false => (row, row),
        };
        lines.extend(steps[..head].iter().map(|made| cell(side, &named(told(made)))));
        if head < tail {
            lines.push(cell(side, &format!("... {} more ...", tail - head)));
            lines.extend(steps[tail..].iter().map(|made| cell(side, &named(told(made)))));
        }
        at += row;
    }
    if let Some(side) = died {
        lines.push(cell(side, "(was killed before its next step)"));
    }
    lines
}

fn told(made: &Made) -> String {
    match made.result {
        error if error < 0 => {
            format!("{} = {:?}", made.taken.text, nix::Error::from_raw(-error as i32))
        }
        _ => made.taken.text.clone(),
    }
}

fn fitted(text: &str, width: usize) -> String {
    match text.chars().count() > width {
        true => text.chars().take(width - 2).chain("..".chars()).collect(),
        false => text.to_owned(),
    }
}
