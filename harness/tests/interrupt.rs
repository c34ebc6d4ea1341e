//! Ctrl-C, and the signals by which others end a program: all that was started ends, and what is known is printed.

// A test says with a panic what went wrong; its support need not do better.
#![allow(clippy::unwrap_used)]

mod aftermath;

use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use nix::sys::signal::Signal;

use aftermath::{Place, Ran, Setting};

/// A named pipe outside of the work folder, by which a subject says that it has come to a place.
fn pipe(place: &Place) -> PathBuf {
    let pipe = place.path().parent().unwrap().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    pipe
}

/// Starts `crashlab`, waits until the subject has come to the place, and sends the signal.
fn interrupted(place: &Place, pipe: PathBuf, signal: Signal, arguments: &[&str]) -> Ran {
    let going = Setting::default().start(place, arguments);
    let (came, wait) = mpsc::channel();
    let reader = pipe.clone();
    std::thread::spawn(move || came.send(std::fs::read(reader)));
    let told = wait.recv_timeout(Duration::from_secs(60));
    if told.is_err() {
        going.signal(Signal::SIGTERM);
        panic!("the subject did not come to its place:\n{}", going.ended().said);
    }
    going.signal(signal);
    going.ended()
}

#[test]
fn a_record_prints_what_was_done_until_then() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let place = Place::with(&[("s.json", "5")]);
        let pipe = pipe(&place);
        let line = format!("echo 6 > s.json; echo > {}; sleep 1000", pipe.display());
        let scenario = format!(
            "title = 'One'\nproves = 'Nothing'\n[subject]\ncommand = ['sh', '-c', '{line}']\nstate = ['s.json']\n[[fault]]\nkind = 'kill'\n"
        );
        std::fs::write(place.path().join("one.toml"), scenario).unwrap();
        let ran = interrupted(&place, pipe, signal, &["record", "one.toml"]);
        ran.must_say(3, &["s.json create", "2 bytes at 0", "error: interrupted"]);
    }
}

#[test]
fn a_check_that_is_stopped_while_it_records_knows_nothing_yet() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let place = Place::with(&[("s.json", "5")]);
        let pipe = pipe(&place);
        let line = format!("echo 6 > s.json; echo > {}; sleep 1000", pipe.display());
        let ran = interrupted(
            &place,
            pipe,
            signal,
            &["check", "--faults", "kill", "--", "sh", "-c", &line],
        );
        ran.must_say(3, &["error: interrupted"]);
        assert_eq!(std::fs::read_to_string(place.path().join("s.json")).unwrap(), "5");
    }
}

#[test]
fn a_check_that_is_stopped_while_it_recovers_tells_what_it_knows() {
    let place = Place::with(&[("s.json", "5")]);
    let pipe = pipe(&place);
    // Between its truncation and its write it is empty: that recovery is the one that does not end.
    let line = "cat s.json > /dev/null; echo 6 > t; mv t s.json; echo 7 > s.json";
    let recover =
        format!("[ ! -e s.json ] || [ -s s.json ] || {{ echo > {}; sleep 1000; }}", pipe.display());
    let arguments = [
        "check",
        "--faults",
        "kill",
        "-j1",
        "--state",
        "s.json",
        "--recover",
        &recover,
        "--",
        "sh",
        "-c",
        line,
    ];
    let ran = interrupted(&place, pipe, Signal::SIGINT, &arguments);
    let known =
        ["not-measured", "interrupted before its recovery was over", "not tried to its end"];
    ran.must_say(3, &known);
}

#[test]
fn a_run_of_scenarios_says_what_was_not_tried_to_its_end() {
    let place = Place::with(&[("s.json", "5")]);
    let pipe = pipe(&place);
    let scenario = |line: &str| {
        format!(
            "title = 'One'\nproves = 'Nothing'\n[subject]\ncommand = ['sh', '-c', '{line}']\nstate = ['s']\nsetup = ['touch s']\n[[fault]]\nkind = 'kill'\n"
        )
    };
    let waits = scenario(&format!("echo 6 > s; echo > {}; sleep 1000", pipe.display()));
    std::fs::write(place.path().join("waits.toml"), waits).unwrap();
    let ran = interrupted(&place, pipe, Signal::SIGINT, &["run", "."]);
    ran.must_say(3, &["STOP waits", "not tried to its end"]);
}
