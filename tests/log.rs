//! What `status`, `timeline` and `verify --notes` make of the log, whole, torn, old or lost.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, also in what tests share")]

mod command;
mod log {
    pub(crate) mod property;
}
#[path = "../fuzz/replay.rs"]
mod replay;

use command::{Folder, redacted};
use insta::assert_snapshot;
use long_horizon::checkpoint::Checkpoint;
use serde_json::{Value, json};

const STATE: &str = "long-horizon.json";
const LOG: &str = "long-horizon.json.log.jsonl";
const EXT4: &str = "How often does ext4 commit its journal by default?";

fn status_json(folder: &Folder) -> Value {
    serde_json::from_str(&folder.run(&["status", "--json"]).stdout).unwrap()
}

/// A checkpoint with one question pending and one queued, and a log that tells of it.
fn waiting(log: &str) -> Folder {
    let folder = Folder::new();
    let mut checkpoint = Checkpoint::fresh(vec!["next".to_owned()]);
    checkpoint.pending.insert("hard".to_owned(), "sources disagree".to_owned());
    checkpoint.sessions_run = 1;
    folder.write(STATE, checkpoint.encode());
    folder.write(LOG, log);
    folder
}

fn line(fields: Value) -> String {
    format!("{fields}\n")
}

fn start(time: &str, session: u64, pid: u32, question: &str) -> String {
    line(
        json!({"time": time, "event": "start", "session": session, "pid": pid, "question": question, "before": null}),
    )
}

fn end(time: &str, session: u64, pid: u32, question: &str, choice: &str) -> String {
    line(json!({
        "time": time, "event": "end", "session": session, "pid": pid, "question": question, "before": null,
        "after": if choice == "failed" { Value::Null } else { "0".repeat(64).into() }, "choice": choice, "reason": "because",
        "cited": [], "tokens_in": 1, "tokens_out": 1, "ms": 1
    }))
}

fn flagged_in_2020() -> String {
    start("2020-01-01T00:00:00Z", 1, 7, "hard") + &end("2020-01-01T00:00:01Z", 1, 7, "hard", "flag")
}

#[test]
fn an_old_pending_question_and_an_idle_queue_alert() {
    let folder = waiting(&flagged_in_2020());
    assert_eq!(folder.run(&["status"]).code, Some(0));
    for threshold in [["--max-pending-age", "7d"], ["--max-idle", "90m"], ["--max-queue", "0"]] {
        let ran = folder.run(&[&["status"], &threshold[..]].concat());
        assert_eq!(ran.code, Some(1), "{threshold:?}");
        assert!(ran.stderr.starts_with(&format!("alert: {STATE}: ")), "{ran:?}");
    }
    for threshold in [
        ["--max-pending-age", "1000000h"],
        ["--max-idle", "1000000h"],
        ["--max-queue", "1"],
        ["--max-retries", "0"],
    ] {
        assert_eq!(
            folder.run(&[&["status"], &threshold[..]].concat()).code,
            Some(0),
            "{threshold:?}"
        );
    }
    let all = [
        "status",
        "--max-pending-age",
        "7d",
        "--max-idle",
        "90m",
        "--max-queue",
        "0",
        "--max-retries",
        "0",
    ];
    let text = folder.run(&all).text();
    let text = regex::Regex::new(r"(waited|no progress for|oldest for|progress  ) ?\d+d( \d+h)?")
        .unwrap()
        .replace_all(&text, "$1 AGE");
    assert_snapshot!("alerts", text);
}

#[test]
fn an_age_that_the_lost_log_does_not_tell_is_an_alert_too() {
    let folder = waiting(&flagged_in_2020());
    std::fs::remove_file(folder.at(LOG)).unwrap();
    assert_snapshot!(
        "alerts-log-lost",
        folder.run(&["status", "--max-pending-age", "9999d", "--max-idle", "9999d"]).text()
    );
    assert_eq!(folder.run(&["status"]).code, Some(0));
    assert_eq!(status_json(&folder)["pending_of_unknown_age"], 1);
    assert!(folder.ok(&["pending"]).contains("since a time that the log does not tell"));
    // The queue does not care.
    folder.ok(&["run"]);
}

