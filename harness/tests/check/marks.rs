//! Checks that know which marks had been passed before the crash.

use std::fs;

use super::{Folder, row};

/// Claims by a mark that its number is saved, before it is.
const EARLY: &str = "n=$(($(cat s) + 1)); test -r /crashlab/mark/saved-$n; echo $n > t; mv t s";
/// The same, when it is.
const LATE: &str =
    "n=$(($(cat s) + 1)); echo $n > t; mv t s; test -r /crashlab/mark/saved-$n; true";
/// Every number that was claimed is there.
const CHECK: &str = "for mark in $CRASHLAB_MARKS; do test $(cat s) -ge ${mark#saved-} || \
                     { echo claimed $mark, found $(cat s); exit 1; }; done";

#[test]
fn what_was_claimed_must_be_there() {
    let folder = Folder::with(&[("s", "5")]);
    let options = ["--state", "s", "--recover", "cat s", "--check", CHECK];
    let (code, said) = folder.check(&options, LATE);
    assert_eq!((code, row(&said, "")), (0, "old 3, new 2, leftover 2"), "{said}");
    let (code, said) = folder.check(&options, EARLY);
    assert_eq!(code, 1, "{said}");
    assert!(row(&said, "").starts_with("old 1, new 1, diverged 3"), "{said}");
    assert!(said.contains("claimed saved-6"), "{said}");
    let place = "diverged before op 1 (create t): 1 case\n    kill@mark:saved-6\n";
    assert!(said.contains(place), "{said}");
}

/// The lab may itself run where there is such a variable, and a mark that is passed twice is told twice.
#[test]
fn marks_are_told_a_line_each_and_to_checks_alone() {
    let folder = Folder::with(&[("s", "5")]);
    let line = "test -z \"${CRASHLAB_MARKS+x}\" || exit 1; test -r /crashlab/mark/a; \
                test -r /crashlab/mark/b; test -r /crashlab/mark/a; echo 6 > t; mv t s";
    let run = |check: &str| {
        let text = format!(
            "title = 't'\nproves = 'p'\n[subject]\ncommand = '''{line}'''\nstate = ['s']\n\
             setup = ['echo 5 > s']\n[recovery]\ncheck = '''{check}'''\n\
             [[fault]]\nkind = 'kill'\nat = [1]\n"
        );
        fs::write(folder.path().join("mine.toml"), text).unwrap();
        folder.crashlab(&["run", "mine.toml"])
    };
    // Before all there are none, and at op 1 there are all.
    let told = "[ -z \"$CRASHLAB_MARKS\" ] || [ \"$(echo $CRASHLAB_MARKS)\" = \"a b a\" -a \
                $(echo \"$CRASHLAB_MARKS\" | grep -c .) = 3 ]";
    let (code, said) = run(told);
    assert_eq!(code, 0, "{said}");
    let (code, said) = run("[ -z \"$CRASHLAB_MARKS\" ]");
    assert!(code == 2 && said.contains("the check after the recovery"), "from the end:\n{said}");
}
