//! The units and the crontab line in `docs/systemd`, as systemd, `flock` and a shell read them.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, also in what tests share")]

mod command;

use std::fs::File;
use std::process::Command;

use command::shell_and_man::{have, pages};
use command::{Folder, Ran};

const SERVICE: &str = include_str!("../docs/systemd/long-horizon.service");
const TIMER: &str = include_str!("../docs/systemd/long-horizon.timer");
const CRONTAB: &str = include_str!("../docs/systemd/crontab");

const INSTALLED: &str = "/usr/local/bin/long-horizon";
const BUILT: &str = env!("CARGO_BIN_EXE_long-horizon");
const STATE: &str = "long-horizon.json";

/// The value of a setting that stands once in a unit.
fn setting<'a>(unit: &'a str, name: &str) -> &'a str {
    let mut values = unit.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let value = values.next().unwrap();
    assert_eq!(values.next(), None, "{name}");
    value
}

/// Runs a command of the service with the program that was built, in the folder.
fn run(folder: &Folder, name: &str) -> Ran {
    let args = setting(SERVICE, name).strip_prefix(INSTALLED).unwrap();
    folder.run(&args.split_whitespace().collect::<Vec<_>>())
}

#[test]
fn systemd_finds_nothing_to_complain_about() {
    if !have("systemd-analyze") {
        return;
    }
    let folder = Folder::new();
    // The commands of a unit must be there when it is verified.
    folder.write("long-horizon.service", SERVICE.replace(INSTALLED, BUILT));
    folder.write("long-horizon.timer", TIMER);
    let output = Command::new("systemd-analyze")
        .args(["verify", "--man=no", "./long-horizon.service", "./long-horizon.timer"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let ran = Ran::from(output);
    // An unknown key is only told, and does not change the exit code.
    assert_eq!((ran.code, ran.text()), (Some(0), "[exit 0]\n".to_owned()));
}

#[test]
fn the_manual_pages_that_the_units_name_exist() {
    let folder = Folder::new();
    let pages = pages(BUILT, &folder.at("man1"));
    let named = [SERVICE, TIMER].map(|unit| setting(unit, "Documentation")).join(" ");
    for named in named.split(' ') {
        let page = named.strip_prefix("man:").unwrap().replace("(1)", ".1");
        assert!(pages.contains(&page), "{named}");
    }
}

#[test]
fn the_condition_lets_sessions_start_until_all_is_worked() {
    let folder = Folder::new();
    for session in 1..=12 {
        assert_eq!(run(&folder, "ExecCondition").code, Some(0));
        let ran = run(&folder, "ExecStart");
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stdout.starts_with(&format!("session {session}: ")), "{ran:?}");
    }
    assert_eq!(run(&folder, "ExecCondition").code, Some(1));
    folder.write(STATE, "{");
    assert_eq!(run(&folder, "ExecCondition").code, Some(255));
}

#[test]
fn an_overlap_ends_with_the_status_that_the_service_takes_for_a_success() {
    // `systemd-analyze exit-status` knows 75 by this name, which is that of sysexits.h.
    assert_eq!(setting(SERVICE, "SuccessExitStatus"), "TEMPFAIL");
    let folder = Folder::new();
    let lock = File::create(folder.at("long-horizon.json.lock")).unwrap();
    lock.lock().unwrap();
    assert_eq!(run(&folder, "ExecStart").code, Some(75));
}

/// The command of the crontab's one line, with the program that was built and in `$FOLDER`.
fn cron_command() -> String {
    let mut lines = CRONTAB.lines().filter(|line| !line.starts_with('#'));
    let line = lines.next().unwrap();
    assert_eq!(lines.next(), None);
    assert!(!line.contains('%'), "cron takes a percent sign for a line feed");
    assert!(line.contains("flock -n "), "jobs would wait for one another and pile up");
    let command = line.splitn(6, ' ').nth(5).unwrap();
    command.replace(INSTALLED, BUILT).replace("/var/lib/long-horizon", "\"$FOLDER\"")
}

fn cron(folder: &Folder) -> Ran {
    let output = Command::new("sh")
        .args(["-c", &cron_command()])
        .env("FOLDER", folder.path())
        .output()
        .unwrap();
    Ran::from(output)
}

#[test]
fn the_cron_job_works_one_question_and_its_lock_is_not_the_sessions_own() {
    if !have("flock") {
        return;
    }
    let folder = Folder::new();
    // Held by flock, the checkpoint's own lock would make this 75.
    let ran = cron(&folder);
    assert_eq!((ran.code, ran.text()), (Some(0), "[exit 0]\n".to_owned()));
    assert!(folder.read(STATE).ends_with("\"sessions_run\": 1\n}\n"));

    folder.ok(&["run", "--until-empty"]);
    assert_eq!(cron(&folder).text(), "[exit 1]\n", "an empty queue is no reason for a mail");

    folder.write(STATE, "{");
    let ran = cron(&folder);
    assert_eq!(ran.code, Some(255));
    assert!(ran.stderr.contains(STATE), "{ran:?}");
}

#[test]
fn a_cron_job_beside_a_running_one_ends_without_a_word() {
    if !have("flock") {
        return;
    }
    let folder = Folder::new();
    let running = File::create(folder.at("cron.lock")).unwrap();
    running.lock().unwrap();
    assert_eq!(cron(&folder).text(), "[exit 1]\n");
    assert_eq!(folder.files().into_keys().collect::<Vec<_>>(), ["cron.lock"]);
}
