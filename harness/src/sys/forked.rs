//! Children that are still copies of this process: until they execute a program, they have all of its descriptors, also
//! those that another thread gives up meanwhile.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

static COPIES: Mutex<Copies> = Mutex::new(Copies { next: 0, there: BTreeSet::new() });

/// Between two looks.
const PAUSE: Duration = Duration::from_micros(50);
/// So often it is looked, some seconds long: a child that is not on its way by then is waited for no longer.
const LOOKS: u32 = 100_000;

struct Copies {
    next: u64,
    there: BTreeSet<u64>,
}

/// There may be such a child as long as this lives; made before the fork.
#[derive(Debug)]
pub(crate) struct Forked(u64);

fn copies() -> MutexGuard<'static, Copies> {
    COPIES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Forked {
    pub(crate) fn new() -> Forked {
        let mut copies = copies();
        copies.next += 1;
        let number = copies.next;
        copies.there.insert(number);
        Forked(number)
    }
}

impl Drop for Forked {
    fn drop(&mut self) {
        copies().there.remove(&self.0);
    }
}

/// Whether a child that there was up to this number is still there.
fn is_there(last: u64) -> bool {
    copies().there.range(..=last).next().is_some()
}

/// Waits until no child is left that was forked before now. Called after descriptors were closed that must be closed for good.
pub(crate) fn outwait() {
    let last = copies().next;
    for _ in 0..LOOKS {
        if !is_there(last) {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_come_later_are_not_waited_for() {
        let first = Forked::new();
        let last = first.0;
        let _second = Forked::new();
        assert!(is_there(last));
        drop(first);
        // Other tests fork too, but all that came before are on their way.
        outwait_up_to(last);
        assert!(!is_there(last));
    }

    #[test]
    fn who_makes_namespaces_is_there_until_it_has_ended() {
        let before = copies().next;
        let maker = crate::sys::namespace::make(|| Ok(())).unwrap().unwrap();
        let last = copies().next;
        assert!(last > before && is_there(last));
        drop(maker);
        outwait_up_to(last);
    }

    fn outwait_up_to(last: u64) {
        while is_there(last) {
            std::thread::yield_now();
        }
    }
}
