//! The corpus that ships, its questions and its script, and retrieval against numbers from elsewhere.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, also in what tests share")]

mod command;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use long_horizon::builtin;
use long_horizon::corpus::{Corpus, CorpusError, Section};
use long_horizon::retrieval::{self, SOURCES};
use serde_json::Value;

fn script() -> serde_json::Map<String, Value> {
    serde_json::from_str(builtin::SCRIPT).unwrap()
}

fn questions() -> Vec<String> {
    builtin::parse_questions(builtin::QUESTIONS)
}

/// Labels of what a session would get for this question.
fn found(corpus: &Corpus, question: &str) -> Vec<String> {
    retrieval::search(corpus.sections(), question, SOURCES).iter().map(|s| s.cite()).collect()
}

#[test]
fn what_is_compiled_in_is_what_lies_in_the_folder() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/corpus");
    assert_eq!(Corpus::built_in().unwrap(), Corpus::load(&folder).unwrap());
}

#[test]
fn the_corpus_is_large_enough_and_every_section_names_its_source() {
    let corpus = Corpus::built_in().unwrap();
    let files: BTreeSet<_> = corpus.sections().iter().map(|s| &s.file).collect();
    assert!(files.len() >= 8, "{files:?}");
    assert!(corpus.sections().len() >= 60);
    for section in corpus.sections() {
        let last = section.text.lines().last().unwrap_or_default();
        assert!(last.starts_with("Source: "), "{}: {last}", section.cite());
    }
}

#[test]
fn there_are_twelve_questions_and_the_script_flags_two_of_them() {
    let script = script();
    let questions = questions();
    assert_eq!(questions.len(), 12);
    let scripted: Vec<_> = script.keys().cloned().collect();
    assert_eq!(scripted, questions);
    let flagged = script.values().filter(|reply| reply.get("flag_for_review").is_some());
    assert_eq!(flagged.count(), 2);
}

#[test]
fn every_scripted_answer_cites_what_a_session_finds_and_holds_no_number_of_its_own() {
    let corpus = Corpus::built_in().unwrap();
    for (question, reply) in script() {
        let Some(answer) = reply.get("answer") else {
            continue;
        };
        let citations: Vec<&str> =
            answer["citations"].as_array().unwrap().iter().map(|c| c.as_str().unwrap()).collect();
        assert!(!citations.is_empty(), "{question}");
        let found = found(&corpus, &question);
        let mut numbers_in_sources = BTreeSet::new();
        for cite in &citations {
            assert!(found.iter().any(|f| f == cite), "{question}: {cite} is not among {found:?}");
            numbers_in_sources.extend(digit_runs(&corpus.get(cite).unwrap().text));
        }
        for number in digit_runs(answer["text"].as_str().unwrap()) {
            assert!(
                numbers_in_sources.contains(&number),
                "{question}: no cited section says {number}"
            );
        }
    }
}

#[test]
fn the_two_flagged_questions_are_for_a_person_indeed() {
    let corpus = Corpus::built_in().unwrap();
    let disagree = found(
        &corpus,
        "Can a program rely on one 512-byte sector being written atomically in a power failure?",
    );
    for side in ["databases#2", "databases#5"] {
        assert!(disagree.iter().any(|f| f == side), "{side} is not among {disagree:?}");
    }
    let wear = ["flash", "cell", "wear", "wears", "cycles", "endure"];
    for section in corpus.sections() {
        let words = retrieval::words(&format!("{} {}", section.title, section.text));
        assert!(
            !words.iter().any(|w| wear.contains(&w.as_str())),
            "{} speaks of wear",
            section.cite()
        );
    }
}

fn digit_runs(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_ascii_digit())
        .filter(|run| !run.is_empty())
        .map(str::to_owned)
        .collect()
}

fn sections(parts: &[(&str, &str)]) -> Vec<Section> {
    parts
        .iter()
        .zip(1..)
        .map(|((title, text), number)| Section {
            file: "f".to_owned(),
            number,
            title: (*title).to_owned(),
            text: (*text).to_owned(),
        })
        .collect()
}

fn close(actual: &[f64], expected: &[f64], what: &str) {
    assert_eq!(actual.len(), expected.len(), "{what}");
    for (a, e) in actual.iter().zip(expected) {
        assert!((a - e).abs() < 1e-9, "{what}: {actual:?}, expected {expected:?}");
    }
}

#[test]
fn scores_by_hand() {
    // Two sections of 2 and 3 words, 2.5 on average. `c` stands in one of them, twice: idf = ln((2 - 1 + 0.5) / (1 + 0.5) + 1) = ln 2,
    // and tf * 2.5 / (tf + 1.5 * (0.25 + 0.75 * 3 / 2.5)) = 5 / 3.725.
    let scores = retrieval::scores(&sections(&[("a", "b"), ("b", "c c")]), "c");
    close(&scores, &[0.0, std::f64::consts::LN_2 * 5.0 / 3.725], "by hand");
}

