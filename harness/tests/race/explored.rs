//! What exploration finds, and what it says of it.

use super::*;

#[test]
fn a_lost_update_is_found_with_two_switches() {
    let line = "n=$(cat s); echo $((n + 1)) > t.$$; mv t.$$ s";
    let found = Race::twice(line).with(|fault| fault.preemptions = Some(1)).run();
    found.is_only(&[Word::Serial, Word::Lost]);
    let lost = found.first(Word::Lost);
    assert!(
        lost.verdict.why.starts_with("`a`, `b` succeeded, and the files are as if only"),
        "{}",
        lost.verdict.why
    );
    let schedule =
        lost.id.strip_prefix("race:").and_then(|id| id.split('-').next()).expect("an id");
    assert_eq!(schedule.split('.').count(), 3, "{schedule}");
    let drawn = lost.evidence.schedule.join("\n");
    let place = |text: &str| drawn.find(text).unwrap_or_else(|| panic!("{text} in\n{drawn}"));
    assert!(place("read s") < place("rename t."), "{drawn}");
    assert!(lost.evidence.schedule.iter().all(|line| line.len() <= 74), "{drawn}");
}

#[test]
fn the_schedule_of_a_finding_gives_it_again() {
    let race = Race::twice(COUNTS);
    let lost = race.run().first(Word::Lost).id.clone();
    let again = race.case(&lost);
    assert_eq!((again.verdict.word, &again.id), (Word::Lost, &lost));
    // Also without the signs, as a person would write it.
    let (plain, signs) = lost.split_once('-').expect("signs");
    assert_eq!(race.case(plain).verdict.word, Word::Lost);
    // Another program takes the same steps to be others.
    let flipped: String = signs.chars().map(|sign| if sign == '0' { '1' } else { '0' }).collect();
    let departed = race.case(&format!("{plain}-{flipped}"));
    assert_eq!(departed.verdict.word, Word::NotMeasured);
    assert!(departed.verdict.why.contains("at step 1: program "), "{}", departed.verdict.why);
    // There is no such turn.
    let departed = race.case("race:a900.b.a");
    assert!(
        departed.verdict.why.contains("has ended where it made a step before"),
        "{}",
        departed.verdict.why
    );
}

#[test]
fn a_lock_is_seen_to_work() {
    let found = Race::twice("steps flock:l count").unbounded().run();
    found.is_only(&[Word::Serial]);
    assert!(found.cases().len() > 1, "both orders were run: {}", found.told());
}

/// Whoever comes second goes away without a word of success.
#[test]
fn a_program_that_refuses_is_good() {
    let found = Race::twice("steps try:l count").unbounded().run();
    found.is_only(&[Word::Serial]);
    let whys: Vec<&str> = found.cases().iter().map(|case| case.verdict.why.as_str()).collect();
    assert!(whys.iter().any(|why| why.contains("refused with exit code 75")), "{whys:?}");
}

/// One temporary name for both: the second truncates what the first has written. Renaming what is not there any more is
/// refused, and does no harm.
#[test]
fn a_fixed_temporary_name_is_found_out() {
    let found = Race::twice("steps shared").run();
    assert!(found.words().contains(&Word::Lost), "{}", found.told());
    assert!(found.told().contains("refused with exit code 9"), "{}", found.told());
    // The file that has the name is still written to.
    let found = Race::of(&["steps shared", "echo 1234567 > t; mv t s"]).run();
    assert!(found.words().contains(&Word::Torn), "{}", found.told());
}

/// One after another nobody sees the first of the two.
#[test]
fn who_looks_at_an_attribute_makes_a_step() {
    let race = Race::of(&["steps label:a label:b", "steps labels"]).unbounded();
    match race_alone(&race.scenario(), &Settings::default(), None) {
        Ok(found) => Found(found).is_only(&[Word::Serial, Word::Diverged]),
        Err(error) if error.to_string().contains("exit code 9") => {
            eprintln!("skipped: this disk has no extended attributes");
        }
        Err(error) => panic!("{error}"),
    }
}

/// The files alone would be right: that both say they made it is not.
#[test]
fn what_is_printed_counts() {
    let found = Race::twice("[ -e m ] || echo made it; : > m; echo 6 > t.$$; mv t.$$ s").run();
    found.is_only(&[Word::Serial, Word::Diverged]);
    let why = &found.first(Word::Diverged).verdict.why;
    assert!(why.contains("but the output of"), "{why}");
}

/// What one says on standard error, such as that it waits, is no difference.
#[test]
fn what_is_said_on_standard_error_does_not_count() {
    let line = "exec 9> l; flock -n 9 || { echo waits >&2; flock 9; }; steps count";
    Race::twice(line).with(|fault| fault.preemptions = Some(1)).run().is_only(&[Word::Serial]);
}

#[test]
fn whole_lines_that_are_appended_are_good_in_any_order() {
    Race::of(&["echo one >> s", "echo two >> s"]).unbounded().run().is_only(&[Word::Serial]);
}

/// Temporary files that nobody removes have names with process ids, which are others in each run.
#[test]
fn process_ids_do_not_make_outcomes_differ() {
    let mut race = Race::twice("echo $$ > d/t.$$; echo x > d/s");
    race.scenario.subject.state = vec!["d".into()];
    race.scenario = race.scenario.setup("mkdir d");
    let found = race.run();
    found.is_only(&[Word::Serial]);
}

