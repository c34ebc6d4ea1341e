//! One rule of judging a test: each subject is a line of shell, and its cases must get the words that the rule gives
//! them, in the order of the crash points.

use std::collections::BTreeMap;

use crashlab::judge::Word;
use crashlab::run::{Plan, ScenarioResult, Settings, try_scenario};
use crashlab::scenario::{CommandLine, FaultKind, KillPoint, Scenario, Turn, Until};

fn shell(name: &str, line: &str) -> Scenario {
    Scenario::new(name, &["/bin/sh", "-c", line], "s").setup("echo one > s")
}

fn recovered_by(scenario: Scenario, line: &str) -> Scenario {
    scenario.recovery(&["/bin/sh", "-c", line])
}

fn with_state(mut scenario: Scenario, state: &[&str]) -> Scenario {
    scenario.subject.state = state.iter().map(Into::into).collect();
    scenario
}

fn result(scenario: &Scenario) -> ScenarioResult {
    let result = try_scenario(scenario, &Plan::All, &Settings::default());
    result.unwrap_or_else(|error| panic!("{}: {error}", scenario.name))
}

/// The words of all kills in the order of their points, equal neighbours once.
fn words(scenario: Scenario) -> Vec<Word> {
    let result = result(&scenario.kill_everywhere());
    let mut words: Vec<Word> =
        result.faults[0].cases.iter().map(|case| case.verdict.word).collect();
    words.dedup();
    words
}

/// The word of the kill at this point.
fn word_at(scenario: &Scenario, point: &str) -> (Word, String) {
    let at = vec![point.parse::<KillPoint>().expect("a kill point")];
    let result = result(&scenario.clone().fault(FaultKind::Kill { at }));
    let verdict = result.faults[0].cases[0].verdict.clone();
    (verdict.word, verdict.why)
}

const COUNTS: &str = "n=$(cat s); echo $((n + 1)) > t; mv t s";

#[test]
fn a_name_that_is_missing_between_two_calls_is_torn() {
    let line = "n=$(cat s 2> /dev/null || echo 0); echo $((n + 1)) > t; rm s; mv t s";
    let scenario = shell("unlinks first", line).setup("echo 5 > s");
    assert_eq!(words(scenario), [Word::Old, Word::Torn, Word::New]);
}

#[test]
fn a_repair_from_a_backup_is_recovered() {
    let line = "cat s > /dev/null; cp s b; mv b bak; printf two > s";
    let repairs = "grep -q . s || { [ -e s ] && [ -e bak ] && cp bak t && mv t s; }";
    let scenario = recovered_by(shell("backup", line), repairs);
    // Before all; then after O_TRUNC; then with the write done.
    assert_eq!(words(scenario), [Word::Old, Word::Recovered, Word::New]);
}

#[test]
fn a_recovery_that_overwrites_what_it_never_read_proves_nothing() {
    let line = "cat s > /dev/null; printf two > s";
    let overwrites = "printf two > t; mv t s";
    let scenario = recovered_by(shell("never read", line), overwrites);
    let (word, why) = word_at(&scenario, "truncate#1");
    assert_eq!(word, Word::Torn);
    assert!(why.contains("never read"), "{why}");
    // Reading first makes the same end a repair; from no file it fails, so that the end is not that of no file.
    let reads = recovered_by(scenario, "cat s > /dev/null || exit 1; printf two > t; mv t s");
    assert_eq!(word_at(&reads, "truncate#1").0, Word::Recovered);
}

#[test]
fn an_end_that_no_file_gives_as_well_proves_nothing() {
    let line = "n=$(cat s 2> /dev/null); printf %s $((${n:-0} + 1)) > s";
    // From `5` it ends at 6; from nothing, and from the empty file, at 1.
    let scenario = shell("fresh start", line).setup("printf 5 > s");
    assert_eq!(words(scenario), [Word::Old, Word::Torn, Word::New]);
    // Begun with nothing, an end from nothing is no loss.
    let scenario = shell("first run", line).setup("rm s");
    assert_eq!(words(scenario), [Word::Old, Word::Recovered, Word::New]);
}

#[test]
fn a_recovery_that_begins_anew_with_a_whole_file_is_restarted() {
    let line = "if [ -e s ] && [ ! -e lock ]; then n=$(cat s); else n=0; fi; \
                : > lock; echo $((n + 1)) > t; mv t s; rm lock";
    let scenario = shell("begins anew", line).setup("echo 5 > s");
    assert_eq!(words(scenario), [Word::Old, Word::Restarted, Word::New]);
}