/// What `tests/golden/bm25.py` computed from the formula alone.
fn golden() -> Value {
    serde_json::from_str(include_str!("golden/bm25.json")).unwrap()
}

/// Holds scores and order against what the golden file says of each question: label and score, the best first.
fn hold(sections: &[Section], questions: &Value, what: &str) {
    for (question, expected) in questions.as_object().unwrap() {
        let expected: Vec<(&str, f64)> = expected
            .as_array()
            .unwrap()
            .iter()
            .map(|pair| (pair[0].as_str().unwrap(), pair[1].as_f64().unwrap()))
            .collect();
        let what = format!("{what}: `{question}`");
        let in_order: Vec<f64> = sections
            .iter()
            .map(|s| expected.iter().find(|(label, _)| *label == s.cite()).map_or(0.0, |e| e.1))
            .collect();
        close(&retrieval::scores(sections, question), &in_order, &what);
        let ranking = retrieval::search(sections, question, sections.len());
        let ranking: Vec<String> = ranking.iter().map(|s| s.cite()).collect();
        let labels: Vec<&str> = expected.iter().map(|(label, _)| *label).collect();
        assert_eq!(ranking, labels, "{what}");
    }
}

#[test]
fn scores_and_ranking_of_the_edge_cases_are_what_was_computed_elsewhere() {
    let golden = golden();
    let cases = golden["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 6);
    for case in cases {
        let texts: Vec<(&str, &str)> = case["sections"]
            .as_array()
            .unwrap()
            .iter()
            .map(|section| (section[0].as_str().unwrap(), section[1].as_str().unwrap()))
            .collect();
        hold(&sections(&texts), &case["questions"], case["name"].as_str().unwrap());
    }
}

#[test]
fn scores_and_ranking_of_the_built_in_questions_are_what_was_computed_elsewhere() {
    let golden = &golden()["built_in"];
    let corpus = Corpus::built_in().unwrap();
    let cites: Vec<String> = corpus.sections().iter().map(Section::cite).collect();
    assert_eq!(golden["sections"], Value::from(cites), "run tests/golden/bm25.py again");
    let asked: Vec<String> = golden["questions"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(asked, questions(), "run tests/golden/bm25.py again");
    hold(corpus.sections(), &golden["questions"], "built in; run tests/golden/bm25.py again?");
}

#[test]
fn the_golden_scores_are_what_their_program_prints() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    if !command::shell_and_man::have("python3") {
        return;
    }
    let printed = Command::new("python3").arg(folder.join("bm25.py")).output().unwrap();
    assert!(printed.status.success(), "{printed:?}");
    let golden = std::fs::read_to_string(folder.join("bm25.json")).unwrap();
    assert!(
        String::from_utf8(printed.stdout).unwrap() == golden,
        "run `python3 tests/golden/bm25.py > tests/golden/bm25.json`"
    );
}

#[test]
fn words_are_cut_as_python_cuts_them() {
    // re.findall(r"[a-z0-9]+", "\u212A İx ſ Ab-c_9é".lower())
    assert_eq!(retrieval::words("\u{212A} İx ſ Ab-c_9é"), ["k", "i", "x", "ab", "c", "9"]);
}

#[test]
fn at_most_three_are_found_ties_keep_their_order_and_none_without_a_common_word() {
    let twins = sections(&[("t", "x"), ("t", "y"), ("t", "x"), ("t", "x"), ("t", "x")]);
    let numbers = |question| -> Vec<u32> {
        retrieval::search(&twins, question, SOURCES).iter().map(|s| s.number).collect()
    };
    assert_eq!(numbers("x"), [1, 3, 4]);
    assert_eq!(numbers("y"), [2]);
    assert!(numbers("z").is_empty());
    assert!(retrieval::search(&[], "x", SOURCES).is_empty());
}

#[test]
fn files_come_in_the_order_of_their_names_and_others_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("b.md", "## 1. B\n"),
        ("a.md", "## 1. A\n"),
        ("a-b.md", "## 1. AB\n"),
        ("c.txt", "## 1. C\n"),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    std::fs::create_dir(folder.path().join("d.md")).unwrap();
    let corpus = Corpus::load(folder.path()).unwrap();
    let cites: Vec<_> = corpus.sections().iter().map(Section::cite).collect();
    assert_eq!(cites, ["a-b#1", "a#1", "b#1"]);
}

#[test]
fn a_folder_that_is_no_corpus_is_an_error_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(Corpus::load(folder.path()), Err(CorpusError::Empty { .. })));
    let missing = folder.path().join("missing");
    let error = Corpus::load(&missing).unwrap_err().to_string();
    assert!(error.contains(&missing.display().to_string()), "{error}");
    std::fs::write(folder.path().join("x.md"), b"## 1. \xff\n").unwrap();
    let error = Corpus::load(folder.path()).unwrap_err();
    assert!(matches!(&error, CorpusError::NotText { path } if path.ends_with("x.md")), "{error}");
}
