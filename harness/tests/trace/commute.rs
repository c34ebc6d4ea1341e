//! Steps of which the lab says that nobody can tell their order: made in other orders, they must do the same.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crashlab::fault::race::random::Priorities;
use crashlab::fault::race::schedule::{Block, Schedule};
use crashlab::fault::race::steer::{Contested, Ending, Follow, Guide, Made, Steer};
use crashlab::judge::shape;
use crashlab::subject::Program;
use crashlab::trace::{self, Detail, Options};

use crate::support::{options, sandbox, shell, subject};

/// Two programs each: words for `steps`, or a line of shell.
const PAIRS: &[[&str; 2]] = &[
    ["steps count", "steps count"],
    ["steps shared say:a", "steps count"],
    ["steps inplace", "steps looks:3"],
    ["steps flock:k count", "steps flock:k count"],
    ["steps flock:k count", "steps try:k count"],
    ["steps must:m count rm:m", "steps must:n count rm:n"],
    ["steps lock:w0-4 lock:u0-4 count", "steps lock:a3-9 lock:u0-9 lock:a0-4"],
    ["steps lock:r0-9 lock:w0-2 lock:u0-9", "steps lock:a5-9 lock:q0-2 lock:r5-9 lock:q0-9"],
    ["steps lock:w0-9 lock:r0-9 lock:u4-5", "steps lock:a0-3 lock:q4-5 lock:u0-9 lock:a4-5"],
    ["steps syncs count", "steps syncs put:x"],
    ["steps label:a label:b", "steps labels labels"],
    [
        "ln s h; chmod 600 s; rm h; echo 7 >> s",
        "stat -c '%h %a %s' s; stat -c %a s; [ -r s ]; cat s",
    ],
    ["rm l; ln -s d l; : > d/n; rmdir d", "readlink l; ls d; cat l; [ -e d/n ]; ls"],
    ["rm l; ln -s k l", "cat l; echo 9 >> l; cat l"],
    ["ln -s d j; : > d/n; rm j; ln -s . j", "cat j/n; cat j/s; echo 1 > j/m; ls j"],
    ["mv d e; mkdir d; : > d/n", "echo 1 > d/m; ls d e; cat e/m"],
    ["mv d e; mv e d", "cd d && : > n; cd ..; ls e"],
    ["mkdir -p a/b/c; echo 1 > a/b/n", "cat a/b/n; [ -d a/b/c ]; rm -r a; [ -e a ]"],
    ["mv d w; : > d", "cat d/n; ls d; : > d/n; rmdir d w"],
    [": > n; : > o; rm n", "ls; : > p; : > n; ls"],
    ["ln s h; echo 6 >> h; rm s", "cat s; echo 7 >> s; cat h; stat -c %h h"],
    [
        "echo 6 > t; mv t s; echo 7 > t; mv t s",
        "exec 3< s; stat -L -c %h /proc/self/fd/3; cat <&3; cat s",
    ],
    ["echo one >> s; echo two >> s", "echo three >> s; cat s"],
    ["touch -d @5 s; touch -d @6 s", "stat -c %Y s; stat -c %Y s"],
    ["truncate -s 9 s; truncate -s 1 s", "stat -c %s s; wc -c < s; stat -c %s s"],
    [
        "exec 3> k; flock -s 3; cat s; flock -u 3",
        "exec 3> k; flock -n -x 3 && echo 8 > s; flock -s 3; cat s",
    ],
];

/// What programs did: the steps of each with their answers, what they printed, and what is in the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Did {
    steps: BTreeMap<usize, Vec<(String, i64)>>,
    said: Vec<String>,
    left: BTreeMap<String, String>,
}

fn program(line: &str) -> Program {
    match line.strip_prefix("steps ") {
        Some(words) => subject("steps", &words.split(' ').collect::<Vec<_>>()),
        None => shell(line),
    }
}

fn prepare(folder: &Path) {
    std::fs::write(folder.join("s"), "5\n").unwrap();
    let file = std::fs::File::options().write(true).open(folder.join("s")).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(4)).unwrap();
    std::fs::write(folder.join("k"), "").unwrap();
    std::fs::create_dir(folder.join("d")).unwrap();
    std::os::unix::fs::symlink("s", folder.join("l")).unwrap();
}

