//! `crashlab check`, through the binary: programs as they are, in folders of their own.

// A test says with a panic what went wrong; its support need not do better.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

#[path = "check/calls.rs"]
mod calls;
#[path = "check/marks.rs"]
mod marks;
#[path = "check/processes.rs"]
mod processes;
#[path = "check/programs.rs"]
mod programs;
#[path = "check/watch.rs"]
mod watch;

struct Folder(tempfile::TempDir);

impl Folder {
    fn with(files: &[(&str, &str)]) -> Folder {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Folder(folder)
    }

    /// Exit code and everything that is printed.
    fn crashlab(&self, args: &[&str]) -> (i32, String) {
        self.crashlab_in("", args)
    }

    /// The same from a folder in this one.
    fn crashlab_in(&self, below: &str, args: &[&str]) -> (i32, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_crashlab"))
            .args(args)
            // As if the lab itself were somebody's check.
            .env("CRASHLAB_MARKS", "of-another-lab")
            .current_dir(self.0.path().join(below))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8_lossy(&text).into_owned())
    }

    fn check(&self, options: &[&str], line: &str) -> (i32, String) {
        self.crashlab(
            &[&["check", "--faults", "kill"], options, &["--", "sh", "-c", line]].concat(),
        )
    }

    fn check_in(&self, below: &str, options: &[&str], line: &str) -> (i32, String) {
        self.crashlab_in(
            below,
            &[&["check", "--faults", "kill"], options, &["--", "sh", "-c", line]].concat(),
        )
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

/// The verdicts of the first row that holds this text, such as `old 1, torn 2`.
fn row<'a>(said: &'a str, name: &str) -> &'a str {
    let line = said.lines().find(|line| line.contains(name) && line.contains(" kill "));
    line.unwrap_or_else(|| panic!("no row of {name}:\n{said}"))
        .split(" kill ")
        .last()
        .unwrap()
        .trim()
}

const IN_PLACE: &str = "n=$(cat s.json); printf %s $((n + 1)) > s.json";
const REPLACED: &str = "n=$(cat s.json); printf %s $((n + 1)) > t; mv t s.json";

#[test]
fn a_writer_in_place_is_torn_whether_it_reads_its_file_or_not() {
    let folder = Folder::with(&[("s.json", "5")]);
    let (code, said) = folder.check(&["--state", "s.json"], IN_PLACE);
    assert_eq!((code, row(&said, "")), (1, "old 1, new 1, torn 1"), "{said}");
    let place = "torn between op 1 (truncate s.json) and op 2 (write s.json): 1 case\n    kill@1\n";
    assert!(said.contains(place), "from O_TRUNC on:\n{said}");
    let (code, said) = folder.check(&["--state", "s.json"], "printf 6 > s.json");
    assert_eq!((code, row(&said, "")), (1, "old 1, new 1, torn 1"), "{said}");
    assert!(said.contains("never read"), "{said}");
    assert_eq!(fs::read_to_string(folder.path().join("s.json")).unwrap(), "5", "the user's file");
}

#[test]
fn a_replacing_counter_is_good_and_ends_one_higher() {
    let folder = Folder::with(&[("s.json", "5")]);
    let (code, said) = folder.check(&["--state", "s.json"], REPLACED);
    assert_eq!((code, row(&said, "")), (0, "old 3, new 1"), "{said}");
    assert!(said.contains("no fault found in 4 cases"), "{said}");
    assert!(said.contains("confirmed 4 of 4 by real kills"), "{said}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_recovery_that_fails_is_quoted() {
    let folder = Folder::with(&[("s.json", "5")]);
    let fails = "test -s s.json || { echo Traceback: empty >&2; exit 1; }; echo 6 > s.json";
    let (code, said) = folder.check(&["--state", "s.json"], fails);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("recovery failed: exit code 1: Traceback: empty"), "{said}");
}

