//! Programs that wait for each other: the lab must neither hang with them nor take their waiting for an end.

use super::*;

/// A lock file with sleeps in between: the sleeps are over as soon as another can go on.
#[test]
fn a_retry_loop_lets_others_go_on() {
    // One sleep alone, really slept, would be longer than the time limit of a run.
    let race = Race::twice("steps excl:l count rm:l").with(|fault| fault.preemptions = Some(1));
    race.run().is_only(&[Word::Serial]);
}

/// What looks like waiting is what it does alone as well: nobody else has to go on for it.
#[test]
fn who_often_looks_is_in_no_circle() {
    let race = Race::of(&["steps looks:300 count", "steps count looks:200"]);
    let found = race.with(|fault| fault.preemptions = Some(0)).run();
    let ids: Vec<&str> = found.cases().iter().map(|case| case.id.as_str()).collect();
    assert_eq!(ids, ["race:a.b", "race:b.a"], "{}", found.told());
    found.is_only(&[Word::Serial]);
}

/// It has to let others go on until one of them changes something, and not longer.
#[test]
fn who_was_in_a_circle_goes_on_after_a_change() {
    let found = Race::of(&[
        "mkdir l; rmdir l; echo 6 > s",
        "i=0; until mkdir l 2> e; do i=$((i + 1)); done; [ $i -ge 3 ] && cat s; true",
    ])
    .run();
    let said = |number: &str| found.cases().iter().any(|case| case.evidence.said.contains(number));
    assert!(said("\n5\n") && said("\n6\n"), "{}", found.told());
}

/// A run that was slow is no verdict, as long as the same order can be quick.
#[test]
fn only_who_is_late_twice_is_hung() {
    let makes = ": > half; rm half";
    let waits = "[ -e half ] && read x < PATH && while [ $x = late ]; do :; done; true";
    let once = Words::first_and_then("once", "late", "soon");
    once.race(&[makes, waits]).is_only(&[Word::Serial]);
    let always = Words::first_and_then("always", "late", "late");
    always.race(&[makes, waits]).is_only(&[Word::Serial, Word::Hung]);
}

#[test]
fn locks_in_two_orders_are_a_deadlock() {
    let found = Race::of(&["steps flock:k flock:l count", "steps flock:l flock:k count"]).run();
    found.is_only(&[Word::Serial, Word::Hung]);
    let why = &found.first(Word::Hung).verdict.why;
    assert!(why.starts_with("nobody can go on: a stands before `flock l  exclusive`, and b has the lock; b stands before `flock k  exclusive`, and a has the lock"), "{why}");
}

/// Two lock files in two orders, each retried for ever.
#[test]
fn retry_loops_that_wait_for_each_other_are_found() {
    let found = Race::of(&[
        "steps mkdir:k mkdir:l count rm:k rm:l",
        "steps mkdir:l mkdir:k count rm:k rm:l",
    ])
    .with(|fault| fault.preemptions = Some(1))
    .run();
    found.is_only(&[Word::Serial, Word::Hung]);
    let why = &found.first(Word::Hung).verdict.why;
    assert!(why.contains("a and b make the same steps over and over"), "{why}");
}

/// A pipe between two programs is none of the lab's files: who waits in it is recognised by its state.
#[test]
fn who_waits_in_a_pipe_is_not_waited_for() {
    let reads = format!("read x < p; {COUNTS}");
    let writes = format!("{COUNTS}; echo go > p");
    let mut race = Race::of(&[&writes, &reads]);
    // Alone, neither ends: the other side of the pipe is missing.
    race.scenario = race.scenario.setup("mkfifo p");
    let error = race_alone(&race.scenario(), &Settings::default(), None);
    assert!(error.is_err(), "a program that does not end alone");
    // With somebody on the other side from the start, they do.
    let both = |line: &str| format!("exec 7<> p; {line}");
    let race = Race::of(&[&both(&format!("{COUNTS}; echo go >&7")), &both(COUNTS)]);
    let race = Race { scenario: race.scenario.setup("mkfifo p"), ..race };
    let found = race.run();
    assert!(found.words().contains(&Word::Lost), "{}", found.told());
}

/// Asking whether the holder of a lock lives is a step, and so is its end.
#[test]
fn whether_another_lives_is_part_of_the_order() {
    let line = "
        until (set -C; echo $$ > l) 2> /dev/null; do
            kill -0 $(cat l) 2> /dev/null || rm -f l
        done
        n=$(cat s); echo $((n + 1)) > t.$$; mv t.$$ s";
    // Nobody removes the lock file: who comes second finds that the first has ended, or waits until it has.
    let found = Race::twice(line).with(|fault| fault.preemptions = Some(1)).run();
    assert!(found.words().contains(&Word::Serial), "{}", found.told());
    let drawn = found.cases().iter().flat_map(|case| &case.evidence.schedule);
    assert!(found.words().len() == 1 || drawn.count() > 0, "{}", found.told());
}
