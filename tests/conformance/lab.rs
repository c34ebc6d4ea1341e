//! The parts of the suite that need a tracer, for the stores that promise to withstand them.

use std::path::Path;

use crashlab::judge::Word;
use crashlab::run::{Plan, ScenarioResult, Settings, try_scenario};
use crashlab::scenario::Scenario;
use long_horizon::store::conformance::lab::{Part, Program};

const PROGRAM: &str = env!("CARGO_BIN_EXE_long-horizon");

fn outcome(store: &str, part: Part) -> ScenarioResult {
    let text = Program::long_horizon(store, "queue.state").scenario(part);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("suite.toml");
    let mut scenario = Scenario::parse(&file, &text).unwrap_or_else(|e| panic!("{text}\n{e:?}"));
    scenario.path = vec![Path::new(PROGRAM).parent().unwrap().to_owned()];
    let result = try_scenario(&scenario, &Plan::All, &Settings::default());
    result.unwrap_or_else(|error| panic!("{store}, {part:?}: {error}"))
}

fn withstood(store: &str, part: Part) {
    let result = outcome(store, part);
    result.assert_held();
    assert!(
        result.counts().values().sum::<usize>() > 3,
        "{store}, {part:?}: {:?}",
        result.counts()
    );
}

#[test]
fn json_withstands_all_parts() {
    for part in Part::ALL {
        withstood("json", part);
    }
}

/// Power cuts of the database take longest, and are in `scenarios/power-cut`.
#[test]
fn sqlite_withstands_all_parts_but_power_cuts() {
    for part in Part::ALL.into_iter().filter(|part| !matches!(part, Part::Power | Part::FirstPower))
    {
        withstood("sqlite", part);
    }
}

/// It looks whether another has saved, and then renames: the race is between the two.
#[test]
fn the_part_for_races_finds_a_store_that_does_not_lock() {
    let result = outcome("reference", Part::Race);
    let of = |race: &str| {
        let cases = result.faults.iter().flat_map(|fault| &fault.cases);
        let ids = cases.filter(|case| case.verdict.word == Word::Lost).map(|case| &case.id);
        ids.filter(|id| id.contains(race)).count()
    };
    assert!(of("two-sessions") > 0, "{:?}", result.counts());
}
