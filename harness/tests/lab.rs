//! The lab from end to end, on subjects of one line: it must find each fault, name it right, and find none where there
//! is none.

use std::collections::BTreeMap;

use crashlab::judge::{Grade, Word};
use crashlab::report::{Json, Reporter, Strictness, Terminal, tell_case, tell_result};
use crashlab::run::{LabError, Plan, ScenarioResult, Settings, run, try_scenario};
use crashlab::scenario::{CommandLine, FaultKind, KillPoint, Scenario, Turn, Until};

fn shell(name: &str, line: &str) -> Scenario {
    Scenario::new(name, &["/bin/sh", "-c", line], "s").setup("echo one > s")
}

fn result(scenario: &Scenario) -> ScenarioResult {
    let result = try_scenario(scenario, &Plan::All, &Settings::default());
    result.unwrap_or_else(|error| panic!("{}: {error}", scenario.name))
}

fn counts(scenario: &Scenario) -> BTreeMap<Word, usize> {
    result(scenario).counts()
}

/// The content must be one of two words; anything else is refused.
const READS: &str = "case $(cat s) in one|two) ;; *) echo s: damaged >&2; exit 1;; esac";

#[test]
fn a_file_written_in_place_is_torn_between_its_truncation_and_its_write() {
    let scenario = shell("in place", "cat s > /dev/null; printf two > s")
        .recovery(&["cat", "s"])
        .kill_everywhere();
    // Before all, after O_TRUNC, after the write.
    assert_eq!(counts(&scenario), [(Word::Old, 1), (Word::New, 1), (Word::Torn, 1)].into());
}

#[test]
fn a_refusal_after_a_kill_is_a_fault() {
    let scenario =
        shell("refuses", "printf two > s").recovery(&["/bin/sh", "-c", READS]).kill_everywhere();
    let counts = counts(&scenario);
    assert_eq!(counts.get(&Word::Refused), Some(&1), "{counts:?}");
}

#[test]
fn a_file_that_is_replaced_is_old_or_new() {
    let line = format!("{READS}; echo two > t; mv t s");
    let scenario = shell("replaced", &line).kill_everywhere();
    let counts = counts(&scenario);
    let words: Vec<Word> = counts.keys().copied().collect();
    assert_eq!(words, [Word::Old, Word::New], "{counts:?}");
}

#[test]
fn a_temporary_file_that_nobody_removes_is_a_leftover_and_one_that_is_reused_is_none() {
    let line = "cat s > /dev/null; echo two > t.$$; mv t.$$ s";
    let kept = shell("leftover", line).kill_everywhere().expect(&[Word::Leftover]);
    result(&kept).assert_held();
    let reused = shell("reused", "cat s > /dev/null; echo two > t; mv t s").kill_everywhere();
    assert!(!counts(&reused).contains_key(&Word::Leftover));
}

#[test]
fn what_the_recovery_itself_writes_down_is_no_leftover() {
    let line = "cat s > /dev/null; echo two > t; mv t s";
    let tells = "cat s > /dev/null; [ ! -e t ] || { rm t; echo t > report; }";
    let scenario = shell("tells", line).recovery(&["/bin/sh", "-c", tells]).kill_everywhere();
    let counts = counts(&scenario);
    assert!(!counts.contains_key(&Word::Leftover), "{counts:?}");
}

#[test]
fn a_kill_at_a_mark_and_after_an_op_of_a_kind() {
    let line = format!("{READS}; echo two > t; [ -e /crashlab/mark/written ]; mv t s");
    let at = vec![KillPoint::Mark("written".into(), 1), KillPoint::Kind("rename".into(), 1)];
    let scenario = shell("mark", &line).setup("true").fault(FaultKind::Kill { at });
    // `[ -e` looks with stat, which is no mark; access(2) is what `test -r` uses.
    let error = try_scenario(&scenario, &Plan::All, &Settings::default()).unwrap_err();
    assert!(error.to_string().contains("passes the mark `written` 0 times"), "{error}");
    let line = format!("{READS}; echo two > t; [ -r /crashlab/mark/written ]; mv t s");
    let scenario = Scenario { subject: shell("mark", &line).subject, ..scenario };
    let scenario = Scenario { recovery: shell("mark", &line).recovery, ..scenario };
    let result = result(&scenario);
    let cases: Vec<_> =
        result.faults[0].cases.iter().map(|case| (case.id.as_str(), case.verdict.word)).collect();
    assert_eq!(cases, [("kill@mark:written", Word::Old), ("kill@rename#1", Word::New)]);
}