#[test]
fn a_recovery_that_goes_elsewhere_with_a_whole_file_is_diverged() {
    let line = "n=$(cat s); [ ! -e t ] || n=$((n + 70)); echo $((n + 1)) > t; mv t s";
    let scenario = shell("goes elsewhere", line).setup("echo 5 > s");
    assert_eq!(words(scenario), [Word::Old, Word::Diverged, Word::New]);
}

#[test]
fn a_recovery_that_fails_on_a_whole_file_is_crashed() {
    let line = "n=$(cat s); [ ! -e t ] || exit 4; echo $((n + 1)) > t; mv t s";
    let scenario = shell("fails", line).setup("echo 5 > s");
    assert_eq!(words(scenario), [Word::Old, Word::Crashed, Word::New]);
}

#[test]
fn what_a_recovery_fails_on_is_no_version_though_it_was_synced_and_closed() {
    let line = "cat s > /dev/null; \
                printf AA | dd of=s conv=notrunc,fsync 2> /dev/null; \
                printf AA | dd of=s conv=notrunc,fsync oflag=append 2> /dev/null";
    let whole = "case $(cat s) in BB|AAAA) ;; *) exit 3;; esac";
    let scenario = recovered_by(shell("half synced", line).setup("printf BB > s"), whole);
    let words = words(scenario);
    assert!(words.contains(&Word::Torn) && !words.contains(&Word::Crashed), "{words:?}");
    assert_eq!(words.last(), Some(&Word::New));
}

#[test]
fn a_log_of_whole_lines_is_old_or_new_and_a_line_cut_in_two_is_torn() {
    let line = "cat s > /dev/null; for i in 1 2 3; do echo line $i >> s; done";
    let scenario = recovered_by(shell("appends", line), "cat s");
    assert_eq!(words(scenario), [Word::Old, Word::New]);
    let line =
        "cat s > /dev/null; exec 3>> s; for i in 1 2 3; do printf 'line ' >&3; echo $i >&3; done";
    let scenario = recovered_by(shell("half lines", line), "cat s");
    assert!(words(scenario).contains(&Word::Torn));
}

#[test]
fn files_that_must_agree_do_not_between_two_renames() {
    let line =
        "a=$(cat s); b=$(cat s2); echo $((a + 1)) > t; echo $((b + 1)) > t2; mv t s; mv t2 s2";
    let scenario = shell("two files", line).setup("echo 1 > s; echo 1 > s2");
    let words = words(with_state(scenario, &["s", "s2"]));
    assert_eq!(words, [Word::Old, Word::Torn, Word::New]);
}

#[test]
fn work_that_is_noted_before_it_is_struck_off_is_repeated() {
    let line = "l=$(head -n 1 s); cat done > /dev/null; [ -z \"$l\" ] || echo $l >> done; \
                sed 1d s > t; mv t s";
    let scenario = shell("notes first", line).setup("printf 'a\\nb\\n' > s; : > done");
    let words = words(with_state(scenario, &["s", "done"]));
    assert_eq!(words, [Word::Old, Word::Repeated, Word::New]);
}

#[test]
fn a_promise_of_the_next_version_is_broken_until_it_stands() {
    let line = "cat s > /dev/null; echo saved; echo two > t; mv t s";
    let mut scenario = recovered_by(shell("promises", line), "cat s");
    assert_eq!(words(scenario.clone()), [Word::Old, Word::New]);
    scenario.subject.ack = vec!["^saved".into()];
    assert_eq!(words(scenario), [Word::Old, Word::Lost, Word::New]);
}

#[test]
fn output_promises_what_stands_and_a_rollback_behind_it_is_lost() {
    let line = "cat s > /dev/null; cp s b; mv b bak; echo two > t; mv t s; echo saved; : > o; rm o; rm bak";
    let rolls_back = "cat s > /dev/null; [ ! -e bak ] || mv bak s; cat s";
    let scenario = recovered_by(shell("rolls back", line), rolls_back);
    assert_eq!(word_at(&scenario, "create#3").0, Word::Lost);
    assert_eq!(word_at(&scenario, "rename#1").0, Word::Old);
    assert_eq!(word_at(&scenario, "unlink#2").0, Word::New);
}

