//! Strings that are none, and files that end too early: the part of the rules that is about single bytes.

use super::refused::check;

#[test]
fn strings_that_json_does_not_have() {
    let case = |string: &str, column: usize, found: &str| {
        let bytes = format!("{{\"queue\": [\n\"{string}\"]}}");
        check(&[(bytes.as_bytes(), "/queue/0", (2, column), found)]);
    };
    case("a\nb", 3, "the control character U+000A in a string, not escaped");
    case("a\tb", 3, "the control character U+0009 in a string, not escaped");
    case("\u{1f}", 2, "the control character U+001F in a string, not escaped");
    case("ab\0", 4, "a NUL byte in a string (a power cut can leave them)");
    case("é🦀\\x", 4, "a backslash before x (U+0078), which JSON does not have");
    case("\\🦀", 2, "a backslash before 🦀 (U+1F980), which JSON does not have");
    case("\\U0041", 2, "a backslash before U (U+0055), which JSON does not have");
    case("\\u12g4", 2, "a \\u without four hexadecimal digits after it");
    case("\\u+123", 2, "a \\u without four hexadecimal digits after it");
    case("\\ud8", 2, "a \\u without four hexadecimal digits after it");
    case("\\ud83d", 2, "the lone surrogate \\ud83d, which is no character");
    case("ab\\udc00", 4, "the lone surrogate \\udc00, which is no character");
    case("\\ud83d\\ud83d\\udc00", 2, "the lone surrogate \\ud83d, which is no character");
    case("\\ud83d\\n", 2, "the lone surrogate \\ud83d, which is no character");
    case("\\ud83dx", 2, "the lone surrogate \\ud83d, which is no character");
    case("\\ud83d\\u0041", 2, "the lone surrogate \\ud83d, which is no character");
    case("\\ud83d\\uzzzz", 8, "a \\u without four hexadecimal digits after it");
    // In a name it is in the object that would have the field.
    check(&[(
        b"{\"\\udfff\": 1}",
        "",
        (1, 3),
        "the lone surrogate \\udfff, which is no character",
    )]);
    // As bytes, a surrogate is not UTF-8 at all; nor is an overlong slash, nor what is beyond the last character.
    check(&[
        (
            b"{\"queue\": [\"\xc3\xa9\xed\xa0\x80\"]}",
            "/queue/0",
            (1, 14),
            "the byte 0xed, which is not UTF-8,",
        ),
        (b"{\"queue\": [\"\xc0\xaf\"]}", "/queue/0", (1, 13), "the byte 0xc0, which is not UTF-8,"),
        (
            b"{\"queue\": [\"\xf4\x90\x80\x80\"]}",
            "/queue/0",
            (1, 13),
            "the byte 0xf4, which is not UTF-8,",
        ),
        (b"{\"queue\": []}\xff", "", (1, 14), "the byte 0xff, which is not UTF-8,"),
        // What is wrong before a broken byte comes first.
        (
            b"{\"queue\": 1, \"notes\": [\"\xff\"]}",
            "/queue",
            (1, 11),
            "the number 1 instead of a list of questions",
        ),
    ]);
}

#[test]
fn a_file_that_was_cut_off() {
    check(&[
        (b"{", "", (1, 2), "a file that was cut off where a name in double quotes was expected"),
        (b"{\"que", "", (1, 6), "a file that was cut off inside a string"),
        (b"{\"queue\"", "/queue", (1, 9), "a file that was cut off where a colon was expected"),
        (
            b"{\"queue\":\n",
            "/queue",
            (2, 1),
            "a file that was cut off where a list of questions was expected",
        ),
        (b"{\"queue\": [\"a\\", "/queue/0", (1, 15), "a file that was cut off inside a string"),
        (b"{\"queue\": [\"a\\ud8", "/queue/0", (1, 18), "a file that was cut off inside a string"),
        (
            b"{\"queue\": [\"a\\ud83d\\",
            "/queue/0",
            (1, 21),
            "a file that was cut off inside a string",
        ),
        (
            b"{\"queue\": [\"\xf0\x9f\xa6",
            "/queue/0",
            (1, 13),
            "a file that was cut off inside a character",
        ),
        (
            b"{\"queue\": [\"a\",",
            "/queue/1",
            (1, 16),
            "a file that was cut off where a string was expected",
        ),
        (
            b"{\"queue\": []",
            "",
            (1, 13),
            "a file that was cut off where a comma or a closing brace was expected",
        ),
    ]);
}
