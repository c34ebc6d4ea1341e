//! Recoveries that begin as copies of one that stands before its first look: they come to the same as those that are run
//! from their beginning, also where a program does what copies of it could get in each other's way by.

// A test says with a panic what went wrong; its support need not do better.
#![allow(clippy::unwrap_used)]

mod aftermath;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crashlab::judge::Word;
use crashlab::run::{Case, Plan, ScenarioResult, Settings, try_scenario};
use crashlab::scenario::Scenario;

/// The subject that counts on, and what it reads beside its state; `None` without a C compiler.
fn subject() -> Option<&'static (PathBuf, PathBuf)> {
    static MADE: OnceLock<Option<(PathBuf, PathBuf)>> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("copied-programs");
        fs::create_dir_all(&folder).unwrap();
        let text = folder.join("letters");
        fs::write(&text, "abcd").unwrap();
        let program = folder.join("copied");
        aftermath::compiled("copied.c", &program, &["-Wno-unused-result"])
            .then_some((program, text))
    });
    made.as_ref()
}

fn with(copies_from: Option<usize>, scenario: &Scenario) -> ScenarioResult {
    let settings = Settings { jobs: 1, confirm: 0, copies_from, ..Settings::default() };
    let result = try_scenario(scenario, &Plan::All, &settings);
    result.unwrap_or_else(|error| panic!("{}: {error}", scenario.name))
}

fn cases(result: &ScenarioResult) -> impl Iterator<Item = &Case> {
    result.faults.iter().flat_map(|fault| &fault.cases)
}

/// A case's id, verdict and reason, and its warnings.
type Told = (String, Word, String, Vec<(Word, String)>);

/// What is said of each case.
fn told(result: &ScenarioResult) -> Vec<Told> {
    let of = |case: &Case| {
        let (word, why) = (case.verdict.word, case.verdict.why.clone());
        // Temporary names hold the number of their process.
        let plain = |what: &String| what.replace(|letter: char| letter.is_ascii_digit(), "");
        let warnings = case.warnings.iter().map(|(word, what)| (*word, plain(what))).collect();
        (case.id.clone(), word, why, warnings)
    };
    cases(result).map(of).collect()
}

/// How many cases there are, and how many of their recoveries were copies.
fn copies(result: &ScenarioResult) -> (usize, usize) {
    let forked = cases(result).filter(|case| case.evidence.forked).count();
    (cases(result).count(), forked)
}

/// The subject in this mode, on a state that holds 5.
fn counts(argv: &[&str]) -> Scenario {
    Scenario::new(argv[1], argv, "s").setup("printf '5\\n' > s").kill_everywhere()
}

/// The subject comes to right ends, and most of its recoveries were copies: where a copy had come to another end than
/// the controls, which are none, it would have been run again.
fn copies_go_well(scenario: &Scenario) {
    let result = with(Some(4), scenario);
    result.assert_held();
    let (all, forked) = copies(&result);
    // Not those that begin with a version, which are controls, nor the first, which is held against one of its own.
    assert!(all > 15 && forked + 6 >= all, "{}: {forked} of {all}", scenario.name);
}

#[test]
fn copies_find_what_is_theirs_and_leave_what_is_others() {
    let Some((program, letters)) = subject() else { return };
    let (program, letters) = (program.to_str().unwrap(), letters.to_str().unwrap());
    for mode in [
        "plain", "position", "shared", "who", "remains", "timer", "thread", "pipe", "terminal",
        "flags", "child", "helper", "group", "socket",
    ] {
        copies_go_well(&counts(&[program, mode, letters]));
    }
}

#[test]
fn outputs_that_are_pipes_are_left_as_they_were() {
    let Some((program, _)) = subject() else { return };
    let mut scenario = counts(&[program.to_str().unwrap(), "flags"]);
    scenario.subject.pipe = true;
    copies_go_well(&scenario);
}

#[test]
fn a_program_that_lies_in_its_folder_is_copied() {
    let Some((program, _)) = subject() else { return };
    let setup = format!("printf '5\\n' > s; cp {} copied", program.display());
    copies_go_well(
        &Scenario::new("own", &["./copied", "plain"], "s").setup(&setup).kill_everywhere(),
    );
}

