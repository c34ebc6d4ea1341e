//! Short excerpts of a state file's contents, one beside the other.

use std::borrow::Cow;
use std::path::Path;

use crate::judge::{Content, Image};
use crate::run::Around;
use crate::tree::escaped;
use crate::wrap::{COLUMNS, thousands};

/// How many files are shown.
const FILES_MAX: usize = 3;
/// So many bytes before the first difference are shown of contents that are too long.
const LEAD_BYTES: usize = 12;
/// Where an excerpt begins.
const BEGIN: usize = 18;

/// The files that were found otherwise than they were before, or would have been after, a line each; then how many more
/// there are.
pub(super) fn told(around: &Around) -> Vec<String> {
    let rows = |path: &Path| {
        let of = |image: &Image| image.files.get(path).cloned().unwrap_or(Content::Absent);
        let mut rows = vec![("before", of(&around.before))];
        rows.extend(around.after.as_ref().map(|after| ("after", of(after))));
        rows.push(("found", of(&around.found)));
        rows
    };
    let paths = around.before.files.keys().chain(around.found.files.keys());
    let mut paths: Vec<&Path> = paths.map(|path| path.as_path()).collect();
    paths.sort_unstable();
    paths.dedup();
    let is_neither = |path: &&Path| {
        let mut rows = rows(path);
        let found = rows.pop();
        rows.iter().all(|row| Some(&row.1) != found.as_ref().map(|found| &found.1))
    };
    let mut chosen: Vec<&Path> = paths.iter().copied().filter(is_neither).collect();
    if chosen.is_empty() {
        let differ = |path: &&Path| rows(path).windows(2).any(|pair| pair[0].1 != pair[1].1);
        chosen = paths.into_iter().filter(differ).collect();
    }
    let mut lines = Vec::new();
    for path in chosen.iter().take(FILES_MAX) {
        lines.push(format!("{}:", path.display()));
        lines.extend(excerpts(&rows(path)));
    }
    if chosen.len() > FILES_MAX {
        lines.push(format!("and {} more", chosen.len() - FILES_MAX));
    }
    lines
}

/// A line for each content; of long ones the part where they begin to differ.
fn excerpts(rows: &[(&str, Content)]) -> Vec<String> {
    let bytes: Vec<Cow<'_, [u8]>> =
        rows.iter().filter_map(|(_, content)| content.bytes()).collect();
    let room = COLUMNS - BEGIN;
    let fit = bytes.iter().all(|bytes| escaped(bytes).chars().count() <= room);
    let start = if fit { 0 } else { first_difference(&bytes).saturating_sub(LEAD_BYTES) };
    let line = |(label, content): &(&str, Content)| {
        let shown = match content {
            Content::Absent => "(not there)".to_owned(),
            Content::Special => "(no file)".to_owned(),
            Content::Link(target) => format!("(a link to {})", target.display()),
            Content::Bytes(bytes) if bytes.is_empty() => "(empty)".to_owned(),
            Content::Bytes(bytes) if bytes.is_zeros() => format!("({} NUL bytes)", bytes.len()),
            Content::Bytes(bytes) => match bytes.whole() {
                Some(bytes) => excerpt(&bytes, start, room, fit),
                None => format!("({} bytes)", bytes.len()),
            },
        };
        format!("  {label:6}  {shown}")
    };
    rows.iter().map(line).collect()
}

fn excerpt(bytes: &[u8], start: usize, room: usize, whole: bool) -> String {
    if whole {
        return escaped(bytes);
    }
    let size = format!("  ({} bytes)", thousands(bytes.len()));
    let room = room.saturating_sub(size.len() + 6);
    let dots = if start > 0 { "..." } else { "" };
    let text: Vec<char> = escaped(bytes.get(start..).unwrap_or_default()).chars().collect();
    let cut = text.len() > room;
    let text: String = text.into_iter().take(room).collect();
    format!("{dots}{text}{}{size}", if cut { "..." } else { "" })
}

/// The first place at which not all contents are the same, the end of one that is shorter among them.
fn first_difference(contents: &[Cow<'_, [u8]>]) -> usize {
    let [first, others @ ..] = contents else { return 0 };
    let same = |other: &Cow<'_, [u8]>| {
        first.iter().zip(other.iter()).take_while(|(one, two)| one == two).count()
    };
    let nonempty = others.iter().filter(|other| !other.is_empty());
    nonempty.map(same).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(text: &[u8]) -> Content {
        Content::Bytes(text.into())
    }

    #[test]
    fn contents_stand_one_below_the_other() {
        let rows = [
            ("before", content(b"{\"n\":1}\n")),
            ("after", content(b"{\"n\":2}\n")),
            ("found", content(b"")),
        ];
        assert_eq!(
            excerpts(&rows),
            [r#"  before  {"n":1}\n"#, r#"  after   {"n":2}\n"#, "  found   (empty)"]
        );
    }

    #[test]
    fn of_long_ones_the_first_difference_is_shown() {
        let (one, mut other) = (vec![b'x'; 9000], vec![b'x'; 9000]);
        other[5000] = b'y';
        let rows = [
            ("before", content(&one)),
            ("after", content(&other)),
            ("found", content(&other[..6000])),
        ];
        let lines = excerpts(&rows);
        assert_eq!(lines[0], format!("  before  ...{}...  (9,000 bytes)", "x".repeat(41)));
        assert!(lines[1].starts_with("  after   ...xxxxxxxxxxxxyxxxx"), "{}", lines[1]);
        assert!(lines[2].ends_with("xxx...  (6,000 bytes)"), "{}", lines[2]);
        assert!(lines.iter().all(|line| line.len() <= COLUMNS - 6), "{lines:#?}");
        let rows = [("before", content(&one)), ("found", content(&one[..4096]))];
        assert_eq!(excerpts(&rows)[1], "  found   ...xxxxxxxxxxxx  (4,096 bytes)");
    }
}
