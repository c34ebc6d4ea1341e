//! What is a version, and what is none.

use std::path::Path;

use crashlab::judge::{Content, Origin, Promises, Versions, versions};
use crashlab::op::OpKind;

use super::build::{Log, found, linked, state, texts, tree};

#[test]
fn a_rename_gives_a_version_and_the_writes_before_it_none() {
    let found = found(
        &tree(&[("s.json", "a")]),
        &Log::default().replace("b").replace("c"),
        &state(&["s.json"]),
    );
    assert_eq!(texts(&found, "s.json"), ["a", "b", "c"]);
    assert_eq!(found.all[1].origin, Origin::Name);
    assert_eq!(found.all[1].after_op, 3);
    assert_eq!(found.promised, 2, "exit code 0 promises the end");
    let alone = found.of_file[Path::new("s.json")].iter().filter_map(Content::bytes);
    assert!(alone.eq([&b"a"[..], b"b", b"c"]), "{:?}", found.of_file);
}

#[test]
fn between_truncation_and_close_there_is_no_version() {
    let log = Log::default()
        .truncate("s.json")
        .write("s.json", 0, "b")
        .mark("m")
        .sync("s.json")
        .write("s.json", 1, "c")
        .close("s.json");
    let found = found(&tree(&[("s.json", "a")]), &log, &state(&["s.json"]));
    assert_eq!(texts(&found, "s.json"), ["a", "bc"]);
    assert_eq!(found.all[1].origin, Origin::End, "the end stands, however it came about");
}

#[test]
fn a_new_file_under_its_own_name_is_whole_when_it_is_closed() {
    let log = Log::default()
        .create("s.json")
        .write("s.json", 0, "b")
        .mark("m")
        .write("s.json", 1, "c")
        .close("s.json");
    let found = found(&tree(&[]), &log, &state(&["s.json"]));
    assert_eq!(texts(&found, "s.json"), ["-", "bc"]);
}

#[test]
fn an_overwrite_in_place_has_versions_at_sync_mark_and_close() {
    let log = Log::default()
        .write("s.json", 0, "b")
        .sync("s.json")
        .write("s.json", 1, "c")
        .mark("m")
        .write("s.json", 2, "d")
        .close("s.json");
    let found = found(&tree(&[("s.json", "aaa")]), &log, &state(&["s.json"]));
    assert_eq!(texts(&found, "s.json"), ["aaa", "baa", "bca", "bcd"]);
    let origins: Vec<Origin> = found.all.iter().map(|version| version.origin).collect();
    assert_eq!(origins, [Origin::Start, Origin::Sync, Origin::Mark, Origin::End]);
}

#[test]
fn whole_lines_appended_are_versions_and_half_lines_are_none() {
    let log = Log::default()
        .append("s.json", 2, "b\n")
        .append("s.json", 4, "c")
        .append("s.json", 5, "d\n");
    let found = found(&tree(&[("s.json", "a\n")]), &log, &state(&["s.json"]));
    assert_eq!(texts(&found, "s.json"), ["a\n", "a\nb\n", "a\nb\ncd\n"]);
}

#[test]
fn a_set_has_a_version_when_each_changed_file_has_a_new_one() {
    let before = tree(&[("s.json", "a"), ("u", "1"), ("same", "x")]);
    let log =
        Log::default().replace("b").create("t2").write("t2", 0, "2").rename("t2", "u").replace("c");
    let found = found(&before, &log, &state(&["s.json", "u", "same"]));
    assert_eq!(texts(&found, "s.json"), ["a", "b", "c"]);
    assert_eq!(texts(&found, "u"), ["1", "2", "2"], "the end is a version, whatever came before");
}

#[test]
fn a_run_that_was_cut_knows_what_it_did_not_come_to() {
    let before = tree(&[("s.json", "a"), ("u", "1")]);
    let state = state(&["s.json", "u"]);
    let whole = Log::default().replace("b").create("t2").write("t2", 0, "2").rename("t2", "u");
    let whole = found(&before, &whole, &state);
    let cut = Log::default().replace("b");
    let promises = Promises::default();
    let cut = versions(&before, &cut.events, &state, &promises, Some(&whole)).expect("it fits");
    assert_eq!(texts(&cut, "s.json"), ["a"], "u has no new version yet");
}

#[test]
fn a_mark_between_two_files_is_a_version_of_the_set() {
    let before = tree(&[("s.json", "a"), ("u", "1")]);
    let log =
        Log::default().replace("b").mark("m").create("t2").write("t2", 0, "2").rename("t2", "u");
    let found = found(&before, &log, &state(&["s.json", "u"]));
    assert_eq!(texts(&found, "s.json"), ["a", "b", "b"]);
    assert_eq!(texts(&found, "u"), ["1", "1", "2"]);
}

