//! What goes into a recording comes out of it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crashlab::op::What;
use crashlab::recording::read;
use crashlab::tree::unaccounted;
use proptest::collection::vec;
use proptest::prelude::*;

use super::property::again;
use super::support::{Place, event, paths, printed, recorded, written};

#[test]
fn a_run_is_in_its_recording_to_the_last_byte() {
    let place = Place::with(&[("s", "before")]);
    // Names and bytes that are no UTF-8, several names of one file, a link, a hole, and more bytes than stay in memory.
    let line = r#"n=$(printf 'a\377'); printf '\376' > "$n"; ln s other; ln -s "$n" link
        mkdir "$n.d"; mkfifo pipe; printf x | dd of=hole bs=1 seek=100000 2> /dev/null
        head -c 300000 /dev/zero | tr '\0' y > long; mv long s; printf '\375 said'"#;
    let file = place.record("f", line);
    let recorded = read(&file).unwrap();
    let run = &recorded.runs[0];
    assert!(run.trace.gaps.is_empty(), "{:?}", run.trace.gaps);
    assert_eq!(unaccounted(&run.before, &run.trace.events, &run.after), None);
    let name = Path::new(OsStr::from_bytes(b"a\xff"));
    assert!(paths(&recorded).iter().any(|path| path == name));
    assert!(run.after.get(name).is_some() && run.before.get(name).is_none());
    assert_eq!(run.trace.ends[0].stdout, b"\xfd said");
    assert!(again(&recorded) == recorded);
}

#[test]
fn the_same_lines_are_printed_as_without_a_file() {
    let place = Place::with(&[("s", "1")]);
    let line = "cat s > t; mv t s";
    let lines = |args: &[&str]| {
        let (code, out, said) = place.crashlab(&[args, &["--", "sh", "-c", line]].concat());
        assert_eq!((code, said.as_str()), (0, ""));
        let without_pids = regex::Regex::new(r"\b\d{2,}\b *").unwrap();
        without_pids.replace_all(&out, "N ").into_owned()
    };
    let file = place.file("f");
    let kept = lines(&["record", "-o", file.to_str().unwrap()]);
    assert!(kept.contains("renameat2") || kept.contains("rename "), "{kept}");
    assert!(kept.contains("t -> s"), "{kept}");
    assert_eq!(kept, lines(&["record"]));
}

#[test]
fn what_begins_with_nothing_is_recorded_twice() {
    let place = Place::with(&[]);
    let file = place.record("f", "n=$(cat s 2> /dev/null || echo 0); echo $((n + 1)) > s");
    let recorded = read(&file).unwrap();
    assert_eq!(recorded.runs.len(), 2);
    assert_eq!(recorded.runs[0].after, recorded.runs[1].before);
    let (code, out, _) = place.crashlab(&["record", "-o", "../g", "--", "sh", "-c", "echo 1 > s"]);
    assert_eq!(code, 0);
    assert!(out.starts_with("1: from nothing\n"), "{out}");
    assert!(out.contains("\n2: over what the first run left\n"), "{out}");
}

#[test]
fn json_of_names_that_are_no_text() {
    let place = Place::with(&[]);
    let (code, out, said) =
        place.crashlab(&["record", "--json", "--", "sh", "-c", r#": > "$(printf 'a\377')""#]);
    assert_eq!(code, 0, "{said}");
    let events: Vec<serde_json::Value> =
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let path = events.iter().find_map(|event| event.pointer("/what/Op/kind/Create/path"));
    assert_eq!(path, Some(&serde_json::json!({ "bytes": [97, 255] })));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    /// Around the lengths at which bytes go to the disk, and at which they go in parts.
    #[test]
    fn any_events_come_out_as_they_went_in(
        all in vec(
            (
                prop_oneof![Just(0_usize), 1..9_usize, 255..258_usize, 65_530..65_540_usize, 100_000..300_000_usize],
                any::<u8>(),
                vec(any::<u8>().prop_filter("no NUL", |byte| *byte != 0), 1..9),
            ),
            0..12,
        )
    ) {
        let mut number = 0;
        let events = all.into_iter().map(|(len, byte, name)| {
            let path = PathBuf::from(OsStr::from_bytes(&name));
            match byte % 4 {
                0 => printed(&vec![byte; len]),
                1 => event(What::Executed { path }),
                _ => {
                    number += 1;
                    written(number, &path, &vec![byte; len])
                }
            }
        });
        let recorded = recorded(events.collect());
        prop_assert!(again(&recorded) == recorded);
    }
}