#[test]
fn retries_of_the_first_question_are_counted_killed_or_failed_until_one_is_recorded() {
    let killed =
        start("2026-01-01T00:00:00Z", 2, 8, "next") + &start("2026-01-01T00:01:00Z", 2, 9, "next");
    let failed = start("2026-01-01T00:02:00Z", 2, 10, "next")
        + &end("2026-01-01T00:02:01Z", 2, 10, "next", "failed");
    let folder = waiting(&(flagged_in_2020() + &killed + &failed));
    assert_eq!(status_json(&folder)["retries"], 3);
    assert_eq!(folder.run(&["status", "--max-retries", "3"]).code, Some(0));
    let ran = folder.run(&["status", "--max-retries", "2"]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(
        ran.stderr,
        format!("alert: {STATE}: 3 sessions in a row did not get `next` recorded, more than 2\n")
    );
    assert_snapshot!("timeline-retries", folder.ok(&["timeline"]));
    folder.ok(&["run"]);
    assert_eq!(status_json(&folder)["retries"], 0);
}

#[test]
fn a_torn_last_line_is_dropped_and_said_and_all_before_it_is_kept() {
    let folder = waiting(&(flagged_in_2020() + "{\"time\":\"2026-01-01T00:0"));
    let ran = folder.run(&["status", "--max-pending-age", "7d"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr
            .contains(&format!("warning: {LOG}: its last line is torn (24 bytes) and was dropped")),
        "{ran:?}"
    );
    assert!(ran.stderr.contains("`hard` has waited"), "{ran:?}");
    // The next line does not stick to it.
    folder.ok(&["run"]);
    let text = folder.read(LOG);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 6);
    assert!(lines[3..].iter().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    assert!(folder.run(&["timeline"]).stderr.contains("line 3 cannot be read and was skipped"));
}

#[test]
fn a_log_of_rubbish_or_one_that_cannot_be_read_harms_nothing() {
    let folder = waiting("");
    folder.write(LOG, [0_u8; 4096]);
    folder.ok(&["status"]);
    folder.ok(&["run"]);
    assert_eq!(Checkpoint::decode(folder.read(STATE).as_bytes()).unwrap().sessions_run, 2);
    assert!(folder.run(&["timeline"]).stdout.contains("session 2: "));

    let folder = waiting("");
    std::fs::remove_file(folder.at(LOG)).unwrap();
    std::fs::create_dir(folder.at(LOG)).unwrap();
    for args in [&["status"][..], &["timeline"], &["run"]] {
        let ran = folder.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
        assert!(ran.stderr.contains(&format!("warning: {LOG}: cannot ")), "{args:?}: {ran:?}");
    }
}

#[test]
fn a_checkpoint_that_vanished_from_beside_its_log_is_said() {
    let folder = waiting(&flagged_in_2020());
    std::fs::remove_file(folder.at(STATE)).unwrap();
    assert!(
        folder
            .ok(&["status"])
            .contains("there is no checkpoint, although the log tells of 1 session that")
    );
    let ran = folder.run(&["status", "--max-idle", "1000000h"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.starts_with(&format!("alert: {STATE}: there is no checkpoint")), "{ran:?}");
    let ran = folder.run(&["run"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.contains("this starts a fresh queue"), "{ran:?}");

    // A first session that was killed is no such case.
    let folder = Folder::new();
    folder.write(LOG, start("2026-01-01T00:00:00Z", 1, 7, "q"));
    assert_eq!(folder.run(&["run"]).stderr, "");
}

/// The log is in the order in which things happened; the clock of its lines need not be.
#[test]
fn a_clock_that_was_set_back_does_not_turn_the_timeline_round() {
    let stop = |time: &str, by: &str| {
        line(json!({"time": time, "event": "stop", "by": by, "reason": null}))
    };
    let folder = waiting(
        &(stop("2020-01-03T00:00:00Z", "ann")
            + &flagged_in_2020()
            + &stop("2019-01-01T00:00:00Z", "bob")),
    );
    let timeline = folder.ok(&["timeline"]);
    let seen: Vec<_> = timeline.lines().map(|line| &line[26..40]).collect();
    assert_eq!(seen, ["stopped by ann", "session 1: han", "stopped by bob"], "{timeline}");
}

/// Killed after the save and before the end was logged, then killed before the save: what a log looks like after that.
#[test]
fn a_kill_around_the_save_costs_the_log_nothing() {
    let folder = Folder::new();
    let hard =
        "Can a program rely on one 512-byte sector being written atomically in a power failure?";
    folder.ok(&["run", "--model", "stub:scripted", "--question", EXT4, "--question", hard]);
    let before = folder.read(STATE);
    folder.ok(&["run", "--model", "stub:scripted"]);
    let log = folder.read(LOG);
    let lines: Vec<&str> = log.lines().collect();
    let without_ends: String = lines
        .iter()
        .filter(|l| !l.contains("\"event\":\"end\""))
        .map(|l| format!("{l}\n"))
        .collect();
    assert_eq!((lines.len(), without_ends.lines().count()), (6, 4));
    let timeline = folder.ok(&["timeline"]);
    folder.write(LOG, &without_ends);
    assert_eq!(folder.ok(&["timeline"]), timeline);
    assert_eq!(status_json(&folder)["pending_of_unknown_age"], 0);
    folder.ok(&["verify", "--notes"]);

    folder.write(STATE, before);
    assert_eq!(status_json(&folder)["retries"], 1);
    assert!(folder.ok(&["timeline"]).contains("session 2: no end: killed: Can a program"));
}

#[test]
fn a_kill_around_a_persons_decision_does_not_cost_who_it_was() {
    let folder = waiting(&flagged_in_2020());
    let before = folder.read(STATE);
    folder.ok(&["resolve", "hard", "--note", "yes", "--by", "ann"]);
    let log = folder.read(LOG);
    let timeline = folder.ok(&["timeline"]);
    assert_eq!(timeline.matches("resolved by ann: hard: yes").count(), 1, "{timeline}");
    let (all_but_last, _) = log.trim_end().rsplit_once('\n').unwrap();
    folder.write(LOG, format!("{all_but_last}\n"));
    let killed = folder.ok(&["timeline"]);
    assert_eq!(killed.matches("resolved by ann: hard: yes").count(), 1, "{killed}");
    // Killed before the save: it was not made.
    folder.write(STATE, before);
    let killed = folder.ok(&["timeline"]);
    assert!(!killed.contains("resolved"), "{killed}");
}

/// The built-in corpus in a folder where it can be changed.
fn with_corpus() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir(folder.at("corpus")).unwrap();
    for (name, text) in long_horizon::builtin::CORPUS {
        folder.write(&format!("corpus/{name}.md"), text);
    }
    folder.ok(&["run", "--model", "stub:scripted", "--corpus", "corpus", "--question", EXT4]);
    folder
}

fn drift(folder: &Folder) -> String {
    let ran = folder.run(&["verify", "--notes", "--corpus", "corpus"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains(&format!("drift: {STATE}: ")), "{ran:?}");
    assert!(ran.stdout.contains("filesystems.md, section filesystems#2: "), "{ran:?}");
    redacted(&ran.text())
}

fn edit(folder: &Folder, file: &str, from: &str, to: &str) {
    let text = folder.read(file);
    assert!(text.contains(from), "{file}: {from}");
    folder.write(file, text.replace(from, to));
}

#[test]
fn notes_that_hold_are_no_drift() {
    let folder = with_corpus();
    folder.ok(&["verify", "--notes", "--corpus", "corpus"]);
    folder.ok(&["verify", "--notes"]);
}

#[test]
fn a_cited_section_that_changed_or_is_gone_is_drift() {
    let folder = with_corpus();
    edit(&folder, "corpus/filesystems.md", "can\nbe lost", "may\nbe lost");
    assert_snapshot!("drift-changed", drift(&folder));
    edit(
        &folder,
        "corpus/filesystems.md",
        "## 2. The commit interval of ext4",
        "### The commit interval of ext4",
    );
    assert_snapshot!("drift-gone", drift(&folder));
}

#[test]
fn a_number_that_the_source_no_longer_holds_is_drift_also_if_the_log_is_lost() {
    let folder = with_corpus();
    edit(&folder, "corpus/filesystems.md", "every 5 seconds", "every 15 seconds");
    std::fs::remove_file(folder.at(LOG)).unwrap();
    assert_snapshot!("drift-number-log-lost", drift(&folder));
}

#[test]
fn a_note_that_is_not_the_beginning_of_its_answer_is_drift() {
    let folder = with_corpus();
    edit(&folder, STATE, "-> Every 5 seconds;", "-> Every 5 minutes;");
    assert_snapshot!("drift-not-the-answer", drift(&folder));
}

#[test]
fn a_note_without_an_answer_is_drift() {
    let folder = with_corpus();
    edit(&folder, STATE, "commit its journal by default? -> ", "commit by default? -> ");
    let ran = folder.run(&["verify", "--notes"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.contains("no answer is recorded to the question of this note"), "{ran:?}");
}

#[test]
fn notes_of_people_cite_nothing_and_are_counted_apart() {
    let folder = Folder::new();
    folder.write("s.json", r#"{"q": {"text": "7 of 9"}}"#);
    folder.ok(&["run", "--question", "q", "--model", "stub:scripted=s.json"]);
    assert!(
        folder
            .ok(&["verify", "--notes"])
            .contains("checked against the sources: 0 notes; without citations: 1")
    );
}

#[test]
fn any_bytes_are_read_line_by_line() {
    replay::replay(
        concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/log"),
        log::property::holds_for,
    );
}
