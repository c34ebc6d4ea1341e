//! Real programs under the lab: what it says of each scenario in `scenarios/programs` that can run here. Those that cannot
//! are printed with the reason.

use std::path::PathBuf;

use crashlab::judge::Word;
use crashlab::run::{FaultResult, LabError, Plan, ScenarioResult, Settings, try_scenario};
use crashlab::scenario::{Scenario, load};

fn scenarios() -> Vec<Scenario> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../scenarios/programs");
    load(&[folder]).unwrap_or_else(|errors| panic!("{}", errors[0]))
}

/// The words of the cases in the order of their points, equal neighbours once: how often each comes depends on the version
/// of the program.
fn told(fault: &FaultResult) -> String {
    let mut words: Vec<&str> = fault.cases.iter().map(|case| case.verdict.word.as_str()).collect();
    words.sort_unstable();
    words.dedup();
    let mut warnings: Vec<Word> =
        fault.cases.iter().flat_map(|case| &case.warnings).map(|(word, _)| *word).collect();
    warnings.sort_unstable();
    warnings.dedup();
    let warnings = warnings.iter().map(Word::as_str);
    words.into_iter().chain(warnings).collect::<Vec<_>>().join(", ")
}

/// A line for each verdict that is a fault: its first case's reason.
fn findings(fault: &FaultResult) -> Vec<String> {
    let mut found: Vec<(Word, &str)> = Vec::new();
    for case in
        fault.cases.iter().filter(|case| case.verdict.grade == crashlab::judge::Grade::Fault)
    {
        if found.iter().all(|(word, _)| *word != case.verdict.word) {
            found.push((case.verdict.word, &case.verdict.why));
        }
    }
    found.into_iter().map(|(word, why)| format!("  {word}: {why}\n")).collect()
}

fn snapshot(result: &ScenarioResult) -> String {
    result
        .faults
        .iter()
        .map(|fault| format!("{}: {}\n{}", fault.kind, told(fault), findings(fault).concat()))
        .collect()
}

#[test]
fn what_is_said_of_real_programs() {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"\b[0-9a-f]{40}\b", "[id]");
    for scenario in scenarios() {
        match try_scenario(&scenario, &Plan::All, &Settings::default()) {
            Ok(result) => {
                result.assert_held();
                let confirmation = &result.faults[0].confirmation;
                assert_eq!(confirmation.differing, [], "{}", scenario.name);
                settings.bind(|| insta::assert_snapshot!(scenario.name.clone(), snapshot(&result)));
            }
            Err(LabError::Missing(why)) => eprintln!("skipped: {}: {why}", scenario.name),
            Err(error) => panic!("{}: {error}", scenario.name),
        }
    }
}
