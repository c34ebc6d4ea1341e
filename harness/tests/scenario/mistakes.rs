//! Every mistake is said with its place, what was expected there, and the nearest right name.

use proptest::prelude::*;

use super::property::holds_for;
use crate::replay::replay;
use crate::{FULL, LEAST, OneFile, rendered};

/// `(what is wrong, the text that is replaced, what it is replaced by)`, on [`FULL`].
type Change = (&'static str, &'static str, &'static str);

/// All changes one by one, with what is said about each.
fn report(changes: &[Change]) -> String {
    let mut report = String::new();
    for (what, old, new) in changes {
        assert!(FULL.contains(old), "{what}: {old:?} is not in the file");
        report += &format!("## {what}\n\n{}\n", said(&FULL.replacen(old, new, 1)));
    }
    report
}

fn said(text: &str) -> String {
    let file = OneFile::new(text);
    let errors = file.load().expect_err("the mistake was not found");
    for error in &errors {
        assert_eq!(error.file(), file.path);
        assert!(error.line().is_some_and(|line| line <= text.lines().count() + 1));
        assert!(!error.found().is_empty() && !error.expected().is_empty());
        let fits = |line: &str| line.chars().count() <= 80 || line.contains('/');
        assert!(error.render(80).lines().all(fits), "{}", error.render(80));
    }
    rendered(&errors, file.folder.path())
}

#[test]
fn of_syntax() {
    let report = report(&[
        ("a string that does not end", "title = \"Every key once\"", "title = \"Every key once"),
        ("no value", "root = \".\"", "root ="),
        ("a key twice", "root = \".\"", "root = \".\"\nroot = \"..\""),
        ("a table twice", "[recovery]", "[subject]\n[recovery]"),
    ]);
    insta::assert_snapshot!(report);
}

#[test]
fn of_keys() {
    let report = report(&[
        ("a slip at the top level", "proves =", "prove ="),
        ("a slip in the subject", "command = [\"prog\", \"{dir}", "comand = [\"prog\", \"{dir}"),
        ("another spelling", "time-limit", "time_limit"),
        ("a key in the wrong table", "[recovery]", "[recovery]\nstate = [\"x\"]"),
        ("a key of another fault", "kind = \"kill\"", "kind = \"kill\"\norder = []"),
        ("a stranger", "pipe = true", "colour = \"red\""),
        ("no subject's state", "state = [\"state.json\", \"journal\"]", ""),
        ("a fault without kind", "kind = \"kill\"", ""),
        ("a verdict for a kind", "kind = \"kill\"", "kind = \"new\""),
        ("a fault of no kind", "kind = \"kill\"", "kind = \"kil\""),
        ("a kind that is no string", "kind = \"kill\"", "kind = 9"),
        ("an overlap without a name", "name = \"two-sessions\"", ""),
        ("an empty variable", "env = { LANG = \"C\" }", "env = { \"\" = \"C\" }"),
    ]);
    insta::assert_snapshot!(report);
}

#[test]
fn of_types() {
    let report = report(&[
        (
            "one string for a list",
            "state = [\"state.json\", \"journal\"]",
            "state = \"state.json\"",
        ),
        ("a number for a title", "title = \"Every key once\"", "title = 7"),
        ("a number in quotes", "time-limit = 20", "time-limit = \"20\""),
        ("a fraction", "time-limit = 20", "time-limit = 1.5"),
        ("too much time", "time-limit = 20", "time-limit = 3601"),
        ("no time", "time-limit = 20", "time-limit = 0"),
        ("more than a number holds", "time-limit = 20", "time-limit = 99999999999999999999"),
        ("a number for truth", "pipe = true", "pipe = \"1\""),
        ("a word for a list of words", "expect = [\"lost\"]", "expect = \"lost\""),
        ("truth in quotes", "pipe = true", "pipe = \"true\""),
        ("a date", "proves = \"That all of them are read\"", "proves = 2026-11-29"),
        ("a number for a command", "command = \"prog --again\"", "command = 1"),
        ("a number in a command", "command = [\"prog\", \"status\"]", "command = [\"prog\", 1]"),
        ("an empty command", "command = [\"prog\", \"status\"]", "command = []"),
        ("a blank command", "command = \"prog --again\"", "command = \" \""),
        (
            "a program without a name",
            "command = [\"prog\", \"status\"]",
            "command = [\"\", \"status\"]",
        ),
        ("no state", "state = [\"state.json\", \"journal\"]", "state = []"),
        (
            "a table for a list",
            "setup = [[\"prog\", \"init\"], \"touch ready\"]",
            "setup = { a = \"b\" }",
        ),
        ("a string for a table", "env = { LANG = \"C\" }", "env = \"LANG=C\""),
        ("a number in the environment", "env = { LANG = \"C\" }", "env = { LANG = 1 }"),
        ("a kill point that is neither", "at = [\"all\", 12,", "at = [\"all\", true,"),
        ("a negative op", "at = [\"all\", 12,", "at = [\"all\", -1,"),
    ]);
    insta::assert_snapshot!(report);
}

#[test]
fn of_forms() {
    let report = report(&[
        ("two lines", "title = \"Every key once\"", "title = \"Every\\nkey\""),
        ("a blank line", "proves = \"That all of them are read\"", "proves = \"  \""),
        ("an absolute path", "\"state.json\", \"journal\"", "\"/var/state.json\", \"journal\""),
        ("a path that leaves", "\"state.json\", \"journal\"", "\"state.json\", \"../journal\""),
        ("a path with a dot", "volatile = [\"cache.db\"]", "volatile = [\"./cache.db\"]"),
        ("an empty path", "effects = [\"sent.log\"]", "effects = [\"\"]"),
        ("a slip in an op's word", "\"rename#1\"", "\"renam#1\""),
        ("an op's word alone", "\"rename#1\"", "\"rename\""),
        ("the zeroth", "\"rename#1\"", "\"rename#0\""),
        ("no bytes", "\"12+4096\"", "\"12+\""),
        ("a number too large", "\"13\"", "\"4294967296\""),
        ("nothing of the kind", "\"13\"", "\"sometimes\""),
        ("a mark with a blank", "\"mark:model-called\"", "\"mark:model called\""),
        ("a mark without a count", "\"mark:saved#2\"", "\"mark:saved#\""),
        ("a mark with its prefix", "never = [\"model-called\"]", "never = [\"mark:model-called\"]"),
        ("a mark of an acknowledgement", "\"mark:saved\", ", "\"mark:\", "),
        ("an acknowledgement that is no expression", "\"^saved [0-9]+$\"", "\"^saved [0-9+$\""),
        ("an expression that is none", "says = \"pending since .* days\"", "says = \"(pending\""),
        ("an expression that is always found", "says = \"pending since .* days\"", "says = \"\""),
        ("a name in capitals", "name = \"two-sessions\"", "name = \"Two_Sessions\""),
        ("a name of a process", "second = [\"prog\"]", "\"second one\" = [\"prog\"]"),
        ("a turn without until", "\"first until end\"", "\"first to end\""),
        ("a turn to a bare mark", "\"second until mark:loaded\"", "\"second until loaded\""),
        ("a turn with two blanks", "\"first until end\"", "\"first  until end\""),
        ("a turn of nobody", "\"first until end\"", "\"until end\""),
        ("a NUL", "\"prog --again\"", "\"prog\\u0000\""),
    ]);
    insta::assert_snapshot!(report);
}

#[test]
fn of_faults() {
    let report = report(&[
        ("a damage that does not exist", "\"truncated\", \"empty\"", "\"truncatd\", \"empty\""),
        ("no number of bytes", "\"bit-flip/*\"", "\"bit-flip/first\""),
        ("no JSON pointer", "missing/a~1b/0", "missing/a~b"),
        ("no damage", "[\"truncated\", \"empty\", \"bit-flip/*\", \"missing/a~1b/0\"]", "[]"),
        ("no place to try", "at-most = 8", "at-most = 0"),
        ("no command", "valid = [\"is-valid\", \"0001\"]", "valid = [\"\"]"),
        ("a file that is no state", "file = \"journal/0001\"", "file = \"stat.json\""),
        ("a good verdict is expected", "expect = [\"lost\"]", "expect = [\"serial\"]"),
        ("what was not tried is expected", "expect = [\"lost\"]", "expect = [\"skipped\"]"),
        ("a slip in a verdict", "expect = [\"lost\"]", "expect = [\"losst\"]"),
        ("an order with a stranger", "\"first until end\"", "\"frist until end\""),
        ("a saying of a stranger", "says = { second =", "says = { third ="),
        ("a saying that is none", "says = { second = \"^busy\" }", "says = { second = \"(busy\" }"),
        (
            "no order",
            "order = [\"second until mark:loaded\", \"first until end\", \"second until end\"]",
            "order = []",
        ),
        (
            "one process",
            "processes = { second = [\"prog\"], first = \"prog --slow\" }",
            "processes = { second = [\"prog\"] }",
        ),
        ("a name twice", "name = \"old-pending\"", "name = \"two-sessions\""),
        (
            "no kill point",
            "at = [\"all\", 12, \"13\", \"12+4096\", \"rename#1\", \"mark:model-called\", \"mark:saved#2\"]",
            "at = []",
        ),
    ]);
    insta::assert_snapshot!(report);
    let one_table = LEAST.replace("[[fault]]", "[fault]");
    insta::assert_snapshot!("of_faults_as_one_table", said(&one_table));
}

#[test]
fn of_folders() {
    let report = report(&[
        ("no root", "root = \".\"", "root = \"nowhere\""),
        ("no files", "files = \"start\"", "files = \"strat\""),
        ("files that are one file", "files = \"start\"", "files = \"case.toml\""),
        ("no path, and no build that could make it", "build = \"make all\"\n", ""),
    ]);
    insta::assert_snapshot!(report);
}

#[test]
fn of_several_kinds_in_one_file() {
    let text = "titel = \"x\"\n\n[subject]\ncommand = 1\nstate = [\"/a\", \"../b\"]\n\n[[fault]]\nkind = \"kill\"\nat = [\"renam#1\", \"x\"]\n\n[[fault]]\nkind = \"oops\"\n";
    insta::assert_snapshot!(said(text));
}

#[test]
fn a_long_line_is_cut_around_the_mistake() {
    let long = "x".repeat(200);
    let text = LEAST.replace(
        "state = [\"state\"]",
        &format!(
            "env = {{ A = \"{long}\" }}\nstate = [\"{long}\", \"a\", \"/b\", \"{long}\"]\t# ä"
        ),
    );
    insta::assert_snapshot!(said(&text));
}

#[test]
fn in_one_line_for_machines() {
    let file = OneFile::new(&LEAST.replace("proves", "prooves"));
    let errors = file.load().unwrap_err();
    let lines: Vec<String> = errors
        .iter()
        .map(|error| error.to_string().replace(&file.path.display().to_string(), "case.toml"))
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn nothing_that_a_terminal_obeys_is_shown() {
    let key = LEAST.replace("proves =", "\"\\u001b[2J\\n\" = 1 # \u{202e}\nproves =");
    let folder = LEAST.replace("proves =", "root = \"a\\u001b[2Jb\"\nproves =");
    insta::assert_snapshot!([said(&key), said(&folder)].concat(), @r#"
    error: unknown key `\u{1b}[2J\n` at the top level
     --> /scenarios/case.toml:2:1
      |
    2 | "\u001b[2J\n" = 1 #
      | ^^^^^^^^^^^^^
      = expected: one of `title`, `proves`, `root`, `build`, `path`, `needs`,
                  `probe`, `subject`, `recovery`, `fault`
    error: cannot find /scenarios/a\u{1b}[2Jb: No such file or directory (os error 2)
     --> /scenarios/case.toml:2:8
      |
    2 | root = "a\u001b[2Jb"
      |        ^^^^^^^^^^^^^
      = expected: a folder, relative to /scenarios
    "#);
    let name = std::path::Path::new("/a\u{1b}b.toml");
    let errors = crashlab::scenario::Scenario::parse(name, "x").unwrap_err();
    let shown = [errors[0].to_string(), errors[0].render(80)].concat();
    assert!(!shown.contains('\u{1b}') && shown.contains("/a\\u{1b}b.toml"), "{shown}");
}

#[test]
fn columns_count_characters() {
    let file = OneFile::new(
        &LEAST.replace("command = ", "env = { \"ä\" = \"ö\", \"b\" = 1 }\ncommand = "),
    );
    let errors = file.load().unwrap_err();
    assert_eq!((errors[0].line(), errors[0].column()), (Some(5), Some(26)));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 200, ..ProptestConfig::default() })]

    /// Whatever is written into a file, it loads, or its mistakes have places that exist and can be shown.
    #[test]
    fn any_text_gets_an_answer(
        place in any::<prop::sample::Index>(),
        cut in 0..40_usize,
        text in "[\\[\\]{}=\"'#\n\r\t ,a-z0-9äß\u{1F980}\u{0}]{0,6}",
    ) {
        let start = place.index(FULL.len());
        let end = (start + cut).min(FULL.len());
        holds_for(format!("{}{text}{}", &FULL[..start], &FULL[end..]).as_bytes());
    }
}

#[test]
fn no_file_of_the_corpus_is_without_an_answer_nor_one_like_it() {
    replay(concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/scenario"), holds_for);
}
