//! What a whole matrix costs: every kill point of a program, with the recovery run on every distinct state.
//!
//! It is held against two things, in the same run. The least that it could cost is one recorded run, and the bare recovery
//! (untraced, in the same kind of sandbox) for each distinct state, spread over the processors: at most 1.3 times that is
//! the goal. What people do without a recording is a loop of `strace --inject`, which kills the program at one call after
//! another and runs the recovery each time: a tenth of that is the goal.
//!
//! Nothing is confirmed by real kills, the controls count, and the pause between equal controls is left out.
#![allow(missing_docs, reason = "a program of its own")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crashlab::run::{Pause, Plan, Settings, Stage, run_scenario};
use crashlab::sandbox::{Sandbox, SandboxOptions};
use crashlab::scenario::Scenario;

/// Tells this program to be the subject that is measured.
const SUBJECT: &str = "--subject";
/// How often the matrix and what it is held against are measured, in turn.
const ROUNDS: usize = 5;
/// How often the bare recovery is run in a round.
const RECOVERIES: usize = 40;
const LIMIT: Duration = Duration::from_secs(60);
/// The calls that `strace` kills at: those by which the subjects change their folder.
const CALLS: &str = "write,fsync,rename";
/// What both subjects begin with.
const BEFORE: &str = "0\n";

fn main() {
    if std::env::args().any(|arg| arg == SUBJECT) {
        return subject();
    }
    // `cargo test` builds and starts benches too, to see that they run.
    let rounds = if std::env::args().any(|arg| arg == "--bench") { ROUNDS } else { 1 };
    let program = std::env::current_exe().expect("this program");
    let program = program.to_str().expect("a path in UTF-8");
    measure("native, temp and rename", &[program, SUBJECT], rounds);
    match python() {
        Some(python) => measure("Python, temp and rename", &[&python, "-c", SCRIPT], rounds),
        None => println!("Python, temp and rename: skipped: there is no python3 in PATH"),
    }
}

/// Counts one further in `state`, in 196 small writes: 200 kill points with the start, the creation, the sync and the rename.
fn subject() {
    let Ok(before) = std::fs::read_to_string("state") else {
        eprintln!("there is no file state");
        std::process::exit(1);
    };
    let count: u32 = before.lines().next().and_then(|line| line.parse().ok()).expect("a number");
    let mut file = std::fs::File::create("state.tmp").expect("a new file");
    writeln!(file, "{}", count + 1).expect("a write");
    for line in 0..194 {
        file.write_all(format!("line {line} of {count}\n").as_bytes()).expect("a write");
    }
    file.write_all(b"end\n").expect("a write");
    file.sync_all().expect("a sync");
    std::fs::rename("state.tmp", "state").expect("a rename");
}

/// The same in 46 writes.
const SCRIPT: &str = "
import os
count = int(open('state').readline())
with open('state.tmp', 'wb', buffering=0) as file:
    file.write(b'%d\\n' % (count + 1))
    for line in range(45):
        file.write(b'line %d of %d\\n' % (line, count))
    os.fsync(file.fileno())
os.rename('state.tmp', 'state')
";

/// One round's times.
struct Round {
    recorded: Duration,
    recovery: Duration,
    matrix: Duration,
    strace: Option<Duration>,
}

fn measure(name: &str, argv: &[&str], rounds: usize) {
    let setup = format!("printf '{}' > state", BEFORE.replace('\n', "\\n"));
    let scenario = Scenario::new(name, argv, "state").setup(&setup).kill_everywhere();
    let settings = Settings { confirm: 0, ..Settings::default() };
    let (mut times, mut found) = (Vec::new(), (0, 0));
    for _ in 0..rounds {
        let recorded = recorded(&scenario, &settings);
        let recovery = bare_recovery(argv);
        let (points, states, matrix) = matrix(&scenario, &settings);
        found = (points, states);
        times.push(Round { recorded, recovery, matrix, strace: strace_loop(argv, points) });
    }
    let median = |of: &dyn Fn(&Round) -> Duration| {
        let mut all: Vec<Duration> = times.iter().map(of).collect();
        all.sort_unstable();
        all[all.len() / 2].as_secs_f64() * 1e3
    };
    let (recorded, recovery) = (median(&|round| round.recorded), median(&|round| round.recovery));
    let matrix = median(&|round| round.matrix);
    let least = recorded + found.1 as f64 * recovery / settings.jobs as f64;
    println!(
        "{name}: {} kill points, {} distinct states, {} processors, median of {rounds}, milliseconds",
        found.0, found.1, settings.jobs
    );
    println!("  one recorded run       {recorded:>9.2}");
    println!("  one bare recovery      {recovery:>9.2}");
    println!("  least that it can cost {least:>9.2}");
    println!("  the whole matrix       {matrix:>9.2}; {:.2} of the least", matrix / least);
    if times.iter().all(|round| round.strace.is_some()) {
        let strace = median(&|round| round.strace.unwrap_or_default());
        println!("  a loop of strace       {strace:>9.2}; {:.1} of the matrix", strace / matrix);
    } else {
        println!("  a loop of strace         skipped: there is no strace that knows --inject");
    }
}

