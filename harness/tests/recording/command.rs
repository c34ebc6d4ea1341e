//! `record -o`, `check -o`, `check --recording` and `replay --recording`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::support::Place;

const IN_PLACE: &str = "n=$(cat s.json); printf %s $((n + 1)) > s.json";
const REPLACED: &str = "n=$(cat s.json); printf %s $((n + 1)) > t; mv t s.json";
const FROM_NOTHING: &str =
    "n=$(cat s.json 2> /dev/null || echo 0); printf %s $((n + 1)) > t; mv t s.json; echo $n > log";

/// What the report says of each case: everything but how long it took, and what real kills said.
fn judged(place: &Place, args: &[&str]) -> (i32, Vec<Value>) {
    let (code, out, said) = place.crashlab(&[&["check", "--json"], args].concat());
    let lines = out.lines().map(|line| serde_json::from_str(line).unwrap());
    let mut scenarios: Vec<Value> =
        lines.filter(|line: &Value| line["event"] == "scenario").collect();
    assert_eq!(scenarios.len(), 1, "{args:?}: {out}{said}");
    for scenario in &mut scenarios {
        let object = scenario.as_object_mut().unwrap();
        object.remove("milliseconds");
        // Which runs are copies depends on which worker was quicker.
        object.remove("recovered_by_copies");
        object.remove("notes");
        for fault in object["faults"].as_array_mut().unwrap() {
            fault.as_object_mut().unwrap().remove("confirmation");
            assert!(!fault["cases"].as_array().unwrap().is_empty());
        }
    }
    (code, scenarios)
}

#[test]
fn a_recording_is_judged_as_the_program_is() {
    for (files, line, options) in [
        (&[("s.json", "5")][..], IN_PLACE, &["--state", "s.json"][..]),
        (&[("s.json", "5")], REPLACED, &[]),
        (&[("s.json", "5")], REPLACED, &["--depth", "2"]),
        (&[], FROM_NOTHING, &[]),
        (&[("s.json", "5")], REPLACED, &["--state", "s.json", "--faults", "kill,damage"]),
        (&[("s.json", "5")], IN_PLACE, &["--recover", "cat s.json", "--check", "test -s s.json"]),
    ] {
        let place = Place::with(files);
        let command = &["--", "sh", "-c", line][..];
        let file = place.record("f", line);
        let file = file.to_str().unwrap();
        let direct = judged(&place, &[options, command].concat());
        assert_eq!(judged(&place, &[options, &["--recording", file]].concat()), direct, "{line}");
        // What `check` keeps has its options in it.
        let kept = judged(&place, &[options, &["-o", "../kept"], command].concat());
        assert_eq!(kept, direct, "{line}");
        assert_eq!(judged(&place, &["--recording", "../kept"]), direct, "{line}");
    }
}

#[test]
fn kills_of_a_recording_are_made_for_real_only_where_that_is_asked_for() {
    let place = Place::with(&[("s.json", "5")]);
    let file = place.record("f", IN_PLACE);
    let file = file.to_str().unwrap();
    let (code, out, said) = place.crashlab(&["check", "--faults", "kill", "--recording", file]);
    assert_eq!(code, 1, "{said}");
    assert!(!out.contains("confirmed") && out.contains("no kill was made for real"), "{out}");
    assert!(
        out.contains(&format!(
            "replay: crashlab check --recording {file} --faults kill --case kill@1"
        )),
        "{out}"
    );
    let (_, out, _) =
        place.crashlab(&["check", "--faults", "kill", "--recording", file, "--confirm", "1"]);
    assert!(out.contains("confirmed 2 of 2 by real kills"), "{out}");
    assert!(!out.contains("no kill was made for real"), "{out}");
    // A live case is a run of the program.
    let (code, out, said) = place.crashlab(&["replay", "--recording", file, "kill@1", "--live"]);
    assert_eq!(code, 1, "{out}{said}");
    assert!(out.contains("torn"), "{out}");
}

#[test]
fn a_state_that_the_recording_has_only_one_run_of() {
    let place = Place::with(&[("s.json", "5")]);
    let file = place.record("f", "echo 1 > new; echo 6 > s.json");
    let args =
        ["check", "--faults", "kill", "--recording", file.to_str().unwrap(), "--state", "new"];
    let (_, out, said) = place.crashlab(&args);
    assert!(out.contains("holds no second run"), "{out}{said}");
    assert!(out.contains("1: from nothing"), "{out}");
}

