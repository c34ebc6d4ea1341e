//! What power cuts cost: states that are looked at in this process, by the size of the recording and by how many there are, each
//! in a process of its own; and states of a program with a native recovery, held against what the bare recovery costs
//! (untraced, in the same kind of sandbox, with the state written out). The goals: 20,000 states a second of a short
//! recording, time that doubles with the recording, memory that does not grow with the states, and 0.8 of the bare states a
//! second.
#![allow(missing_docs, reason = "a program of its own")]

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crashlab::fault::crash_state::moments;
use crashlab::fault::kill::points;
use crashlab::fault::power::{Budget, DiskModel, Looked, PowerCuts};
use crashlab::op::{Actor, Event, FileId, Op, OpKind, What};
use crashlab::run::{Pause, Plan, Settings, Stage, run_scenario};
use crashlab::sandbox::{Sandbox, SandboxOptions};
use crashlab::scenario::{FaultKind, KillPoint, PowerFault, Scenario};
use crashlab::tree::{Node, NodeKind, Tree, write_out};

const SUBJECT: &str = "--subject";
const ONE: &str = "--one=";
/// Ops in a recording.
const SIZES: [u32; 4] = [1250, 2500, 5000, 10_000];
/// States of the short recording.
const STATES: [usize; 3] = [1_000, 10_000, 100_000];
const BLOCK: usize = 4096;
const LIMIT: Duration = Duration::from_secs(60);
const RECOVERIES: usize = 200;

fn main() {
    if std::env::args().any(|arg| arg == SUBJECT) {
        return subject();
    }
    if let Some(one) = std::env::args().find_map(|arg| arg.strip_prefix(ONE).map(str::to_owned)) {
        let (what, count) = one.split_once(',').expect("what, and how much");
        let count = count.parse().expect("a number");
        return if what == "short" { short(count) } else { long(what, count as u32) };
    }
    // `cargo test` builds and starts benches too, to see that they run.
    let whole = std::env::args().any(|arg| arg == "--bench");
    println!("10 ops, 4 KiB, posix, looked at in this process:");
    for states in &STATES[..if whole { STATES.len() } else { 1 }] {
        let [ms, mib] = of_its_own("short", *states);
        let rate = *states as f64 / ms * 1e3;
        println!("  {states:>7} states {ms:>9.1} ms {rate:>9.0} a second {mib:>7.1} MiB");
    }
    for (what, name) in [("appends", "appends, none synced"), ("saves", "temp, sync and rename")] {
        println!("{name}, ext4, 1,000 different states at most:");
        for count in &SIZES[..if whole { SIZES.len() } else { 1 }] {
            let [ms, mib] = of_its_own(what, *count as usize);
            println!("  {count:>7} times {ms:>9.1} ms {mib:>7.1} MiB");
        }
    }
    native(if whole { 5 } else { 1 });
}

/// Milliseconds and MiB.
fn of_its_own(what: &str, count: usize) -> [f64; 2] {
    let program = std::env::current_exe().expect("this program");
    let output = Command::new(program).arg(format!("{ONE}{what},{count}")).output();
    let output = output.expect("a process");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("two numbers");
    let mut numbers = text.split_whitespace().map(|word| word.parse().expect("a number"));
    [numbers.next().expect("milliseconds"), numbers.next().expect("MiB")]
}

/// The most memory that this process held, in MiB.
fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("this process");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    peak.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") / 1024.0
}

fn model(name: &str) -> &'static DiskModel {
    name.parse().expect("a model")
}

fn cuts<'a>(before: &Tree, events: &'a [Event], name: &str) -> PowerCuts<'a> {
    let places = points(events, &Default::default(), &KillPoint::All).expect("places");
    PowerCuts::new(before, events, model(name), &moments(events, places)).expect("it fits")
}

/// Looks at so many states of a short recording, again and again; the check reads the file.
fn short(states: usize) {
    let mut log = Log::default();
    log.create(0, "t");
    (0..8).for_each(|part| log.write(0, "t", part * 512, vec![b'n'; 512]));
    log.rename("t", "s");
    let before = tree(&[("s", vec![b'o'; BLOCK])]);
    let cuts = cuts(&before, &log.0, "posix");
    let begun = Instant::now();
    let mut left = states;
    let mut torn = 0;
    while left > 0 {
        for state in cuts.states().take(left) {
            left -= 1;
            let file = state.tree.get(Path::new("s")).map(|node| &node.kind);
            let is_whole = matches!(file, Some(NodeKind::File(bytes)) if bytes.whole()
                .is_some_and(|bytes| bytes.len() == BLOCK && bytes.iter().all(|one| *one == bytes[0])));
            torn += usize::from(!is_whole);
        }
    }
    assert!(torn > 0);
    println!("{} {}", begun.elapsed().as_secs_f64() * 1e3, peak_mib());
}

/// Looks at states of a long recording within a budget.
fn long(what: &str, count: u32) {
    let mut log = Log::default();
    for nth in 0..count {
        match what {
            "appends" => log.write(0, "s", u64::from(nth) * 64, vec![b'n'; 64]),
            _ => {
                log.create(nth + 1, "t");
                log.write(nth + 1, "t", 0, nth.to_le_bytes().to_vec());
                log.sync(nth + 1, "t");
                log.rename("t", "s");
            }
        }
    }
    let before = tree(&[("s", Vec::new())]);
    let begun = Instant::now();
    let cuts = cuts(&before, &log.0, "ext4");
    let mut known = HashSet::new();
    let share = cuts.try_within(Budget { states: 1000, seed: 0 }, |state| {
        match known.insert(state.tree.hash()) {
            true => Looked::New,
            false => Looked::Known,
        }
    });
    assert!(share.states > 0);
    println!("{} {}", begun.elapsed().as_secs_f64() * 1e3, peak_mib());
}