#[test]
fn a_write_is_cut_at_a_page_of_the_file() {
    let line = "cat s > /dev/null; head -c 9000 /dev/zero | tr '\\0' a | dd of=s bs=9000 iflag=fullblock conv=notrunc 2> /dev/null";
    let scenario = shell("cut", line).recovery(&["cat", "s"]).kill_everywhere();
    let result = result(&scenario);
    let inside: Vec<_> =
        result.faults[0].cases.iter().filter(|case| case.id.contains('+')).collect();
    let ids: Vec<&str> = inside.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(ids.len(), 2, "{ids:?}");
    for (case, bytes) in inside.iter().zip([4096, 8192]) {
        assert_eq!(case.verdict.word, Word::Torn);
        let crashed = case.evidence.crashed.as_ref().expect("a tree");
        let state = crashlab::judge::State { paths: vec!["s".into()], ..Default::default() };
        let image = state.image(crashed);
        let content =
            image.files.values().next().and_then(|content| content.bytes()).expect("bytes");
        assert_eq!(content.len(), bytes, "{}", case.id);
    }
}

#[test]
fn a_replay_gives_the_same_verdict() {
    let scenario = shell("in place", "cat s > /dev/null; printf two > s")
        .recovery(&["cat", "s"])
        .kill_everywhere();
    for case in &result(&scenario).faults[0].cases {
        let again = try_scenario(&scenario, &Plan::Case(case.id.clone()), &Settings::default())
            .expect("it ran");
        let again: Vec<_> = again.faults.iter().flat_map(|fault| &fault.cases).collect();
        assert_eq!(again.len(), 1);
        assert_eq!((&again[0].id, again[0].verdict.word), (&case.id, case.verdict.word));
    }
}

#[test]
fn damage_that_is_refused_accepted_and_forgotten() {
    let start = r#"printf '{\n  "queue": ["a"],\n  "answers": {}\n}\n' > s"#;
    let damaged = |name: &str, line: &str| {
        let scenario = Scenario::new(name, &["/bin/sh", "-c", line], "s").setup(start);
        counts(&scenario.damage_everything())
    };
    let refuses = r#"test "$(cksum < s)" = "$(printf '{\n  "queue": ["a"],\n  "answers": {}\n}\n' | cksum)" || { echo "s: damaged" >&2; exit 65; }"#;
    assert_eq!(damaged("refuses", refuses), [(Word::Refused, 7)].into());
    assert_eq!(damaged("accepts", "cat s > /dev/null"), [(Word::Accepted, 7)].into());
    let crashes = refuses.replace("s: damaged", "Traceback (most recent call last)");
    assert_eq!(damaged("crashes", &crashes), [(Word::Crashed, 7)].into());
    let starts_over =
        format!("{} || echo new > s", refuses.split(" || ").next().unwrap_or_default());
    assert_eq!(damaged("starts over", &starts_over), [(Word::Restarted, 7)].into());
}

#[test]
fn damage_that_does_not_fit_the_file_is_skipped() {
    let line = "test \"$(cat s)\" = one || { echo s: damaged >&2; exit 1; }";
    let result = result(&shell("words", line).damage_everything());
    let skipped = result.counts().get(&Word::Skipped).copied();
    assert_eq!(result.counts().get(&Word::Refused), Some(&2), "{:?}", result.counts());
    assert_eq!(skipped, Some(5), "{:?}", result.counts());
}

#[test]
fn a_state_that_the_subject_never_changes_is_a_mistake() {
    let scenario = shell("elsewhere", "echo two > other").kill_everywhere();
    let error = try_scenario(&scenario, &Plan::All, &Settings::default()).unwrap_err();
    assert!(error.to_string().contains("never changes its state (s)"), "{error}");
    assert!(error.to_string().contains("it changes: other"), "{error}");
}

#[test]
fn a_state_that_is_never_there_is_a_mistake() {
    let mut scenario = shell("misspelt", "cat s > /dev/null; printf two > s").kill_everywhere();
    scenario.subject.state.push("t".into());
    let error = try_scenario(&scenario, &Plan::All, &Settings::default()).unwrap_err();
    assert!(error.to_string().contains("never anything at the state `t`"), "{error}");
}

#[test]
fn a_state_that_leads_out_of_the_work_folder_is_a_mistake() {
    for link in ["/etc/hostname", "../elsewhere", "s"] {
        let setup = format!("rm -f s; ln -s {link} s");
        let scenario = shell("leads out", "true").setup(&setup).kill_everywhere();
        let error = try_scenario(&scenario, &Plan::All, &Settings::default()).unwrap_err();
        assert!(error.to_string().contains("the state `s` leads out of"), "{link}: {error}");
    }
}

