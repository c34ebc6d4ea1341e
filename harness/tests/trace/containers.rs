//! Programs that are each process 1 of a namespace of their own.

use std::path::Path;
use std::time::Duration;

use crashlab::op::{OpKind, What};
use crashlab::recording::Trace;
use crashlab::sandbox::{self, Sandbox, SandboxOptions};
use crashlab::subject::{Exit, Program};
use crashlab::trace::{self, Budget, Detail, Options, TraceError, Undisturbed};

use crate::support::{assert_success, log, ops, options, sandbox as plain_sandbox, shell, subject};

fn steps(words: &[&str]) -> Program {
    Program { pipe: true, ..subject("steps", words) }
}

/// Runs them, or says why not.
fn contained(programs: &[Program], options: Options) -> Option<Trace> {
    if let Err(why) = sandbox::containers() {
        eprintln!("skipped: {why}");
        return None;
    }
    let programs_are_here = Some(Path::new(&programs[0].argv[0]).parent().unwrap().to_owned());
    let keep_visible = programs_are_here.into_iter().collect();
    let sandbox =
        Sandbox::new(&SandboxOptions { keep_visible, ..SandboxOptions::default() }).unwrap();
    std::fs::write(sandbox.work().join("s"), "").unwrap();
    let options = Options { containers: true, ..options };
    Some(trace::run(programs, &sandbox, &options, &mut Undisturbed).unwrap())
}

fn said(trace: &Trace) -> Vec<String> {
    trace.ends.iter().map(|end| String::from_utf8_lossy(&end.stdout).into_owned()).collect()
}

#[test]
fn each_is_process_1_and_has_no_parent() {
    let program = steps(&["pid"]);
    let Some(trace) = contained(&[program.clone(), program], options()) else { return };
    assert_success(&trace);
    assert_eq!(said(&trace), ["1 0\n", "1 0\n"], "{}", log(&trace));
    let pids: Vec<i32> = trace.events.iter().map(|event| event.actor.pid).collect();
    assert!(pids.iter().all(|pid| *pid > 2), "the log's numbers are the lab's: {pids:?}");
}

#[test]
fn proc_shows_a_container_alone() {
    let Some(trace) =
        contained(&[shell("echo /proc/[0-9]*; [ -w /proc ] || echo sealed")], options())
    else {
        return;
    };
    match sandbox::containers().as_ref().unwrap().proc_is_shared {
        None => assert_eq!(said(&trace), ["/proc/1\nsealed\n"]),
        Some(_) => assert!(said(&trace)[0].contains("/proc/1 ")),
    }
}

#[test]
fn orphans_come_to_the_first_process() {
    let Some(trace) = contained(&[steps(&["orphan"])], options()) else { return };
    assert_success(&trace);
    assert_eq!(said(&trace), ["1\n"], "{}", log(&trace));
}

#[test]
fn a_signal_that_it_does_not_handle_does_nothing_to_it() {
    let Some(trace) =
        contained(&[steps(&["term", "say:lives"]), steps(&["trap", "say:lives"])], options())
    else {
        return;
    };
    assert_success(&trace);
    assert_eq!(said(&trace), ["lives\n", "caught\nlives\n"], "{}", log(&trace));
}

/// The kernel would let it come to the same fault for ever, since it is traced.
#[test]
fn a_fault_ends_it() {
    let programs = [steps(&["fault"]), steps(&["abort"])];
    let Some(trace) = contained(&programs, options()) else { return };
    assert_eq!(trace.ends[0].exit, Exit::Signal(libc::SIGSEGV), "{}", log(&trace));
    assert!(matches!(trace.ends[1].exit, Exit::Signal(_)), "{:?}", trace.ends[1]);
}

#[test]
fn all_of_it_ends_with_it() {
    for detail in [Detail::Changes, Detail::Steps] {
        let options = Options { detail, ..options() };
        let Some(trace) = contained(&[steps(&["leave", "say:done"])], options) else { return };
        assert_success(&trace);
        let ended = |what: &What| matches!(what, What::Ended { status } if status == "signal 9");
        assert!(trace.events.iter().any(|event| ended(&event.what)), "{}", log(&trace));
        assert!(trace.gaps.is_empty(), "{:?}", trace.gaps);
    }
}

#[test]
fn the_time_limit_ends_it() {
    let limit = Options { time_limit: Duration::from_millis(200), ..options() };
    let line = "trap '' TERM; while :; do :; done & while :; do :; done";
    let Some(trace) = contained(&[shell(line)], limit) else { return };
    assert_eq!(trace.ends[0].exit, Exit::TimedOut);
}

/// Numbers are those of the container: 1 is its own first process, which no signal from inside ends.
#[test]
fn signals_stay_in_a_container() {
    let line =
        "(kill -9 1); while :; do :; done & kill -9 $!; wait $!; echo $?; kill -9 -1; echo lives";
    let Some(trace) = contained(&[shell(line)], options()) else { return };
    assert_success(&trace);
    assert_eq!(said(&trace), ["137\nlives\n"], "{}", log(&trace));
    assert!(trace.gaps.is_empty(), "{:?}", trace.gaps);
}

/// What a program calls itself in a path is not what the lab calls it.
#[test]
fn a_path_by_the_process_id_leads_to_its_own_descriptor() {
    let Some(trace) = contained(&[shell("exec 3> s; echo one > /proc/$$/fd/3")], options()) else {
        return;
    };
    assert_success(&trace);
    let truncated = |kind: &OpKind| matches!(kind, OpKind::Truncate { .. });
    let count = ops(&trace).iter().filter(|op| truncated(&op.kind)).count();
    if sandbox::containers().as_ref().is_ok_and(|found| found.proc_is_shared.is_none()) {
        assert_eq!(count, 2, "by its name, then by its descriptor: {}", log(&trace));
    }
}

#[test]
fn what_cannot_be_started_is_told() {
    if sandbox::containers().is_err() {
        return;
    }
    let sandbox = Sandbox::new(&SandboxOptions::default()).unwrap();
    let options = Options { containers: true, ..options() };
    let missing = Program { argv: vec!["/no/such".into()], ..shell("") };
    for programs in [&[missing.clone()][..], &[shell("while :; do :; done"), missing]] {
        match trace::run(programs, &sandbox, &options, &mut Undisturbed) {
            Err(TraceError::Spawn { program, stage, source }) => {
                assert_eq!((program.as_str(), stage.as_str()), ("/no/such", "execute it"));
                assert_eq!(source.kind(), std::io::ErrorKind::NotFound);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn without_namespaces_there_are_none() {
    let options = Options { containers: true, budget: Budget::default(), ..options() };
    let refused = trace::run(&[steps(&["pid"])], &plain_sandbox(), &options, &mut Undisturbed);
    match refused {
        Err(TraceError::Unavailable { what, source }) => {
            assert_eq!(what, "give each program a process namespace");
            assert!(source.to_string().contains("no namespaces"), "{source}");
        }
        other => panic!("{other:?}"),
    }
}