fn recorded(scenario: &Scenario, settings: &Settings) -> Duration {
    let stage = Stage::new(scenario, settings, Some(0)).expect("a sandbox");
    let before = stage.prepare().expect("the setup");
    let begun = Instant::now();
    stage.record(&before, false).expect("a run");
    begun.elapsed()
}

/// The recovery, which is the subject once more, untraced: the median of several.
fn bare_recovery(argv: &[&str]) -> Duration {
    let keep_visible = Path::new(argv[0]).parent().map(Into::into).into_iter().collect();
    let options = SandboxOptions { keep_visible, ..SandboxOptions::default() };
    let sandbox = Sandbox::new(&options).expect("a sandbox");
    let mut times = Vec::new();
    for _ in 0..RECOVERIES {
        sandbox.reset().expect("an empty sandbox");
        std::fs::write(sandbox.work().join("state"), BEFORE).expect("a state file");
        let begun = Instant::now();
        let output = sandbox.command(argv, LIMIT).expect("a recovery");
        times.push(begun.elapsed());
        assert!(output.status.success(), "{output:?}");
    }
    times.sort_unstable();
    times[times.len() / 2]
}

/// No time passes: the ends are the same each time, and nothing is masked.
struct WithoutWaiting;

impl Pause for WithoutWaiting {
    fn pause(&mut self, _: Duration) -> usize {
        0
    }
}

/// How many points and distinct states there are, and how long it took from the first sandbox to the last verdict.
fn matrix(scenario: &Scenario, settings: &Settings) -> (usize, usize, Duration) {
    let begun = Instant::now();
    let stage = Stage::new(scenario, settings, Some(0)).expect("a sandbox");
    let result = run_scenario(&stage, &Plan::All, settings.jobs, &mut WithoutWaiting);
    let elapsed = begun.elapsed();
    let result = result.expect("a result");
    result.assert_held();
    let cases = &result.faults[0].cases;
    let crashed = cases.iter().filter_map(|case| case.evidence.crashed.as_ref());
    let mut states: Vec<[u8; 32]> = crashed.map(|tree| tree.hash()).collect();
    states.sort_unstable();
    states.dedup();
    (cases.len(), states.len(), elapsed)
}

/// `None` without a strace that can kill at a call.
fn strace_loop(argv: &[&str], points: usize) -> Option<Duration> {
    let folder = tempfile::tempdir().expect("a folder");
    let begun = Instant::now();
    for when in 1..=points {
        std::fs::write(folder.path().join("state"), BEFORE).expect("a state file");
        let _ = std::fs::remove_file(folder.path().join("state.tmp"));
        let inject = format!("--inject={CALLS}:signal=SIGKILL:when={when}");
        let mut strace = Command::new("strace");
        strace.args(["-f", "-o", "/dev/null", &inject]).args(argv);
        let status = strace.current_dir(folder.path()).stderr(Stdio::null()).status().ok()?;
        // Killed, as its program; or, after the last call, not.
        if status.code().is_some_and(|code| code != 0) {
            return None;
        }
        let mut recovery = Command::new(argv[0]);
        let status = recovery.args(&argv[1..]).current_dir(folder.path()).status();
        assert!(status.expect("a recovery").success());
    }
    Some(begun.elapsed())
}

/// The interpreter itself, not a script that looks for one.
fn python() -> Option<String> {
    let asks = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    let path = String::from_utf8(asks.ok()?.stdout).ok()?;
    Some(path.trim().to_owned()).filter(|path| !path.is_empty())
}
