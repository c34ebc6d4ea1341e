//! Every rule of the reader: what breaks it, where that is, and what the message says.

use long_horizon::checkpoint::{Checkpoint, Damage};

/// What is in the file; JSON pointer, line and column of the place; what is found there.
pub(crate) type Case<'c> = (&'c [u8], &'c str, (usize, usize), &'c str);

pub(crate) fn check(cases: &[Case<'_>]) {
    for (bytes, pointer, (line, column), found) in cases {
        let shown = String::from_utf8_lossy(bytes);
        let expected = Damage {
            found: (*found).to_owned(),
            line: *line,
            column: *column,
            pointer: (*pointer).to_owned(),
        };
        assert_eq!(Checkpoint::decode(bytes), Err(expected), "{shown}");
    }
}

#[test]
fn what_is_no_json_object() {
    check(&[
        (b"", "", (1, 1), "an empty file instead of a JSON object"),
        (b" \r\n\t", "", (2, 2), "nothing but white space instead of a JSON object"),
        (b"[]", "", (1, 1), "a JSON list instead of an object"),
        (b"\n  \"queue\"", "", (2, 3), "a JSON string instead of an object"),
        (b"null", "", (1, 1), "null instead of an object"),
        (b"true", "", (1, 1), "the bool true instead of an object"),
        (b"17.5", "", (1, 1), "the number 17.5 instead of an object"),
        (b"queue: []", "", (1, 1), "the word queue instead of an object"),
        (b"// x\n{}", "", (1, 1), "a comment (JSON has none) instead of an object"),
        (
            b"\0\0\0\0",
            "",
            (1, 1),
            "a NUL byte (a power cut can leave a file of them) instead of an object",
        ),
        (b"\x0b{}", "", (1, 1), "the character U+000B instead of an object"),
        ("\u{a0}{}".as_bytes(), "", (1, 1), "the character U+00A0 instead of an object"),
        (
            b"\xef\xbb\xbf{\"queue\": []}",
            "",
            (1, 1),
            "a byte-order mark (save the file as UTF-8 without one) instead of an object",
        ),
        (b"\xff\xfe{\0", "", (1, 1), "the byte 0xff, which is not UTF-8,"),
    ]);
}

#[test]
fn fields_that_are_unknown_missing_or_there_twice() {
    check(&[
        (b"{}", "", (1, 1), "a checkpoint without the field 'queue'"),
        (b"\n {\"notes\": []}", "", (2, 2), "a checkpoint without the field 'queue'"),
        (
            b"{\"queue\": [],\n \"note\": []}",
            "/note",
            (2, 2),
            "the unknown field 'note' (did you mean 'notes'?)",
        ),
        (
            b"{\"queue\": [], \"version\": 2}",
            "/version",
            (1, 15),
            "the unknown field 'version' (a checkpoint has queue, notes, answers, pending, sessions_run)",
        ),
        (
            b"{\"queue\": [], \"\\u001b[2J/~\": 2}",
            "/\u{1b}[2J~1~0",
            (1, 15),
            "the unknown field '\\u{1b}[2J/~' (a checkpoint has queue, notes, answers, pending, sessions_run)",
        ),
        (b"{\"Queue\": []}", "/Queue", (1, 2), "the unknown field 'Queue' (did you mean 'queue'?)"),
        (b"{\"queue\": [], \"queue\": []}", "/queue", (1, 15), "a second field 'queue'"),
        // Spelled otherwise, and still the same name.
        (b"{\"queue\": [], \"qu\\u0065ue\": []}", "/queue", (1, 15), "a second field 'queue'"),
    ]);
}

#[test]
fn values_of_the_wrong_type() {
    check(&[
        (b"{\"queue\": \"x\"}", "/queue", (1, 11), "a JSON string instead of a list of questions"),
        (b"{\"queue\": null}", "/queue", (1, 11), "null instead of a list of questions"),
        (b"{\"queue\": [\"a\", 7]}", "/queue/1", (1, 17), "the number 7 instead of a string"),
        (b"{\"queue\": [[]]}", "/queue/0", (1, 12), "a JSON list instead of a string"),
        (b"{\"queue\": [null]}", "/queue/0", (1, 12), "null instead of a string"),
        (
            b"{\"queue\": [], \"notes\": {}}",
            "/notes",
            (1, 24),
            "a JSON object instead of a list of notes",
        ),
        (
            b"{\"queue\": [], \"notes\": [{}]}",
            "/notes/0",
            (1, 25),
            "a JSON object instead of a string",
        ),
        (
            b"{\"queue\": [], \"answers\": []}",
            "/answers",
            (1, 26),
            "a JSON list instead of an object of answers",
        ),
        (
            b"{\"queue\": [], \"pending\": []}",
            "/pending",
            (1, 26),
            "a JSON list instead of an object of reasons",
        ),
        (
            b"{\"queue\": [],\n\"pending\": {\"q\": 1}}",
            "/pending/q",
            (2, 18),
            "the number 1 instead of a string",
        ),
    ]);
}

#[test]
fn answers_are_text_and_citations_and_nothing_else() {
    let case = |answer: &str, pointer: &'static str, column: usize, found: &str| {
        // Line 2 begins with the answer; its question holds both characters that a pointer escapes.
        let bytes = format!("{{\"queue\": [], \"answers\": {{\"a/b~c\":\n{answer}}}}}");
        let pointer = format!("/answers/a~1b~0c{pointer}");
        check(&[(bytes.as_bytes(), &pointer, (2, column), found)]);
    };
    case("\"x\"", "", 1, "a JSON string instead of an object with text and citations");
    case("{}", "", 1, "an answer without the field 'text'");
    case(" {\"citations\": []}", "", 2, "an answer without the field 'text'");
    case("{\"text\": \"\"}", "", 1, "an answer without the field 'citations'");
    case("{\"text\": 1}", "/text", 10, "the number 1 instead of a string");
    case(
        "{\"citations\": \"x\"}",
        "/citations",
        15,
        "a JSON string instead of a list of citations",
    );
    case(
        "{\"citations\": [\"x\", false]}",
        "/citations/1",
        21,
        "the bool false instead of a string",
    );
    case("{\"text\": \"\", \"text\": \"\"}", "/text", 14, "a second field 'text'");
    case("{\"texts\": \"\"}", "/texts", 2, "the unknown field 'texts' (did you mean 'text'?)");
    case(
        "{\"queue\": []}",
        "/queue",
        2,
        "the unknown field 'queue' (an answer has text, citations)",
    );
}