/// All names in a folder, with what they stand for.
fn found(folder: &Path, left: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let kind = path.symlink_metadata().unwrap();
        let what = if kind.is_symlink() {
            format!("-> {}", path.read_link().unwrap().display())
        } else if kind.is_dir() {
            found(&path, left);
            "a folder".to_owned()
        } else {
            std::fs::read_to_string(&path).unwrap()
        };
        left.insert(shape(&path), what);
    }
}

fn run(pair: [&str; 2], guide: Guide, contested: &Contested) -> (Did, Steer) {
    let sandbox = sandbox();
    prepare(sandbox.work());
    let options = Options { detail: Detail::Steps, ..options() };
    let mut steer = Steer::new(guide, 2, contested.clone());
    let trace = trace::run(&pair.map(program), &sandbox, &options, &mut steer).unwrap();
    let mut steps: BTreeMap<usize, Vec<(String, i64)>> = BTreeMap::new();
    for made in &steer.made {
        // By which of its names a file is known depends on the order.
        let what = made.taken.text.split(' ').next().unwrap_or_default();
        steps.entry(made.taken.side).or_default().push((what.to_owned(), made.result));
    }
    let ends = trace.ends.iter();
    let said = ends.map(|end| format!("{} {}", end.exit, String::from_utf8_lossy(&end.stdout)));
    let said = said.collect();
    let mut left = BTreeMap::new();
    found(sandbox.work(), &mut left);
    let place = shape(sandbox.work());
    let left = left.into_iter().map(|(path, what)| (path.replace(&place, ""), what)).collect();
    (Did { steps, said, left }, steer)
}

/// A run by chance, of programs that are held for all that one changes and the other looks at in it.
fn run_by_chance(pair: [&str; 2], seed: u64, contested: &mut Contested) -> (Did, Vec<Made>) {
    loop {
        let guide = Guide::Priorities(Priorities::draw(seed, 2, 25, 6));
        let (did, steer) = run(pair, guide, contested);
        assert_eq!(steer.ending, Ending::Complete, "{pair:?} by {seed}");
        if !contested.learn(steer.touched()) {
            return (did, steer.made);
        }
    }
}

/// Another order of the same steps, in which those that conflict stand as they stood: as likely as not any of them.
fn other_order(made: &[Made], random: &mut fastrand::Rng) -> Vec<usize> {
    let mut left: Vec<usize> = (0..made.len()).collect();
    let mut order = Vec::new();
    while !left.is_empty() {
        let is_free = |at: &usize| {
            let earlier = left.iter().take_while(|before| *before < at);
            earlier.copied().all(|before| {
                let (one, other) = (&made[before], &made[*at]);
                one.taken.side != other.taken.side && !one.touch.conflicts(&other.touch)
            })
        };
        let free: Vec<usize> = left.iter().filter(|at| is_free(at)).copied().collect();
        let next = free[random.usize(0..free.len())];
        left.retain(|at| *at != next);
        order.push(next);
    }
    order
}

/// So many runs by chance of each pair, and so many other orders of each run; gives how many were other orders.
fn try_all(runs: u64, orders: usize) -> usize {
    let mut differ = 0;
    for pair in PAIRS.iter().copied() {
        let mut contested = Contested::default();
        for seed in 0..runs {
            let (did, made) = run_by_chance(pair, seed, &mut contested);
            let mut random = fastrand::Rng::with_seed(seed);
            for _ in 0..orders {
                let order = other_order(&made, &mut random);
                differ += usize::from(order.windows(2).any(|pair| pair[0] > pair[1]));
                let side = |at: &usize| made[*at].taken.side;
                let block = |at| Block { side: side(at), steps: Some(1), dies: false };
                let blocks = order.iter().map(block).collect();
                let schedule = Schedule { blocks, ..Schedule::default() };
                let (again, steer) = run(pair, Guide::Follow(Follow::new(schedule)), &contested);
                let of = |made: &[Made]| {
                    let told =
                        made.iter().map(|made| format!("{} {}", made.taken.side, made.taken.text));
                    told.collect::<Vec<_>>().join("\n")
                };
                let orders = format!("{}\n\n{}", of(&made), of(&steer.made));
                assert_eq!(
                    (steer.ending, again),
                    (Ending::Complete, did.clone()),
                    "{pair:?}:\n{orders}"
                );
            }
        }
    }
    differ
}

#[test]
fn orders_that_are_the_same_do_the_same() {
    let differ = try_all(4, 3);
    assert!(differ > PAIRS.len(), "only {differ} were another order");
}
