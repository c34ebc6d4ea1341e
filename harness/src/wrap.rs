//! Text for people, broken into lines of a terminal.

/// How wide a terminal may be taken to be.
pub(crate) const COLUMNS: usize = 80;

/// `1 case`, `2 cases`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// `12,000`.
pub(crate) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Whether a terminal obeys the character, or it is invisible or turns the direction of writing: a text could forge with
/// it what its reader sees.
pub(crate) fn misleads(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `text` on one line, with what [`misleads`] as escapes.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if misleads(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// `text` after `label`, broken at blanks; the lines after the first are indented like the label.
pub(crate) fn wrapped(label: &str, text: &str, columns: usize) -> String {
    let indent = label.chars().count();
    let mut out = String::from(label);
    let mut column = indent;
    for word in text.split(' ') {
        let width = word.chars().count();
        if column > indent && column + 1 + width > columns {
            out.push('\n');
            out += &" ".repeat(indent);
            column = indent;
        } else if column > indent {
            out.push(' ');
            column += 1;
        }
        out += word;
        column += width;
    }
    out.push('\n');
    out
}

/// A word as a shell takes it.
pub(crate) fn shell_word(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_./@%+=:,-#".contains(letter);
    match word.chars().all(plain) && !word.is_empty() && !word.starts_with('#') {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// A command as a heading: what does not fit on a line is left out.
pub(crate) fn heading(command: &str) -> String {
    const LETTERS_MAX: usize = 72;
    let line = visible(command);
    match line.chars().count() > LETTERS_MAX {
        true => line.chars().take(LETTERS_MAX - 3).chain("...".chars()).collect(),
        false => line,
    }
}

#[cfg(test)]
mod tests {
    use super::{heading, thousands};

    #[test]
    fn a_heading_is_one_line() {
        assert_eq!(heading("sh -c 'a\nb'"), r"sh -c 'a\nb'");
        assert_eq!(heading(&"x".repeat(73)), format!("{}...", "x".repeat(69)));
        assert_eq!(heading(&"x".repeat(72)), "x".repeat(72));
    }

    #[test]
    fn numbers_are_read_in_threes() {
        let shown = [0, 999, 1000, 12_000, 1_234_567].map(thousands);
        assert_eq!(shown, ["0", "999", "1,000", "12,000", "1,234,567"]);
    }
}
