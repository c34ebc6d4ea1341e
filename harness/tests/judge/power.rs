//! What is on the disk after a power cut, by the rules of each disk model.

use std::collections::BTreeSet;
use std::path::Path;

use crashlab::fault::power::{Budget, DiskModel, MODELS, PowerCuts, PowerState};
use crashlab::op::{OpKind, What};
use crashlab::scenario::KillPoint;
use crashlab::tree::{NodeKind, Tree};

use super::build::{Log, tree};

const BUDGET: Budget = Budget { states: 1000, seed: 0 };

fn model(name: &str) -> &'static DiskModel {
    name.parse().expect("a model")
}

/// Each op of a log as a place where the power fails, and the moment before them.
fn places(log: &Log) -> Vec<(KillPoint, usize)> {
    let ops = (1..).zip(&log.events).filter_map(|(position, event)| match &event.what {
        What::Op(op) => Some((KillPoint::After(op.number), position)),
        _ => None,
    });
    [(KillPoint::After(0), 0)].into_iter().chain(ops).collect()
}

/// What blocks held before they were given to a file.
const OLD_BLOCK: &str = "(an old block..)";

/// The file in the words of these tests: `-` for none, `\0` once for any number of NULs, `OLD` for what a block held before.
pub(crate) fn text(tree: &Tree, path: &str) -> String {
    match tree.get(Path::new(path)).map(|node| &node.kind) {
        Some(NodeKind::File(bytes)) => {
            let mut text =
                String::from_utf8_lossy(&bytes.whole().expect("it is short")).into_owned();
            while text.contains("\0\0") {
                text = text.replace("\0\0", "\0");
            }
            match text.is_empty() || !OLD_BLOCK.repeat(512).starts_with(&text) {
                true => text,
                false => "OLD".to_owned(),
            }
        }
        None => "-".to_owned(),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn cuts<'a>(before: &Tree, log: &'a Log, name: &str) -> PowerCuts<'a> {
    PowerCuts::new(before, &log.events, model(name), &places(log)).expect("the log fits")
}

pub(crate) fn states<'a>(
    before: &Tree,
    log: &'a Log,
    name: &str,
) -> (PowerCuts<'a>, Vec<PowerState>) {
    let cuts = cuts(before, log, name);
    assert!(cuts.is_small());
    let states = cuts.states().collect();
    (cuts, states)
}

/// What can be found at `s.json` when the power fails after the end of the run.
pub(crate) fn at_the_end(before: &Tree, log: &Log, name: &str) -> BTreeSet<String> {
    let (_, states) = states(before, log, name);
    states.iter().filter(|state| state.ended).map(|state| text(&state.tree, "s.json")).collect()
}

/// The same for each model whose name is given, and that no other model is left out.
#[track_caller]
pub(crate) fn expect(before: &Tree, log: &Log, expected: &[(&[&str], &[&str])]) {
    let mut named = BTreeSet::new();
    for (names, found) in expected {
        for name in *names {
            let expected = found.iter().map(|text| (*text).to_owned()).collect();
            assert_eq!(at_the_end(before, log, name), expected, "{name}");
            named.insert(*name);
        }
    }
    assert_eq!(named, MODELS.iter().map(|model| model.name).collect());
}

const EXT4S: [&str; 3] = ["ext4", "ext4-noauto", "ext4-dioread-lock"];
const OTHERS: [&str; 4] = ["xfs", "btrfs", "posix", "ordered"];

fn sync_folder(log: Log, path: &str) -> Log {
    log.op(OpKind::SyncFolder { path: path.into() })
}

#[test]
fn a_rename_without_a_sync_is_old_new_or_what_the_disk_makes_of_it() {
    let before = tree(&[("s.json", "old")]);
    let log = Log::default().create("t").write("t", 0, "newer").close("t").rename("t", "s.json");
    expect(
        &before,
        &log,
        &[
            (&["ext4"], &["old", "newer", "\0"]),
            (&["ext4-noauto"], &["old", "newer", "\0", ""]),
            (&["posix"], &["old", "newer", "\0", "", "OLD"]),
            (&["ext4-dioread-lock", "ordered"], &["old", "newer"]),
            (&["xfs", "btrfs"], &["old", "newer", ""]),
        ],
    );
}

#[test]
fn a_rename_to_a_new_name_can_be_empty_everywhere() {
    let log = Log::default().create("t").write("t", 0, "new").close("t").rename("t", "s.json");
    expect(
        &tree(&[]),
        &log,
        &[
            (&["ext4", "ext4-noauto"], &["-", "new", "\0", ""]),
            (&["posix"], &["-", "new", "\0", "", "OLD"]),
            (&["ext4-dioread-lock", "xfs", "btrfs"], &["-", "new", ""]),
            (&["ordered"], &["-", "new"]),
        ],
    );
}

