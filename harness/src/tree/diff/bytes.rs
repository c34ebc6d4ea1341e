//! Two contents of one file, compared for people: by lines where both are text, else as rows of hex.

use std::fmt::Write;

use similar::{Algorithm, DiffOp, capture_diff_slices, group_diff_ops};

use crate::tree::FileBytes;
use crate::wrap::visible;

/// Lines printed of a text difference.
const LINES: usize = 24;
/// Unchanged lines printed around a change.
const CONTEXT: usize = 2;
/// Longer lines are cut, in characters.
const WIDTH: usize = 100;
/// Characters kept before the first difference within a line that is cut.
const LEAD: usize = 30;
/// More lines than this that are neither in the common beginning nor the common end are compared as one block.
const COMPARED: usize = 2000;
/// Longer contents, in bytes, are not compared line by line.
const LONG: u64 = 16 << 20;
/// Bytes in a row of hex.
const ROW: usize = 16;
/// Rows of hex, or summaries of many rows, printed.
const ROWS: usize = 6;

/// Says in one line how two contents differ, and shows where in a bounded number of lines below, each indented by
/// two blanks: lines of text with `-` for the first and `+` for the second, or rows of hex.
pub fn compare_bytes(before: &[u8], after: &[u8]) -> String {
    let summary = Summary {
        old: before.len(),
        new: after.len(),
        same: (before != after).then(|| common_prefix(before, after)),
        is_nul: is_blank(after),
    };
    let below = if before == after {
        Vec::new()
    } else if is_text(before) && is_text(after) {
        lines(before, after)
    } else {
        rows(before, after, 0)
    };
    summary.with(&below)
}

/// As [`compare_bytes`]; of very long contents, the rows at the first difference stand for all.
pub fn compare_contents(before: &FileBytes, after: &FileBytes) -> String {
    let is_short = before.len().max(after.len()) <= LONG;
    if let (true, Some(before), Some(after)) = (is_short, before.whole(), after.whole()) {
        return compare_bytes(&before, &after);
    }
    let same = before.first_difference(after);
    let summary = Summary {
        old: before.len() as usize,
        new: after.len() as usize,
        same: same.map(|same| same as usize),
        is_nul: after.is_zeros(),
    };
    let start = same.unwrap_or(0) / ROW as u64 * ROW as u64;
    let window = |content: &FileBytes| content.read(start, ROW * ROWS);
    let below = match same {
        Some(_) => rows(&window(before), &window(after), start as usize),
        None => Vec::new(),
    };
    summary.with(&below)
}

/// A number with its noun.
pub(super) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Text with controls as escapes, and bytes that are no UTF-8 as `\xNN`.
pub(crate) fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text += &visible(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// What a difference is, in one line.
struct Summary {
    /// Lengths in bytes.
    old: usize,
    new: usize,
    /// How many bytes are alike before the first that is not; `None` where all are.
    same: Option<usize>,
    /// The new content is NULs alone.
    is_nul: bool,
}

impl Summary {
    /// The line, with the others below it.
    fn with(&self, below: &[String]) -> String {
        let mut text = self.line();
        for line in below {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n  {}", line.trim_end());
        }
        text
    }

    fn line(&self) -> String {
        let Summary { old, new, same, is_nul } = *self;
        let Some(same) = same else {
            return format!("the same {}", count(new, "byte"));
        };
        if new == 0 {
            format!("empty, before {}", count(old, "byte"))
        } else if is_nul {
            format!("{}, before {}", count(new, "NUL byte"), count(old, "byte"))
        } else if same == new {
            format!("cut to its first {} of {old}", count(new, "byte"))
        } else if same == old {
            format!("{} more after the first {old}", count(new - old, "byte"))
        } else if old == new {
            format!("{} as before, different from byte {same} on", count(new, "byte"))
        } else {
            format!("{}, before {old}, different from byte {same} on", count(new, "byte"))
        }
    }
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// Text is UTF-8, at most cut inside its last character, without the controls that no text file holds.
fn is_text(bytes: &[u8]) -> bool {
    let valid = match std::str::from_utf8(bytes) {
        Ok(_) => bytes,
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        Err(_) => return false,
    };
    valid.iter().all(|&byte| byte >= b' ' || matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b))
}

/// The difference of two texts by lines.
fn lines(before: &[u8], after: &[u8]) -> Vec<String> {
    let old: Vec<&[u8]> = before.split_inclusive(|&byte| byte == b'\n').collect();
    let new: Vec<&[u8]> = after.split_inclusive(|&byte| byte == b'\n').collect();
    let mut printed = Vec::new();
    for group in group_diff_ops(line_ops(&old, &new), CONTEXT) {
        let start = group.first().map_or(0, |op| op.new_range().start);
        printed.push(format!("@ line {}", start + 1));
        for op in group {
            print_op(&op, &old, &new, &mut printed);
        }
    }
    cut(printed, LINES, "line")
}

/// The operations that turn the old lines into the new ones.
fn line_ops(old: &[&[u8]], new: &[&[u8]]) -> Vec<DiffOp> {
    let head = old.iter().zip(new).take_while(|(x, y)| x == y).count();
    let tail =
        old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(x, y)| x == y).count();
    let (old_rest, new_rest) = (old.len() - head - tail, new.len() - head - tail);
    if old_rest.max(new_rest) <= COMPARED {
        return capture_diff_slices(Algorithm::Myers, old, new);
    }
    let mut ops = Vec::new();
    if head > 0 {
        ops.push(DiffOp::Equal { old_index: 0, new_index: 0, len: head });
    }
    ops.push(DiffOp::Replace {
        old_index: head,
        old_len: old_rest,
        new_index: head,
        new_len: new_rest,
    });
    if tail > 0 {
        ops.push(DiffOp::Equal {
            old_index: old.len() - tail,
            new_index: new.len() - tail,
            len: tail,
        });
    }
    ops
}