#[test]
fn a_shell_that_becomes_the_program_is_copied_as_that() {
    let Some((program, _)) = subject() else { return };
    let line = format!("exec {} plain", program.display());
    copies_go_well(&counts(&["/bin/sh", "-c", &line]));
}

#[test]
fn who_has_its_own_number_as_an_argument_is_copied_before_it_has_it() {
    let Some((program, _)) = subject() else { return };
    let line = format!("exec {} argument $$", program.display());
    copies_go_well(&counts(&["/bin/sh", "-c", &line]));
}

/// Lines of shell that keep a count in `s`, of which some lose it in each of the ways that there are.
const LINES: &[&str] = &[
    "read n < s; for i in 1 2 3 4 5 6 7 8 9; do echo $((n + 1)); done > t; mv t s",
    "read n < s; for i in 1 2 3 4 5 6 7 8 9; do echo $((n + 1)); done > s",
    "n=$(cat s 2> /dev/null || echo 0); rm -f s; for i in 1 2 3 4 5 6; do echo $((n + i)) > t; mv t s; done",
    "for i in 1 2 3 4 5 6; do echo line >> s; done",
    "[ -e lock ] && exit 3; echo $$ > lock; cat s > /dev/null; for i in 1 2 3 4 5; do echo $i > t; mv t s; done; rm lock",
    "n=$(cat s); for i in 1 2 3 4 5; do echo $((n + i)) > t.$$; mv t.$$ s; done",
    "date +%s%N > t; for i in 1 2 3 4 5; do echo $i >> t; done; mv t s",
];

#[test]
fn what_is_said_does_not_depend_on_copies() {
    for line in LINES {
        let scenario = Scenario::new(line, &["/bin/sh", "-c", line], "s");
        let scenario = scenario.setup("echo 5 > s").kill_everywhere();
        let own = with(None, &scenario);
        assert_eq!(copies(&own).1, 0, "{line}");
        assert_eq!(told(&with(Some(1), &scenario)), told(&own), "{line}");
    }
}

#[test]
fn what_is_not_good_is_never_said_of_a_copy() {
    for line in LINES {
        let scenario = Scenario::new(line, &["/bin/sh", "-c", line], "s");
        let result = with(Some(1), &scenario.setup("echo 5 > s").kill_everywhere());
        for case in cases(&result).filter(|case| case.evidence.forked) {
            assert!(case.warnings.is_empty(), "{line}: {case:?}");
            // What is refused ends with another exit code than 0.
            let good = [Word::Old, Word::New, Word::Recovered];
            assert!(good.contains(&case.verdict.word), "{line}: {case:?}");
        }
    }
}

/// What the command says of it in JSON.
fn number_of_copies(said: &str) -> u64 {
    let told = said.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let told = told.filter_map(|event| event.get("recovered_by_copies")?.as_u64());
    told.sum()
}

#[test]
fn the_command_says_how_many_were_copies_and_can_do_without() {
    let line = "read n < s; for i in 1 2 3 4 5 6 7 8 9; do echo $((n + 1)); done > t; mv t s";
    let place = aftermath::Place::with(&[("s", "5\n")]);
    let copies = |more: &[&str]| {
        let options = [&["--json", "--confirm", "0", "-j", "1", "--state", "s"], more].concat();
        let ran = place.check(&options, &["/bin/sh", "-c", line]);
        ran.must_say(0, &["\"verdict\":\"old\""]);
        number_of_copies(&ran.said)
    };
    assert!(copies(&[]) > 4);
    assert_eq!(copies(&["--no-fork-server"]), 0);
}

#[test]
fn a_program_that_begins_in_one_of_several_watched_folders_is_copied() {
    let line = "read n < s; for i in 1 2 3 4 5 6 7 8 9; do echo $((n + 1)); done > t; mv t s; echo $n > ../beside/s";
    let place = aftermath::Place::with(&[("in/s", "5\n"), ("beside/s", "5\n")]);
    let start = &["sh", "-c", "cd in && exec \"$@\"", "sh"];
    let setting = aftermath::Setting { start, ..Default::default() };
    let options = ["check", "--faults", "kill", "--json", "--confirm", "0", "-j", "1"];
    let watched = ["--watch", "../beside", "--state", "s", "--", "/bin/sh", "-c", line];
    let ran = setting.run(&place, &[&options[..], &watched[..]].concat());
    assert!(number_of_copies(&ran.said) > 4, "{}", ran.said);
}
