//! What is compiled in, so that the command works anywhere: the corpus, its questions, and the script that answers them.

/// The corpus as `(file name without .md, content)`, in the order of the names.
pub const CORPUS: [(&str, &str); 10] = [
    ("databases", include_str!("../scenarios/corpus/databases.md")),
    ("filesystems", include_str!("../scenarios/corpus/filesystems.md")),
    ("json", include_str!("../scenarios/corpus/json.md")),
    ("links", include_str!("../scenarios/corpus/links.md")),
    ("linux", include_str!("../scenarios/corpus/linux.md")),
    ("locks", include_str!("../scenarios/corpus/locks.md")),
    ("posix", include_str!("../scenarios/corpus/posix.md")),
    ("processes", include_str!("../scenarios/corpus/processes.md")),
    ("schedulers", include_str!("../scenarios/corpus/schedulers.md")),
    ("writeback", include_str!("../scenarios/corpus/writeback.md")),
];

/// The questions, one a line.
pub const QUESTIONS: &str = include_str!("../scenarios/corpus/questions.txt");

/// The script of `stub:scripted`.
pub const SCRIPT: &str = include_str!("../scenarios/corpus/script.json");

/// Reads a file of questions: one a line; blank lines, lines that begin with `#` and a byte-order mark are skipped.
pub fn parse_questions(text: &str) -> Vec<String> {
    text.trim_start_matches('\u{feff}')
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect()
}
