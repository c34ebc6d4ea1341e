//! How runs begin and end: errors, time limits, what is left running, several at a time, without privileges.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crashlab::op::What;
use crashlab::recording::{Gap, Trace};
use crashlab::subject::{Exit, Program};
use crashlab::trace::{self, Budget, Options, TraceError, Undisturbed};
use nix::sched::sched_getaffinity;
use nix::unistd::Pid;

use crate::faithful::assert_faithful;
use crate::support::{
    PROGRAMS, assert_success, folder, is_root, log, nothing, options, output, program, sandbox,
    subject, undisturbed,
};

/// A word that no other process has in its arguments.
fn unique(test: &str) -> String {
    format!("crashlab-{test}-{}", std::process::id())
}

fn processes_with(word: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let line = std::fs::read(entry.ok()?.path().join("cmdline")).ok()?;
        String::from_utf8_lossy(&line).contains(word).then_some(())
    });
    // This process may have been told to run the one test of that name.
    processes.count()
}

fn with_limit(program: Program, limit: Duration) -> (Trace, crashlab::sandbox::Sandbox) {
    let sandbox = sandbox();
    let options = Options { time_limit: limit, ..options() };
    let trace = trace::run(&[program], &sandbox, &options, &mut Undisturbed).unwrap();
    (trace, sandbox)
}

#[test]
fn a_daemon_ends_with_the_run() {
    let word = unique("daemon");
    let (trace, sandbox) = undisturbed(subject("daemon", &[&word]), nothing);
    assert_success(&trace);
    assert!(
        trace.elapsed < options().time_limit,
        "its end was that of the first process, not the time limit"
    );
    assert_eq!(processes_with(&word), 0);
    assert_faithful(&trace, &sandbox, nothing);
    let ended = |what: &What| matches!(what, What::Ended { status } if status == "signal 9");
    assert!(trace.events.iter().any(|event| ended(&event.what)), "{}", log(&trace));
}

#[test]
fn the_time_limit_ends_everything() {
    for what in ["sleep", "writes", "stopped", "vfork"] {
        let word = unique(what);
        let (trace, sandbox) =
            with_limit(subject("flood", &[what, &word]), Duration::from_millis(300));
        assert_eq!(trace.ends[0].exit, Exit::TimedOut, "{}", log(&trace));
        assert_eq!(processes_with(&word), 0);
        assert_faithful(&trace, &sandbox, nothing);
        assert!(trace.gaps.is_empty(), "{:?}", trace.gaps);
        assert!(trace.ops().count() > 0, "it had begun");
    }
}

#[test]
fn a_fork_bomb_is_bounded() {
    let word = unique("forks");
    let (trace, _) = undisturbed(subject("flood", &["forks", &word]), nothing);
    assert_eq!(trace.ends[0].exit, Exit::Killed);
    assert_eq!(processes_with(&word), 0);
    assert!(
        trace.gaps.iter().any(|gap| gap.what.contains("processes at a time")),
        "{:?}",
        trace.gaps
    );
}

/// A log does not outgrow the memory: beyond its budget the run is ended, and what was kept is as it happened.
#[test]
fn what_a_run_writes_is_bounded() {
    let with_budget = |what: &str, budget: Budget| {
        let sandbox = sandbox();
        let options = Options { budget, ..options() };
        let program = subject("greedy", &[what]);
        let trace = trace::run(&[program], &sandbox, &options, &mut Undisturbed).unwrap();
        assert_eq!(trace.ends[0].exit, Exit::Killed, "{what}: {}", log(&trace));
        // What did not fit was not done either; a copy is measured when it is done.
        if what != "copy" {
            assert_faithful(&trace, &sandbox, nothing);
        }
        trace
    };
    let gaps =
        |trace: &Trace| -> Vec<String> { trace.gaps.iter().map(|gap| gap.what.clone()).collect() };
    for what in ["write", "writev", "copy"] {
        let trace = with_budget(what, Budget { bytes: 10_500, ..Budget::default() });
        let said =
            "more than 10500 bytes were written, which the log would keep: the run was ended";
        assert_eq!(gaps(&trace), [said]);
        assert_eq!(trace.ops().filter(|op| op.kind.word() == "write").count(), 10);
    }
    let trace = with_budget("marks", Budget { events: 50, ..Budget::default() });
    assert_eq!(gaps(&trace), ["more than 50 events, which the log would keep: the run was ended"]);
    assert_eq!(trace.events.len(), 50 + 2, "and its end: {}", log(&trace));
}

/// A program may name any length.
#[test]
fn a_length_beyond_all_memory_takes_none() {
    let (trace, sandbox) = undisturbed(subject("greedy", &["huge"]), nothing);
    assert_success(&trace);
    assert_faithful(&trace, &sandbox, nothing);
}

fn spawn_error(argv: &[&str], env: &[(&str, &str)]) -> (String, String, std::io::Error) {
    let program = Program {
        argv: argv.iter().map(Into::into).collect(),
        env: env.iter().map(|(key, value)| (key.into(), value.into())).collect(),
        ..subject("basic", &[])
    };
    match trace::run(&[program], &sandbox(), &options(), &mut Undisturbed) {
        Err(TraceError::Spawn { program, stage, source }) => (program, stage, source),
        other => panic!("{other:?}"),
    }
}