#[test]
fn a_link_is_followed_however_it_leads_to_the_file() {
    for link in ["real/s", "$PWD/real/s"] {
        let setup = format!("rm s; mkdir real; echo 1 > real/s; ln -s \"{link}\" s");
        let line = "n=$(cat s); echo $((n + 1)) > real/t; mv real/t real/s";
        let scenario = shell("link", line).setup(&setup);
        assert_eq!(words(scenario), [Word::Old, Word::New], "{link}");
        let replaced = shell("link replaced", COUNTS).setup(&setup).kill_everywhere();
        result(&replaced.expect(&[Word::Metadata])).assert_held();
    }
}

#[test]
fn a_link_to_a_folder_that_is_swapped_is_one_step() {
    let line = "cat current/s > /dev/null; mkdir v2; echo two > v2/s; ln -s v2 c; mv -T c current";
    let scenario = recovered_by(shell("swap", line), "cat current/s; rm -f c")
        .setup("mkdir v1; echo one > v1/s; ln -s v1 current");
    assert_eq!(words(with_state(scenario, &["current/s"])), [Word::Old, Word::New]);
}

#[test]
fn what_a_child_does_counts_as_what_the_subject_does() {
    let line = format!("/bin/sh -c '{COUNTS}' & wait; echo saved");
    assert_eq!(words(shell("child", &line).setup("echo 1 > s")), [Word::Old, Word::New]);
}

#[test]
fn a_volatile_file_may_hold_anything() {
    let line = "cat s > /dev/null; printf x > s2; echo two > t; mv t s";
    let scenario = with_state(recovered_by(shell("volatile", line), "cat s"), &["s", "s2"]);
    assert!(words(scenario.clone()).contains(&Word::Torn));
    let mut scenario = scenario;
    scenario.subject.volatile = vec!["s2".into()];
    assert_eq!(words(scenario), [Word::Old, Word::New]);
}

fn overlap(line: &str, order: &[(&str, Until)]) -> Word {
    overlap_that_says(line, order, BTreeMap::new())
}

fn overlap_that_says(line: &str, order: &[(&str, Until)], says: BTreeMap<String, String>) -> Word {
    let argv = CommandLine::Argv(["/bin/sh", "-c", line].map(str::to_owned).into());
    let order =
        order.iter().map(|(name, until)| Turn { process: (*name).into(), until: until.clone() });
    let kind = FaultKind::Overlap {
        name: "both".into(),
        processes: vec![("a".into(), argv.clone()), ("b".into(), argv)],
        order: order.collect(),
        says,
    };
    let scenario = Scenario::new("overlap", &["true"], "s").setup("printf 1 > s").fault(kind);
    result(&scenario).faults[0].cases[0].verdict.word
}

#[test]
fn who_refuses_at_once_is_left_out_of_the_orders() {
    let line = "mkdir lock 2> /dev/null || { echo s: busy >&2; exit 75; }; n=$(cat s); \
                [ -r /crashlab/mark/read ]; printf $((n + 1)) > t; mv t s; rmdir lock";
    let order = [("a", Until::Mark("read".into())), ("b", Until::End), ("a", Until::End)];
    assert_eq!(overlap(line, &order), Word::Serial);
}

#[test]
fn writers_in_place_leave_what_none_of_them_wrote() {
    let line = "n=$(cat s); : > s; [ -r /crashlab/mark/cut ]; printf $((n + 1)) >> s";
    let order = [("a", Until::Mark("cut".into())), ("b", Until::End), ("a", Until::End)];
    assert_eq!(overlap(line, &order), Word::Torn);
}

#[test]
fn a_promise_after_the_save_is_kept() {
    let line = "cat s >/dev/null; echo two > t; mv t s; echo saved; : > o; rm o";
    let mut scenario = recovered_by(shell("after", line), "cat s");
    scenario.subject.ack = vec!["^saved".into()];
    assert_eq!(words(scenario), [Word::Old, Word::New]);
}

#[test]
fn an_end_in_place_stands_in_killed_runs_too() {
    let line = "cat s >/dev/null; printf 0 | dd of=s conv=notrunc 2>/dev/null; : > o; rm o";
    let scenario = shell("drain", line).setup("printf 1 > s");
    let scenario = recovered_by(scenario, "test -e s || printf 0 > s; cat s");
    assert_eq!(words(scenario), [Word::Old, Word::New]);
}