#[test]
fn a_question_is_there_once() {
    let twice = b"{\"queue\": [], \"pending\": {\"q\": \"\",\n  \"q\": \"\"}}";
    check(&[(twice, "/pending/q", (2, 3), "a question that was there before")]);
    let answer = "{\"text\": \"\", \"citations\": []}";
    let twice =
        format!("{{\"queue\": [], \"answers\": {{\"q\": {answer},\n  \"\\u0071\": {answer}}}}}");
    check(&[(twice.as_bytes(), "/answers/q", (2, 3), "a question that was there before")]);
    // The same question may be queued twice, answered and pending: sessions decide about that, not the format.
    assert!(Checkpoint::decode(b"{\"queue\": [\"q\", \"q\"], \"pending\": {\"q\": \"\"}}").is_ok());
}

#[test]
fn the_counter_is_a_whole_number_in_digits() {
    for (number, found) in [
        ("true", "the bool true"),
        ("null", "null"),
        ("\"1\"", "a JSON string"),
        ("[1]", "a JSON list"),
        ("1.0", "the number 1.0"),
        ("1e3", "the number 1e3"),
        ("1E0", "the number 1E0"),
        ("-0", "the number -0"),
        ("-1", "the number -1"),
        ("+1", "the number +1"),
        ("01", "the number 01"),
        ("00", "the number 00"),
        (".5", "the number .5"),
        ("-", "the number -"),
        ("18446744073709551616", "the number 18446744073709551616"),
        ("NaN", "the word NaN"),
        ("Infinity", "the word Infinity"),
        ("0x10", ""),
        ("1_000", ""),
    ] {
        let bytes = format!("{{\"queue\": [],\n\"sessions_run\": {number}}}");
        let expected = format!("{found} instead of a whole number from 0 to 18446744073709551615");
        match number {
            "0x10" => check(&[(
                bytes.as_bytes(),
                "",
                (2, 18),
                "the word x10 instead of a comma or a closing brace",
            )]),
            "1_000" => check(&[(
                bytes.as_bytes(),
                "",
                (2, 18),
                "the word _000 instead of a comma or a closing brace",
            )]),
            _ => check(&[(bytes.as_bytes(), "/sessions_run", (2, 17), &expected)]),
        }
    }
    for good in ["0", "1", "18446744073709551615"] {
        let bytes = format!("{{\"queue\": [], \"sessions_run\": {good}}}");
        assert_eq!(Checkpoint::decode(bytes.as_bytes()).unwrap().sessions_run.to_string(), good);
    }
    let endless = format!("{{\"queue\": [], \"sessions_run\": {}}}", "9".repeat(5000));
    let damage = Checkpoint::decode(endless.as_bytes()).unwrap_err();
    assert!(damage.found.chars().count() < 150, "{damage}");
}

