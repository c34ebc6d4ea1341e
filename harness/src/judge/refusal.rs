//! Whether a program's output names a file: a refusal does, a traceback does not.

use std::path::Path;

/// A line of the output names the file by its path or its base name, as a whole word, and does not begin with
/// white space (a traceback indents the source lines that it quotes).
pub fn names(output: &[u8], file: &Path) -> bool {
    let mut wanted = vec![file.as_os_str().as_encoded_bytes()];
    wanted.extend(file.file_name().map(|name| name.as_encoded_bytes()));
    output
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.first().is_some_and(|byte| byte.is_ascii_whitespace()))
        .any(|line| wanted.iter().any(|word| has_word(line, word)))
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
        ] {
            assert!(names(line.as_bytes(), file), "{line}");
        }
        for line in [
            "",
            "error: damaged",
            "my-state.json: bad",
            "state.json.tmp: bad",
            "state.jsonl",
            "  open(\"state.json\")",
        ] {
            assert!(!names(line.as_bytes(), file), "{line}");
        }
    }
}
