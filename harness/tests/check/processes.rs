//! One process of several dies, and the others go on.

use std::fs;

use super::{Folder, row};

fn check(line: &str, options: &[&str]) -> (i32, String) {
    let folder = Folder::with(&[("s", "5\n")]);
    folder.check(&[&["--state", "s"], options].concat(), line)
}

const ALONE: &[&str] = &["--kill", "process"];

/// What came through the pipe is put in place, however little it is.
const PIPE: &str = "cat s | tr 56 67 > t; mv t s";
/// Only what is whole is put in place.
const PIPE_CHECKED: &str =
    "cat s | tr 56 67 > t; read n < t && [ \"$n\" ] && mv t s || { rm -f t; exit 1; }";

#[test]
fn a_pipeline_that_takes_what_it_gets() {
    let (code, said) = check(PIPE, ALONE);
    assert_eq!((code, row(&said, "")), (1, "old 2, new 2, torn 2"), "{said}");
    assert!(said.contains("torn when process 2 (cat) died before any op: 1 case"), "{said}");
    assert!(
        said.contains("---> process 2 (cat) was killed here, and the others went on"),
        "{said}"
    );
    assert!(said.contains("found   (empty)"), "{said}");
    assert!(said.contains("--kill process --case kill@process:2#0"), "{said}");
    assert!(!said.contains("confirmed"), "each was made for real to begin with:\n{said}");
    // A kill of all at once never shows that.
    let (code, said) = check(PIPE, &[]);
    assert_eq!((code, row(&said, "")), (0, "old 3, new 1"), "{said}");
}

#[test]
fn a_pipeline_that_looks_at_what_it_got() {
    let (code, said) = check(PIPE_CHECKED, ALONE);
    assert_eq!(code, 0, "{said}");
    assert!(!said.contains("torn"), "{said}");
}

const WORKER: &str = "n=$(cat s) || exit 1; echo $((n + 1)) > t && mv t s";

#[test]
fn a_parent_that_waits_and_one_that_starts_another_worker() {
    let (code, said) = check(&format!("({WORKER}) & wait"), ALONE);
    assert_eq!(code, 0, "{said}");
    assert!(row(&said, "").contains("old"), "{said}");
    let (code, said) = check(&format!("[ -e s ] || exit 1; until ({WORKER}); do :; done"), ALONE);
    assert_eq!(code, 0, "{said}");
    assert!(!row(&said, "").contains("old"), "another worker did it: {said}");
}

#[test]
fn a_worker_that_dies_while_it_writes_in_place() {
    let (code, said) = check("(n=$(cat s) || exit 1; echo $((n + 1)) > s) & wait", ALONE);
    assert_eq!(code, 1, "{said}");
    // The kernel's closing of what the dead had open makes no version.
    assert!(said.contains("died after op 1 (truncate s): 1 case"), "{said}");
}

/// Two workers, of which one must wait for the other.
fn two_workers(take: &str, give: &str) -> String {
    format!(
        "w() {{ {take}; n=$(cat s) || exit 1; echo $((n + 1)) > t$1 && mv t$1 s; {give}; }}; \
         w a & w b & wait"
    )
}

#[test]
fn the_kernel_lets_the_locks_of_the_dead_go() {
    let line = two_workers("exec 9>>lock; flock 9 || exit 1", ":");
    let (code, said) = check(&line, &["--kill", "process", "--allow-not-measured"]);
    assert_eq!(code, 0, "{said}");
    assert!(!said.contains("hung"), "{said}");
    // The log tells it, once nobody else has inherited the lock.
    let line = format!("(exec 9>>lock; flock 9 || exit 1; {WORKER}) & wait");
    let (code, said) = check(&line, &["--kill", "process", "--case", "kill@process:2#2"]);
    assert_eq!(code, 0, "{said}");
    let after = said.split("was killed here").nth(1).unwrap_or_default();
    assert!(after.contains("exit              lock  released, flock"), "{said}");
}