#[test]
fn two_writers_at_once() {
    let line = "n=$(cat s); [ -r /crashlab/mark/read ]; echo $((n + 1)) > t.$1; mv t.$1 s";
    let argv = |name: &str| {
        CommandLine::Argv(["/bin/sh", "-c", line, "sh", name].map(str::to_owned).into())
    };
    let turn = |process: &str, until| Turn { process: process.into(), until };
    let overlap = |first: Until| FaultKind::Overlap {
        name: "both".into(),
        processes: vec![("a".into(), argv("a")), ("b".into(), argv("b"))],
        order: vec![turn("a", first), turn("b", Until::End), turn("a", Until::End)],
        says: BTreeMap::new(),
    };
    let scenario =
        |first| Scenario::new("counter", &["true"], "s").setup("echo 1 > s").fault(overlap(first));
    assert_eq!(counts(&scenario(Until::Mark("read".into()))), [(Word::Lost, 1)].into());
    assert_eq!(counts(&scenario(Until::End)), [(Word::Serial, 1)].into());
    let never = result(&scenario(Until::Mark("elsewhere".into())));
    assert_eq!(
        never.counts(),
        [(Word::NotMeasured, 1)].into(),
        "a pass that did not steer is none"
    );
}

#[test]
fn a_time_in_the_state_is_masked() {
    let line = "cat s > /dev/null; date +%s%N > t; mv t s";
    let result = result(&shell("time", line).kill_everywhere());
    result.assert_held();
    assert_eq!(result.masks, ["s: line 1"]);
}

#[test]
fn a_subject_or_a_recovery_that_fails_undisturbed_is_the_report() {
    let why = |scenario: &Scenario| match try_scenario(scenario, &Plan::All, &Settings::default()) {
        Err(LabError::Scenario(why)) => why,
        other => panic!("{other:?}"),
    };
    assert!(
        why(&shell("fails", "echo no >&2; exit 3").kill_everywhere())
            .contains("exit code 3\n    no")
    );
    let recovery = shell("recovery", "true").recovery(&["false"]).kill_everywhere();
    assert!(why(&recovery).contains("the recovery `false` from the state"));
    let gone = Scenario::new("gone", &["no-such-program"], "s").kill_everywhere();
    assert!(why(&gone).contains("no-such-program"));
}

#[test]
fn a_program_that_does_not_end_is_ended() {
    let mut scenario = shell("hangs", "test -e t && sleep 1000; echo > t; mv s s2; mv s2 s; rm t")
        .kill_everywhere();
    scenario.subject.time_limit = 1;
    let counts = counts(&scenario);
    assert!(counts.contains_key(&Word::Hung), "{counts:?}");
}

#[test]
fn what_people_and_programs_read() {
    let good = shell("good", "cat s > /dev/null; echo two > t; mv t s").kill_everywhere();
    let bad =
        shell("bad", "cat s > /dev/null; printf two > s").recovery(&["cat", "s"]).kill_everywhere();
    let found = bad.clone().expect(&[Word::Torn]);
    let missing = shell("missing", "true").kill_everywhere().expect(&[Word::Torn]);
    let named = |name: &str, scenario: Scenario| Scenario { name: name.into(), ..scenario };
    let all = [good, named("bad", bad), named("found", found), missing];
    let (mut text, mut json) = (Vec::new(), Vec::new());
    let mut terminal = Terminal::new(&mut text, false, Strictness::default());
    let mut lines = Json::new(&mut json, Strictness::default());
    run(&all, &Plan::All, &Settings::default(), &mut Both(&mut terminal, &mut lines));
    assert_eq!(terminal.summary.exit_code(&Strictness::default()), 1);
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"\d\.\d s\)", "[time] s)");
    settings.add_filter(r"0/\d+ *", "0/[pid] ");
    settings.add_filter(r"spawned( +)\d+", "spawned$1[pid]");
    settings.add_filter(r"executed( +)/\S+", "executed$1[program]");
    settings.add_filter(r#""milliseconds":\d+"#, r#""milliseconds":0"#);
    settings.add_filter(r#""recovered_by_copies":\d+"#, r#""recovered_by_copies":0"#);
    settings.bind(|| {
        insta::assert_snapshot!("report", String::from_utf8_lossy(&text));
        let mut lines: Vec<_> =
            json.split(|byte| *byte == b'\n').map(String::from_utf8_lossy).collect();
        lines.sort();
        insta::assert_snapshot!("report-json", lines.join("\n"));
    });
}

struct Both<'a>(&'a mut dyn Reporter, &'a mut dyn Reporter);

impl Reporter for Both<'_> {
    fn event(&mut self, event: crashlab::report::Event<'_>) {
        self.0.event(event);
        self.1.event(event);
    }
}

