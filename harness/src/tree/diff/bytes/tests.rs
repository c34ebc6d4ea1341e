use proptest::prelude::*;

use super::*;

fn shown_bytes(before: impl AsRef<[u8]>, after: impl AsRef<[u8]>) -> String {
    compare_bytes(before.as_ref(), after.as_ref())
}

#[test]
fn a_text_difference_shows_the_lines_around() {
    let before: String = (1..=40).map(|n| format!("line {n}\n")).collect();
    let after = before.replace("line 20\n", "line twenty\nand a half\n").replace("line 39\n", "");
    insta::assert_snapshot!(shown_bytes(before, after));
}

#[test]
fn a_cut_text_says_where() {
    let before = "{\n  \"queue\": [\n    \"one\",\n    \"zw\u{f6}lf\"\n  ]\n}\n";
    insta::assert_snapshot!(shown_bytes(
        before,
        &before.as_bytes()[..before.find('\u{f6}').unwrap() + 1]
    ));
}

#[test]
fn a_long_line_is_cut_around_its_first_difference() {
    let before = format!("{{\"a\":\"{}\",\"n\":1,\"b\":\"{}\"}}", "x".repeat(300), "y".repeat(300));
    insta::assert_snapshot!(shown_bytes(&before, before.replace("\"n\":1", "\"n\":2")));
}

#[test]
fn a_long_text_difference_is_bounded() {
    let before: String = (0..5000).map(|n| format!("old {n}\n")).collect();
    let after: String = (0..5000).map(|n| format!("new {n}\n")).collect();
    insta::assert_snapshot!(shown_bytes(before, after));
}

#[test]
fn many_small_changes_are_bounded() {
    let before: String = (0..500).map(|n| format!("{n}\n")).collect();
    let after: String =
        (0..500).map(|n| if n % 10 == 0 { format!("{n}!\n") } else { format!("{n}\n") }).collect();
    insta::assert_snapshot!(shown_bytes(before, after));
}

#[test]
fn controls_and_line_ends_are_made_visible() {
    insta::assert_snapshot!(shown_bytes("one\ntwo\n", "one\r\n\u{1b}[31mtwo\u{202e}"));
}

#[test]
fn binary_differences_are_rows_of_hex() {
    let before: Vec<u8> = (0..=255).collect();
    let mut after = before.clone();
    after[3] = 0xff;
    after[130] = 0;
    after.truncate(250);
    insta::assert_snapshot!(shown_bytes(before, after));
}

#[test]
fn long_runs_of_nuls_are_summed_up() {
    let text = "{\"queue\": []}\n".repeat(600);
    let mut holed = text.clone().into_bytes();
    holed[4096..8192].fill(0);
    insta::assert_snapshot!("a_page_of_nuls", shown_bytes(&text, holed));
    insta::assert_snapshot!("only_nuls", shown_bytes(&text, vec![0; 9000]));
}

#[test]
fn a_long_binary_difference_is_bounded() {
    let before: Vec<u8> = (0..4000u32).map(|n| (n * 7) as u8).collect();
    let after: Vec<u8> = before.iter().map(|byte| byte ^ 0x55).collect();
    insta::assert_snapshot!(shown_bytes(before, after));
}

#[test]
fn emptied_and_grown_files_are_said_in_words() {
    insta::assert_snapshot!("emptied", shown_bytes("one\n", ""));
    insta::assert_snapshot!("grown", shown_bytes("one\n", "one\ntwo\n"));
}

proptest! {
    // Each compares thousands of random lines, which takes its time without optimisation.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_printed_is_bounded(
        a in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(0), any::<u8>()], 0..700),
        b in proptest::collection::vec(prop_oneof![Just(b'\n'), 32u8..127], 0..700),
    ) {
        for (one, other) in [(&a, &b), (&b, &a), (&b, &b.repeat(2))] {
            let text = compare_bytes(one, other);
            prop_assert!(text.lines().count() <= 30, "{}", text);
            prop_assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{:?}", text);
        }
    }
}
