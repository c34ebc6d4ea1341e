//! What long recordings cost: for each shape of a run, the time and the memory of all that the lab makes of its log, which is
//! every tree at which a kill can leave it, and the versions of its state files. The sizes double, and so should both.
//! Each size is measured in a process of its own, so that the peak of its memory is its own.

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use crashlab::fault::crash_state::crash_states;
use crashlab::fault::kill::points;
use crashlab::judge::{Promises, State, versions};
use crashlab::op::{Actor, Data, Event, FileId, Op, OpKind, What};
use crashlab::scenario::KillPoint;
use crashlab::tree::{FileBytes, Node, NodeKind, Tree};

/// Ops in a recording, or, where there are several for each, what the shape is made of.
const SIZES: [u32; 4] = [1250, 2500, 5000, 10_000];
/// Tells this program to measure one shape in one size.
const ONE: &str = "--one=";
const BLOCK: usize = 4096;

/// What a run does again and again.
#[derive(Debug, Clone, Copy)]
struct Shape {
    name: &'static str,
    /// What is state.
    state: &'static str,
    /// Size of the file that is there from the start, in bytes.
    begins_with: usize,
    /// Of each size, so much is done.
    share: u32,
    step: fn(&mut Log, u32),
}

const SHAPES: [Shape; 5] = [
    Shape { name: "appends to a file", state: "log", begins_with: 0, share: 1, step: append },
    Shape {
        name: "4 KiB by temp and rename",
        state: "log",
        begins_with: 0,
        share: 1,
        step: replace,
    },
    Shape {
        name: "new files in a folder",
        state: "folder",
        begins_with: 0,
        share: 1,
        step: create,
    },
    Shape {
        name: "4 KiB in place in 64 MiB",
        state: "log",
        begins_with: 64 << 20,
        share: 5,
        step: overwrite,
    },
    Shape { name: "marks passed", state: "folder", begins_with: 0, share: 1, step: mark },
];

fn main() {
    if let Some(one) = std::env::args().find_map(|arg| arg.strip_prefix(ONE).map(str::to_owned)) {
        let (shape, count) = one.split_once(',').expect("a shape and a size");
        return measure(
            &SHAPES[shape.parse::<usize>().expect("a number")],
            count.parse().expect("a number"),
        );
    }
    // `cargo test` builds and starts benches too, to see that they run.
    let sizes = if std::env::args().any(|arg| arg == "--bench") { &SIZES[..] } else { &SIZES[..1] };
    println!("{:26} {:>7} {:>8} {:>6} {:>8} {:>6}", "", "times", "ms", "ratio", "MiB", "ratio");
    for (number, shape) in SHAPES.iter().enumerate() {
        let mut last: Option<[f64; 2]> = None;
        for size in sizes {
            let count = size / shape.share;
            let now = of_its_own(number, count);
            let ratio =
                |at: usize| last.map_or(String::new(), |last| format!("{:.2}", now[at] / last[at]));
            let [time, memory] = now;
            println!(
                "{:26} {count:>7} {time:>8.0} {:>6} {memory:>8.1} {:>6}",
                shape.name,
                ratio(0),
                ratio(1)
            );
            last = Some(now);
        }
    }
}

/// Milliseconds and MiB of one size.
fn of_its_own(shape: usize, count: u32) -> [f64; 2] {
    let program = std::env::current_exe().expect("this program");
    let output = Command::new(program).arg(format!("{ONE}{shape},{count}")).output();
    let output = output.expect("a process");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("two numbers");
    let mut numbers = text.split_whitespace().map(|word| word.parse().expect("a number"));
    [numbers.next().expect("milliseconds"), numbers.next().expect("MiB")]
}

