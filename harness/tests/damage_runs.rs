//! Damages from end to end: who decides whether a damaged file may be taken for good, and how many are tried.

use crashlab::fault::damage::Wish;
use crashlab::judge::Word;
use crashlab::run::{LabError, Plan, ScenarioResult, Settings, try_scenario};
use crashlab::scenario::{CommandLine, DamageFault, FaultKind, Scenario};

/// A subject that replaces `one` by `two`, and this recovery.
fn recovered_by(line: &str, damages: &[&str]) -> Scenario {
    let subject = "cat s > /dev/null; echo two > t; mv t s";
    let scenario = Scenario::new("damage", &["/bin/sh", "-c", subject], "s").setup("echo one > s");
    scenario.recovery(&["/bin/sh", "-c", line]).fault(FaultKind::Damage(fault(damages)))
}

fn fault(damages: &[&str]) -> DamageFault {
    let wish = |name: &&str| name.parse::<Wish>().unwrap_or_else(|error| panic!("{error}"));
    DamageFault { damages: damages.iter().map(wish).collect(), ..DamageFault::seven("s".into()) }
}

fn edited(mut scenario: Scenario, edit: impl Fn(&mut DamageFault)) -> Scenario {
    for fault in &mut scenario.faults {
        if let FaultKind::Damage(fault) = &mut fault.kind {
            edit(fault);
        }
    }
    scenario
}

fn with_valid(scenario: Scenario, line: &str) -> Scenario {
    edited(scenario, |fault| fault.valid = Some(CommandLine::Shell(line.to_owned())))
}

fn run(scenario: &Scenario, plan: &Plan) -> Result<ScenarioResult, LabError> {
    try_scenario(scenario, plan, &Settings::default())
}

fn result(scenario: &Scenario) -> ScenarioResult {
    run(scenario, &Plan::All).unwrap_or_else(|error| panic!("{error}"))
}

/// Ids and words of all cases.
fn words(result: &ScenarioResult) -> Vec<(&str, Word)> {
    let cases = result.faults.iter().flat_map(|fault| &fault.cases);
    cases.map(|case| (case.id.as_str(), case.verdict.word)).collect()
}

const LETTERS: &str = "grep -qx '[a-z][a-z]*' s";

#[test]
fn the_scenario_says_which_damaged_file_is_valid() {
    // `o` becomes `n`; or the file three NULs and a line feed.
    let takes_all = recovered_by("cat s > /dev/null", &["bit-flip/0", "nul-filled", "empty"]);
    assert_eq!(
        words(&result(&with_valid(takes_all.clone(), LETTERS))),
        [
            ("damage:bit-flip/0", Word::Undetectable),
            ("damage:nul-filled", Word::Accepted),
            ("damage:empty", Word::Accepted),
        ]
    );
    // Without its word nothing is known, but of the seven.
    let result = result(&takes_all);
    assert_eq!(
        words(&result),
        [
            ("damage:bit-flip/0", Word::NotMeasured),
            ("damage:nul-filled", Word::NotMeasured),
            ("damage:empty", Word::Accepted),
        ]
    );
}

#[test]
fn a_valid_command_that_fails_on_the_undamaged_file_is_a_mistake() {
    let scenario = with_valid(recovered_by("cat s", &["bit-flip/0"]), "grep -q three s");
    let error = run(&scenario, &Plan::All).expect_err("it is wrong");
    assert!(matches!(error, LabError::Scenario(_)), "{error}");
    let said = "the `valid` command `grep -q three s` fails without any fault: exit code 1";
    assert!(error.to_string().contains(said), "{error}");
}

const NO_FILES: [&str; 5] = ["directory", "unreadable", "dangling-link", "socket", "fifo"];

#[test]
fn what_is_no_file_can_be_refused() {
    let line = "if [ -f s ] && [ -r s ]; then cat s; else echo s: no file >&2; exit 1; fi";
    let result = result(&recovered_by(line, &NO_FILES));
    assert!(words(&result).iter().all(|(_, word)| *word == Word::Refused), "{:?}", words(&result));
    assert_eq!(words(&result).len(), NO_FILES.len());
}