fn print_op(op: &DiffOp, old: &[&[u8]], new: &[&[u8]], printed: &mut Vec<String>) {
    let (old, new) = (&old[op.old_range()], &new[op.new_range()]);
    if let DiffOp::Equal { .. } = op {
        printed.extend(new.iter().map(|line| print_line(' ', line, 0)));
        return;
    }
    // Less than half of the room for each side, so that a long removal does not hide what came in its place.
    let shown = LINES / 2 - 3;
    for (sign, side, other) in [('-', old, new), ('+', new, old)] {
        for (number, line) in side.iter().take(shown).enumerate() {
            let same = other.get(number).map_or(0, |other| common_prefix(line, other));
            printed.push(print_line(sign, line, same));
        }
        if side.len() > shown {
            printed.push(format!("{sign} ... {} more", count(side.len() - shown, "line")));
        }
    }
}

/// One line; a long one is cut to a window in which the first different byte, at `different`, can be seen.
fn print_line(sign: char, line: &[u8], different: usize) -> String {
    let (line, end) = match line.strip_suffix(b"\n") {
        Some(line) => (line, ""),
        None => (line, " (no newline)"),
    };
    let text = escaped(line);
    let length = text.chars().count();
    if length <= WIDTH {
        return format!("{sign} {text}{end}");
    }
    let before = escaped(&line[..different.min(line.len())]).chars().count();
    let start = before.saturating_sub(LEAD).min(length - WIDTH);
    let window: String = text.chars().skip(start).take(WIDTH).collect();
    let mut shown = format!("{sign} ");
    if start > 0 {
        let _ = write!(shown, "({start} more) ...");
    }
    shown += &window;
    let rest = length - start - WIDTH;
    if rest > 0 {
        let _ = write!(shown, "... ({rest} more)");
    }
    shown + end
}

/// Keeps the first lines and says how many more there are.
fn cut(mut printed: Vec<String>, most: usize, noun: &str) -> Vec<String> {
    if printed.len() > most {
        let more = printed.len() - most;
        printed.truncate(most);
        printed.push(format!("... {} more of this difference", count(more, noun)));
    }
    printed
}

/// Consecutive rows of hex that are printed together.
struct Block {
    /// Offset in bytes.
    start: usize,
    /// Offset in bytes, behind the last row.
    end: usize,
    /// On one side all of it is NULs, or behind the end.
    blank: (bool, bool),
}

/// The difference of two binary contents: rows of equal offset that differ, long runs of NULs in one line. `base` is the
/// offset at which both begin.
fn rows(before: &[u8], after: &[u8], base: usize) -> Vec<String> {
    let longest = before.len().max(after.len());
    let mut blocks: Vec<Block> = Vec::new();
    let mut hidden = 0;
    for start in (0..longest).step_by(ROW) {
        let end = (start + ROW).min(longest);
        let (old, new) = (piece(before, start, end), piece(after, start, end));
        if old == new {
            continue;
        }
        let blank = (is_blank(old), is_blank(new));
        let full = blocks.len() == ROWS;
        match blocks.last_mut() {
            Some(last) if last.end == start && last.blank == blank && (blank.0 || blank.1) => {
                last.end = end
            }
            _ if full => hidden += 1,
            _ => blocks.push(Block { start, end, blank }),
        }
    }
    let mut printed = Vec::new();
    for block in &blocks {
        printed.push(format!("{:08x} - {}", base + block.start, hex(before, block)));
        printed.push(format!("{:8} + {}", "", hex(after, block)));
    }
    if hidden > 0 {
        printed.push(format!("... {} more that differ", count(hidden, "row")));
    }
    printed
}

fn piece(bytes: &[u8], start: usize, end: usize) -> &[u8] {
    &bytes[start.min(bytes.len())..end.min(bytes.len())]
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == 0)
}

/// One side of a block: a row, or its first row and how much follows, or a summary of NULs.
fn hex(bytes: &[u8], block: &Block) -> String {
    let whole = piece(bytes, block.start, block.end);
    if whole.is_empty() {
        return "(the end)".into();
    }
    if whole.len() > ROW && is_blank(whole) {
        return format!("NULs: {}", count(whole.len(), "byte"));
    }
    let row = &whole[..whole.len().min(ROW)];
    let digits: Vec<String> = row.iter().map(|byte| format!("{byte:02x}")).collect();
    let letters: String = row
        .iter()
        .map(|&byte| if (b' '..=b'~').contains(&byte) { char::from(byte) } else { '.' })
        .collect();
    let more = match whole.len() - row.len() {
        0 => String::new(),
        more => format!(" ... {} more", count(more, "byte")),
    };
    format!("{:47} |{letters}|{more}", digits.join(" "))
}

#[cfg(test)]
mod tests;
