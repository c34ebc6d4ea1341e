//! What loads, and what it becomes.

use std::path::PathBuf;

use crashlab::fault::damage::{Damage, Wish};
use crashlab::judge::Word;
use crashlab::scenario::{CommandLine, FaultKind, KillPoint, Until};

use crate::{FULL, LEAST, OneFile, load_text};

fn argv(words: &[&str]) -> CommandLine {
    CommandLine::Argv(words.iter().map(|word| word.to_string()).collect())
}

fn shell(line: &str) -> CommandLine {
    CommandLine::Shell(line.into())
}

#[test]
fn every_key_arrives() {
    let file = OneFile::new(FULL);
    let home = file.folder.path().canonicalize().unwrap();
    let scenario = file.load().unwrap();
    assert_eq!(scenario.file, file.path);
    assert_eq!(scenario.name, "case");
    assert_eq!(scenario.title, "Every key once");
    assert_eq!(scenario.proves, "That all of them are read");
    assert_eq!(scenario.root, home);
    assert_eq!(scenario.build.as_deref(), Some("make all"));
    assert_eq!(scenario.path, [home.join("out/bin")]);
    assert_eq!(scenario.needs, ["prog", "{root}/out/other"]);
    assert_eq!(scenario.probe, Some(argv(&["prog", "--version"])));

    let subject = &scenario.subject;
    assert_eq!(subject.command, argv(&["prog", "{dir}/state.json"]));
    assert_eq!(subject.state, ["state.json", "journal"].map(PathBuf::from));
    assert_eq!(subject.env["LANG"], "C");
    assert_eq!(subject.files, Some(home.join("start")));
    assert_eq!(subject.setup, [argv(&["prog", "init"]), shell("touch ready")]);
    assert_eq!(subject.time_limit, 20);
    assert!(subject.pipe);
    assert!(subject.network);
    assert_eq!(subject.volatile, [PathBuf::from("cache.db")]);
    assert_eq!(subject.ack, ["mark:saved", "^saved [0-9]+$"]);
    assert_eq!(subject.effects, [PathBuf::from("sent.log")]);
    assert_eq!(scenario.recovery.command, shell("prog --again"));
    assert_eq!(scenario.recovery.check, Some(argv(&["prog", "verify"])));
}

#[test]
fn every_fault_arrives() {
    let scenario = load_text(FULL).unwrap();
    let [kill, damage, overlap, idle, alert] = &scenario.faults[..] else {
        panic!("{:?}", scenario.faults)
    };
    let FaultKind::Kill { at } = &kill.kind else { panic!("{kill:?}") };
    assert_eq!(
        at[..],
        [
            KillPoint::All,
            KillPoint::After(12),
            KillPoint::After(13),
            KillPoint::Inside(12, 4096),
            KillPoint::Kind("rename".into(), 1),
            KillPoint::Mark("model-called".into(), 1),
            KillPoint::Mark("saved".into(), 2),
        ]
    );
    assert_eq!(kill.expect, [Word::Torn, Word::Leftover]);

    let FaultKind::Damage(damage) = &damage.kind else { panic!("{damage:?}") };
    assert_eq!(damage.file, PathBuf::from("journal/0001"));
    let wishes: Vec<String> = damage.damages.iter().map(Wish::to_string).collect();
    assert_eq!(wishes, ["truncated", "empty", "bit-flip/*", "missing/a~1b/0"]);
    assert_eq!(damage.at_most, 8);
    assert_eq!(damage.valid, Some(argv(&["is-valid", "0001"])));

    let FaultKind::Overlap { name, processes, order, says } = &overlap.kind else {
        panic!("{overlap:?}")
    };
    assert_eq!(name, "two-sessions");
    assert_eq!(says.get("second").map(String::as_str), Some("^busy"));
    let in_their_order =
        [("second".into(), argv(&["prog"])), ("first".into(), shell("prog --slow"))];
    assert_eq!(processes[..], in_their_order);
    assert_eq!(order[0].until, Until::Mark("loaded".into()));
    assert_eq!((order[1].process.as_str(), &order[1].until), ("first", &Until::End));

    let FaultKind::Idle { never } = &idle.kind else { panic!("{idle:?}") };
    assert_eq!(never[..], ["model-called"]);
    assert!(idle.expect.is_empty());

    let FaultKind::Alert { name, command, says } = &alert.kind else { panic!("{alert:?}") };
    assert_eq!((name.as_str(), says.as_str()), ("old-pending", "pending since .* days"));
    assert_eq!(command, &argv(&["prog", "status"]));
}