#[test]
fn files_that_are_not_state_can_hold_the_lock() {
    Race::twice("steps mkdir:l count rm:l").run().is_only(&[Word::Serial]);
}

#[test]
fn three_programs_race() {
    let found = Race::of(&[COUNTS, COUNTS, COUNTS]).with(|fault| fault.preemptions = Some(1)).run();
    assert!(found.words().contains(&Word::Lost), "{}", found.told());
    let line = "steps flock:l count";
    let found = Race::of(&[line, line, line]).with(|fault| fault.preemptions = Some(1)).run();
    found.is_only(&[Word::Serial]);
}

/// Nobody else can tell, so that there is no order more; and yet it is in the schedule.
#[test]
fn a_sync_is_a_step() {
    let found = |line: &str| Race::twice(line).with(|fault| fault.preemptions = Some(1)).run();
    let (with, without) = (found("steps syncs count"), found(COUNTS));
    assert_eq!(with.cases().len(), without.cases().len(), "{}", with.told());
    let syncs = |found: &Found| {
        let lines = &found.first(Word::Lost).evidence.schedule;
        lines.iter().filter(|line| line.contains("sync t.")).count()
    };
    assert_eq!((syncs(&with), syncs(&without)), (2, 0), "{}", with.told());
}

/// Only where they meet one changes what the other looks at: a run shows that, and the exploration begins again.
#[test]
fn what_is_touched_only_in_a_race_is_learned() {
    let looks = ": > half; [ -e rare ] && echo bad > s; rm half";
    let race = Race::of(&[looks, "[ -e half ] && : > rare; true"]);
    let found = race.run();
    found.is_only(&[Word::Serial, Word::Torn]);
    let notes = found.0.notes.join("\n");
    assert!(notes.contains("begun again 1 time after "), "{notes}");
    // No run of one after another shows for what the programs are to be held, but the run of the schedule does.
    let torn = found.first(Word::Torn);
    assert_eq!(race.case(&torn.id).verdict.word, Word::Torn);
}

/// What came out once is told, whether or not it does so again.
#[test]
fn what_was_found_before_it_began_again_is_told() {
    let looks = ": > half; [ -e rare ]; rm half";
    let changes = "[ -e half ] && read x < PATH && : > rare && [ $x = bad ] && echo $x > s; true";
    let words = Words::first_and_then("found", "bad", "good");
    let found = words.race(&[looks, changes]);
    found.is_only(&[Word::Serial, Word::Torn]);
    let times = found.cases().iter().filter(|case| case.verdict.word == Word::Torn).count();
    assert_eq!(times, 1, "{}", found.told());
}

/// Beyond the budget schedules are drawn, and what was left is said.
#[test]
fn a_budget_is_kept_and_told() {
    let race = Race::twice(COUNTS).unbounded().with(|fault| {
        fault.schedules = 2;
        fault.seed = 7;
    });
    let found = race.run();
    assert_eq!(found.cases().len(), 2 + 1);
    let notes = found.0.notes.join("\n");
    assert!(notes.contains("2 schedules were run") && notes.contains("were left"), "{notes}");
    assert!(notes.contains("1 schedule by chance from seed 7"), "{notes}");
}

/// Whoever goes first: the other does the same in its place. Where the commands are not the same, nobody knows that.
#[test]
fn programs_with_one_command_are_not_exchanged() {
    let once = Race::twice(COUNTS).unbounded().run();
    let both = Race::of(&[COUNTS, "steps say: count"]).unbounded().run();
    let told = |found: &Found| found.0.notes.join("\n").contains("`a`, `b` run one command");
    assert_eq!((told(&once), told(&both)), (true, false), "{:?}", once.0.notes);
    let fewer = once.cases().len() < both.cases().len();
    assert!(fewer, "{} and {}", once.cases().len(), both.cases().len());
    for found in [once, both] {
        found.is_only(&[Word::Serial, Word::Lost]);
    }
}

/// Of two orders one was tried, and one of the two is drawn.
#[test]
fn an_order_that_is_drawn_again_is_one_case() {
    let cases = |seed| {
        let race = Race::of(&[COUNTS, "steps say: count"]).with(|fault| {
            (fault.preemptions, fault.schedules, fault.seed) = (Some(0), 1, seed);
        });
        race.run().cases().len()
    };
    let found: std::collections::BTreeSet<usize> = (0..8).map(cases).collect();
    assert_eq!(found, [1, 2].into());
}

/// Nothing is known of what programs do through memory that they share.
#[test]
fn shared_memory_is_a_gap() {
    let line = "python3 -c '
import mmap
with open(\"s\", \"r+b\") as f:
    m = mmap.mmap(f.fileno(), 0); m[0:1] = b\"6\"; m.close()'";
    if !std::path::Path::new("/usr/bin/python3").exists() {
        return;
    }
    let found = Race::twice(&line.replace("python3", "/usr/bin/python3")).run();
    found.is_only(&[Word::NotMeasured]);
    assert!(found.told().contains("mapped into memory"), "{}", found.told());
}

#[test]
fn a_program_that_fails_alone_is_no_race() {
    let race = Race::twice("exit 3");
    let error = race_alone(&race.scenario(), &Settings::default(), None).expect_err("it fails");
    assert!(error.to_string().contains("`a` fails when it runs alone (exit code 3)"), "{error}");
}