/// Counts one further in `state`, in 20 writes and a rename, nothing synced.
fn subject() {
    let Ok(before) = std::fs::read_to_string("state") else {
        eprintln!("state: there is no file");
        std::process::exit(1);
    };
    let Some(count) = before.lines().next().and_then(|line| line.parse::<u32>().ok()) else {
        eprintln!("state: it cannot be read");
        std::process::exit(1);
    };
    let mut file = std::fs::File::create("state.tmp").expect("a new file");
    for line in 0..20 {
        file.write_all(format!("{}\n{line} {}\n", count + 1, "x".repeat(500)).as_bytes())
            .expect("a write");
    }
    std::fs::rename("state.tmp", "state").expect("a rename");
}

/// No time passes: the ends are the same each time, and nothing is masked.
struct WithoutWaiting;

impl Pause for WithoutWaiting {
    fn pause(&mut self, _: Duration) -> usize {
        0
    }
}

fn native(rounds: usize) {
    let program = std::env::current_exe().expect("this program");
    let argv = [program.to_str().expect("a path in UTF-8"), SUBJECT];
    let mut scenario =
        Scenario::new("native", &argv, "state").setup("echo 0 > state").kill_everywhere();
    let power = PowerFault { states: Some(1000), ..PowerFault::on(vec![model("posix")]) };
    scenario.faults[0].kind = FaultKind::Power(power);
    let settings = Settings { confirm: 0, ..Settings::default() };
    let mut ratios = Vec::new();
    for _ in 0..rounds {
        let begun = Instant::now();
        let stage = Stage::new(&scenario, &settings, Some(0)).expect("a sandbox");
        let result = run_scenario(&stage, &Plan::All, settings.jobs, &mut WithoutWaiting);
        let took = begun.elapsed();
        let cases = &result.expect("a result").faults[0].cases;
        let trees: Vec<&Tree> =
            cases.iter().filter_map(|case| case.evidence.crashed.as_deref()).collect();
        let distinct: HashSet<[u8; 32]> = trees.iter().map(|tree| tree.hash()).collect();
        let bare = bare(&argv, &trees).as_secs_f64();
        let own = took.as_secs_f64() * settings.jobs as f64 / distinct.len() as f64;
        ratios.push((bare / own, distinct.len(), own, bare));
    }
    ratios.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (ratio, states, own, bare) = ratios[ratios.len() / 2];
    println!(
        "native recovery, {states} different states: {:.0} states a second and core, bare {:.0}; ratio {ratio:.2}",
        1.0 / own,
        1.0 / bare
    );
}

/// The median time in which a state is written out and the recovery run on it, untraced.
fn bare(argv: &[&str], trees: &[&Tree]) -> Duration {
    let keep_visible = Path::new(argv[0]).parent().map(Into::into).into_iter().collect();
    let options = SandboxOptions { keep_visible, ..SandboxOptions::default() };
    let sandbox = Sandbox::new(&options).expect("a sandbox");
    let mut times = Vec::new();
    for tree in trees.iter().step_by((trees.len() / RECOVERIES).max(1)) {
        sandbox.reset().expect("an empty sandbox");
        let begun = Instant::now();
        write_out(tree, sandbox.work()).expect("the state");
        sandbox.command(argv, LIMIT).expect("a recovery");
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    times[times.len() / 2]
}

fn tree(files: &[(&str, Vec<u8>)]) -> Tree {
    let node = |kind, mode| Node {
        kind,
        mode,
        uid: 0,
        gid: 0,
        hard_link: None,
        xattrs: Default::default(),
    };
    let mut tree = Tree::default();
    tree.nodes.insert(PathBuf::new(), node(NodeKind::Folder, 0o755));
    for (path, bytes) in files {
        tree.nodes.insert(path.into(), node(NodeKind::File(bytes.clone().into()), 0o644));
    }
    tree
}

/// A log that is written by calls.
#[derive(Default)]
struct Log(Vec<Event>);

impl Log {
    fn op(&mut self, kind: OpKind) {
        let number = self.0.len() as u32 + 1;
        let what = What::Op(Op { number, call: kind.word().to_owned(), kind });
        self.0.push(Event { actor: Actor { program: 0, pid: 1, tid: 1 }, what });
    }

    fn create(&mut self, file: u32, path: &str) {
        let (file, path) = (FileId(file), Some(path.into()));
        self.op(OpKind::Create { file, path, mode: 0o644, owner: (0, 0) });
    }

    fn write(&mut self, file: u32, path: &str, offset: u64, bytes: Vec<u8>) {
        let (file, path, data) = (FileId(file), path.into(), bytes.into());
        self.op(OpKind::Write { file, path, offset, data, append: false });
    }

    fn sync(&mut self, file: u32, path: &str) {
        self.op(OpKind::Sync { file: FileId(file), path: path.into(), data_only: false });
    }

    fn rename(&mut self, from: &str, to: &str) {
        let (from, to) = (from.into(), to.into());
        self.op(OpKind::Rename { from, to, exchange: false, no_replace: false });
    }
}