#[test]
fn a_fault_knows_its_line() {
    let scenario = load_text(FULL).unwrap();
    for fault in &scenario.faults {
        assert_eq!(FULL.lines().nth(fault.line - 1), Some("[[fault]]"), "{fault:?}");
    }
    let inline = LEAST.replace("[[fault]]\nkind = \"kill\"\n", "");
    let inline =
        format!("fault = [\n  {{ kind = \"idle\" }},\n  {{ kind = \"kill\" }},\n]\n{inline}");
    let lines: Vec<usize> =
        load_text(&inline).unwrap().faults.iter().map(|fault| fault.line).collect();
    assert_eq!(lines, [2, 3]);
}

#[test]
fn without_a_fault_kills_and_power_cuts_are_tried() {
    let text = LEAST.replace("[[fault]]\nkind = \"kill\"\n", "");
    let faults = load_text(&text).unwrap().faults;
    let FaultKind::Kill { at } = &faults[0].kind else { panic!("{faults:?}") };
    let FaultKind::Power(power) = &faults[1].kind else { panic!("{faults:?}") };
    assert_eq!((at.as_slice(), faults.len()), (&[KillPoint::All][..], 2));
    let models: Vec<&str> = power.models.iter().map(|model| model.name).collect();
    assert_eq!((models, power.states, power.seconds), (vec!["ext4"], None, None));
}

#[test]
fn defaults_are_filled_in() {
    let with_damage =
        format!("{LEAST}\n[[fault]]\nkind = \"damage\"\n\n[[fault]]\nkind = \"idle\"\n");
    let file = OneFile::new(&with_damage);
    let scenario = file.load().unwrap();
    assert_eq!(scenario.root, file.folder.path().canonicalize().unwrap());
    assert_eq!(scenario.build, None);
    assert!(scenario.path.is_empty());
    assert!(scenario.needs.is_empty() && scenario.probe.is_none());
    let subject = &scenario.subject;
    assert_eq!(subject.time_limit, 10);
    assert!(!subject.pipe && !subject.network);
    assert!(subject.env.is_empty() && subject.files.is_none() && subject.setup.is_empty());
    assert!(subject.volatile.is_empty() && subject.ack.is_empty() && subject.effects.is_empty());
    assert_eq!(scenario.recovery.command, subject.command);
    assert_eq!(scenario.recovery.check, None);
    let FaultKind::Kill { at } = &scenario.faults[0].kind else { panic!() };
    assert_eq!(at[..], [KillPoint::All]);
    let FaultKind::Damage(damage) = &scenario.faults[1].kind else { panic!() };
    assert_eq!(damage.file, PathBuf::from("state"));
    assert_eq!(damage.damages, Damage::SEVEN.map(Wish::One));
    assert_eq!((damage.at_most, &damage.valid), (64, &None));
}

#[test]
fn root_is_relative_to_the_file_and_path_to_root() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().canonicalize().unwrap();
    std::fs::create_dir_all(home.join("a/b")).unwrap();
    std::fs::create_dir_all(home.join("bin")).unwrap();
    let text = LEAST.replace("[subject]", "root = \"../..\"\npath = [\"bin\"]\n[subject]");
    let file = home.join("a/b/case.toml");
    std::fs::write(&file, text).unwrap();
    let scenario = crashlab::scenario::load(&[file]).unwrap().remove(0);
    assert_eq!(scenario.root, home);
    assert_eq!(scenario.path, [home.join("bin")]);
}

#[test]
fn limits_are_taken_themselves() {
    for seconds in [1, 3600] {
        let limit = format!("[subject]\ntime-limit = {seconds}");
        let scenario = load_text(&LEAST.replace("[subject]", &limit)).unwrap();
        assert_eq!(scenario.subject.time_limit, seconds);
    }
    let ops = LEAST.replace("kind = \"kill\"", "kind = \"kill\"\nat = [0, 4294967295]");
    let scenario = load_text(&ops).unwrap();
    let FaultKind::Kill { at } = &scenario.faults[0].kind else { panic!() };
    assert_eq!(at[..], [KillPoint::After(0), KillPoint::After(u32::MAX)]);
}