#[test]
fn a_kill_state_is_made_again_byte_for_byte() {
    let place = Place::with(&[("s.json", "before")]);
    let bytes: String = (0..10_000).map(|n| char::from(b'a' + (n % 26) as u8)).collect();
    fs::write(place.work().join("new"), &bytes).unwrap();
    let file = place.record("f", "dd if=new of=s.json bs=16384 2> /dev/null");
    // Neither the program nor its folder is needed.
    fs::remove_dir_all(place.work()).unwrap();
    let file = file.to_str().unwrap();
    let kept = |id: &str| {
        let (code, out, said) =
            place.crashlab(&["replay", "--recording", file, id, "--keep", "kept"]);
        assert_eq!(code, 0, "{said}");
        assert!(out.contains(&format!("kept: kept/{id}")), "{out}");
        let folder = place.file("kept").join(id);
        assert_eq!(fs::read_to_string(folder.join("before/s.json")).unwrap(), "before");
        fs::read_to_string(folder.join("crashed/s.json")).unwrap()
    };
    assert_eq!(kept("kill@0"), "before");
    assert_eq!(kept("kill@truncate#1"), "");
    assert_eq!(kept("kill@2+4096"), bytes[..4096]);
    assert_eq!(kept("kill@2+8192"), bytes[..8192]);
    assert_eq!(kept("kill@2"), bytes);
}

#[test]
fn kills_of_two_runs_and_of_recoveries() {
    let place = Place::with(&[]);
    let file = place.record("f", FROM_NOTHING);
    let file = file.to_str().unwrap();
    let replay = |id: &str| place.crashlab(&["replay", "--recording", file, id]);
    let (code, out, said) = replay("2:kill@rename#1");
    assert_eq!(code, 0, "{said}");
    assert!(out.contains("what survived") && out.contains("s.json"), "{out}");
    let (code, _, said) = replay("kill@1");
    assert!(code == 2 && said.contains("give the id as 1:kill@PLACE"), "{said}");
    let (code, _, said) = replay("3:kill@1");
    assert!(code == 2 && said.contains("holds 2 runs"), "{said}");
    let (code, _, said) = replay("1:kill@99");
    assert!(code == 2 && said.contains("there is no op 99"), "{said}");
    // Here the recovery is run, and killed in its turn.
    let file = place.file("kept");
    let command = ["--depth", "2", "--", "sh", "-c", FROM_NOTHING];
    place.crashlab(
        &[&["check", "--faults", "kill", "-o", file.to_str().unwrap()], &command[..]].concat(),
    );
    let (code, out, said) =
        place.crashlab(&["replay", "--recording", file.to_str().unwrap(), "2:kill@3/4"]);
    assert_eq!(code, 0, "{said}");
    assert!(out.contains("the ops around 2:kill@3/4"), "{out}");
}

#[test]
fn a_shell_in_the_folder_of_a_case() {
    let place = Place::with(&[("s.json", "5")]);
    let file = place.record("f", IN_PLACE);
    let file = file.to_str().unwrap();
    let line = "pwd; echo $CRASHLAB_CASE; wc -c < s.json; chmod 0 .; kill -INT $PPID; exit 3\n";
    let folder = |out: &str| {
        let found = out.lines().find(|line| line.starts_with('/')).map(str::to_owned);
        found.unwrap_or_else(|| panic!("no folder: {out}"))
    };
    let args = ["replay", "--recording", file, "kill@1", "--shell"];
    let (code, out, said) = place.crashlab_with(&args, line);
    assert_eq!(code, 0, "{said}");
    assert!(out.ends_with("kill@1\n0\n"), "{out}");
    assert!(said.contains("goes with this shell"), "{said}");
    assert!(!Path::new(&folder(&out)).exists(), "{out}");
    // With --keep it stays.
    let line = "pwd; echo mine > mine\n";
    let keep = [&args[..], &["--keep", "../kept"]].concat();
    let (code, out, said) = place.crashlab_with(&keep, line);
    assert_eq!(code, 0, "{said}");
    let folder = folder(&out);
    assert!(folder.ends_with("kept/kill@1/crashed"), "{folder}");
    assert_eq!(fs::read_to_string(Path::new(&folder).join("mine")).unwrap(), "mine\n");
    // A scenario's case.
    let (code, _, said) =
        place.crashlab(&["init", "-o", "../mine.toml", "--", "sh", "-c", IN_PLACE]);
    assert_eq!(code, 0, "{said}");
    let args = ["replay", "../mine.toml", "kill@1", "--shell"];
    let (code, out, said) = place.crashlab_with(&args, "pwd; wc -c < s.json\n");
    assert_eq!(code, 1, "{said}");
    assert!(out.ends_with("\n0\n"), "{out}");
}