#[test]
fn what_is_no_file_must_not_be_taken_for_none() {
    let line = "if [ -f s ] && [ -r s ]; then cat s; else rm -rf s; echo new > s; fi";
    let result = result(&recovered_by(line, &NO_FILES));
    assert!(
        words(&result).iter().all(|(_, word)| *word == Word::Restarted),
        "{:?}",
        words(&result)
    );
    assert_eq!(words(&result).len(), NO_FILES.len());
}

/// As root, the recovery of this case alone must obey the mode.
#[test]
fn a_file_that_nobody_may_read_is_one_for_its_recovery_alone() {
    let line = "cat s > /dev/null 2>&1 || { echo s: denied >&2; exit 1; }";
    let scenario = recovered_by(line, &["unreadable"]);
    let scenario = with_valid(scenario.setup("chmod 0 s"), "true");
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root reads what a mode forbids");
        return;
    }
    // The controls read the file with mode 000, and are run before and after.
    assert_eq!(words(&result(&scenario)), [("damage:unreadable", Word::Refused)]);
}

#[test]
fn an_older_version_is_undetectable_unless_the_recovery_starts_over() {
    let plain = recovered_by("cat s", &["older-version"]);
    assert_eq!(words(&result(&plain)), [("damage:older-version", Word::Undetectable)]);
    // Something else tells that there was more, and it throws away what there is.
    let mut wary = recovered_by("true", &["older-version"]);
    let line = "n=$(cat s 2> /dev/null); if [ -z \"$n\" ] || [ -e done$n ]; then echo new > s; \
                else cat s; echo two > t; mv t s; : > doneone; fi";
    wary.subject.command = CommandLine::Argv(["/bin/sh", "-c", line].map(str::to_owned).into());
    wary.recovery.command = wary.subject.command.clone();
    assert_eq!(words(&result(&wary)), [("damage:older-version", Word::Restarted)]);
    // A run that changes nothing has no older version.
    let mut idle = plain;
    idle.subject.command = CommandLine::Shell("cat s".to_owned());
    assert_eq!(words(&result(&idle)), [("damage:older-version", Word::Skipped)]);
}

const STRICT: &str = "grep -qx one s || grep -qx two s || { echo s: damaged >&2; exit 1; }";

#[test]
fn a_bound_on_places_is_said() {
    let bounded = recovered_by(STRICT, &["bit-flip/*", "truncated/*", "wrong-type/*"]);
    let bounded = edited(bounded, |fault| fault.at_most = 2);
    let result = result(&bounded);
    let found = words(&result);
    let ids: Vec<&str> = found.iter().map(|(id, _)| *id).collect();
    let expected = ["bit-flip/0", "bit-flip/31", "truncated/0", "truncated/3", "wrong-type/*"];
    assert_eq!(ids, expected.map(|name| format!("damage:{name}")));
    assert_eq!(found[4].1, Word::Skipped);
    let note =
        "damage of s tried: bit-flip/* at 2 of 32 places, truncated/* at 2 of 4 places (`at-most`)";
    assert!(result.notes.iter().any(|found| found == note), "{:?}", result.notes);
}

#[test]
fn all_is_what_applies() {
    let result = result(&with_valid(recovered_by(STRICT, &["all"]), LETTERS));
    let found = words(&result);
    assert!(found.iter().all(|(_, word)| *word != Word::Skipped), "{found:?}");
    let has = |name: &str| found.iter().any(|(id, _)| *id == format!("damage:{name}"));
    assert!(has("empty") && has("fifo") && has("truncated/3") && has("bit-flip/31"), "{found:?}");
    assert!(!has("missing-queue") && !has("swapped-blocks"), "{found:?}");
}

#[test]
fn any_damage_can_be_replayed_by_its_id() {
    let two = recovered_by(STRICT, &["bit-flip/*"]).fault(FaultKind::Damage(fault(&["empty"])));
    let replayed = |id: &str| {
        let result = run(&two, &Plan::Case(format!("damage:{id}")));
        let result = result.unwrap_or_else(|error| panic!("{error}"));
        result.faults.iter().map(|fault| fault.cases.len()).collect::<Vec<_>>()
    };
    assert_eq!(replayed("bit-flip/7"), [1, 0]);
    assert_eq!(replayed("empty"), [0, 1]);
    assert_eq!(
        replayed("crlf"),
        [1, 1],
        "no fault asks for it, so every file that is damaged has it"
    );
    assert_eq!(replayed("bit-flip/*"), [0, 0]);
    assert_eq!(replayed("gamma-rays"), [0, 0]);
}