#[test]
fn a_cut_append_is_torn() {
    let line = "cat s >/dev/null; head -c 9000 /dev/zero | tr '\\0' a | \
                dd of=s bs=9000 iflag=fullblock oflag=append conv=notrunc 2>/dev/null";
    let scenario = recovered_by(shell("cut", line).setup("printf x > s"), "cat s");
    assert!(words(scenario).contains(&Word::Torn));
}

#[test]
fn a_name_given_before_the_last_write_is_torn() {
    let line = "cat s > /dev/null; exec 3> t; printf 'hal' >&3; mv t s; printf 'f' >&3";
    let scenario = recovered_by(shell("renamed early", line), "cat s");
    assert_eq!(words(scenario), [Word::Old, Word::Torn, Word::New]);
    // A name given before the close, with all that was written, is whole.
    let line = "cat s > /dev/null; exec 3> t; printf 'whole' >&3; mv t s; exec 3>&-";
    let scenario = recovered_by(shell("closed late", line), "cat s");
    assert_eq!(words(scenario), [Word::Old, Word::New]);
}

#[test]
fn another_name_for_a_file_says_nothing_of_it() {
    let line = "cat s > /dev/null; exec 3<> s; printf AA >&3; ln s s.bak; printf BB >&3";
    let scenario = recovered_by(shell("linked", line).setup("printf oooo > s"), "cat s");
    assert_eq!(words(scenario), [Word::Old, Word::Torn, Word::New]);
}

#[test]
fn what_is_printed_before_it_is_done_is_lost_at_that_very_moment() {
    let line = "cat s > /dev/null; echo two > t; echo saved; mv t s";
    let mut scenario = recovered_by(shell("says too early", line), "cat s");
    assert_eq!(words(scenario.clone()), [Word::Old, Word::New]);
    scenario.subject.ack = vec!["^saved".into()];
    assert_eq!(words(scenario.clone()), [Word::Old, Word::Lost, Word::New]);
    assert_eq!(word_at(&scenario, "output#1").0, Word::Lost);
}

#[test]
fn reading_one_state_file_is_not_reading_the_other() {
    let line = "cat s b > /dev/null; printf two > b";
    let scenario = with_state(shell("other", line).setup("echo one > b"), &["s", "b"]);
    let blind = recovered_by(scenario.clone(), "cat s; printf two > c; mv c b");
    assert_eq!(word_at(&blind, "truncate#1").0, Word::Torn);
    let reads = recovered_by(scenario, "cat s; cat b || exit 1; printf two > c; mv c b");
    assert_eq!(word_at(&reads, "truncate#1").0, Word::Recovered);
}

#[test]
fn a_link_in_a_folder_that_is_state_is_compared() {
    let line = "cat d/current; ln -sfn b d/current";
    let scenario = shell("link as state", line)
        .setup("mkdir d; echo 1 > d/a; echo 2 > d/b; ln -s a d/current");
    let scenario = recovered_by(with_state(scenario, &["d"]), "[ -e d/current ]");
    assert_eq!(words(scenario.clone()), [Word::Old, Word::New]);
    // Between the two calls there is no link.
    let parts = "cat d/current; rm d/current; ln -s b d/current";
    let mut parted = scenario;
    parted.subject.command = CommandLine::Argv(["/bin/sh", "-c", parts].map(str::to_owned).into());
    assert_eq!(words(parted), [Word::Old, Word::Torn, Word::New]);
}

#[test]
fn temp_files_in_a_folder_that_is_state_are_none_of_it() {
    let line = "cat d/s > /dev/null; : > d/lock; echo two > d/t; mv d/t d/s; rm d/lock";
    let scenario = shell("folder", line).setup("mkdir d; echo one > d/s");
    let scenario = recovered_by(with_state(scenario, &["d"]), "cat d/s");
    assert_eq!(words(scenario), [Word::Old, Word::New]);
}

#[test]
fn a_file_that_moves_through_a_folder_is_never_a_stranger() {
    let line = "cat d/in/* > /dev/null; mv d/in/1 d/work/1; mv d/work/1 d/done/1";
    let scenario = shell("moves", line).setup("mkdir d; mkdir d/in d/work d/done; echo x > d/in/1");
    let scenario = with_state(scenario, &["d"]);
    let finishes =
        "cat d/*/* > /dev/null; for f in d/in/* d/work/*; do [ ! -e $f ] || mv $f d/done; done";
    let finished = words(recovered_by(scenario.clone(), finishes));
    assert_eq!(finished, [Word::Old, Word::Recovered, Word::New]);
    let forgets = "for f in d/in/*; do [ ! -e $f ] || mv $f d/done; done";
    assert_eq!(words(recovered_by(scenario, forgets)), [Word::Old, Word::Torn, Word::New]);
}

