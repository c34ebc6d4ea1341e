//! Whether a program's output names a file: a refusal does, a traceback does not.

use std::path::Path;

/// The first line of the output that names the file by its path or its base name, as a whole word, and does not begin
/// with white space (a traceback indents the source lines that it quotes).
pub fn line_that_names(output: &[u8], file: &Path) -> Option<String> {
    let mut wanted = vec![file.as_os_str().as_encoded_bytes()];
    wanted.extend(file.file_name().map(|name| name.as_encoded_bytes()));
    plain(output)
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.first().is_some_and(|byte| byte.is_ascii_whitespace()))
        .find(|line| wanted.iter().any(|word| has_word(line, word)))
        .map(|line| String::from_utf8_lossy(line).trim_end().to_owned())
}

/// Without the sequences that colour a terminal (ECMA-48: `ESC [`, parameters, a final byte from `@` to `~`).
fn plain(output: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(output.len());
    let mut rest = output;
    while let Some((first, after)) = rest.split_first() {
        rest = match after.strip_prefix(b"[") {
            Some(sequence) if *first == 0x1b => {
                let end = sequence.iter().position(|byte| (b'@'..=b'~').contains(byte));
                &sequence[end.map_or(sequence.len(), |end| end + 1)..]
            }
            _ => {
                plain.push(*first);
                after
            }
        };
    }
    plain
}

fn has_word(line: &[u8], word: &[u8]) -> bool {
    !word.is_empty()
        && line.windows(word.len()).enumerate().any(|(at, window)| {
            window == word
                && !continues_before(&line[..at])
                && !continues_after(&line[at + word.len()..])
        })
}

/// `my-state.json` is another file than `state.json`; `dir/state.json` is the same.
fn continues_before(before: &[u8]) -> bool {
    before
        .last()
        .is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(byte) || *byte >= 0x80)
}

/// `state.json.tmp` is another file than `state.json`; `state.json.` ends a sentence.
fn continues_after(after: &[u8]) -> bool {
    match after {
        [b'.' | b'-', next, ..] => next.is_ascii_alphanumeric(),
        [byte, ..] => byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80,
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_only() {
        let file = Path::new("dir/state.json");
        for line in [
            "error: state.json: damaged",
            "cannot load `dir/state.json`",
            "/tmp/w/dir/state.json",
            "see state.json.",
            "error [state.json]: damaged",
            "\u{1b}[31merror\u{1b}[0m: \u{1b}[1mstate.json\u{1b}[0m: damaged",
            "\u{1b}[1;31mstate.json\u{1b}[m",
        ] {
            assert!(line_that_names(line.as_bytes(), file).is_some(), "{line}");
        }
        for line in [
            "",
            "error: damaged",
            "my-state.json: bad",
            "state.json.tmp: bad",
            "state.jsonl",
            "state.json_old: bad",
            "state.jsonü: bad",
            "üstate.json: bad",
            "  open(\"state.json\")",
            "\u{1b}[2m  open(\"state.json\")\u{1b}[0m",
        ] {
            assert_eq!(line_that_names(line.as_bytes(), file), None);
        }
    }
}
