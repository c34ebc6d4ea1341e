//! Kill: SIGKILL for every process of the subject, at one place of its run.

use std::collections::BTreeSet;

use super::process;
use crate::op::{Event, Op, OpKind, What};
use crate::scenario::KillPoint;
use crate::trace::{Director, Step};

/// A killed write stops only at these multiples of the file offset (observed on ext4 and tmpfs, Linux 6.18).
pub const WRITE_STEP_BYTES: u64 = 4096;
/// At most so many places inside one write, spread evenly.
pub const PLACES_IN_WRITE_MAX: usize = 64;

/// The places that a wish stands for in this recording, in the order of the log. `promising` are the positions (how
/// many events came up to there) of outputs that promise more than what was promised before.
///
/// # Errors
///
/// What the recording lacks, where the wish names something that it does not have.
pub fn points(
    events: &[Event],
    promising: &BTreeSet<usize>,
    wish: &KillPoint,
) -> Result<Vec<KillPoint>, String> {
    let ops = || events.iter().filter_map(Event::op);
    let count = ops().count();
    match wish {
        KillPoint::All => Ok(every_place(events, promising)),
        KillPoint::EachProcess => Ok(process::places(events)),
        KillPoint::Process(number, _) => match process::places(events).contains(wish) {
            true => Ok(vec![wish.clone()]),
            false => Err(format!(
                "process {number} does not come to that in the recording (`process:*` tries all that there is)"
            )),
        },
        KillPoint::After(number) if *number as usize <= count => Ok(vec![wish.clone()]),
        KillPoint::After(number) => {
            Err(format!("there is no op {number}: the recording has {count}"))
        }
        KillPoint::Inside(number, bytes) => match ops()
            .find(|op| op.number == *number)
            .map(|op| &op.kind)
        {
            Some(OpKind::Write { data, .. }) if *bytes > 0 && (*bytes as usize) < data.len() => {
                Ok(vec![wish.clone()])
            }
            Some(OpKind::Write { data, .. }) => Err(format!(
                "op {number} writes {} bytes, so it cannot be cut after {bytes}",
                data.len()
            )),
            Some(other) => {
                Err(format!("op {number} is a {}, only a write can be cut", other.word()))
            }
            None => Err(format!("there is no op {number}: the recording has {count}")),
        },
        KillPoint::Kind(_, nth) | KillPoint::Output(nth) | KillPoint::Mark(_, nth) => {
            let seen = events.iter().filter(|event| fits(wish, event)).count();
            match *nth as usize <= seen {
                true => Ok(vec![wish.clone()]),
                false => Err(too_few(wish, seen)),
            }
        }
    }
}

/// The event is one at which such a kill comes, however many come before it.
fn fits(point: &KillPoint, event: &Event) -> bool {
    match (point, &event.what) {
        (KillPoint::After(number) | KillPoint::Inside(number, _), What::Op(op)) => {
            op.number == *number
        }
        (KillPoint::Kind(word, _), What::Op(op)) => op.kind.word() == word,
        (KillPoint::Output(_), What::Output { .. }) => true,
        (KillPoint::Mark(name, _), What::Mark(mark)) => mark == name,
        _ => false,
    }
}

/// How many events that fit come up to the kill, the one at which it comes among them.
fn count_of(point: &KillPoint) -> u32 {
    match point {
        KillPoint::Kind(_, nth) | KillPoint::Output(nth) | KillPoint::Mark(_, nth) => *nth,
        KillPoint::All
        | KillPoint::After(_)
        | KillPoint::Inside(..)
        | KillPoint::EachProcess
        | KillPoint::Process(..) => 1,
    }
}

fn too_few(wish: &KillPoint, seen: usize) -> String {
    match wish {
        KillPoint::Mark(name, _) => {
            format!("the subject passes the mark `{name}` {seen} times{}", asked_for(seen))
        }
        KillPoint::Kind(word, _) => format!("the recording has {seen} ops of kind `{word}`"),
        _ => format!("the subject prints {seen} times"),
    }
}

/// What a person should know whose marks are not seen.
fn asked_for(seen: usize) -> &'static str {
    match seen {
        0 => {
            "; it is seen where access(2) asks for it: `os.access` in Python, `test -r` in a shell, \
              `fs.existsSync` in Node"
        }
        _ => "",
    }
}