#[test]
fn output_promises_what_is_visible_and_an_ack_the_next_version() {
    let before = tree(&[("s.json", "a")]);
    let cut = |log: &Log, promises: &Promises| {
        versions(&before, &log.events, &state(&["s.json"]), promises, Some(&Versions::default()))
            .expect("the log fits")
            .promised
    };
    let log = Log::default().says("saved\n");
    assert_eq!(cut(&log, &Promises::default()), 0, "the start was visible");
    let line = Promises { lines: vec![regex("^saved$")], ..Promises::default() };
    assert_eq!(cut(&log, &line), 1);
    assert_eq!(cut(&Log::default().says("not saved\n"), &line), 0);
    let mark = Promises { marks: vec!["saved".into()], ..Promises::default() };
    assert_eq!(cut(&Log::default().mark("saved"), &mark), 1);
    assert_eq!(cut(&Log::default().replace("b").says("x"), &Promises::default()), 1);
}

/// What a run that was cut short came to, where the whole run changes `s.json`.
fn cut(log: &Log, promises: &Promises) -> Versions {
    let (before, state) = (tree(&[("s.json", "a")]), state(&["s.json"]));
    let whole = found(&before, &Log::default().replace("b"), &state);
    versions(&before, &log.events, &state, promises, Some(&whole)).expect("the log fits")
}

#[test]
fn what_is_promised_grows_with_the_log() {
    let log = Log::default().replace("b").says("one\n").replace("c").mark("saved").says("two\n");
    let promises = Promises { marks: vec!["saved".into()], ..Promises::default() };
    let cut = cut(&log, &promises);
    assert_eq!(texts(&cut, "s.json"), ["a", "b", "c"]);
    assert_eq!(cut.all.iter().map(|version| version.at_event).collect::<Vec<_>>(), [0, 4, 9]);
    // The mark promises one more than there is; until it is there, the last is what was promised.
    assert_eq!(cut.promised, 3);
    assert_eq!([0, 4, 5, 9, 10, 11].map(|events| cut.promised_at(events)), [0, 0, 1, 1, 2, 2]);
    assert_eq!(cut.promising_outputs(), [5].into(), "a mark is no output");
    let other = Promises { marks: vec!["else".into()], ..Promises::default() };
    assert_eq!(self::cut(&Log::default().mark("saved"), &other).promised, 0);
}

