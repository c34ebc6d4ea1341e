//! One of them dies at a step, and the other goes on.

use super::*;

fn killed(line: &str) -> Found {
    Race::twice(line)
        .with(|fault| {
            fault.kill_one = true;
            fault.preemptions = Some(0);
        })
        .run()
}

/// The kernel lets the lock go with its holder.
#[test]
fn a_kernels_lock_dies_with_its_holder() {
    killed("steps flock:l count").is_only(&[Word::Serial]);
}

/// Nobody removes the lock file of the dead.
#[test]
fn a_lock_file_outlives_its_holder() {
    let found = killed("steps mkdir:l count rm:l");
    found.is_only(&[Word::Serial, Word::Hung]);
    let hung = found.first(Word::Hung);
    assert!(hung.id.contains('x'), "{}", hung.id);
}

/// The survivor refuses because of what the dead left: nothing is lost, but nobody goes on either.
#[test]
fn a_stale_lock_that_is_refused_is_told() {
    let found = killed("steps must:l count rm:l");
    assert!(found.words().contains(&Word::Refused), "{}", found.told());
    let refused = found.first(Word::Refused);
    let why = &refused.verdict.why;
    assert!(
        why.contains("was killed; `")
            && why.contains("refused with exit code 75, over what it left"),
        "{why}"
    );
}

/// The survivor reads half of what the dead was writing.
#[test]
fn what_the_dead_left_half_done_is_found() {
    let line = "steps flock:l inplace";
    let found = killed(line);
    assert!(
        found.words().iter().any(|word| [Word::Diverged, Word::Torn, Word::Lost].contains(word)),
        "{}",
        found.told()
    );
    let plain = Race::twice(line).with(|fault| fault.preemptions = Some(0)).run();
    plain.is_only(&[Word::Serial]);
}