fn measure(shape: &Shape, count: u32) {
    let mut log = Log::default();
    (0..count).for_each(|nth| (shape.step)(&mut log, nth));
    let (before, events) = (begin(shape), log.events);
    let state = State { paths: vec![shape.state.into()], ..State::default() };
    let begun = Instant::now();
    let found = versions(&before, &events, &state, &Promises::default(), None).expect("it fits");
    let places = points(&events, &found.promising_outputs(), &KillPoint::All).expect("places");
    let states: Result<Vec<_>, _> = crash_states(&before, &events, &state, places).collect();
    // All of them are held together, as in a check.
    let states = states.expect("it fits");
    let trees: HashSet<[u8; 32]> = states.iter().map(|state| state.tree.hash()).collect();
    let images: HashSet<_> = found.all.iter().map(|version| &version.image).collect();
    let survivors = states.iter().filter(|state| images.contains(&state.survivor)).count();
    let elapsed = begun.elapsed();
    assert!(states.len() > count as usize && survivors > 0 && !trees.is_empty());
    println!("{} {}", elapsed.as_secs_f64() * 1e3, peak_mib());
}

/// The most memory that this process held, in MiB.
fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("this process");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    let kib: f64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    kib / 1024.0
}

fn begin(shape: &Shape) -> Tree {
    let node = |kind, mode| Node {
        kind,
        mode,
        uid: 0,
        gid: 0,
        hard_link: None,
        xattrs: Default::default(),
    };
    let bytes: Vec<u8> = (0..shape.begins_with).map(|at| (at / BLOCK) as u8).collect();
    let nodes = [
        ("", node(NodeKind::Folder, 0o755)),
        ("folder", node(NodeKind::Folder, 0o755)),
        ("folder/first", node(NodeKind::File(FileBytes::default()), 0o644)),
        ("log", node(NodeKind::File(bytes.into()), 0o644)),
    ];
    Tree { nodes: nodes.map(|(path, node)| (PathBuf::from(path), node)).into() }
}

/// A log that is written by calls.
#[derive(Default)]
struct Log {
    events: Vec<Event>,
    ops: u32,
}

impl Log {
    fn what(&mut self, what: What) {
        self.events.push(Event { actor: Actor { program: 0, pid: 1, tid: 1 }, what });
    }

    fn op(&mut self, kind: OpKind) {
        self.ops += 1;
        let op = Op { number: self.ops, call: kind.word().to_owned(), kind };
        self.what(What::Op(op));
    }

    fn write(&mut self, file: u32, path: &str, offset: u64, data: Vec<u8>, append: bool) {
        let (file, path, data) = (FileId(file), path.into(), Data::from(data));
        self.op(OpKind::Write { file, path, offset, data, append });
    }

    fn create(&mut self, file: u32, path: &str) {
        let (file, path) = (FileId(file), Some(path.into()));
        self.op(OpKind::Create { file, path, mode: 0o644, owner: (0, 0) });
    }
}

fn text(nth: u32, len: usize) -> Vec<u8> {
    let mut text = format!("{nth:0width$}", width = len - 1).into_bytes();
    text.push(b'\n');
    text
}

fn append(log: &mut Log, nth: u32) {
    const LINE: usize = 100;
    log.write(0, "log", u64::from(nth) * LINE as u64, text(nth, LINE), true);
}

fn replace(log: &mut Log, nth: u32) {
    log.create(nth, "temp");
    log.write(nth, "temp", 0, text(nth, BLOCK), false);
    log.what(What::Close { file: FileId(nth), path: "temp".into() });
    let (from, to) = ("temp".into(), "log".into());
    log.op(OpKind::Rename { from, to, exchange: false, no_replace: false });
}

fn create(log: &mut Log, nth: u32) {
    let path = format!("folder/{nth}");
    log.create(nth, &path);
    log.what(What::Close { file: FileId(nth), path: path.into() });
}

fn overwrite(log: &mut Log, nth: u32) {
    let block = u64::from(nth).wrapping_mul(7919) % (64 << 8);
    log.write(0, "log", block * BLOCK as u64, text(nth, BLOCK), false);
    log.op(OpKind::Sync { file: FileId(0), path: "log".into(), data_only: false });
}

fn mark(log: &mut Log, nth: u32) {
    create(log, nth);
    log.what(What::Mark("step".into()));
}