#[test]
fn a_synced_file_has_its_content_and_its_name_when_the_folder_is_synced() {
    let before = tree(&[("s.json", "old")]);
    let synced = || {
        Log::default().create("t").write("t", 0, "new").sync("t").close("t").rename("t", "s.json")
    };
    let either: &[&str] = &["old", "new"];
    expect(&before, &synced(), &[(&EXT4S, either), (&OTHERS, either)]);
    let log = sync_folder(synced(), "");
    expect(&before, &log, &[(&EXT4S, &["new"]), (&OTHERS, &["new"])]);
}

#[test]
fn a_sync_after_the_rename_comes_in_time_only_for_what_follows() {
    let before = tree(&[("s.json", "old")]);
    let log = Log::default().create("t").write("t", 0, "new").rename("t", "s.json").sync("s.json");
    // The log of a file system carries the name along; without one it may be missing.
    let either: &[&str] = &["old", "new"];
    expect(
        &before,
        &log,
        &[(&EXT4S, &["new"]), (&["xfs", "ordered"], &["new"]), (&["btrfs", "posix"], either)],
    );
    let (cuts, states) = states(&before, &log, "xfs");
    let empty = states.iter().find(|state| text(&state.tree, "s.json").is_empty()).unwrap();
    assert_eq!((cuts.id(empty).as_str(), empty.ended), ("3-2", false));
    assert_eq!(cuts.missing(empty), ["op 2 (write of t)"]);
    let although = "although op 3 (rename of s.json) is: no fsync of t between op 2 and op 3";
    assert_eq!(cuts.although(empty).as_deref(), Some(although));
}

#[test]
fn truncating_and_rewriting_can_be_empty_or_nuls() {
    let before = tree(&[("s.json", "older")]);
    let log = Log::default().truncate("s.json").write("s.json", 0, "new").close("s.json");
    expect(
        &before,
        &log,
        &[
            (&["ext4", "ext4-noauto"], &["older", "", "\0", "new"]),
            (&["ext4-dioread-lock", "xfs", "btrfs", "ordered"], &["older", "", "new"]),
            // The new bytes over the old ones, since nothing orders them.
            (&["posix"], &["older", "", "\0", "new", "newer", "OLD"]),
        ],
    );
}

#[test]
fn data_synced_alone_has_its_length_but_not_its_mode() {
    let before = tree(&[("s.json", "old\n")]);
    let synced = |data_only| {
        let log = Log::default().append("s.json", 4, "more\n");
        let Some(What::Op(op)) = log.events.last().map(|event| event.what.clone()) else {
            panic!()
        };
        let file = op.kind.file();
        let path = Path::new("s.json").to_owned();
        log.op(OpKind::Chmod { path: path.clone(), file, mode: 0o600 }).op(OpKind::Sync {
            file: file.unwrap(),
            path,
            data_only,
        })
    };
    for name in ["ext4", "xfs", "btrfs", "posix"] {
        for data_only in [true, false] {
            let log = synced(data_only);
            assert_eq!(
                at_the_end(&before, &log, name),
                ["old\nmore\n".to_owned()].into(),
                "{name}"
            );
            let (_, states) = states(&before, &log, name);
            let modes: BTreeSet<u32> = states
                .iter()
                .filter(|state| state.ended)
                .map(|state| state.tree.get(Path::new("s.json")).unwrap().mode)
                .collect();
            let expected = if data_only { [0o600, 0o644].into() } else { [0o600].into() };
            assert_eq!(modes, expected, "{name}, data only: {data_only}");
        }
    }
}

#[test]
fn a_failed_sync_makes_nothing_durable_and_a_later_one_does_not_mend_it() {
    let before = tree(&[("s.json", "old")]);
    let failed = What::Failed { call: "fsync".to_owned(), path: Some("s.json".into()), errno: 5 };
    let log = Log::default().write("s.json", 0, "new").what(failed).sync("s.json");
    for name in ["ext4", "xfs", "btrfs", "posix"] {
        let either = ["old".to_owned(), "new".to_owned()];
        assert_eq!(at_the_end(&before, &log, name), either.into(), "{name}");
    }
    let log = Log::default().write("s.json", 0, "new").sync("s.json");
    assert_eq!(at_the_end(&before, &log, "posix"), ["new".to_owned()].into());
}

#[test]
fn a_synced_file_in_a_folder_that_is_not_is_lost_with_it() {
    let owner = (0, 0);
    let log = || {
        Log::default()
            .op(OpKind::Mkdir { path: "d".into(), mode: 0o755, owner })
            .create("d/s.json")
            .write("d/s.json", 0, "new")
            .sync("d/s.json")
    };
    let found = |log: &Log, name| -> BTreeSet<String> {
        let (_, states) = states(&tree(&[]), log, name);
        states
            .iter()
            .filter(|state| state.ended)
            .map(|state| text(&state.tree, "d/s.json"))
            .collect()
    };
    for name in ["btrfs", "posix"] {
        assert_eq!(found(&log(), name), ["-".to_owned(), "new".to_owned()].into(), "{name}");
        let inner = sync_folder(log(), "d");
        assert_eq!(found(&inner, name), ["-".to_owned(), "new".to_owned()].into(), "{name}");
        let both = sync_folder(inner, "");
        assert_eq!(found(&both, name), ["new".to_owned()].into(), "{name}");
    }
    for name in ["ext4", "xfs"] {
        assert_eq!(found(&log(), name), ["new".to_owned()].into(), "{name}");
    }
}

