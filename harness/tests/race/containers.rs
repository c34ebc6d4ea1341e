//! Programs that are both process 1, as in two containers with one volume.

use crashlab::sandbox;

use super::*;

/// Whether there are containers here, or why not.
fn are_here() -> bool {
    match sandbox::containers() {
        Ok(_) => true,
        Err(why) => {
            eprintln!("skipped: {why}");
            false
        }
    }
}

fn contained(race: Race) -> Race {
    race.with(|fault| fault.containers = true)
}

/// Two words of different lengths, each put in place by a temporary file whose name holds the process id.
fn two_words() -> Race {
    Race::of(&["steps put:12345678", "steps put:abc"])
}

#[test]
fn temporary_names_with_the_process_id_collide() {
    two_words().unbounded().run().is_only(&[Word::Serial]);
    if !are_here() {
        return;
    }
    let race = contained(two_words());
    let found = race.run();
    assert!(found.words().contains(&Word::Torn), "{}", found.told());
    let torn = found.first(Word::Torn);
    let drawn = torn.evidence.schedule.join("\n");
    assert!(drawn.contains("rename t.1 -> s"), "{drawn}");
    let notes = found.0.notes.join("\n");
    assert!(notes.contains("process 1 of a process namespace of its own"), "{notes}");
    // And again by its id.
    assert_eq!(race.case(&torn.id).verdict.word, Word::Torn);
}

/// Nothing is lost under one lock of the kernel's, whatever the temporary file is called.
#[test]
fn a_lock_of_the_kernel_holds_across_containers() {
    if are_here() {
        contained(Race::twice("steps flock:l count")).unbounded().run().is_only(&[Word::Serial]);
        contained(Race::twice("steps try:l count")).unbounded().run().is_only(&[Word::Serial]);
    }
}

#[test]
fn both_are_process_1() {
    if !are_here() {
        return;
    }
    let race = contained(Race::twice("steps pid put:x"));
    race.run().is_only(&[Word::Serial]);
    let said = race.case("race:a.b").evidence.said;
    assert_eq!(said.matches("\n1 0").count(), 2, "{said}");
}

/// What is left in a folder by a name with a process id has the same name each time.
#[test]
fn leftovers_have_one_name() {
    if !are_here() {
        return;
    }
    let mut race = contained(Race::twice("echo x > d/t.$$"));
    race.scenario.subject.state = vec!["d".into()];
    race.scenario = race.scenario.setup("mkdir d");
    race.run().is_only(&[Word::Serial]);
}

/// The owner of the lock is asked for by its number, which is one's own: the lock of the dead looks alive for ever.
#[test]
fn a_stale_lock_file_with_a_process_id_looks_alive() {
    let killed = |race: Race| {
        race.with(|fault| {
            fault.kill_one = true;
            fault.preemptions = Some(0);
        })
    };
    let line = "steps owns:l count rm:l";
    killed(Race::twice(line)).run().is_only(&[Word::Serial]);
    if !are_here() {
        return;
    }
    let found = killed(contained(Race::twice(line))).run();
    found.is_only(&[Word::Serial, Word::Hung]);
    let hung = found.first(Word::Hung);
    assert!(hung.id.contains('x'), "{}", found.told());
    let drawn = hung.evidence.schedule.join("\n");
    assert!(drawn.contains("is process 1 alive?"), "{drawn}");
}

/// Whoever takes a lock with its own number for its own goes in while the other is still there.
#[test]
fn a_lock_file_with_ones_own_process_id_is_no_lock() {
    let race = || Race::twice("steps mine:l count").with(|fault| fault.preemptions = Some(1));
    race().run().is_only(&[Word::Serial]);
    if are_here() {
        let found = contained(race()).run();
        assert!(found.words().contains(&Word::Lost), "{}", found.told());
    }
}

/// The first process dies, and all that it has made with it; the other program goes on.
#[test]
fn one_dies_with_its_children() {
    if !are_here() {
        return;
    }
    let line = "exec 9> l; flock 9; (echo line >> log) & steps count; wait";
    let race = contained(Race::twice(line)).with(|fault| {
        fault.kill_one = true;
        fault.preemptions = Some(0);
    });
    race.run().is_only(&[Word::Serial]);
}
