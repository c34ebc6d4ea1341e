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
