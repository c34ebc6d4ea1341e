//! Power cuts through the command: programs that sync, and programs that do not.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Replaces `s.json` by temp file and rename, with these lines before and after the rename.
fn program(before: &str, after: &str) -> String {
    format!(
        "import os\nold = open('s.json').read()\nf = open('t', 'w')\nf.write('n' * 100)\nf.flush()\n{before}\n\
         f.close()\nos.replace('t', 's.json')\n{after}\n"
    )
}

const SYNC_FILE: &str = "os.fsync(f.fileno())";
const SYNC_FOLDER: &str = "os.fsync(os.open('.', os.O_RDONLY))";

fn check(program: &str, model: &str) -> Option<(Option<i32>, String)> {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: no python3");
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("s.json"), "old").expect("a file");
    fs::write(folder.path().join("save.py"), program).expect("a file");
    let args = ["check", "--faults", "power", "--model", model, "--state", "s.json", "--"];
    let output = lab(folder.path(), &[&args[..], &["python3", "save.py"]].concat());
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    Some((output.status.code(), text))
}

fn lab(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_crashlab"))
        .args(args)
        .current_dir(folder)
        .output()
        .expect("the lab")
}

#[test]
fn a_rename_without_a_sync_is_found_with_what_mends_it() {
    let Some((code, text)) = check(&program("", ""), "ext4") else { return };
    assert_eq!(code, Some(1), "{text}");
    for expected in [
        "---> the power fails here",
        "when the power failed after op 3 (rename s.json)",
        "on ext4: ",
        "not on the disk: the data of op 2 (write of t)",
        "100 NUL bytes",
        "power@end-",
        "although op 3 (rename of s.json) is: no fsync of t between op 2 and op 3",
        "on ext4: mended by fsync t after op 2 and fsync the folder after op 3",
        "--faults power --model ext4 --case power@",
    ] {
        assert!(
            text.split_whitespace().collect::<Vec<_>>().join(" ").contains(expected),
            "no {expected:?}: {text}"
        );
    }
}

#[test]
fn a_synced_file_whose_folder_is_not_can_only_be_lost() {
    let Some((code, text)) = check(&program(SYNC_FILE, ""), "all") else { return };
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("lost 2") && !text.contains("torn"), "{text}");
}

#[test]
fn what_is_synced_as_it_should_be_survives_on_every_disk() {
    let Some((code, text)) = check(&program(SYNC_FILE, SYNC_FOLDER), "all") else { return };
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("power   old "), "{text}");
}

#[test]
fn a_disk_that_there_is_not_is_named_with_those_that_there_are() {
    let output =
        lab(Path::new("."), &["check", "--faults", "power", "--model", "ext5", "--", "true"]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("`ext5` is none of ext4, ext4-dioread-lock"), "{text}");
}

