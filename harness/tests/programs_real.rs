//! Real programs under the lab: what it says of each scenario in `scenarios/programs` that can run here. Those that cannot
//! are printed with the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use crashlab::judge::{Grade, Word};
use crashlab::report::{Event, Reporter};
use crashlab::run::{FaultResult, LabError, Plan, ScenarioResult, Settings, run};
use crashlab::scenario::{Scenario, load};

fn scenarios() -> Vec<Scenario> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../scenarios/programs");
    load(&[folder]).unwrap_or_else(|errors| panic!("{}", errors[0]))
}

/// The words that were found of each fault, and for each that is a fault why, of its first case. How often each was found
/// depends on the version of the program.
fn told(result: &ScenarioResult) -> String {
    let mut text = String::new();
    for fault in &result.faults {
        let words: Vec<&str> = words(fault).into_iter().map(Word::as_str).collect();
        _ = writeln!(text, "{}: {}", fault.kind, words.join(", "));
        for (word, why) in reasons(fault) {
            _ = writeln!(text, "  {word}: {why}");
        }
    }
    text
}

fn words(fault: &FaultResult) -> BTreeSet<Word> {
    let warnings = fault.cases.iter().flat_map(|case| &case.warnings).map(|(word, _)| *word);
    fault.cases.iter().map(|case| case.verdict.word).chain(warnings).collect()
}

fn reasons(fault: &FaultResult) -> BTreeMap<Word, &str> {
    let verdicts = fault.cases.iter().rev().map(|case| &case.verdict);
    let faults = verdicts.filter(|verdict| verdict.grade == Grade::Fault);
    faults.map(|verdict| (verdict.word, verdict.why.as_str())).collect()
}

/// What came of each scenario, by name.
#[derive(Default)]
struct Collected(BTreeMap<String, Result<ScenarioResult, String>>);

impl Reporter for Collected {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Ended { scenario, result } => {
                self.0.insert(scenario.name.clone(), Ok(result.clone()));
            }
            Event::Failed { scenario: Some(scenario), error: LabError::Missing(why) } => {
                self.0.insert(scenario.name.clone(), Err(why.clone()));
            }
            Event::Failed { error, .. } => panic!("{error}"),
            _ => {}
        }
    }
}

#[test]
fn what_is_said_of_real_programs() {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"\b[0-9a-f]{40}\b", "[commit]");
    settings.add_filter(r"Node\.js v[0-9.]+", "Node.js [version]");
    let mut collected = Collected::default();
    run(&scenarios(), &Plan::All, &Settings::default(), &mut collected);
    for (name, result) in collected.0 {
        match result {
            Ok(result) => {
                result.assert_held();
                let differing = &result.faults[0].confirmation.differing;
                assert!(differing.is_empty(), "{name}: {differing:?}");
                settings.bind(|| insta::assert_snapshot!(name, told(&result)));
            }
            Err(why) => eprintln!("skipped: {name}: {why}"),
        }
    }
}
