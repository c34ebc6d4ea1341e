//! How counts and durations are said to people. Pure.

use std::time::Duration;

/// `1 note`, `2 notes`: a count and its noun.
pub fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// `1 question`, `2 questions`.
pub fn questions(count: usize) -> String {
    counted(count, "question")
}

/// A duration for people, in its two largest units: `3d 4h`, `12m 5s`, `0s`.
pub fn humane(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let parts = [
        (seconds / 86_400, "d"),
        (seconds / 3_600 % 24, "h"),
        (seconds / 60 % 60, "m"),
        (seconds % 60, "s"),
    ];
    let first = parts.iter().position(|(n, _)| *n > 0).unwrap_or(3);
    parts
        .iter()
        .skip(first)
        .take(2)
        .filter(|(n, _)| *n > 0 || seconds == 0)
        .map(|(n, unit)| format!("{n}{unit}"))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Whether a terminal obeys the character, or it turns the direction of writing or breaks the line: it would let a text forge what its
/// reader sees.
pub fn misleads(c: char) -> bool {
    let turns_direction = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    c.is_control() || turns_direction || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// `text` on one line, with everything that [`misleads`] escaped.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' | '\r' => shown.extend(c.escape_default()),
            c if misleads(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// JSON text with everything that [`misleads`] escaped as JSON does it: the same document, safe on a terminal.
pub fn visible_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        if misleads(c) {
            // All of them are one code unit.
            shown.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_nothing_of_it() {
        assert_eq!(visible("a\x1b[2Jb\nc\u{202e}d"), "a\\u{1b}[2Jb\\nc\\u{202e}d");
        assert_eq!(visible("\u{9b}\u{61c}\u{2028}\u{feff}"), "\\u{9b}\\u{61c}\\u{2028}\\u{feff}");
        assert_eq!(visible("Ünïcode \u{1F600} `x`"), "Ünïcode \u{1F600} `x`");
    }

    #[test]
    fn json_stays_the_same_document() {
        let all: String = ('\0'..='\u{ffff}').collect();
        let json = serde_json::to_string(&all).unwrap();
        let shown = visible_json(&json);
        assert!(json.contains('\u{9b}') && !shown.chars().any(misleads));
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), all);
    }

    #[test]
    fn durations_read_in_their_two_largest_units() {
        let cases = [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (725, "12m 5s"),
            (3_600, "1h"),
            (3_605, "1h"),
            (86_400 * 3 + 3_600 * 4 + 59, "3d 4h"),
        ];
        for (seconds, words) in cases {
            assert_eq!(humane(Duration::from_secs(seconds)), words, "{seconds} s");
        }
    }
}