#[test]
fn the_models_are_told_with_their_sources() {
    let output = lab(Path::new("."), &["models"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    for name in ["ext4: ", "xfs: ", "btrfs: ", "posix: ", "ordered: "] {
        assert!(text.lines().any(|line| line.starts_with(name)), "{name}");
    }
    let output = lab(Path::new("."), &["models", "--json"]);
    let lines = String::from_utf8(output.stdout).unwrap();
    assert_eq!(lines.lines().count(), 7);
    assert!(lines.lines().all(|line| line.contains("\"source\"")));
}

/// What each way to make it durable is worth, on a disk on which nothing is promised but by POSIX.
#[test]
fn each_call_that_syncs_is_seen() {
    let opened = |flags: &str| {
        format!(
            "import os\nold = open('s.json').read()\n\
             f = os.open('t', os.O_RDWR | os.O_CREAT | os.O_TRUNC{flags}, 0o644)\nos.write(f, b'n' * 100)\n"
        )
    };
    let end = format!("os.replace('t', 's.json')\n{SYNC_FOLDER}\n");
    let copied = "import os\nold = open('s.json').read()\n\
                  a = os.open('a', os.O_RDWR | os.O_CREAT); os.write(a, b'n' * 100)\n\
                  f = os.open('t', os.O_RDWR | os.O_CREAT)\nos.copy_file_range(a, f, 100, 0)\n";
    let ways = [
        ("O_SYNC", opened(" | os.O_SYNC"), "", true),
        ("O_DSYNC", opened(" | os.O_DSYNC"), "", true),
        ("fdatasync", opened(""), "os.fdatasync(f)\n", true),
        ("another descriptor", opened(""), "os.fsync(os.open('t', os.O_RDONLY))\n", true),
        ("sync", opened(""), "os.sync()\n", true),
        ("copied and synced", copied.to_owned(), "os.fsync(f)\n", true),
        ("copied, and the source synced", copied.to_owned(), "os.fsync(a)\n", false),
        ("closed", opened(""), "os.close(f)\n", false),
        ("another file", opened(""), "os.fsync(os.open('o', os.O_CREAT | os.O_RDWR))\n", false),
    ];
    for (way, begin, sync, is_whole) in ways {
        let Some((code, text)) = check(&format!("{begin}{sync}{end}"), "posix") else { return };
        assert_eq!(
            (code == Some(0), text.contains("torn")),
            (is_whole, !is_whole),
            "{way}: {text}"
        );
    }
}

/// One more time over what was said, without its folder.
fn lab_on(program: &str, args: &[&str]) -> Option<(Option<i32>, String)> {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: no python3");
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("s.json"), "old").expect("a file");
    fs::write(folder.path().join("save.py"), program).expect("a file");
    let command = ["--", "python3", "save.py"];
    let output = lab(folder.path(), &[&["check", "--state", "s.json"], args, &command].concat());
    Some((output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned()))
}

#[test]
fn the_power_fails_unless_it_is_said_otherwise() {
    let program = program("", "");
    let Some((code, text)) = lab_on(&program, &[]) else { return };
    assert_eq!(code, Some(1), "{text}");
    // What a kill leaves is told of once.
    assert!(
        text.contains("power   old 1, new 1, recovered 1,") && text.contains("ext4\n"),
        "{text}"
    );
    let Some((code, text)) = lab_on(&program, &["--faults", "kill"]) else { return };
    assert!(code == Some(0) && !text.contains("power"), "{text}");
}

#[test]
fn the_power_fails_during_a_recovery_as_well() {
    let program = program(SYNC_FILE, "");
    let args = ["--faults", "power", "--depth", "2", "--model", "posix"];
    let Some((code, text)) = lab_on(&program, &args) else { return };
    assert_eq!(code, Some(1), "{text}");
    let of_recovery = text
        .split([' ', ',', '\n'])
        .find(|word| word.starts_with("power@") && word.contains('/') && !word.contains("//"));
    assert!(of_recovery.is_some() && !text.contains("torn"), "{text}");
    let args = [&args[..], &["--case", of_recovery.unwrap()]].concat();
    let Some((code, text)) = lab_on(&program, &args) else { return };
    assert!(code == Some(1) && text.contains("  lost "), "{text}");
}

#[test]
fn the_report_says_how_much_was_tried() {
    let program = "import os\nf = open('s.json', 'r+b')\nf.write(b'n' * 16384)\n";
    let args = ["--faults", "power", "--model", "posix,ordered", "--states", "20", "--seed", "7"];
    let Some((_, text)) = lab_on(program, &args) else { return };
    let told = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.contains("not all that is legal was tried on posix (20 of 2^")
            && told.contains("seed 7"),
        "{text}"
    );
    let Some((_, json)) = lab_on(program, &[&args[..], &["--json"]].concat()) else { return };
    let scenario = json.lines().find(|line| line.contains("\"scenario\"")).expect("a result");
    let scenario: serde_json::Value = serde_json::from_str(scenario).expect("JSON");
    let disks = &scenario["faults"][0]["disks"];
    assert_eq!((&disks[0]["model"], &disks[0]["tried"]), (&"posix".into(), &20.into()));
    assert_eq!((&disks[0]["complete"], &disks[0]["seed"]), (&false.into(), &7.into()));
    assert_eq!((&disks[1]["model"], &disks[1]["complete"]), (&"ordered".into(), &true.into()));
}
