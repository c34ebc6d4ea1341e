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
    let (code, text) = race(&["--view", "sed s/^/it-is-/ s", "--", "sh", "-c", COUNTS]);
    assert_eq!(code, 1, "{text}");
    let shown: Vec<&str> = text.lines().map(str::trim).collect();
    let shows = |line: &str| shown.contains(&line);
    assert!(shows("the view of the end:") && shows("it-is-6"), "{text}");
}

#[test]
fn mistakes_are_told() {
    for (args, said) in [
        (&["--times", "1", "--", "true"][..], "1 program cannot race: 2 to 8 can"),
        (&["--", "true", "--and"], "each --and stands between two commands"),
        (&["--and", "true", "--", "true"], "it stands behind the first command"),
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

#[test]
fn containers_are_said_and_replayed() {
    if let Err(why) = crashlab::sandbox::containers() {
        eprintln!("skipped: {why}");
        return;
    }
    let words = "steps put:12345678 --and steps put:abc".split(' ').collect::<Vec<_>>();
    let steps = crate::support::program("steps").display().to_string();
    let words: Vec<&str> =
        words.into_iter().map(|word| if word == "steps" { &steps } else { word }).collect();
    let (code, text) = race(&[&["--state", "s", "--containers", "--"], &words[..]].concat());
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("each program is process 1 of a process namespace of its own"), "{text}");
    let line = text.lines().find(|line| line.contains("replay: ")).expect("a line to replay");
    assert!(line.contains("crashlab race --state s --containers --case race:"), "{line}");
    let id = line.split("--case ").nth(1).and_then(|rest| rest.split(' ').next()).expect("an id");
    let case = ["--state", "s", "--containers", "--case", id, "--"];
    let (code, text) = race(&[&case, &words[..]].concat());
    assert_eq!(code, 1, "{text}");
    let (code, text) =
        race(&[&["--state", "s", "--json", "--containers", "--"], &words[..]].concat());
    assert_eq!(code, 1, "{text}");
    assert!(text.contains(r#""containers":true"#), "{text}");
}

/// Where nobody may make process namespaces: said, and no pass.
#[test]
fn without_process_namespaces_there_are_no_containers() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::write(folder.path().join("s"), "5\n").unwrap();
    let scenario = "title = 'One'\nproves = 'Nothing'\n[subject]\ncommand = ['sh', '-c', 'echo x >> s']\nstate = ['s']\nsetup = ['touch s']\n[[fault]]\nkind = 'race'\ncontainers = true\n";
    std::fs::write(folder.path().join("one.toml"), scenario).unwrap();
    let forbid = "echo 0 > /proc/sys/user/max_pid_namespaces || exit 98; exec \"$@\"";
    let forbidden = |args: &[&str]| {
        let output = Command::new("unshare")
            .args(["--user", "--map-root-user", "sh", "-c", forbid, "sh"])
            .arg(env!("CARGO_BIN_EXE_crashlab"))
            .args(args)
            .current_dir(folder.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.code().unwrap(), text)
    };
    let (code, text) = forbidden(&["race", "--containers", "--", "sh", "-c", "echo x >> s"]);
    if code == 98 || text.starts_with("unshare:") {
        eprintln!("skipped: {text}");
        return;
    }
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("skipped: a race in containers: no "), "{text}");
    assert!(text.contains("`crashlab doctor` says what to do"), "{text}");
    let (code, text) = forbidden(&["run", "one.toml"]);
    assert_eq!(code, 0, "as where a program is not installed: {text}");
    assert!(text.contains("skip one") && text.contains("a race in containers"), "{text}");
    let (code, text) = forbidden(&["run", "--deny", "skipped", "one.toml"]);
    assert_eq!(code, 1, "{text}");
    let (_, text) = forbidden(&["doctor"]);
    assert!(text.contains("limited  process namespaces"), "{text}");
}
