//! Every verdict on a crash state, each on the smallest example that shows it.

use crashlab::judge::{Controls, CrashCase, Outcome, State, Verdict, Versions, Word, judge_crash};
use crashlab::subject::Exit;

use super::build::{Log, controls, found, outcome, recovered, state, tree};

/// Questions are letters: the recovery answers what is open (`q`), so that the end is upper case.
fn works_on(text: Option<&str>) -> Result<String, String> {
    match text {
        None => Ok("FRESH".into()),
        Some(text) if text.starts_with('{') && text.ends_with('}') => Ok(text.to_uppercase()),
        Some(_) => Err("error: s.json: damaged".into()),
    }
}

struct Case {
    state: State,
    versions: Versions,
    controls: Controls,
}

impl Case {
    fn new(recovery: &dyn Fn(Option<&str>) -> Result<String, String>) -> Case {
        let state = state(&["s.json"]);
        let versions = found(
            &tree(&[("s.json", "{a}")]),
            &Log::default().replace("{ab}").replace("{abc}"),
            &state,
        );
        let controls = controls(&versions, recovery);
        // A kill before the end has promised nothing.
        Case { state, versions: Versions { promised: 0, ..versions }, controls }
    }

    fn judge(&self, survivor: &str, outcome: &Outcome) -> Verdict {
        judge_crash(&CrashCase {
            versions: &self.versions,
            promised: self.versions.promised,
            controls: &self.controls,
            ends: &self.controls.ends(&self.versions),
            survivor: &self.state.image(&tree(&[("s.json", survivor)])),
            stepped_on: false,
            outcome,
            check_failed: None,
            effect_repeated: None,
            vouched: &[],
            state: &self.state,
        })
    }

    fn word(&self, survivor: &str, end: Result<&str, &str>) -> Word {
        let start = tree(&[("s.json", survivor)]);
        let outcome = match end {
            Ok(end) => outcome(&self.state, &start, &tree(&[("s.json", end)]), Exit::Code(0), ""),
            Err(said) => outcome(&self.state, &start, &start, Exit::Code(1), said),
        };
        self.judge(survivor, &outcome).word
    }
}

#[test]
fn a_whole_version_that_recovers_is_good() {
    let case = Case::new(&works_on);
    assert_eq!(case.word("{a}", Ok("{A}")), Word::Old);
    assert_eq!(case.word("{ab}", Ok("{AB}")), Word::New, "its rename was the last change");
    assert_eq!(case.word("{abc}", Ok("{ABC}")), Word::New);
}

#[test]
fn no_version_is_torn_whatever_the_recovery_makes_of_it() {
    let case = Case::new(&works_on);
    assert_eq!(case.word("{ab", Err("Traceback")), Word::Torn);
    assert_eq!(case.word("{ab", Ok("{AB")), Word::Torn);
    assert_eq!(case.word("", Ok("FRESH")), Word::Torn, "starting over proves nothing");
}

#[test]
fn a_recovery_that_mends_is_recovered() {
    let case = Case::new(&works_on);
    assert_eq!(case.word("{ab", Ok("{A}")), Word::Recovered);
    let mut never_reads = recovered(&case.state, Some("{ab"), &|_| Ok("{A}".into()));
    never_reads.unread = ["s.json".into()].into();
    assert_eq!(
        case.judge("{ab", &never_reads).word,
        Word::Torn,
        "an end that does not depend on the file proves nothing"
    );
}

#[test]
fn an_end_that_comes_about_without_a_file_proves_nothing() {
    let case = Case::new(&|_| Ok("{SAME}".into()));
    assert_eq!(case.word("{ab", Ok("{SAME}")), Word::Torn);
    assert_eq!(case.word("{a}", Ok("{SAME}")), Word::Old, "then the surviving bytes alone count");
}

#[test]
fn a_refusal_names_the_file_and_leaves_it_alone() {
    let case = Case::new(&works_on);
    assert_eq!(case.word("{a}", Err("error: s.json: locked")), Word::Refused);
    assert_eq!(case.word("{a}", Err("error: locked")), Word::Crashed);
    assert_eq!(case.word("{a}", Err("Traceback:\n  open('s.json')")), Word::Crashed);
    let (start, end) = (tree(&[("s.json", "{a}")]), tree(&[("s.json", "{}")]));
    let changed = outcome(&case.state, &start, &end, Exit::Code(1), "s.json: bad");
    assert_eq!(case.judge("{a}", &changed).word, Word::Crashed);
}

#[test]
fn a_recovery_that_does_not_end_is_hung() {
    let case = Case::new(&works_on);
    let start = tree(&[("s.json", "{a}")]);
    assert_eq!(
        case.judge("{a}", &outcome(&case.state, &start, &start, Exit::TimedOut, "")).word,
        Word::Hung
    );
}

