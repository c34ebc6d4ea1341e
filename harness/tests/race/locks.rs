//! Locks on bytes of a file: which of them can be in each other's way.

use super::*;

/// Every order of these, with a file `k` for locks.
fn of(lines: [&str; 2]) -> Found {
    let race = Race::of(&lines).unbounded();
    Race { scenario: race.scenario.setup(": > k"), ..race }.run()
}

#[test]
fn locks_on_other_bytes_are_taken_in_any_order() {
    let found = of(["steps lock:w0-4 lock:u0-4", "steps lock:w5-9 lock:u5-9"]);
    assert_eq!(found.cases().len(), 1, "{}", found.told());
    let found = of(["steps lock:w0-5 lock:u0-5", "steps lock:w5-9 lock:u5-9"]);
    assert!(found.cases().len() > 1, "{}", found.told());
}

#[test]
fn shared_locks_are_taken_and_let_go_in_any_order() {
    let found = of(["steps lock:r0-9 lock:u0-9", "steps lock:r2-4 lock:u0-9"]);
    assert_eq!(found.cases().len(), 1, "{}", found.told());
    // The end of a program lets its locks go.
    let found = of(["steps lock:r0-9", "steps lock:r2-4"]);
    assert_eq!(found.cases().len(), 1, "{}", found.told());
    let found = of(["steps lock:r0-9 lock:u0-9", "steps lock:w2-4"]);
    assert!(found.told().contains("refused with exit code 75"), "{}", found.told());
}

/// Nobody else can tell.
#[test]
fn what_one_does_not_hold_is_let_go_in_any_order() {
    let found = of(["steps lock:u0-9", "steps lock:w0-9 lock:u0-9"]);
    assert_eq!(found.cases().len(), 1, "{}", found.told());
}

/// One after another, nobody finds a lock.
#[test]
fn who_tries_or_asks_finds_the_lock_of_another() {
    for (holds, sees) in [
        ("steps lock:w0-9 lock:u0-9 count", "steps lock:a0-9"),
        ("steps lock:w0-9", "steps lock:a3-3"),
        // Others may have a shared one as soon as the exclusive one has become shared.
        ("steps lock:w0-9 lock:r0-9", "steps lock:a0-9"),
        ("steps lock:w0-9 lock:u0-9", "steps lock:q9-9"),
        ("steps lock:w0-9", "steps lock:q0-0"),
    ] {
        let found = of([holds, sees]);
        found.is_only(&[Word::Serial, Word::Diverged]);
        let said = &found.first(Word::Diverged).verdict.why;
        assert!(said.contains("but the output of"), "{said}");
    }
}