#[test]
fn a_finding_has_its_evidence_and_the_line_that_replays_it() {
    let bad =
        shell("bad", "cat s > /dev/null; printf two > s").recovery(&["cat", "s"]).kill_everywhere();
    let result = result(&bad);
    let torn = result.faults[0]
        .cases
        .iter()
        .find(|case| case.verdict.grade == Grade::Fault)
        .expect("a fault");
    let told = tell_case(torn, &result.replay);
    for part in [
        "torn between op 1 (truncate s) and op 2 (write s): 1 case\n    kill@1\n",
        "accepted",
        "openat            s  to 0 bytes, by open\n      ---> killed here\n",
        "write             s  3 bytes at 0\n",
        "    s:\n      before  one\\n\n      after   two\n      found   (empty)\n",
        "crashlab replay bad kill@1",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(
        tell_result(&result).contains(&told.lines().next().unwrap_or_default().replace("  ", ""))
    );
}

#[test]
fn what_a_scenario_needs_and_does_not_find_skips_it_before_its_build() {
    let tried = |needs: &[&str], probe: Option<&str>| {
        let mut scenario =
            shell("needs", "cat s > /dev/null; echo two > t; mv t s").kill_everywhere();
        scenario.needs = needs.iter().map(|name| (*name).to_owned()).collect();
        scenario.probe = probe.map(|line| CommandLine::Shell(line.to_owned()));
        scenario.build = needs.iter().any(|name| name.contains("no-such")).then(|| "exit 1".into());
        match try_scenario(&scenario, &Plan::All, &Settings::default()) {
            Ok(_) => "tried".to_owned(),
            Err(LabError::Missing(why)) => why,
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!(tried(&["sh", "{root}bin/sh"], Some("test ! -e s")), "tried");
    assert_eq!(tried(&["sh", "no-such-program"], None), "no-such-program is not installed");
    assert_eq!(tried(&["{root}no/such"], None), "/no/such is not installed");
    assert_eq!(
        tried(&[], Some("echo a package is missing >&2; exit 1")),
        "the probe `echo a package is missing >&2; exit 1` fails: exit code 1: a package is missing"
    );
    assert_eq!(tried(&[], Some("kill -9 $$")), "the probe `kill -9 $$` fails: signal 9 (SIGKILL)");
}

#[test]
fn a_probe_that_does_not_end_is_ended_and_one_that_cannot_be_started_fails() {
    let mut scenario = shell("probes", "true").kill_everywhere();
    scenario.subject.time_limit = 1;
    let mut why = |argv: &[&str]| {
        scenario.probe = Some(CommandLine::Argv(argv.iter().map(|word| (*word).into()).collect()));
        try_scenario(&scenario, &Plan::All, &Settings::default()).unwrap_err().to_string()
    };
    assert_eq!(
        why(&["sleep", "1000"]),
        "skipped: the probe `sleep 1000` does not end within its time"
    );
    assert_eq!(why(&["/no/such"]), "skipped: the probe `/no/such` cannot be started");
}

#[test]
fn a_skipped_scenario_is_no_pass() {
    let good = shell("good", "cat s > /dev/null; echo two > t; mv t s").kill_everywhere();
    let skipped =
        Scenario { needs: vec!["no-such-program".into()], name: "lacks".into(), ..good.clone() };
    for deny in [Vec::new(), vec![Word::Skipped]] {
        let strictness = Strictness { deny: deny.clone(), ..Strictness::default() };
        let (mut text, mut json) = (Vec::new(), Vec::new());
        let mut terminal = Terminal::new(&mut text, false, strictness.clone());
        let mut lines = Json::new(&mut json, strictness.clone());
        let both = [good.clone(), skipped.clone()];
        run(&both, &Plan::All, &Settings::default(), &mut Both(&mut terminal, &mut lines));
        assert_eq!((terminal.summary.held, terminal.summary.untried), (1, 1));
        assert_eq!(terminal.summary.exit_code(&strictness), u8::from(!deny.is_empty()));
        let (text, json) = (String::from_utf8_lossy(&text), String::from_utf8_lossy(&json));
        let mark = if deny.is_empty() { "skip" } else { "FAIL" };
        let row = format!("{mark} lacks\n     skipped: no-such-program is not installed\n");
        assert!(text.contains(&row), "{text}");
        assert!(text.contains("1 of 2 scenarios held"), "{text}");
        let event = r#"{"event":"skipped","scenario":"lacks","file":"good","reason":"no-such-program is not installed"}"#;
        assert!(json.contains(event), "{json}");
        assert!(json.contains(r#""scenarios_skipped":1"#), "{json}");
    }
}