/// Only root may look into such a process.
#[test]
fn a_process_that_hides_is_a_gap() {
    let (trace, _) = undisturbed(subject("hides", &[]), nothing);
    assert_success(&trace);
    let hidden =
        trace.gaps.iter().filter(|gap| gap.what.contains("made itself unreadable")).count();
    assert_eq!(hidden, usize::from(!is_root()), "{:?}", trace.gaps);
    let refused = |gap: &Gap| gap.what.starts_with("pidfd_send_signal of a process");
    assert!(trace.gaps.iter().any(refused), "{:?}", trace.gaps);
}

#[test]
fn spawn_errors_say_what_failed() {
    let (name, stage, source) = spawn_error(&["/no/such/program"], &[]);
    assert_eq!((name.as_str(), stage.as_str()), ("/no/such/program", "execute it"));
    assert_eq!(source.raw_os_error(), Some(nix::libc::ENOENT));
    let bin = folder();
    std::fs::write(bin.path().join("plain"), "no program").unwrap();
    let path = bin.path().to_str().unwrap();
    let (_, _, source) = spawn_error(&["plain"], &[("PATH", path)]);
    assert_eq!(source.raw_os_error(), Some(nix::libc::EACCES));
    std::fs::set_permissions(bin.path().join("plain"), PermissionsExt::from_mode(0o755)).unwrap();
    let (_, _, source) = spawn_error(&["plain"], &[("PATH", path)]);
    assert_eq!(source.raw_os_error(), Some(nix::libc::ENOEXEC));
    let (_, stage, _) = spawn_error(&["plain", "a\0b"], &[("PATH", path)]);
    assert_eq!(stage, "pass its arguments");
    spawn_error(&[], &[]);
    spawn_error(&[""], &[]);
}

#[test]
fn a_program_is_found_in_its_own_path() {
    let bin = program("marks").parent().unwrap().to_owned();
    let path = format!("/no/such/folder:{}", bin.display());
    let env = vec![("PATH".into(), path.into())];
    let program = Program { argv: vec!["marks".into()], env, ..subject("marks", &[]) };
    assert_success(&undisturbed(program, nothing).0);
}

#[test]
fn when_the_second_cannot_start_the_first_is_ended() {
    let word = unique("first");
    let programs = [
        subject("flood", &["sleep", &word]),
        Program { argv: vec!["/no/such/program".into()], ..subject("basic", &[]) },
    ];
    assert!(trace::run(&programs, &sandbox(), &options(), &mut Undisturbed).is_err());
    assert_eq!(processes_with(&word), 0);
}

#[test]
fn several_runs_at_a_time() {
    std::thread::scope(|scope| {
        for name in ["threads", "fork", "basic", "daemon", "mmap", "exec"] {
            scope.spawn(move || {
                let (trace, sandbox) = undisturbed(subject(name, &[]), nothing);
                assert_success(&trace);
                assert_faithful(&trace, &sandbox, nothing);
            });
        }
    });
}

#[test]
fn pinned_for_the_run_only() {
    let before = sched_getaffinity(Pid::from_raw(0)).unwrap();
    let processor = (0..1024).find(|index| before.is_set(*index).unwrap_or(false));
    let options = Options { pin: processor, ..options() };
    let trace =
        trace::run(&[subject("fork", &[])], &sandbox(), &options, &mut Undisturbed).unwrap();
    assert_success(&trace);
    assert_eq!(sched_getaffinity(Pid::from_raw(0)).unwrap(), before);
    let none = Options { pin: Some(1023), ..options };
    let refused = trace::run(&[subject("fork", &[])], &sandbox(), &none, &mut Undisturbed);
    assert!(matches!(refused, Err(TraceError::Unavailable { .. })));
}

/// All other tests once more as `nobody`, in a process of its own.
#[test]
fn without_privileges() {
    if !is_root() {
        return; // all tests ran without
    }
    const NOBODY: u32 = 65534;
    let elsewhere = folder();
    std::fs::set_permissions(elsewhere.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let (tests, programs) = (elsewhere.path().join("tests"), elsewhere.path().join("programs"));
    // By a process of its own: what this one has open for writing, a child of another test's thread has open too, and
    // nobody may execute it meanwhile.
    let copy = |from: &Path, to: &Path| {
        assert!(output(Command::new("cp").arg("-r").args([from, to])).unwrap().status.success());
    };
    copy(&std::env::current_exe().unwrap(), &tests);
    copy(program("basic").parent().unwrap(), &programs);
    let mut tests = Command::new(&tests);
    tests
        .args(["faithful", "kills::after_every_op", "steering", "hides", "outsiders"])
        .arg("--test-threads=2")
        .env(PROGRAMS, &programs)
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY);
    let output = output(&mut tests).unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("faithful::basic ... ok"), "{text}");
    assert!(text.contains("a_process_that_hides_is_a_gap ... ok"), "{text}");
}