#[test]
fn what_the_time_makes_different_is_a_version_all_the_same() {
    let line = "cat s > /dev/null; date +%N > s";
    let scenario = recovered_by(shell("nonce", line), "cat s > /dev/null");
    assert_eq!(words(scenario), [Word::Old, Word::Torn, Word::New]);
}

#[test]
fn a_rollback_by_a_journal_is_recovered() {
    let line = "cat s > /dev/null; [ ! -s j ] || { cat j > s; rm j; }; \
                cp s j; printf two | dd of=s conv=notrunc,fsync 2> /dev/null; rm j; : > o; rm o";
    let scenario =
        recovered_by(shell("journal", line), "cat s; [ ! -s j ] || { cat j > s; rm j; }");
    let words = words(scenario.setup("printf one > s"));
    assert_eq!(words, [Word::Old, Word::Recovered, Word::New]);
}

#[test]
fn a_log_of_records_without_lines_has_a_version_after_each() {
    let line = "cat s > /dev/null; for i in 1 2 3; do printf 'a\\nb' >> s; done; \
                exec 3>> s; printf 'c\\nd' >&3; printf 'e\\nf' >&3";
    let scenario = recovered_by(shell("records", line), "cat s").setup(": > s");
    assert_eq!(words(scenario), [Word::Old, Word::New]);
}

#[test]
fn a_refusal_in_colour_is_a_refusal() {
    let line = "cat s > /dev/null; printf two > s";
    let refuses = "grep -q . s || { printf '\\033[31merror\\033[0m: \\033[1ms\\033[0m: empty\\n' >&2; exit 1; }";
    let scenario = recovered_by(shell("colour", line), refuses);
    assert_eq!(word_at(&scenario, "truncate#1").0, Word::Refused);
}

#[test]
fn an_effect_of_the_finished_run_is_none_of_the_next() {
    let line = "n=$(cat s); echo $n >> calls; echo $((n + 1)) > t; mv t s; : > o; rm o";
    let mut scenario = shell("counts calls", line).setup("echo 1 > s");
    scenario.subject.effects = vec!["calls".into()];
    assert_eq!(words(scenario), [Word::Old, Word::Repeated, Word::New]);
}

#[test]
fn who_refuses_must_say_what_the_scenario_asks_for() {
    let line = "mkdir lock 2> /dev/null || { echo s: busy >&2; exit 75; }; n=$(cat s); \
                [ -r /crashlab/mark/read ]; printf $((n + 1)) > t; mv t s; rmdir lock";
    let order = [("a", Until::Mark("read".into())), ("b", Until::End), ("a", Until::End)];
    let says = |text: &str| [("b".to_owned(), text.to_owned())].into();
    assert_eq!(overlap_that_says(line, &order, says("^s: busy$")), Word::Serial);
    assert_eq!(overlap_that_says(line, &order, says("held by")), Word::Unnoticed);
}

#[test]
fn who_refuses_before_its_mark_needs_no_turn() {
    let line = "mkdir lock 2> /dev/null || { echo s: busy >&2; exit 75; }; n=$(cat s); \
                [ -r /crashlab/mark/read ]; printf $((n + 1)) > t; mv t s; rmdir lock";
    let mark = |name: &str| Until::Mark(name.into());
    let order = [("a", mark("read")), ("b", mark("read")), ("a", Until::End), ("b", Until::End)];
    assert_eq!(overlap(line, &order), Word::Serial);
}

#[test]
fn times_that_hide_who_wrote_are_not_measured() {
    let line = "date +%N > t$$; [ -r /crashlab/mark/made ]; mv t$$ s";
    let order = [("a", Until::Mark("made".into())), ("b", Until::End), ("a", Until::End)];
    assert_eq!(overlap(line, &order), Word::NotMeasured);
}

#[test]
fn what_survived_whole_and_what_was_only_begun_need_no_reading() {
    // `m` is whole wherever the kill comes, and written anew without a look at it; `l` stands in no version.
    let line = "cat s > /dev/null; : > l; printf x >> l; printf two > t; mv t s; rm l";
    let redoes = "cat s || exit 1; printf note > m; printf '' > l; printf two > t; mv t s; rm l";
    let scenario = shell("begun", line).setup("printf note > m; printf one > s");
    let scenario = with_state(recovered_by(scenario, redoes), &["s", "l", "m"]);
    assert_eq!(words(scenario), [Word::Old, Word::Recovered, Word::New]);
}

