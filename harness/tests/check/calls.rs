//! `--backtrace`: findings name the lines of the source.

use std::path::Path;
use std::process::Command;

use super::Folder;

/// A folder with the program, compiled as somebody would compile his own there.
fn folder() -> Folder {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let source = std::fs::read_to_string(programs.join("calls.c")).unwrap();
    let header = std::fs::read_to_string(programs.join("subject.h")).unwrap();
    let folder =
        Folder::with(&[("calls.c", &source), ("subject.h", &header), ("s.json", "old text")]);
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-g", "-O2", "-pthread", "-Wno-unused-result", "-o", "save", "calls.c"]);
    assert!(cc.current_dir(folder.path()).status().unwrap().success());
    folder
}

/// `at calls.c:LINE in FUNCTION (save+0x`, with the line that has this word behind it.
fn at(folder: &Folder, word: &str, function: &str) -> String {
    let text = std::fs::read_to_string(folder.path().join("calls.c")).unwrap();
    let mark = format!("/* {word} */");
    let number = text.lines().position(|line| line.contains(&mark)).unwrap() + 1;
    format!("at calls.c:{number} in {function} (save+0x")
}

#[test]
fn a_finding_names_the_file_and_the_line() {
    let folder = folder();
    let state = ["--state", "s.json"];
    let check = |options: &[&str], what: &str| {
        let fixed: &[&str] = &["check", "--confirm", "0"];
        folder.crashlab(&[fixed, &state, options, &["--", "./save", what]].concat())
    };
    let (code, said) = check(&["--backtrace", "--faults", "kill"], "in-place");
    let write = format!("op 2 (write s.json) {}", at(&folder, "WRITES-IN-PLACE", "in_place"));
    assert!(code == 1 && said.contains(&write), "the op before which the kill lies: {said}");
    let cut = at(&folder, "CUTS", "in_place");
    assert!(said.lines().any(|line| line.contains("openat") && line.contains(&cut)), "{said}");
    assert!(
        said.contains("crashlab check --state s.json --faults kill --backtrace --case"),
        "{said}"
    );
    let (_, said) = check(&["--faults", "kill"], "in-place");
    assert!(!said.contains("calls.c"), "nobody asked: {said}");

    let (code, said) = check(&["--backtrace", "--faults", "power"], "unsynced");
    let write = at(&folder, "WRITES", "put_text");
    assert_eq!(code, 1, "{said}");
    assert!(said.contains(&format!("op 2 (write s.tmp) {write}")), "what is missing: {said}");
    let rename = format!("op 3 (rename s.json) {}", at(&folder, "RENAMES", "save_state"));
    assert!(said.contains(&rename), "what lacks an fsync before it: {said}");
    // The line is folded.
    let plain = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(plain.contains(&format!("mended by fsync s.tmp after op 2, made {write}")), "{said}");
}

#[test]
fn a_recording_tells_them_without_the_program() {
    let folder = folder();
    let rename = at(&folder, "RENAMES", "save_state");
    let (_, said) = folder.crashlab(&["record", "--backtrace", "-o", "r", "--", "./save", "save"]);
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("rename")).collect();
    assert!(lines.len() == 1 && lines[0].contains(&rename), "{said}");
    let (_, said) =
        folder.crashlab(&["record", "--backtrace", "--json", "--", "./save", "unsynced"]);
    let told = said.lines().filter(|line| line.starts_with('{'));
    let events: Vec<serde_json::Value> =
        told.map(|line| serde_json::from_str(line).unwrap()).collect();
    let renamed = events.iter().find(|event| event["what"]["Op"]["kind"]["Rename"].is_object());
    let stack = &renamed.unwrap()["stack"];
    assert!(stack["at"].as_str().unwrap().starts_with(&rename), "{stack}");
    assert_eq!(stack["whole"], true, "{stack}");
    let functions: Vec<&str> = stack["frames"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|frame| frame["function"].as_str())
        .collect();
    let own = ["save_state", "job", "main"];
    assert!(functions.windows(3).any(|three| three == own), "{functions:?}");

    let options = ["check", "-o", "kept", "--backtrace", "--confirm", "0", "--faults", "power"];
    let kept = folder.crashlab(&[&options[..], &["--", "./save", "unsynced"]].concat()).1;
    assert!(kept.contains(&rename), "{kept}");
    for gone in ["save", "calls.c"] {
        std::fs::remove_file(folder.path().join(gone)).unwrap();
    }
    let recover = ["--recover", "true", "--recording", "kept"];
    let (_, said) = folder.crashlab(&[&["check"], &recover[..]].concat());
    assert!(said.contains(&format!("op 3 (rename s.json) {rename}")), "{said}");
    let (code, said) = folder.crashlab(&["replay", "--recording", "r", "kill@4"]);
    assert!(code == 0 && said.contains(&rename), "{said}");
    let (code, said) = folder.crashlab(&["check", "--backtrace", "--recording", "kept"]);
    assert!(code == 2 && said.contains("--backtrace"), "{said}");
}