#[test]
fn what_begins_with_nothing_is_tried_over_its_own_result_as_well() {
    let folder = Folder::with(&[]);
    let line = "n=$(cat s.json 2> /dev/null || echo 0); printf %s $((n + 1)) > t; mv t s.json";
    let (code, said) = folder.check(&["--state", "s.json"], line);
    assert_eq!(code, 0, "{said}");
    assert_eq!(row(&said, "1: from nothing"), "old 3, new 1", "{said}");
    assert_eq!(row(&said, "2: over what the first run left"), "old 3, new 1", "{said}");
    let (code, said) = folder.check(&["--state", "s.json"], "printf 6 > s.json");
    assert_eq!(code, 1);
    assert!(said.contains("    1:kill@1\n") && said.contains("    2:kill@1\n"), "{said}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn without_state_every_changed_file_is_judged_by_itself() {
    let folder = Folder::with(&[("a", "1"), ("b", "1"), ("c", "1"), ("lock", "")]);
    let line = "exec 9<> lock; flock 9; echo $$ >&9; cat a b c > /dev/null; \
                printf 2 > t; mv t a; printf 2 > b";
    let (code, said) = folder.check(&[], line);
    assert_eq!(code, 1, "{said}");
    assert!(!row(&said, " a ").contains("torn") && row(&said, " b ").contains("torn"), "{said}");
    assert!(said.contains("state, each judged by itself: a, b; changed as well"), "{said}");
    assert!(said.contains("leftovers only: lock"), "{said}");
    // Named together they must agree, and between the two they do not.
    let (_, said) = folder.check(&["--state", "a", "--state", "b"], line);
    assert!(said.contains("state, as given: a, b"), "{said}");
}

#[test]
fn a_recovery_that_is_killed_in_its_turn() {
    let folder = Folder::with(&[("s.json", "5")]);
    // The recovery mends in place what it finds: killed there, it leaves nothing whole.
    let line = "cat s.json > /dev/null; printf 6 > t; mv t s.json";
    let recover = "n=$(cat s.json); [ ! -e t ] || { printf %s $n > s.json; rm t; }";
    let options = ["--state", "s.json", "--recover", recover];
    let (code, said) = folder.check(&options, line);
    assert_eq!(code, 0, "{said}");
    let (code, said) = folder.check(&[&options[..], &["--depth", "2"]].concat(), line);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("torn when the recovery died between op 1 (truncate s.json)"), "{said}");
    assert!(said.contains("    kill@1/1, kill@2/1\n"), "{said}");
}

#[test]
fn one_case_again_and_its_folders() {
    let folder = Folder::with(&[("s.json", "5")]);
    let options = ["--state", "s.json", "--case", "kill@1", "--keep", "kept"];
    let (code, said) = folder.check(&options, IN_PLACE);
    assert_eq!(code, 1, "{said}");
    let crashed = folder.path().join("kept/kill@1/crashed/s.json");
    assert_eq!(fs::read_to_string(crashed).unwrap(), "", "{said}");
    let (code, said) = folder.check(&["--case", "kill@99"], IN_PLACE);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("there is no case `kill@99`"), "{said}");
}

#[test]
fn a_scenario_for_a_program() {
    let folder = Folder::with(&[("s.json", "5")]);
    let (code, said) = folder.crashlab(&["init", "-o", "mine.toml", "--", "sh", "-c", IN_PLACE]);
    assert_eq!(code, 0, "{said}");
    let (code, said) = folder.crashlab(&["run", "mine.toml"]);
    assert_eq!(code, 1, "{said}");
    assert_eq!(row(&said, "mine"), "old 1, new 1, torn 1", "{said}");
}

#[test]
fn what_cannot_be_tried_says_why() {
    let folder = Folder::with(&[("s.json", "5")]);
    for (line, why) in [
        ("true", "changes no file below"),
        ("exit 3", "fails without any fault: exit code 3"),
        ("echo x > /usr/elsewhere", "fails without any fault"),
        ("rm -rf \"$PWD\"/*; rm s.json", "fails without any fault"),
    ] {
        let (code, said) = folder.check(&[], line);
        assert_eq!(code, 2, "{line}: {said}");
        assert!(said.contains(why), "{line}: {said}");
    }
    let (code, said) = folder.check(&["--time-limit", "1"], "echo 1 > s.json; sleep 100");
    assert!(code == 2 && said.contains("after 1 s"), "{said}");
    let (code, said) = folder.crashlab(&["check", "--faults", "kill", "--", "no-such-program"]);
    assert!(code == 2 && said.contains("it is in no folder of PATH"), "{said}");
    let (code, said) = folder.check(&["--state", "../s.json"], IN_PLACE);
    assert!(code == 2 && said.contains("does not lie below the current folder"), "{said}");
    assert!(said.contains("name that one by --watch"), "{said}");
    let (code, said) = folder.check(&["--state", "t.json"], IN_PLACE);
    assert!(code == 2 && said.contains("never changes its state (t.json)"), "{said}");
}