/// The verdicts of a kill of one process at one place.
fn at(place: &str, line: &str) -> (i32, String) {
    let folder = Folder::with(&[("s", "5\n")]);
    let text = format!(
        "title = 't'\nproves = 'p'\n[subject]\ncommand = '''{line}'''\nstate = ['s']\n\
         setup = ['echo 5 > s']\ntime-limit = 5\n[[fault]]\nkind = 'kill'\nat = ['process:{place}']\n"
    );
    fs::write(folder.path().join("mine.toml"), text).unwrap();
    folder.crashlab(&["run", "mine.toml"])
}

const HUNG: &str = "the other processes did not end when this one had died";

/// The worker takes the lock by making its file, and its parent waits for that before it wants it too.
#[test]
fn a_lock_file_of_the_dead_is_waited_for_for_ever() {
    let take = "set -C; until echo > lock; do :; done 2> /dev/null; set +C";
    let step = "n=$(cat s) || exit 1; echo $((n + 1)) > t && mv t s; rm lock";
    let line =
        format!("({take}; : > begun; {step}) & until [ -e begun ]; do :; done; {take}; {step}");
    let (code, said) = at("2#4", &line);
    assert_eq!((code, row(&said, "mine")), (1, "hung 1"), "{said}");
    assert!(said.contains(HUNG), "{said}");
}

/// The second step is done when the first process, which did the first, is dead.
#[test]
fn the_first_process_dies_and_its_worker_goes_on() {
    let line = "(while [ ! -e go ]; do sleep 0.01; done; n=$(cat s); rm go; echo $((n + 1)) > t; mv t s) & \
                : > go; wait";
    let (code, said) = check(line, &["--kill", "process", "--case", "kill@process:1#1"]);
    assert_eq!(code, 0, "{said}");
    let after = said.split("process 1").nth(2).unwrap_or_default();
    assert!(after.contains("unlinkat          go"), "what the worker did then:\n{said}");
    assert!(after.contains("found   6"), "{said}");
}

/// It waits for what the first process did not come to any more.
#[test]
fn the_first_process_dies_and_its_worker_does_not_end() {
    let line = "(until [ -e go ]; do :; done; rm go; echo 6 > t; mv t s) & : > u; mv u go; wait";
    let (code, said) = at("1#1", line);
    assert_eq!((code, row(&said, "mine")), (1, "hung 1"), "{said}");
    assert!(said.contains(HUNG), "{said}");
}

#[test]
fn places_of_one_process_in_a_scenario() {
    let folder = Folder::with(&[]);
    let run = |at: &str, args: &[&str]| {
        let text = format!(
            "title = 't'\nproves = 'p'\n[subject]\ncommand = '{PIPE}'\nstate = ['s']\n\
             setup = ['echo 5 > s']\n[[fault]]\nkind = 'kill'\nat = [{at}]\nexpect = ['torn']\n"
        );
        fs::write(folder.path().join("mine.toml"), text).unwrap();
        folder.crashlab(args)
    };
    let (code, said) = run("'all', 'process:*'", &["run", "mine.toml"]);
    assert_eq!((code, row(&said, "mine")), (0, "old 5, new 3, torn 2*"), "{said}");
    let (code, said) = run("'process:2#0'", &["run", "mine.toml"]);
    assert_eq!((code, row(&said, "mine")), (0, "torn 1*"), "{said}");
    let (code, said) = run("'process:*'", &["replay", "mine.toml", "kill@process:3#1"]);
    assert!(code == 0 && said.contains("torn when process 3 ("), "{said}");
    let (code, said) = run("'process:9#1'", &["run", "mine.toml"]);
    assert!(code == 2 && said.contains("process 9 does not come to that"), "{said}");
    let (code, said) = run("'process:x'", &["run", "mine.toml"]);
    assert!(code == 2 && said.contains("`process:*`, or a process by its number"), "{said}");
}