/// A log beside the state, each line of which is what the state is to be; the last one counts.
fn logs_ahead(options: &str) -> Scenario {
    let log = |word: &str| {
        format!("printf '{word}\\n' | dd of=j oflag=append conv=notrunc{options} 2> /dev/null; ")
    };
    let replays = "[ ! -s j ] || { tail -n 1 j > t; mv t s; }; rm -f j";
    let line = format!("cat s; {} {} {replays}", log("two"), log("three"));
    recovered_by(shell("logs ahead", &line), &format!("cat s; {replays}"))
}

#[test]
fn an_end_from_a_synced_log_is_recovered_though_no_version_leads_to_it() {
    assert_eq!(words(logs_ahead(",fsync")), [Word::Old, Word::Recovered, Word::New]);
    // Nobody vouched for the log after its first line.
    assert!(words(logs_ahead("")).contains(&Word::Diverged));
}

#[test]
fn a_file_that_becomes_the_state_is_no_log_of_it() {
    let line = "n=$(cat s); [ ! -s t ] || n=$((n + $(cat t))); \
                echo $((n + 1)) | dd of=t conv=fsync 2> /dev/null; mv t s";
    let scenario = shell("adds up", line).setup("echo 5 > s");
    assert_eq!(words(scenario), [Word::Old, Word::Diverged, Word::New]);
}

#[test]
fn a_refusal_is_told_by_the_line_that_names_the_file() {
    let line = "cat s > /dev/null; printf two > s";
    let refuses = "grep -q . s || { echo s: is empty >&2; echo Shell v1 >&2; exit 1; }";
    let (word, why) = word_at(&recovered_by(shell("two lines", line), refuses), "truncate#1");
    assert_eq!(
        (word, why.as_str()),
        (Word::Refused, "the recovery gave up: exit code 1: s: is empty")
    );
}

#[test]
fn an_access_list_that_says_no_more_than_a_mode_is_a_mode() {
    // As `cp -p`, `install` and `sed -i` set it: version 2; user 6, group 4, others 4.
    let program = "import os, struct\n\
                   open('s').read()\n\
                   fd = os.open('t', os.O_WRONLY | os.O_CREAT, 0o600)\n\
                   entries = [(1, 6), (4, 4), (32, 4)]\n\
                   acl = struct.pack('<I', 2) + b''.join(struct.pack('<HHI', *entry, 0xffffffff) for entry in entries)\n\
                   try: os.setxattr(fd, 'system.posix_acl_access', acl)\n\
                   except OSError: os.fchmod(fd, 0o644)\n\
                   os.write(fd, b'two')\n\
                   os.rename('t', 's')\n";
    let mut scenario = shell("list", "true").setup("chmod 644 s");
    scenario.subject.command =
        CommandLine::Argv(["python3", "-c", program].map(str::to_owned).into());
    let result = result(&recovered_by(scenario, "cat s").kill_everywhere());
    let words: Vec<Word> = result.counts().into_keys().collect();
    assert_eq!(words, [Word::Old, Word::New, Word::Leftover], "and no mode that was not kept");
}

#[test]
fn names_and_bytes_given_at_random_are_no_difference_to_a_real_kill() {
    let line = "cat s > /dev/null; t=$(mktemp ./XXXXXXXX); head -c 9 /dev/urandom > $t; mv $t s";
    let result = result(&recovered_by(shell("random", line), "cat s").kill_everywhere());
    let confirmation = &result.faults[0].confirmation;
    assert_eq!((confirmation.differing.len(), confirmation.tried), (0, confirmation.confirmed));
    assert!(confirmation.but_for_chance > 0, "{confirmation:?}");
}

#[test]
fn a_volatile_file_that_is_there_for_a_while_is_not_misspelt() {
    let line = "cat s > /dev/null; : > v; echo two > t; mv t s; rm v";
    let mut scenario = recovered_by(shell("for a while", line), "cat s").kill_everywhere();
    scenario.subject.volatile = vec!["v".into(), "w".into()];
    let notes = result(&scenario).notes;
    assert_eq!(notes, ["nothing stands at `w` (volatile) at any time"]);
}
