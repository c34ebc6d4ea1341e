//! Small programs as people write them, in Python and with the tools of a shell.

use std::process::Command;

use super::{Folder, row};

/// The interpreter itself, and not a script that finds one; `None` where there is none.
fn python() -> Option<String> {
    let found = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    let path = found.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    let path = path.map(|path| String::from_utf8_lossy(&path).trim().to_owned());
    if path.is_none() {
        eprintln!("skipped: there is no python3");
    }
    path
}

fn check_python(folder: &Folder, options: &[&str], program: &str) -> Option<(i32, String)> {
    let python = python()?;
    Some(folder.crashlab(
        &[&["check", "--faults", "kill"], options, &["--", &python, "-c", program]].concat(),
    ))
}

const READ: &str = "
import json, os
try:
    state = json.load(open('s.json'))
except FileNotFoundError:
    state = {'n': 0}
state['n'] += 1
";
const WRITE_IN_PLACE: &str = "
with open('s.json', 'w') as f:
    json.dump(state, f)
";
const REPLACE: &str = "
with open('t', 'w') as f:
    json.dump(state, f)
os.replace('t', 's.json')
";
const ONE: (&str, &str) = ("s.json", "{\"n\": 1}");
const STATE: &[&str] = &["--state", "s.json"];

#[test]
fn a_python_counter_in_place_is_torn_and_its_traceback_is_quoted() {
    let program = format!("{READ}{WRITE_IN_PLACE}");
    let Some((code, said)) = check_python(&Folder::with(&[ONE]), STATE, &program) else { return };
    assert_eq!(code, 1, "{said}");
    assert!(row(&said, "").starts_with("old 1, new 1, torn "), "{said}");
    let place = "torn between op 1 (truncate s.json) and op ";
    assert_eq!(said.matches(place).count(), 1, "{said}");
    assert!(said.contains("json.decoder.JSONDecodeError: Expecting value: line 1"), "{said}");
    let found = "before  {\"n\": 1}\n      after   {\"n\": 2}\n      found   (empty)\n";
    assert!(said.contains(found), "{said}");
    // One line, however many the program has.
    assert!(said.starts_with("FAIL ") && said.contains("...\n"), "{said}");
}

#[test]
fn a_python_program_that_never_reads_is_torn_as_far_as_it_writes() {
    let program = format!("import json\nstate = {{'n': 2, 'x': 'x' * 12000}}\n{WRITE_IN_PLACE}");
    let Some((code, said)) = check_python(&Folder::with(&[ONE]), STATE, &program) else { return };
    assert_eq!(code, 1, "{said}");
    assert!(row(&said, "").starts_with("old 1, new 1, torn "), "{said}");
    let place = "torn between op 1 (truncate s.json) and op ";
    assert_eq!(said.matches(place).count(), 1, "one cause:\n{said}");
    assert!(said.contains("never read"), "{said}");
    assert!(
        said.contains("kill@3+4082, kill@3+8178"),
        "inside the write, at pages of the file:\n{said}"
    );
}

#[test]
fn a_python_counter_that_replaces_is_good_from_nothing_too() {
    let program = format!("{READ}{REPLACE}");
    let Some((code, said)) = check_python(&Folder::with(&[ONE]), STATE, &program) else { return };
    assert_eq!(code, 0, "{said}");
    assert!(row(&said, "").starts_with("old ") && row(&said, "").contains(", new 1"), "{said}");
    let Some((code, said)) = check_python(&Folder::with(&[]), STATE, &program) else { return };
    assert_eq!(code, 0, "{said}");
    for run in ["1: from nothing", "2: over what the first run left"] {
        assert!(row(&said, run).starts_with("old "), "{said}");
    }
}

/// A database of files that are nothing without each other.
#[test]
fn files_that_need_each_other_are_judged_together() {
    let program = "
import dbm.dumb, pickle
with dbm.dumb.open('db') as d:
    n = pickle.loads(d['n']) if b'n' in d else 0
    d['n'] = pickle.dumps(n + 1)
";
    let Some((code, said)) = check_python(&Folder::with(&[]), &[], program) else { return };
    assert_ne!(code, 2, "{said}");
    assert!(said.contains("judged together since the program"), "{said}");
    assert!(said.contains("db.dat") && said.contains("db.dir"), "{said}");
}

#[test]
fn places_that_are_left_out_are_told() {
    let folder = Folder::with(&[("s", "1\n")]);
    let line = "dd if=/dev/zero of=t bs=1M count=1 2> /dev/null; mv t s";
    let (code, said) = folder.check(&["--state", "s"], line);
    assert_eq!(code, 0, "{said}");
    assert!(row(&said, "").starts_with("old 67, new 1"), "{said}");
    let told = said.replace("\n    ", "");
    assert!(told.contains("191 places inside writes were skipped, 64 in one write"), "{said}");
    assert!(told.contains("op 2 (t) was cut at 64 of 255"), "{said}");
}

#[test]
fn lines_that_are_appended_whole_are_good() {
    let folder = Folder::with(&[("log", "{}\n")]);
    let (code, said) = folder.check(&[], "for i in 1 2 3; do echo $i >> log; done");
    assert_eq!((code, row(&said, " log ")), (0, "old 1, new 3"), "{said}");
}

#[test]
fn what_tools_do_that_change_a_file() {
    let folder = Folder::with(&[("s", "1\n"), ("new", "2\n")]);
    let locked = "mkdir lock || { echo s is locked >&2; exit 1; }; echo 2 > t; mv t s; rmdir lock";
    let temporary = "t=$(mktemp ./s.XXXXXX); cat new > $t; mv $t s";
    for (line, code, word) in [
        ("cp new s", 1, "torn 1"),
        ("sed -i s/1/2/ s", 0, "leftover 4"),
        (locked, 1, "refused 4"),
        (temporary, 0, "metadata 5"),
    ] {
        let (found, said) = folder.check(&["--state", "s"], line);
        assert_eq!(found, code, "{line}: {said}");
        assert!(said.contains(word), "{line}: {said}");
        assert!(word.starts_with("torn") || !said.contains("torn"), "{line}: {said}");
    }
}

/// A file that is removed and made anew is not there for a while.
#[test]
fn install_removes_before_it_writes() {
    let folder = Folder::with(&[("s", "1\n"), ("new", "2\n")]);
    let (code, said) = folder.check(&["--state", "s"], "install -m 644 new s");
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("torn between op 1 (unlink s) and op 2 (create s): 1 case"), "{said}");
    assert!(said.contains("found   (not there)"), "{said}");
}
