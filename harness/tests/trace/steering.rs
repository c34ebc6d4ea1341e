//! Several programs that are held and released, and who is blocked in a lock.

use std::collections::VecDeque;

use crashlab::op::{Event, LockAction, OpKind, What};
use crashlab::trace::{Director, Standing, Step};

use crate::faithful::assert_faithful;
use crate::support::{assert_success, log, nothing, steered, subject};

/// Holds every program at its start and at its marks, and releases them in an order.
struct Script {
    order: VecDeque<usize>,
    seen: Vec<Vec<Standing>>,
}

impl Script {
    fn new(order: &[usize]) -> Script {
        Script { order: order.iter().copied().collect(), seen: Vec::new() }
    }
}

impl Director for Script {
    fn start(&mut self, _program: usize) -> Step {
        Step::Hold
    }

    fn after(&mut self, event: &Event) -> Step {
        if matches!(event.what, What::Mark(_)) { Step::Hold } else { Step::Go }
    }

    fn next(&mut self, standings: &[Standing]) -> Option<usize> {
        self.seen.push(standings.to_vec());
        self.order.pop_front()
    }
}

/// Runs two writers, each held at its start and at three marks.
fn appended(kind: &str, order: &[usize]) -> (String, Vec<Vec<Standing>>) {
    let programs = [subject("lock", &[kind, "a"]), subject("lock", &[kind, "b"])];
    let mut script = Script::new(order);
    let (trace, sandbox) = steered(&programs, nothing, &mut script);
    assert_success(&trace);
    assert_faithful(&trace, &sandbox, nothing);
    assert!(script.order.is_empty(), "left: {:?}\n{}", script.order, log(&trace));
    let text = std::fs::read_to_string(sandbox.work().join("log")).unwrap();
    (text, script.seen)
}

#[test]
fn in_both_orders() {
    let (text, seen) = appended("none", &[0, 0, 0, 0, 1, 1, 1, 1]);
    assert_eq!(text, "ab");
    assert_eq!(seen[0], [Standing::Held, Standing::Held]);
    assert_eq!(seen[4], [Standing::Ended, Standing::Held]);
    assert_eq!(appended("none", &[1, 1, 1, 1, 0, 0, 0, 0]).0, "ba");
    assert_eq!(appended("none", &[0, 0, 1, 1, 1, 0, 0, 1]).0, "ba");
}

#[test]
fn blocked_in_a_lock() {
    for kind in ["flock", "posix", "open"] {
        // Program 0 takes the lock; program 1 runs into it; then 0 is the only one that can be released.
        let (text, seen) = appended(kind, &[0, 0, 1, 1, 0, 0, 1, 1]);
        assert_eq!(text, "ab", "{kind}");
        assert_eq!(seen[4], [Standing::Held, Standing::Blocked], "{kind}");
    }
}

#[test]
fn none_means_all() {
    let programs = [subject("lock", &["flock", "a"]), subject("lock", &["flock", "b"])];
    let (trace, _) = steered(&programs, nothing, &mut Script::new(&[]));
    assert_success(&trace);
}

#[test]
fn locks_are_ops_in_the_order_in_which_they_were_had() {
    let programs = [subject("lock", &["flock", "a"]), subject("lock", &["flock", "b"])];
    let (trace, _) = steered(&programs, nothing, &mut Script::new(&[0, 0, 1, 1, 0, 0, 1, 1]));
    let locks: Vec<_> = trace
        .events
        .iter()
        .filter_map(|event| match &event.what {
            What::Op(op) => match op.kind {
                OpKind::Lock { action, .. } => Some((event.actor.program, action)),
                _ => None,
            },
            _ => None,
        })
        .collect();
    assert_eq!(locks, [(0, LockAction::Exclusive), (1, LockAction::Exclusive)], "{}", log(&trace));
}
