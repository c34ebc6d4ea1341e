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

#[cfg(test)]
mod tests {
    use super::*;

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