#[test]
fn a_scenario_is_recorded_too() {
    let place = Place::with(&[("s.json", "5")]);
    place.crashlab(&["init", "-o", "../mine.toml", "--", "sh", "-c", IN_PLACE]);
    let (code, _, said) = place.crashlab(&["record", "../mine.toml", "-o", "../f"]);
    assert_eq!(code, 0, "{said}");
    let (code, out, said) = place.crashlab(&["check", "--faults", "kill", "--recording", "../f"]);
    assert_eq!(code, 1, "{said}");
    assert!(out.contains("old 1, new 1, torn 1"), "{out}");
}

#[test]
fn what_fails_leaves_no_half_of_a_recording() {
    let place = Place::with(&[("s.json", "5")]);
    let file = place.file("f");
    let output = file.to_str().unwrap();
    for command in [&["no-such-program"][..], &["sh", "-c", "kill -9 $$; echo"]] {
        _ = fs::remove_file(&file);
        let (code, _, said) =
            place.crashlab(&[&["check", "--faults", "kill", "-o", output, "--"], command].concat());
        assert_eq!(code, 2, "{said}");
        // Of a program that ran and failed there is a recording, which says the same.
        let (code, _, again) =
            place.crashlab(&["check", "--faults", "kill", "--recording", output]);
        assert_eq!(code, 2, "{again}");
        let ran = command[0] == "sh";
        assert_eq!(file.exists(), ran, "{command:?}");
        assert_eq!(again == said, ran, "{said} - {again}");
    }
}

#[test]
fn wrong_arguments() {
    let place = Place::with(&[("s.json", "5")]);
    let file = place.record("f", IN_PLACE);
    let file = file.to_str().unwrap();
    for (args, said) in [
        (
            &["check", "--faults", "kill", "--recording", file, "--", "true"][..],
            "cannot be used with",
        ),
        (&["check", "--faults", "kill", "--recording", file, "-o", "g"], "cannot be used with"),
        (&["check", "--faults", "kill"], "required"),
        (
            &["check", "--faults", "kill", "-o", file, "--", "true"],
            "which is left alone; give another name",
        ),
        (&["record", "-o", file, "--", "true"], "which is left alone; give another name"),
        (&["record", "-o", "/no/such/folder/f", "--", "true"], "there is no such folder"),
        (&["record"], "required"),
        (&["record", "mine.toml", "--", "true"], "cannot be used with"),
        (&["record", "--pipe", "mine.toml"], "cannot be used with"),
        (&["replay", "--recording", file], "required"),
        (
            &["replay", "--recording", file, "mine.toml", "kill@1"],
            "with --recording there is no scenario",
        ),
        (&["replay", "kill@1"], "give a scenario file and the id"),
        (&["replay", "--recording", file, "damage:nonsense"], "there is no case `damage:nonsense`"),
        (&["replay", "--recording", file, "kill@1+1"], "op 1 is a truncate"),
        (
            &["check", "--faults", "kill", "--recording", "no-such-file"],
            "No such file or directory",
        ),
        (&["check", "--faults", "kill", "--recording", "."], "no regular file"),
        (&["check", "--faults", "kill", "--recording", "s.json"], "no recording of crashlab"),
        (
            &["check", "--faults", "kill", "--recording", file, "--state", "../s.json"],
            "does not lie below",
        ),
        (&["check", "--faults", "kill", "--recording", file, "--ack", "("], "--ack ("),
        (
            &["check", "--faults", "kill", "--recording", file, "--recover", "no-such-program"],
            "not found",
        ),
    ] {
        let (code, out, told) = place.crashlab(args);
        assert_eq!(code, 2, "{args:?}: {out}{told}");
        assert!(told.contains(said), "{args:?}: {told}");
    }
}
