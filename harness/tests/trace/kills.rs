//! Real kills: after every op, and inside writes, exactly the ops up to there are on disk.

use crashlab::op::{Event, Op, OpKind, What};
use crashlab::subject::Exit;
use crashlab::trace::{Director, Step};

use crate::faithful::assert_faithful;
use crate::support::{log, nothing, ops, steered, subject, undisturbed};

/// Kills everything after one op, which it may shorten.
struct KillAfter {
    op: u32,
    len: Option<usize>,
}

impl Director for KillAfter {
    fn before(&mut self, _program: usize, number: u32, _op: &OpKind) -> Option<usize> {
        self.len.filter(|_| number == self.op)
    }

    fn after(&mut self, event: &Event) -> Step {
        match &event.what {
            What::Op(op) if op.number == self.op => Step::KillAll,
            _ => Step::Go,
        }
    }
}

fn kill_everywhere(name: &str) {
    let (trace, _) = undisturbed(subject(name, &[]), nothing);
    let all = ops(&trace);
    for op in &all {
        let (killed, sandbox) =
            steered(&[subject(name, &[])], nothing, &mut KillAfter { op: op.number, len: None });
        assert_eq!(killed.ends[0].exit, Exit::Killed, "at {op:?}\n{}", log(&killed));
        assert_faithful(&killed, &sandbox, nothing);
        let made = ops(&killed);
        // Not the whole ops: an absolute link names the folder of its own run.
        let calls = |ops: &[Op]| -> Vec<_> {
            ops.iter().map(|op| (op.call.clone(), op.kind.word())).collect()
        };
        assert_eq!(calls(&made), calls(&all[..made.len()]), "at {op:?}");
        // A call that is two ops (a write that syncs) cannot be parted.
        assert!(
            made[op.number as usize - 1..].iter().all(|more| more.call == op.call),
            "{}",
            log(&killed)
        );
    }
}

#[test]
fn after_every_op() {
    kill_everywhere("basic");
}

#[test]
fn after_every_op_of_renames_and_links() {
    kill_everywhere("renameat2");
    kill_everywhere("links");
}

#[test]
fn after_every_op_that_appends() {
    kill_everywhere("append");
}

/// With several threads the log differs from run to run; it must be faithful all the same.
#[test]
fn while_threads_and_processes_write() {
    for op in (1..60).step_by(7) {
        for name in ["threads", "fork"] {
            let director = &mut KillAfter { op, len: None };
            let (killed, sandbox) = steered(&[subject(name, &[])], nothing, director);
            assert_eq!(killed.ends[0].exit, Exit::Killed, "{}", log(&killed));
            assert_eq!(killed.ops().count(), op as usize, "{}", log(&killed));
            assert_faithful(&killed, &sandbox, nothing);
        }
    }
}

#[test]
fn inside_a_write() {
    let (trace, _) = undisturbed(subject("big", &[]), nothing);
    let mut tried = 0;
    for op in ops(&trace) {
        let OpKind::Write { data, .. } = &op.kind else {
            continue;
        };
        for len in [1, data.len() / 2, data.len() - 1] {
            let director = &mut KillAfter { op: op.number, len: Some(len) };
            let (killed, sandbox) = steered(&[subject("big", &[])], nothing, director);
            assert_eq!(killed.ends[0].exit, Exit::Killed, "{}", log(&killed));
            let made = ops(&killed);
            match &made.last().unwrap().kind {
                OpKind::Write { data: short, .. } => {
                    assert_eq!(short[..], data[..len], "{}", log(&killed))
                }
                other => panic!("{other:?}"),
            }
            assert_faithful(&killed, &sandbox, nothing);
            tried += 1;
        }
    }
    assert_eq!(tried, 9, "a write, a vector, a copy");
}

/// A write that was shortened without a kill is a short write for the program, and its vector is as it was.
#[test]
fn shortened_only() {
    struct Shorten;
    impl Director for Shorten {
        fn before(&mut self, _program: usize, number: u32, _op: &OpKind) -> Option<usize> {
            (number == 2).then_some(2)
        }
    }
    let (trace, sandbox) = steered(&[subject("pwritev", &[])], nothing, &mut Shorten);
    assert_eq!(trace.ends[0].exit, Exit::Code(0));
    assert_faithful(&trace, &sandbox, nothing);
    let writes = ops(&trace).into_iter().filter_map(|op| match op.kind {
        OpKind::Write { data, .. } => Some(String::from_utf8_lossy(&data).into_owned()),
        _ => None,
    });
    let writes: Vec<_> = writes.take(3).collect();
    assert_eq!(writes, ["on", "one two ", "one "], "{}", log(&trace));
}

/// At a mark; and before the first instruction.
#[test]
fn at_a_mark_and_at_the_start() {
    struct AtMark;
    impl Director for AtMark {
        fn after(&mut self, event: &Event) -> Step {
            if event.what == What::Mark("two".into()) { Step::KillAll } else { Step::Go }
        }
    }
    let (trace, sandbox) = steered(&[subject("marks", &[])], nothing, &mut AtMark);
    assert_eq!(trace.ends[0].exit, Exit::Killed);
    assert!(!sandbox.work().join("between").exists());

    struct AtStart;
    impl Director for AtStart {
        fn start(&mut self, _program: usize) -> Step {
            Step::KillAll
        }
    }
    let both = [subject("basic", &[]), subject("basic", &[])];
    let (trace, sandbox) = steered(&both, nothing, &mut AtStart);
    assert_eq!(trace.ends.iter().map(|end| end.exit).collect::<Vec<_>>(), [Exit::Killed; 2]);
    assert_eq!(sandbox.work().read_dir().unwrap().count(), 0);
}
