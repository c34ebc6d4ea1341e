//! What a traced call costs: the same program, which writes 50,000 times, without a tracer, in the lab, and under strace
//! (where there is one) with a filter for the same call. All of them on one processor, one after another, several times in
//! turn; the medians and their ratios are printed. Beside it a program that calls what is of no interest to the lab.
#![allow(missing_docs, reason = "what the criterion macros define")]

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crashlab::sandbox::{Sandbox, SandboxOptions};
use crashlab::subject::Program;
use crashlab::trace::{Budget, Detail, Options, Undisturbed};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

/// How often the program calls.
const CALLS: u64 = 50_000;
/// How often each way is measured, in turn.
const ROUNDS: usize = 7;
/// Tells this program to be the one that is measured.
const SUBJECT: &str = "--subject=";

fn main() {
    if let Some(what) =
        std::env::args().find_map(|arg| arg.strip_prefix(SUBJECT).map(str::to_owned))
    {
        return subject(&what);
    }
    // `cargo test` builds and starts benches too, to see that they run.
    let rounds = if std::env::args().any(|arg| arg == "--bench") { ROUNDS } else { 1 };
    let processor = first_processor();
    pin(processor);
    for what in ["pwrite", "write", "getppid"] {
        compare(what, processor, rounds);
    }
}

/// Writes one byte at a place of its own or where the last ended, or asks for its parent, again and again.
fn subject(what: &str) {
    let file = || std::fs::File::create("file").expect("a file in the work folder");
    match what {
        "pwrite" => {
            let file = file();
            for call in 0..CALLS {
                file.write_at(b"x", call % 4096).expect("a write");
            }
        }
        "write" => {
            let mut file = file();
            for _ in 0..CALLS {
                file.write_all(b"x").expect("a write");
            }
        }
        _ => (0..CALLS).for_each(|_| _ = std::hint::black_box(nix::unistd::getppid())),
    }
}

fn compare(what: &str, processor: usize, rounds: usize) {
    let mut times: [Vec<Duration>; 3] = Default::default();
    for _ in 0..rounds {
        times[0].push(bare(what));
        times[1].push(in_the_lab(what, processor));
        times[2].extend(under_strace(what));
    }
    let per_call = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        times.get(times.len() / 2).map(|median| median.as_secs_f64() * 1e6 / CALLS as f64)
    };
    let [bare, lab, strace] = times.each_mut().map(per_call);
    let (bare, lab) = (bare.unwrap_or_default(), lab.unwrap_or_default());
    println!("{what}: {CALLS} calls, median of {rounds}, microseconds a call");
    println!("  without a tracer {bare:>7.3}");
    println!("  in the lab       {lab:>7.3}");
    match strace {
        Some(strace) => {
            println!("  under strace     {strace:>7.3}; the lab costs {:.2} of it", lab / strace)
        }
        None => println!("  under strace     skipped: there is no strace that knows --seccomp-bpf"),
    }
}

fn bare(what: &str) -> Duration {
    let folder = tempfile::tempdir().expect("a folder");
    let begun = Instant::now();
    let mut command = Command::new(program());
    let status = command.arg(format!("{SUBJECT}{what}")).current_dir(folder.path()).status();
    assert!(status.expect("a process").success());
    begun.elapsed()
}

fn in_the_lab(what: &str, processor: usize) -> Duration {
    let program = program();
    let keep_visible = program.parent().map(Into::into).into_iter().collect();
    let options = SandboxOptions { keep_visible, ..SandboxOptions::default() };
    let sandbox = Sandbox::new(&options).expect("a sandbox");
    let subject = Program {
        argv: vec![program.into_os_string(), OsString::from(format!("{SUBJECT}{what}"))],
        env: Vec::new(),
        stdin: Vec::new(),
        pipe: true,
    };
    let options = Options {
        time_limit: Duration::from_secs(600),
        detail: Detail::Changes,
        budget: Budget::default(),
        pin: Some(processor),
        backtrace: false,
        containers: false,
    };
    let begun = Instant::now();
    let trace = crashlab::trace::run(&[subject], &sandbox, &options, &mut Undisturbed);
    let elapsed = begun.elapsed();
    let trace = trace.expect("a run");
    assert!(trace.ends[0].exit.success(), "{:?}", trace.ends);
    elapsed
}

/// `None` without a strace that can leave all other calls alone.
fn under_strace(what: &str) -> Option<Duration> {
    let folder = tempfile::tempdir().expect("a folder");
    let begun = Instant::now();
    let filter = if what == "write" { "trace=write" } else { "trace=pwrite64" };
    let status = Command::new("strace")
        .args(["-f", "--seccomp-bpf", "-e", filter, "-o", "/dev/null"])
        .arg(program())
        .arg(format!("{SUBJECT}{what}"))
        .current_dir(folder.path())
        .stderr(Stdio::null())
        .status();
    let elapsed = begun.elapsed();
    status.is_ok_and(|status| status.success()).then_some(elapsed)
}

fn program() -> std::path::PathBuf {
    std::env::current_exe().expect("this program")
}

fn first_processor() -> usize {
    let allowed = nix::sched::sched_getaffinity(Pid::this()).expect("the processors");
    (0..CpuSet::count()).find(|number| allowed.is_set(*number).unwrap_or(false)).unwrap_or(0)
}

fn pin(processor: usize) {
    let mut set = CpuSet::new();
    set.set(processor).expect("a processor");
    sched_setaffinity(Pid::this(), &set).expect("this thread on one processor");
}
