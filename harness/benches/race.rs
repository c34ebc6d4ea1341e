//! What a schedule costs: two programs, held before each of their steps and let go in turns, against the same two one after
//! the other under the same tracer, with nobody held. At most 1.5 times that is the goal. And what a step costs: a program
//! that writes 2,000 times, held before each write, against the same writes traced.
#![allow(missing_docs, reason = "a program of its own")]

use std::io::Write;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use crashlab::fault::race::explore::{Alike, Exploration};
use crashlab::fault::race::steer::{Contested, Ending, Guide, Steer};
use crashlab::sandbox::{Sandbox, SandboxOptions};
use crashlab::subject::Program;
use crashlab::trace::{Budget, Detail, Director, Options, Undisturbed, run};

/// Tells this program to be one of those that race.
const SUBJECT: &str = "--subject";
/// Tells it to write again and again.
const WRITES: &str = "--subject=writes";
const CALLS: u64 = 2_000;
const ROUNDS: usize = 25;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.iter().any(|arg| arg == WRITES) {
        return writes();
    }
    if args.iter().any(|arg| arg == SUBJECT) {
        return counts();
    }
    // `cargo test` builds and starts benches too, to see that they run.
    let rounds = if args.iter().any(|arg| arg == "--bench") { ROUNDS } else { 1 };
    schedules(rounds);
    steps(rounds);
}

/// Reads, adds one, and puts the new file in the old one's place.
fn counts() {
    let text = std::fs::read_to_string("state").unwrap_or_default();
    let count: u32 = text.trim().parse().unwrap_or(0);
    let temporary = format!("state.{}", std::process::id());
    let mut file = std::fs::File::create(&temporary).expect("a new file");
    writeln!(file, "{}", count + 1).expect("a write");
    std::fs::rename(&temporary, "state").expect("a rename");
}

fn writes() {
    let file = std::fs::File::create("state").expect("a new file");
    for place in 0..CALLS {
        file.write_all_at(b"x", place).expect("a write");
    }
}

fn program(argument: &str) -> Program {
    let own = std::env::current_exe().expect("this program").into_os_string();
    Program { argv: vec![own, argument.into()], env: Vec::new(), stdin: Vec::new(), pipe: true }
}

fn options(detail: Detail) -> Options {
    let pin = nix::sched::sched_getcpu().ok();
    let (time_limit, budget) = (Duration::from_secs(60), Budget::default());
    Options { time_limit, detail, budget, pin, backtrace: false, containers: false }
}

/// Runs programs in a new folder with a state of 5; how long that took, without making the folder.
fn timed(programs: &[Program], detail: Detail, director: &mut dyn Director) -> Duration {
    let sandbox = Sandbox::new(&SandboxOptions::default()).expect("a sandbox");
    std::fs::write(sandbox.work().join("state"), "5\n").expect("a file");
    let begun = Instant::now();
    run(programs, &sandbox, &options(detail), director).expect("a run");
    begun.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Every schedule of two programs that count, in turn with the two one after the other.
fn schedules(rounds: usize) {
    let both = [program(SUBJECT), program(SUBJECT)];
    let mut contested = Contested::default();
    let mut learning = Steer::new(Guide::Follow(Default::default()), 2, contested.clone());
    timed(&both, Detail::Steps, &mut learning);
    contested.learn(learning.touched());
    let (mut scheduled, mut alone) = (Vec::new(), Vec::new());
    while scheduled.len() < rounds {
        let mut exploration = Exploration::new(None, Alike::default());
        while let Some(walk) = exploration.claim() {
            let mut steer = Steer::new(Guide::Walk(walk), 2, contested.clone());
            scheduled.push(timed(&both, Detail::Steps, &mut steer));
            let Some((walk, last, ending)) = steer.into_walk() else { return };
            exploration.finish(walk, last, ending == Ending::Known);
            let one = |program: &Program| {
                timed(std::slice::from_ref(program), Detail::Reads, &mut Undisturbed)
            };
            alone.push(one(&both[0]) + one(&both[1]));
        }
    }
    report("a schedule", "both, one after the other", median(scheduled), median(alone));
}

fn steps(rounds: usize) {
    let writer = [program(WRITES)];
    let (mut held, mut traced) = (Vec::new(), Vec::new());
    for _ in 0..rounds.min(7) {
        let mut steer = Steer::new(Guide::Follow(Default::default()), 1, Contested::default());
        held.push(timed(&writer, Detail::Steps, &mut steer));
        traced.push(timed(&writer, Detail::Reads, &mut Undisturbed));
    }
    let (held, traced) = (median(held), median(traced));
    report(&format!("{CALLS} steps"), "traced, and not held", held, traced);
    println!("  {:.1} us a step", held.as_secs_f64() * 1e6 / CALLS as f64);
}

fn report(what: &str, beside: &str, time: Duration, other: Duration) {
    let ratio = time.as_secs_f64() / other.as_secs_f64();
    println!("{what}: {time:.2?}; {beside}: {other:.2?}; {ratio:.2} times");
}
