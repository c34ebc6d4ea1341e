//! Words for what was found in a file, safe to print on a terminal and short.

use crate::words::visible;

/// Longest excerpt of a file in a message, in code points.
const EXCERPT_MAX: usize = 60;

/// `text` with what a terminal would obey escaped, and its middle left out where it is long.
pub(super) fn short(text: &str) -> String {
    let count = text.chars().count();
    if count <= EXCERPT_MAX {
        return visible(text);
    }
    let tail = EXCERPT_MAX / 3;
    let head: String = text.chars().take(EXCERPT_MAX - tail - 1).collect();
    let tail: String = text.chars().skip(count - tail).collect();
    format!("{}…{}", visible(&head), visible(&tail))
}

/// What begins at the start of `rest`, which is not empty, in words that fit "... instead of a JSON list".
pub(super) fn what(rest: &str) -> String {
    let Some(first) = rest.chars().next() else {
        return "nothing".to_owned();
    };
    let fixed = match first {
        '{' => "a JSON object",
        '[' => "a JSON list",
        '"' => "a JSON string",
        '}' => "a closing brace",
        ']' => "a closing bracket",
        ',' => "a comma",
        ':' => "a colon",
        '\'' => "a single quote (JSON has double quotes only)",
        '/' | '#' => "a comment (JSON has none)",
        '\u{feff}' => "a byte-order mark (save the file as UTF-8 without one)",
        '\0' => "a NUL byte (a power cut can leave a file of them)",
        _ => "",
    };
    if !fixed.is_empty() {
        return fixed.to_owned();
    }
    let token = number(rest);
    if !token.is_empty() {
        return format!("the number {}", short(token));
    }
    let word_end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    match &rest[..word_end] {
        "" => format!("the character {}", code_point(first)),
        "null" => "null".to_owned(),
        bool @ ("true" | "false") => format!("the bool {bool}"),
        word => format!("the word {}", short(word)),
    }
}

/// The beginning of `rest` that is made of what numbers are made of.
pub(super) fn number(rest: &str) -> &str {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
    if !rest.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) {
        return "";
    }
    &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())]
}

/// A character together with its number, or the number alone where it does not show.
pub(super) fn code_point(c: char) -> String {
    if c.is_control() || c.is_whitespace() {
        format!("U+{:04X}", u32::from(c))
    } else {
        format!("{} (U+{:04X})", visible(c.encode_utf8(&mut [0; 4])), u32::from(c))
    }
}

/// The one of `names` that `word` was most likely meant to be.
pub(super) fn nearest<'n>(word: &str, names: &[&'n str]) -> Option<&'n str> {
    let word = word.to_lowercase();
    // Longer than any name by more than the distance allowed: not worth the table.
    let longest = names.iter().map(|name| name.len()).max()?;
    if word.chars().count() > longest * 2 {
        return None;
    }
    let allowed = |name: &str| (name.len() / 3).max(1);
    names
        .iter()
        .map(|name| (strsim::osa_distance(&word, name), *name))
        .filter(|&(distance, name)| distance <= allowed(name))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_told_from_another_word() {
        let names = ["queue", "notes", "answers", "pending", "sessions_run"];
        for (word, meant) in [
            ("note", Some("notes")),
            ("Queue", Some("queue")),
            ("quere", Some("queue")),
            ("uqeue", Some("queue")),
            ("sessionsRun", Some("sessions_run")),
            ("answer", Some("answers")),
            ("version", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, &names), meant, "{word}");
        }
    }

    #[test]
    fn nothing_that_a_terminal_obeys_is_shown() {
        assert_eq!(short("a\u{1b}[2Jb\u{202e}"), "a\\u{1b}[2Jb\\u{202e}");
        let long = short(&"é".repeat(1000));
        assert_eq!(long.chars().count(), EXCERPT_MAX);
        assert!(long.contains('…'));
    }
}
