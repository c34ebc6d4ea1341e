//! `crashlab race`, through the binary.

use std::process::Command;

fn race(args: &[&str]) -> (i32, String) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s"), "5\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_crashlab"))
        .arg("race")
        .args(args)
        .current_dir(folder.path())
        .output()
        .unwrap();
    let left = std::fs::read_to_string(folder.path().join("s")).unwrap();
    assert_eq!(left, "5\n", "the folder itself is never changed");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8_lossy(&text).into_owned())
}

const COUNTS: &str = "read n < s; echo $((n + 1)) > t.$$; mv t.$$ s";

#[test]
fn a_lost_update_is_drawn_and_replayed() {
    let (code, text) = race(&["--preemptions", "1", "--", "sh", "-c", COUNTS]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("a                                   | b\n"), "{text}");
    assert!(text.contains("note state: s\n"), "{text}");
    assert!(text.contains("stand for all") || text.contains("stand for\n"), "{text}");
    let line = text.lines().find(|line| line.contains("replay: ")).expect("a line to replay");
    let id = line.split("--case ").nth(1).and_then(|rest| rest.split(' ').next()).expect("an id");
    let (code, text) = race(&["--case", id, "--", "sh", "-c", COUNTS]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("the schedule:") && text.contains(id.split('-').next().unwrap()),
        "{text}"
    );
}

#[test]
fn another_program_can_be_put_beside() {
    let (code, text) =
        race(&["--", "sh", "-c", "echo one >> s", "--and", "sh", "-c", "echo two >> s"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("no fault found"), "{text}");
}

/// The bytes differ by who came last, and the sum does not.
#[test]
fn a_view_is_compared_instead_of_bytes() {
    let lines = [
        "--",
        "sh",
        "-c",
        "echo one >> s; echo $$ >> d",
        "--and",
        "sh",
        "-c",
        "echo two >> s; echo $$ >> d",
    ];
    let (code, text) = race(&[&["--view", "wc -l < s"], &lines[..]].concat());
    assert_eq!(code, 0, "{text}");
    let (code, text) = race(&["--view", "wc -l < s", "--", "sh", "-c", COUNTS]);
    assert_eq!(code, 0, "a lost update leaves as many lines: {text}");
}

#[test]
fn mistakes_are_told() {
    for (args, said) in [
        (&["--times", "1", "--", "true"][..], "1 program cannot race: 2 to 8 can"),
        (&["--", "true", "--and"], "each --and stands between two commands"),
        (&["--", "true"], "changes no file below"),
        (&["--state", "/etc/passwd", "--", "true"], "does not lie below the current folder"),
        (&["--case", "race:zz", "--", "sh", "-c", COUNTS], "a schedule: letters of programs"),
        (&["--preemptions", "many", "--", "true"], "expected a number, or `all`"),
        (&["--", "sh", "-c", "echo 1 > s; exit 3"], "fails when it runs alone (exit code 3)"),
    ] {
        let (code, text) = race(args);
        assert_eq!(code, 2, "{args:?}: {text}");
        assert!(text.contains(said), "{args:?}: {text}");
    }
}