#[test]
fn exchanged_names_are_exchanged_together() {
    let before = tree(&[("s.json", "one"), ("t", "two")]);
    let log = Log::default().op(OpKind::Rename {
        from: "t".into(),
        to: "s.json".into(),
        exchange: true,
        no_replace: false,
    });
    for model in &MODELS {
        let (_, states) = states(&before, &log, model.name);
        let pairs: BTreeSet<(String, String)> = states
            .iter()
            .map(|state| (text(&state.tree, "s.json"), text(&state.tree, "t")))
            .collect();
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(pairs, [pair("one", "two"), pair("two", "one")].into(), "{model}");
    }
}

#[test]
fn a_write_is_torn_at_the_blocks_of_the_disk() {
    let old = "o".repeat(8192);
    let before = tree(&[("s.json", &old)]);
    let log = Log::default().write("s.json", 0, &"n".repeat(8192));
    let boundaries = |name: &str| -> BTreeSet<usize> {
        let cuts = PowerCuts::new(&before, &log.events, model(name), &places(&log)).unwrap();
        let found = cuts.states().take(500).flat_map(|state| {
            let found = text(&state.tree, "s.json").into_bytes();
            (1..found.len()).filter(|at| found[*at] != found[at - 1]).collect::<Vec<_>>()
        });
        found.collect()
    };
    assert_eq!(boundaries("ext4"), [4096].into());
    assert_eq!(boundaries("posix"), (1..16).map(|sector| sector * 512).collect());
}

#[test]
fn the_sync_that_is_missing_is_found() {
    let before = tree(&[("s.json", "old")]);
    let log = Log::default().create("t").write("t", 0, "newer").close("t").rename("t", "s.json");
    let is_bad =
        |state: &PowerState| !["old", "newer"].contains(&text(&state.tree, "s.json").as_str());
    let repaired = |name: &str| -> Vec<String> {
        let (cuts, _) = states(&before, &log, name);
        let repair = cuts.repair(is_bad, BUDGET).expect("a repair");
        repair.iter().map(ToString::to_string).collect()
    };
    for name in ["ext4", "ext4-noauto", "xfs", "btrfs", "posix"] {
        assert_eq!(repaired(name), ["fsync t after op 2"], "{name}");
    }
}

#[test]
fn no_sync_mends_what_a_kill_leaves_as_well() {
    let before = tree(&[("s.json", "old")]);
    let log = Log::default().truncate("s.json").write("s.json", 0, "newer");
    let (cuts, states) = states(&before, &log, "ext4");
    let is_empty = |state: &PowerState| text(&state.tree, "s.json").is_empty();
    assert!(states.iter().any(|state| is_empty(state) && state.lacks() == 0));
    assert_eq!(cuts.repair(is_empty, BUDGET), None);
}

#[test]
fn what_was_overwritten_in_place_is_not_waited_for_by_its_length() {
    let before = tree(&[("s.json", "old"), ("t", "tmp")]);
    let log = Log::default().write("t", 0, "new").close("t").rename("t", "s.json");
    let found = |name| at_the_end(&before, &log, name);
    let texts = |texts: &[&str]| -> BTreeSet<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    };
    assert_eq!(found("ext4"), texts(&["old", "tmp", "new"]));
    // Nor by its data: that is waited for only where its blocks are new.
    assert_eq!(found("ext4-dioread-lock"), texts(&["old", "tmp", "new"]));
}

#[test]
fn names_come_in_the_order_of_the_log_where_there_is_one() {
    let log = Log::default().create("a").create("b");
    let b_alone = |name| {
        let (_, states) = states(&tree(&[]), &log, name);
        states.iter().any(|state| text(&state.tree, "a") == "-" && text(&state.tree, "b") != "-")
    };
    for model in &MODELS {
        assert_eq!(b_alone(model.name), ["btrfs", "posix"].contains(&model.name), "{model}");
    }
}

#[test]
fn what_a_durable_rename_waited_for_is_durable_too() {
    let before = tree(&[("s.json", "old")]);
    let log = Log::default().create("t").write("t", 0, "new").rename("t", "s.json");
    let log = sync_folder(log, "");
    let found = at_the_end(&before, &log, "ext4");
    assert_eq!(found, ["new".to_owned(), "\0".to_owned()].into(), "never empty");
}

#[test]
fn a_block_is_written_out_as_it_is_by_then() {
    let before = tree(&[("s.json", "oooo")]);
    let log = Log::default().write("s.json", 0, "aaaa").write("s.json", 2, "bb");
    for name in ["ext4", "xfs", "btrfs", "posix"] {
        let expected = ["oooo", "aaaa", "aabb"].map(str::to_owned);
        assert_eq!(at_the_end(&before, &log, name), expected.into(), "{name}");
    }
}
