//! Programs that are held before every step.

use std::collections::BTreeSet;
use std::path::Path;

use crashlab::fault::race::explore::{Alike, Exploration};
use crashlab::fault::race::schedule::{Block, Schedule};
use crashlab::fault::race::steer::{Contested, Ending, Follow, Guide, Steer};
use crashlab::op::touch::{How, Object};
use crashlab::recording::Trace;
use crashlab::subject::{Exit, Program};
use crashlab::trace::{self, Detail, Director, Intent, Options, Part, Stand, Stepped, Turn};

use crate::support::{options, sandbox, shell, subject};

/// Everything that programs stood before, in the order in which they were let go.
#[derive(Default)]
struct Listens {
    steps: Vec<(usize, Intent)>,
    results: Vec<i64>,
}

impl Director for Listens {
    fn turn(&mut self, stands: &[Stand<'_>]) -> Turn {
        for (side, stand) in stands.iter().enumerate() {
            if let Stand::At { intent, waits_for: None } = stand {
                self.steps.push((side, (*intent).clone()));
                return Turn::Go(side);
            }
        }
        Turn::End
    }

    fn stepped(&mut self, _: usize, what: &Stepped) {
        if let Stepped::Made(_, result) = what {
            self.results.push(*result);
        }
    }
}

fn run(
    programs: &[Program],
    prepare: impl Fn(&Path),
    director: &mut dyn Director,
) -> (Trace, String) {
    let sandbox = sandbox();
    prepare(sandbox.work());
    let options = Options { detail: Detail::Steps, ..options() };
    let trace = trace::run(programs, &sandbox, &options, director).unwrap();
    let left = std::fs::read_to_string(sandbox.work().join("s")).unwrap_or_default();
    (trace, left)
}

fn files(folder: &Path) {
    std::fs::write(folder.join("s"), "12345").unwrap();
    std::os::unix::fs::symlink("s", folder.join("l")).unwrap();
    std::fs::create_dir(folder.join("d")).unwrap();
}

#[test]
fn every_look_is_a_step() {
    let mut listens = Listens::default();
    let (trace, _) = run(&[subject("looks", &[])], files, &mut listens);
    assert_eq!(trace.ends[0].exit, Exit::Code(0));
    let texts: Vec<&str> = listens.steps.iter().map(|(_, intent)| intent.text.as_str()).collect();
    let pid = trace.events[0].actor.pid;
    let alive = format!("is process {pid} alive?");
    let expected = [
        "stat s",
        "stat l",
        "stat absent",
        "stat s",
        "access s",
        "access absent",
        "readlink l",
        "open s",
        "stat s",
        "lseek s",
        "read s",
        "open absent",
        "open d",
        "stat d",
        "list d",
        "list d",
        alive.as_str(),
        "exit",
    ];
    assert_eq!(texts, expected);
    let looks = listens.steps.iter().flat_map(|(_, intent)| intent.touch.accesses());
    let changes: Vec<&Object> =
        looks.filter(|access| access.how != How::Look).map(|access| &access.object).collect();
    assert_eq!(changes, [&Object::Life(0)], "only its end changes something");
    assert_eq!(listens.results[2], -i64::from(libc::ENOENT));
    // Whether a file may be opened does not depend on what is in it, and where a link leads to on nothing but the link.
    let parts = |text: &str| -> Vec<Part> {
        let found = listens.steps.iter().find(|(_, intent)| intent.text == text);
        found.unwrap().1.named.iter().map(|named| named.part).collect()
    };
    assert_eq!(parts("stat s"), [Part::Entry, Part::Content, Part::Attributes]);
    assert_eq!(parts("access s"), [Part::Entry, Part::Attributes]);
    assert_eq!(parts("readlink l"), [Part::Entry]);
}

/// The second waits for the first one's lock, is told to, and has it when the first has ended.
#[test]
fn who_waits_for_a_lock_is_told() {
    #[derive(Default)]
    struct Second {
        waited: bool,
        turns: Vec<usize>,
    }
    impl Director for Second {
        fn turn(&mut self, stands: &[Stand<'_>]) -> Turn {
            self.waited |= stands.contains(&match stands[1] {
                Stand::At { intent, .. } => Stand::At { intent, waits_for: Some(0) },
                other => return go(other, stands, &mut self.turns),
            });
            // The second as far as it comes, once the first has the lock.
            let first_has_it = self.turns.len() > 2;
            let side = match (first_has_it, stands[1]) {
                (true, Stand::At { waits_for: None, .. }) => 1,
                _ if matches!(stands[0], Stand::At { .. }) => 0,
                _ => 1,
            };
            self.turns.push(side);
            Turn::Go(side)
        }
    }
    fn go(_: Stand<'_>, stands: &[Stand<'_>], turns: &mut Vec<usize>) -> Turn {
        let side = usize::from(!matches!(stands[0], Stand::At { .. }));
        turns.push(side);
        Turn::Go(side)
    }
    let locks = "exec 9> k; flock 9; echo $0 >> s";
    let program = |name: &str| Program {
        argv: ["/bin/sh", "-c", locks, name].map(Into::into).to_vec(),
        ..shell("")
    };
    let mut director = Second::default();
    let (trace, left) = run(&[program("first"), program("second")], |_| {}, &mut director);
    assert!(director.waited, "{:?}", director.turns);
    assert!(trace.ends.iter().all(|end| end.exit == Exit::Code(0)), "{:?}", trace.ends);
    assert_eq!(left, "first\nsecond\n");
}

/// Where the runs of every order end, by a file and what was printed.
type Ends = BTreeSet<(String, Vec<Vec<u8>>)>;

const ONE: &str = "echo 6 > s; echo 7 >> s";
const OTHER: &str = "[ -s s ] || echo empty; echo 8 >> s";

fn end(guide: Guide, contested: &Contested) -> (Steer, (String, Vec<Vec<u8>>)) {
    let mut steer = Steer::new(guide, 2, contested.clone());
    let (trace, left) = run(&[shell(ONE), shell(OTHER)], files, &mut steer);
    let outputs = trace.ends.into_iter().map(|end| end.stdout).collect();
    (steer, (left, outputs))
}

/// Every order of so many steps of the first and of the second.
fn orders(first: usize, second: usize) -> Vec<Vec<usize>> {
    let with = |side: usize, rest: Vec<Vec<usize>>| {
        rest.into_iter().map(move |rest| [vec![side], rest].concat()).collect::<Vec<_>>()
    };
    match (first, second) {
        (0, 0) => vec![Vec::new()],
        (_, 0) => vec![vec![0; first]],
        (0, _) => vec![vec![1; second]],
        _ => [with(0, orders(first - 1, second)), with(1, orders(first, second - 1))].concat(),
    }
}

/// The reduction on real programs finds every end that the orders of all steps have, with a part of the runs.
#[test]
fn the_reduction_finds_every_end() {
    let mut contested = Contested::default();
    let (learning, _) = end(Guide::Follow(Follow::new(Schedule::default())), &contested);
    contested.learn(learning.touched());
    let mut all = Ends::new();
    let orders = orders(4, 3);
    for order in &orders {
        let block = |side: &usize| Block { side: *side, steps: Some(1), dies: false };
        let blocks = order.iter().map(block).collect();
        let schedule = Schedule { blocks, ..Schedule::default() };
        let (steer, ended) = end(Guide::Follow(Follow::new(schedule)), &contested);
        let texts: Vec<&str> = steer.made.iter().map(|made| made.taken.text.as_str()).collect();
        assert_eq!(
            (&steer.ending, texts.len()),
            (&Ending::Complete, order.len()),
            "{texts:?} {order:?}"
        );
        all.insert(ended);
    }
    let (mut found, mut runs) = (Ends::new(), 0);
    let mut exploration = Exploration::new(None, Alike::default());
    while let Some(walk) = exploration.claim() {
        let (steer, ended) = end(Guide::Walk(walk), &contested);
        let (walk, last, ending) = steer.into_walk().unwrap();
        let is_known = ending == Ending::Known;
        exploration.finish(walk, last, is_known);
        if !is_known {
            found.insert(ended);
        }
        runs += 1;
    }
    assert_eq!(found, all);
    assert!(runs < orders.len() / 2, "{runs} of {}", orders.len());
}