/// An output is a place of its own where it promises more: the tree is that of the place before, what must survive is
/// not.
fn every_place(events: &[Event], promising: &BTreeSet<usize>) -> Vec<KillPoint> {
    let mut places = vec![KillPoint::After(0)];
    let mut outputs = 0;
    let mut marks: std::collections::HashMap<&str, u32> = std::collections::HashMap::new();
    for (position, event) in (1..).zip(events) {
        match &event.what {
            What::Output { .. } => {
                outputs += 1;
                if promising.contains(&position) {
                    places.push(KillPoint::Output(outputs));
                }
            }
            What::Op(op) => {
                if let OpKind::Write { offset, data, .. } = &op.kind {
                    let inside = cuts(*offset, data.len() as u64);
                    places.extend(
                        inside.into_iter().map(|bytes| KillPoint::Inside(op.number, bytes)),
                    );
                }
                places.push(KillPoint::After(op.number));
            }
            What::Mark(name) => {
                let seen = marks.entry(name).or_default();
                *seen += 1;
                places.push(KillPoint::Mark(name.clone(), *seen));
            }
            _ => {}
        }
    }
    places
}

fn steps(offset: u64, len: u64) -> impl Iterator<Item = u64> {
    let first = WRITE_STEP_BYTES - offset % WRITE_STEP_BYTES;
    (first..len).step_by(WRITE_STEP_BYTES as usize)
}

/// After how many bytes a write of `len` bytes at `offset` can be cut.
pub fn cuts(offset: u64, len: u64) -> Vec<u64> {
    let all: Vec<u64> = steps(offset, len).collect();
    super::evenly(all.len(), PLACES_IN_WRITE_MAX).map(|place| all[place]).collect()
}

/// The writes that are cut at fewer places than there are.
pub fn bounded(events: &[Event]) -> Vec<Bounded<'_>> {
    let of = |op: &'_ Op| match &op.kind {
        OpKind::Write { offset, data, .. } => {
            let places = steps(*offset, data.len() as u64).count();
            (places > PLACES_IN_WRITE_MAX).then_some(places)
        }
        _ => None,
    };
    events
        .iter()
        .filter_map(Event::op)
        .filter_map(|op| Some(Bounded { op, places: of(op)? }))
        .collect()
}

/// A write with more places than are tried.
#[derive(Debug)]
pub struct Bounded<'a> {
    /// The write.
    pub op: &'a Op,
    /// At how many places it could be cut.
    pub places: usize,
}

/// Kills the run at a place.
#[derive(Debug)]
pub struct KillAt {
    point: KillPoint,
    seen: u32,
    /// The place came, and everything was killed there.
    pub reached: bool,
}

impl KillAt {
    /// A director for one run. [`KillPoint::All`] is no place and never comes.
    pub fn new(point: KillPoint) -> KillAt {
        KillAt { point, seen: 0, reached: false }
    }
}

impl Director for KillAt {
    fn start(&mut self, _program: usize) -> Step {
        self.reached = self.point == KillPoint::After(0);
        if self.reached { Step::KillAll } else { Step::Go }
    }

    fn before(&mut self, _program: usize, number: u32, op: &OpKind) -> Option<usize> {
        match (&self.point, op) {
            (KillPoint::Inside(wanted, bytes), OpKind::Write { .. }) if *wanted == number => {
                Some(*bytes as usize)
            }
            _ => None,
        }
    }

    fn after(&mut self, event: &Event) -> Step {
        let fits = fits(&self.point, event);
        self.seen += u32::from(fits);
        let here = fits && self.seen == count_of(&self.point);
        self.reached |= here;
        if here { Step::KillAll } else { Step::Go }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_cut_at_pages_of_the_file() {
        assert_eq!(cuts(0, 4096), Vec::<u64>::new());
        assert_eq!(cuts(0, 4097), [4096]);
        assert_eq!(cuts(100, 9000), [3996, 8092]);
        let many = cuts(0, 4096 * 1000);
        assert_eq!((many.len(), many[0], many[63]), (64, 4096, 4096 * 999));
    }
}
