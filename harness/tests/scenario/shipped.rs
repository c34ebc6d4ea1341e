//! What the shipped scenarios expect the lab to find: every bad subject, and every word that can be said of one. The main
//! command then fails as soon as the lab no longer finds it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crashlab::judge::{Grade, Word};
use crashlab::scenario::{CommandLine, Fault, FaultKind, Scenario, load};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios")
}

fn shipped() -> Vec<Scenario> {
    load(&[folder()]).unwrap()
}

/// A small program with its name and the head of its source.
struct Subject {
    name: String,
    head: String,
}

impl Subject {
    fn all() -> Vec<Subject> {
        let sources = fs::read_dir(folder().join("subjects/src/bin")).unwrap();
        sources.map(|source| Subject::read(&source.unwrap().path())).collect()
    }

    fn read(source: &Path) -> Subject {
        let text = fs::read_to_string(source).unwrap();
        let head: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//!")).collect();
        let name = source.file_stem().unwrap().to_str().unwrap().to_owned();
        Subject { name, head: head.join("\n") }
    }

    fn is_bad(&self) -> bool {
        let begins = |with: &str| self.head.starts_with(with);
        assert!(
            begins(" Bad: ") || begins(" Good: ") || begins(" Not a subject: "),
            "{}: neither good nor bad",
            self.name
        );
        begins(" Bad: ")
    }

    /// Its head says that the lab must find this.
    fn announces(&self, word: &Word) -> bool {
        self.head.contains(&format!("`{word}`"))
    }

    fn runs_in(&self, scenario: &Scenario, fault: &Fault) -> bool {
        let beside: &[(String, CommandLine)] = match &fault.kind {
            FaultKind::Overlap { processes, .. } => processes,
            _ => &[],
        };
        let mut commands =
            beside.iter().map(|(_, command)| command).chain([&scenario.subject.command]);
        commands.any(|command| match command {
            CommandLine::Argv(argv) => argv[0] == self.name,
            CommandLine::Shell(line) => line.split_whitespace().any(|word| word == self.name),
        })
    }
}

#[test]
fn every_bad_subject_must_be_found_by_the_word_that_its_head_says() {
    let scenarios = shipped();
    for subject in Subject::all() {
        let finds = |scenario: &Scenario| {
            let mut faults =
                scenario.faults.iter().filter(|fault| subject.runs_in(scenario, fault));
            faults.any(|fault| fault.expect.iter().any(|word| subject.announces(word)))
        };
        assert_eq!(scenarios.iter().any(finds), subject.is_bad(), "{}", subject.name);
    }
}

#[test]
fn every_fault_and_warning_is_expected_somewhere() {
    let bad = |word: &Word| matches!(word.grade(), Grade::Fault | Grade::Warning);
    let said: BTreeSet<Word> = Word::ALL.into_iter().filter(bad).collect();
    let scenarios = shipped();
    let faults = scenarios.iter().flat_map(|scenario| &scenario.faults);
    let expected: BTreeSet<Word> = faults.flat_map(|fault| fault.expect.iter().copied()).collect();
    assert_eq!(expected, said);
}