#[test]
fn punctuation_and_what_follows() {
    check(&[
        (b"{\"queue\": [],}", "", (1, 13), "a comma with nothing after it"),
        (b"{\"queue\": [\"a\" , ]}", "/queue", (1, 16), "a comma with nothing after it"),
        (b"{\"queue\": [,]}", "/queue/0", (1, 12), "a comma instead of a string"),
        (
            b"{\"queue\": [\"a\" \"b\"]}",
            "/queue",
            (1, 16),
            "a JSON string instead of a comma or a closing bracket",
        ),
        (
            b"{\"queue\": [\"a\"}",
            "/queue",
            (1, 15),
            "a closing brace instead of a comma or a closing bracket",
        ),
        (
            b"{\"queue\": [] \"notes\": []}",
            "",
            (1, 14),
            "a JSON string instead of a comma or a closing brace",
        ),
        (b"{\"queue\" []}", "/queue", (1, 10), "a JSON list instead of a colon"),
        (b"{queue: []}", "", (1, 2), "the word queue instead of a name in double quotes"),
        (
            b"{'queue': []}",
            "",
            (1, 2),
            "a single quote (JSON has double quotes only) instead of a name in double quotes",
        ),
        (b"{,}", "", (1, 2), "a comma instead of a name in double quotes"),
        (b"{\"queue\": []}\n\n x", "", (3, 2), "the word x instead of the end of the file"),
        (
            b"{\"queue\": []}{\"queue\": []}",
            "",
            (1, 14),
            "a JSON object instead of the end of the file",
        ),
        (
            b"{\"queue\": []}\n\0\0",
            "",
            (2, 1),
            "a NUL byte (a power cut can leave a file of them) instead of the end of the file",
        ),
    ]);
}

#[test]
fn columns_count_code_points_and_lines_end_with_a_line_feed() {
    check(&[
        (
            "{\"queue\": [\"é🦀e\u{301}\", 1]}".as_bytes(),
            "/queue/1",
            (1, 20),
            "the number 1 instead of a string",
        ),
        (b"{\r\n\"queue\":\r\n[1]}", "/queue/0", (3, 2), "the number 1 instead of a string"),
        (b"{\r\"queue\": [1]}", "/queue/0", (1, 13), "the number 1 instead of a string"),
    ]);
}

#[test]
fn no_depth_overflows_the_stack() {
    for open in ["[", "{\"queue\":", "{\"queue\": [[", "{\"answers\": {\"q\": {\"text\": {"] {
        let deep = open.repeat(1_000_000);
        assert!(Checkpoint::decode(deep.as_bytes()).is_err());
    }
}

#[test]
fn a_message_reads_well_and_stays_short() {
    let damage = Checkpoint::decode(b"{\"queue\": [\"a\", 7]}").unwrap_err();
    insta::assert_snapshot!(damage, @"the number 7 instead of a string at line 1, column 17 (/queue/1)");
    let damage = Checkpoint::decode(b"[]").unwrap_err();
    insta::assert_snapshot!(damage, @"a JSON list instead of an object at line 1, column 1 (the top level)");
    let question = format!("What\\n\\u001b[31m is {}?", "very ".repeat(500));
    let damage = Checkpoint::decode(format!("{{\"pending\": {{\"{question}\": 1}}}}").as_bytes())
        .unwrap_err();
    insta::assert_snapshot!(damage, @r"the number 1 instead of a string at line 1, column 2539 (/pending/What\n\u{1b}[31m is very very very v…ery very very very ?)");
    assert!(damage.pointer.len() > 2500, "the pointer itself is whole");
}