#[test]
fn a_file_that_is_written_on_after_it_was_named_was_none_when_it_was_named() {
    let log = Log::default()
        .replace("b")
        .says("one\n")
        .create("t")
        .write("t", 0, "c")
        .rename("t", "s.json")
        .says("two\n")
        .write("s.json", 1, "d")
        .close("s.json");
    let cut = cut(&log, &Promises::default());
    assert_eq!(texts(&cut, "s.json"), ["a", "b", "cd"]);
    assert_eq!(cut.premature, [6].into());
    assert_eq!(cut.promised, 1, "what was visible at the second output was no version");
    assert_eq!(cut.promises.iter().map(|promise| promise.version).collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn a_state_behind_a_link_is_followed() {
    let before = linked(tree(&[("real", "a")]), "s.json", "real");
    let log = Log::default().create("t").write("t", 0, "b").rename("t", "real");
    let found = found(&before, &log, &state(&["s.json"]));
    assert_eq!(texts(&found, "s.json"), ["a", "b"]);
}

#[test]
fn a_name_is_given_also_by_a_link_to_the_file_or_to_its_folder() {
    // By a hard link, where there was no file.
    let log = Log::default().create("t").write("t", 0, "b").close("t").link("t", "s.json");
    let log = log.write("s.json", 0, "c");
    assert_eq!(texts(&found(&tree(&[]), &log, &state(&["s.json"])), "s.json"), ["-", "b", "c"]);
    // By what the link leads to.
    let before = linked(tree(&[("real", "a")]), "s.json", "real");
    let real = |log: Log, text| log.create("t").write("t", 0, text).rename("t", "real");
    let log = real(real(Log::default(), "b"), "c");
    assert_eq!(texts(&found(&before, &log, &state(&["s.json"])), "s.json"), ["a", "b", "c"]);
    // By another link on the way to it.
    let folders = tree(&[("v1/s", "a"), ("v2/s", "b"), ("v3/s", "c")]);
    let turn = |log: Log, to| log.symlink(to, "next").rename("next", "now");
    let log = turn(turn(Log::default(), "v2"), "v3");
    let found = found(&linked(folders, "now", "v1"), &log, &state(&["now/s"]));
    assert_eq!(texts(&found, "now/s"), ["a", "b", "c"]);
}

#[test]
fn another_name_of_a_file_says_nothing_of_it() {
    let log = Log::default()
        .write("s.json", 0, "b")
        .link("s.json", "s.bak")
        .write("s.json", 1, "b")
        .close("s.json");
    let found = found(&tree(&[("s.json", "aa")]), &log, &state(&["s.json"]));
    assert_eq!(texts(&found, "s.json"), ["aa", "bb"]);
}

#[test]
fn space_that_was_allocated_is_a_change() {
    let log = Log::default().allocate("s.json", 2).sync("s.json").write("s.json", 1, "b");
    let found = found(&tree(&[("s.json", "a")]), &log, &state(&["s.json"]));
    assert_eq!(texts(&found, "s.json"), ["a", "a\0", "ab"]);
}

#[test]
fn what_is_appended_to_a_truncated_file_is_as_unfinished() {
    let log = Log::default()
        .truncate("s.json")
        .append("s.json", 0, "b\n")
        .append("s.json", 2, "c\n")
        .close("s.json");
    let found = found(&tree(&[("s.json", "a\n")]), &log, &state(&["s.json"]));
    assert_eq!(texts(&found, "s.json"), ["a\n", "b\nc\n"]);
}

#[test]
fn what_an_empty_log_is_made_of_its_end_tells() {
    let texts = |one: &str, other: &str| {
        let log = Log::default().append("s.json", 0, one).append("s.json", one.len() as u64, other);
        texts(&found(&tree(&[("s.json", "")]), &log, &state(&["s.json"])), "s.json")
    };
    assert_eq!(texts("a", "b\n"), ["", "ab\n"]);
    assert_eq!(texts("a\nb", "c\nd"), ["", "a\nb", "a\nbc\nd"]);
}

#[test]
fn every_changed_file_of_a_folder_must_have_a_new_version() {
    let save =
        |log: Log, text: &str, path: &str| log.create("t").write("t", 0, text).rename("t", path);
    let log = save(save(Log::default(), "2", "d/a"), "2", "d/b");
    let found = found(&tree(&[("d/a", "1"), ("d/b", "1")]), &log, &state(&["d"]));
    assert_eq!(texts(&found, "d/a"), ["1", "2"]);
}

#[test]
fn a_sync_of_what_was_not_changed_gives_no_version() {
    let log = Log::default().replace("b").sync("u").write("u", 0, "2").close("u");
    let found = found(&tree(&[("s.json", "a"), ("u", "1")]), &log, &state(&["s.json", "u"]));
    assert_eq!(texts(&found, "s.json"), ["a", "b"]);
}

#[test]
fn a_mark_is_a_version_whatever_else_is_unfinished() {
    let log = Log::default().create("t").write("s.json", 0, "b").mark("m");
    assert_eq!(texts(&cut(&log, &Promises::default()), "s.json"), ["a", "b"]);
}

#[test]
fn the_same_bytes_once_more_are_one_version_by_the_surest_origin() {
    let origins = |versions: &Versions| -> Vec<Origin> {
        versions.all.iter().map(|version| version.origin).collect()
    };
    let cut = |log: Log| origins(&cut(&log, &Promises::default()));
    let closed = || Log::default().write("s.json", 0, "b").close("s.json");
    assert_eq!(cut(Log::default().mark("m")), [Origin::Start]);
    assert_eq!(cut(closed().mark("m")), [Origin::Start, Origin::Close]);
    assert_eq!(cut(closed().replace("b")), [Origin::Start, Origin::Name]);
    assert_eq!(cut(closed().replace("b").mark("m")), [Origin::Start, Origin::Name]);
    let whole = |log| origins(&found(&tree(&[("s.json", "a")]), &log, &state(&["s.json"])));
    assert_eq!(whole(closed().replace("b")), [Origin::Start, Origin::End]);
    assert_eq!(whole(Log::default().replace("a")), [Origin::Start]);
}

#[test]
fn what_was_promised_already_is_promised_once() {
    let log = Log::default().replace("b").says("one\n").says("two\n");
    assert_eq!(cut(&log, &Promises::default()).promises.len(), 1);
}

#[test]
fn a_log_that_does_not_fit_is_an_error() {
    let log = Log::default().op(OpKind::Unlink { path: "nothing".into() });
    let error = versions(&tree(&[]), &log.events, &state(&["s.json"]), &Promises::default(), None)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "op 1 (unlink) does not fit the recorded tree: nothing: no such file"
    );
}

fn regex(text: &str) -> regex::bytes::Regex {
    regex::bytes::Regex::new(text).expect("a good expression")
}