#[test]
fn starting_over_on_a_whole_file_is_restarted() {
    let case = Case::new(&works_on);
    assert_eq!(case.word("{a}", Ok("FRESH")), Word::Restarted);
}

#[test]
fn any_other_end_is_diverged() {
    let case = Case::new(&works_on);
    assert_eq!(case.word("{a}", Ok("{X}")), Word::Diverged);
}

#[test]
fn the_end_of_a_later_version_is_not_the_right_end_of_an_earlier_one() {
    let case = Case::new(&works_on);
    assert_eq!(case.word("{a}", Ok("{ABC}")), Word::Diverged);
}

#[test]
fn work_that_stands_twice_is_repeated() {
    let lines = |text: Option<&str>| Ok(format!("{}done\n", text.unwrap_or("")));
    let state = state(&["s.json"]);
    let versions =
        found(&tree(&[("s.json", "one\n")]), &Log::default().replace("one\ntwo\n"), &state);
    let controls = controls(&versions, &lines);
    let case = Case { state, versions: Versions { promised: 0, ..versions }, controls };
    assert_eq!(case.word("one\n", Ok("one\none\ndone\n")), Word::Repeated);
    assert_eq!(
        case.word("one\n", Ok("one\nthree\ndone\n")),
        Word::Diverged,
        "a line that stands once is not again"
    );
}

#[test]
fn older_than_what_was_promised_is_lost() {
    let mut case = Case::new(&works_on);
    case.versions.promised = 1;
    assert_eq!(case.word("{a}", Ok("{A}")), Word::Lost);
    assert_eq!(case.word("{ab}", Ok("{AB}")), Word::New);
    assert_eq!(case.word("{ab}", Ok("{A}")), Word::Lost, "the end belongs to an older one");
}

#[test]
fn a_state_synced_while_torn_is_no_version() {
    let state = state(&["s.json"]);
    let log = Log::default()
        .write("s.json", 0, "[bbb")
        .sync("s.json")
        .write("s.json", 4, "}")
        .close("s.json");
    let versions = found(&tree(&[("s.json", "{aaa}")]), &log, &state);
    assert_eq!(
        versions.all.len(),
        2,
        "the close came with the bytes of the sync and one more: {versions:?}"
    );
    let log = Log::default()
        .write("s.json", 0, "{b")
        .sync("s.json")
        .write("s.json", 2, "bb}")
        .close("s.json");
    let versions = found(&tree(&[("s.json", "xaaa ")]), &log, &state);
    let controls = controls(&versions, &|text| match text {
        Some("{b") | Some("{baa ") => Err("s.json: damaged".into()),
        other => works_any(other),
    });
    assert_eq!(controls.standing(&versions), [true, false, true]);
}

fn works_any(text: Option<&str>) -> Result<String, String> {
    Ok(text.unwrap_or("FRESH").to_uppercase())
}

#[test]
fn a_doubtful_version_from_which_the_recovery_begins_anew_is_struck_off() {
    let state = state(&["s.json"]);
    let log = Log::default()
        .write("s.json", 0, "b")
        .sync("s.json")
        .write("s.json", 1, "c")
        .close("s.json");
    let versions = found(&tree(&[("s.json", "aa")]), &log, &state);
    let anew = controls(&versions, &|text| {
        let end = match text {
            Some("aa") => "FROM START",
            Some("bc") => "FROM END",
            _ => "FRESH",
        };
        Ok(end.into())
    });
    assert_eq!(anew.standing(&versions), [true, false, true]);
}

#[test]
fn the_end_is_a_version_also_where_it_came_by_a_close() {
    let state = state(&["s.json"]);
    let log = Log::default().truncate("s.json").write("s.json", 0, "b").close("s.json");
    let versions = found(&tree(&[("s.json", "a")]), &log, &state);
    let fresh =
        controls(&versions, &|text| Ok(if text == Some("a") { "A" } else { "FRESH" }.into()));
    assert_eq!(fresh.standing(&versions), [true, true]);
}

#[test]
fn the_scenarios_check_and_counted_effects_are_heard() {
    let case = Case::new(&works_on);
    let survivor = case.state.image(&tree(&[("s.json", "{a}")]));
    let good = recovered(&case.state, Some("{a}"), &works_on);
    let judged = |check_failed: Option<&str>, effect_repeated: Option<&str>| {
        judge_crash(&CrashCase {
            versions: &case.versions,
            promised: case.versions.promised,
            controls: &case.controls,
            ends: &case.controls.ends(&case.versions),
            survivor: &survivor,
            stepped_on: true,
            outcome: &good,
            check_failed,
            effect_repeated,
            vouched: &[],
            state: &case.state,
        })
        .word
    };
    assert_eq!(judged(None, None), Word::Old);
    assert_eq!(judged(Some("exit code 1"), None), Word::Diverged);
    assert_eq!(judged(None, Some("2 calls")), Word::Repeated);
}
