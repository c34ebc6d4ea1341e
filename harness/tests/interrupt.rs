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

/// Says through the pipe that it is there, and goes on for ever.
fn stays(pipe: &std::path::Path) -> String {
    format!("{{ echo > {}; while :; do :; done; }}", pipe.display())
}

fn interrupted_race(options: &[&str], signal: Signal, line: impl Fn(&str) -> String) -> Ran {
    let place = Place::with(&[("s", "5")]);
    let pipe = pipe(&place);
    let line = line(&stays(&pipe));
    let arguments = ["race", "-j1", "--preemptions", "all", "--state", "s"];
    let program = ["--", "sh", "-c", &line];
    interrupted(&place, pipe, signal, &[&arguments, options, &program].concat())
}

#[test]
fn a_race_that_is_stopped_before_its_first_schedule_knows_nothing_yet() {
    for options in [&[][..], &["--containers"]] {
        let ran = interrupted_race(options, Signal::SIGINT, |stays| format!("read n < s; {stays}"));
        ran.must_say(3, &[]);
        let skipped = ran.said.contains("skipped: a race in containers");
        assert!(skipped || ran.said.contains("error: interrupted"), "{}", ran.said);
    }
}

/// Who meets the other's file stays: one after another nobody does.
#[test]
fn a_race_that_is_stopped_tells_the_schedules_so_far() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let ran = interrupted_race(&[], signal, |stays| {
            format!("[ -e b ] && {stays}; : > b; echo x >> s; rm b")
        });
        ran.must_say(
            3,
            &[
                "STOP sh -c",
                "race serial 1",
                "race: interrupted after 1 schedule of",
                "not tried to its end",
                "no fault found in 1 case, 1 stopped",
            ],
        );
        assert!(!ran.said.contains("ok "), "what was stopped is not ok:\n{}", ran.said);
    }
}

#[test]
fn a_race_that_is_stopped_tells_its_findings_so_far() {
    let ran = interrupted_race(&[], Signal::SIGINT, |stays| {
        format!("read n < s; [ -e b ] && {stays}; : > b; rm b; echo $((n+1)) > t.$$; mv t.$$ s")
    });
    let finding = "lost: `a`, `b` succeeded, and the files are as if only";
    match ran.code {
        // The orders had been run twice by then.
        1 => ran.must_say(1, &["lost at race:", "interrupted after", "not tried to its end"]),
        _ => ran.must_say(
            3,
            &["not-measured at race:", "if nothing does,", finding, "interrupted after"],
        ),
    };
    ran.must_say(ran.code, &["replay: crashlab race --state s", "not tried to its end"]);
}
