//! Power cuts, call by call: what each way to write, name and sync leaves on each disk.

use std::collections::BTreeSet;
use std::path::Path;

use crashlab::fault::power::{Budget, Looked, MODELS};
use crashlab::op::{FileId, OpKind, What};
use crashlab::tree::{NodeKind, Tree};

use super::build::{Log, tree};
use super::power::{at_the_end, cuts, expect, states, text};

const ALL: [&str; 7] =
    ["ext4", "ext4-dioread-lock", "ext4-noauto", "xfs", "btrfs", "posix", "ordered"];

fn sync_all(log: Log) -> Log {
    log.op(OpKind::SyncAll)
}

fn sync_folder(log: Log, path: &str) -> Log {
    log.op(OpKind::SyncFolder { path: path.into() })
}

/// What can be found at several paths when the power fails after the end.
fn together(before: &Tree, log: &Log, name: &str, paths: &[&str]) -> BTreeSet<String> {
    let (_, states) = states(before, log, name);
    let at = |tree: &Tree| paths.iter().map(|path| text(tree, path)).collect::<Vec<_>>().join(" ");
    states.iter().filter(|state| state.ended).map(|state| at(&state.tree)).collect()
}

fn set(texts: &[&str]) -> BTreeSet<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// A file without a name, that is then linked to one.
fn nameless(is_synced: bool) -> Log {
    let file = FileId(90);
    let data = b"new".to_vec().into();
    let path = Path::new("#1").to_owned();
    let log = Log::default()
        .op(OpKind::Create { file, path: None, mode: 0o644, owner: (0, 0) })
        .op(OpKind::Write { file, path: path.clone(), offset: 0, data, append: false });
    let log = match is_synced {
        true => log.op(OpKind::Sync { file, path, data_only: false }),
        false => log,
    };
    log.op(OpKind::Link { file, from: None, to: "s.json".into() })
}

#[test]
fn a_nameless_file_that_is_linked_is_whole_where_it_was_synced() {
    expect(&tree(&[]), &nameless(true), &[(&ALL, &["-", "new"])]);
    expect(
        &tree(&[]),
        &nameless(false),
        &[
            (&["ext4", "ext4-noauto"], &["-", "new", "\0", ""]),
            (&["posix"], &["-", "new", "\0", "", "OLD"]),
            (&["ext4-dioread-lock", "xfs", "btrfs"], &["-", "new", ""]),
            (&["ordered"], &["-", "new"]),
        ],
    );
    let log = sync_folder(nameless(true), "");
    expect(&tree(&[]), &log, &[(&ALL, &["new"])]);
}

#[test]
fn an_exchange_starts_no_write_back() {
    let before = tree(&[("s.json", "old")]);
    let log = Log::default().create("t").write("t", 0, "new").op(OpKind::Rename {
        from: "t".into(),
        to: "s.json".into(),
        exchange: true,
        no_replace: false,
    });
    expect(
        &before,
        &log,
        &[
            (&["ext4", "ext4-noauto"], &["old", "new", "\0", ""]),
            (&["posix"], &["old", "new", "\0", "", "OLD"]),
            (&["ext4-dioread-lock", "xfs", "btrfs"], &["old", "new", ""]),
            (&["ordered"], &["old", "new"]),
        ],
    );
}

#[test]
fn both_names_of_a_file_show_the_same() {
    let before = tree(&[("s.json", "old")]);
    let log = Log::default().link("s.json", "t").write("s.json", 0, "new");
    for model in &MODELS {
        let found = together(&before, &log, model.name, &["s.json", "t"]);
        let ordered = set(&["old -", "old old", "new new"]);
        let any = set(&["old -", "old old", "new -", "new new"]);
        assert_eq!(found, if model.name == "ordered" { ordered } else { any }, "{model}");
    }
}

#[test]
fn the_old_file_can_be_gone_before_the_new_one_has_its_name_where_there_is_no_log() {
    let before = tree(&[("a", "old")]);
    let op = OpKind::Unlink { path: "a".into() };
    let log = Log::default().create("b").write("b", 0, "new").sync("b").op(op);
    for model in &MODELS {
        let found = together(&before, &log, model.name, &["a", "b"]);
        let has_log = !["btrfs", "posix"].contains(&model.name);
        assert_eq!(found.contains("- -"), !has_log, "{model}: {found:?}");
        assert!(found.contains("old new") && found.contains("- new"), "{model}: {found:?}");
    }
}

#[test]
fn a_name_that_is_taken_away_and_given_again_can_be_free() {
    let before = tree(&[("s.json", "old")]);
    let unlink = OpKind::Unlink { path: "s.json".into() };
    let log = Log::default().create("t").write("t", 0, "new").sync("t").close("t").op(unlink);
    let log = log.rename("t", "s.json");
    expect(&before, &log, &[(&ALL, &["old", "-", "new"])]);
}

#[test]
fn an_append_is_nuls_where_a_length_comes_before_its_data() {
    let before = tree(&[("s.json", "old")]);
    let log = Log::default().append("s.json", 3, "+more");
    expect(
        &before,
        &log,
        &[
            (&["ext4", "ext4-noauto", "posix"], &["old", "old\0", "old+more"]),
            (&["ext4-dioread-lock", "xfs", "btrfs", "ordered"], &["old", "old+more"]),
        ],
    );
    expect(&before, &log.sync("s.json"), &[(&ALL, &["old+more"])]);
}

#[test]
fn a_length_does_not_wait_for_what_was_overwritten_in_place() {
    let old = "o".repeat(4096);
    let before = tree(&[("s.json", &old)]);
    let log = Log::default().write("s.json", 0, &"n".repeat(4096)).append("s.json", 4096, "more");
    for name in ["xfs", "btrfs", "ext4-dioread-lock", "ext4", "posix"] {
        let found = at_the_end(&before, &log, name);
        assert!(found.contains(&format!("{old}more")), "{name}");
    }
}

#[test]
fn what_is_set_aside_reads_as_nuls_and_waits_for_nothing() {
    let before = tree(&[("s.json", "old")]);
    let log = Log::default().write("s.json", 0, "new").allocate("s.json", 8);
    expect(
        &before,
        &log,
        &[(&ALL[..6], &["old", "new", "old\0", "new\0"]), (&["ordered"], &["old", "new", "new\0"])],
    );
    // Nor does what is written then wait for that, but for what lies behind the old end to be seen.
    let log = Log::default().allocate("s.json", 8).write("s.json", 0, "new");
    for name in &ALL[..6] {
        assert!(at_the_end(&before, &log, name).contains("new"), "{name}");
    }
}

#[test]
fn a_hole_is_punched_in_what_has_been_written_out() {
    let before = tree(&[("s.json", "old")]);
    let punch = OpKind::Allocate {
        file: FileId(0),
        path: "s.json".into(),
        mode: libc_punch_and_keep(),
        offset: 0,
        len: 3,
    };
    let log = Log::default().write("s.json", 0, "new").op(punch);
    expect(&before, &log, &[(&ALL, &["old", "new", "\0"])]);
}

/// `FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE`.
fn libc_punch_and_keep() -> i32 {
    3
}

#[test]
fn everything_is_durable_after_sync_and_nothing_after_sync_file_range() {
    let before = tree(&[("s.json", "old")]);
    let replaced = || Log::default().replace("new");
    expect(&before, &sync_all(replaced()), &[(&ALL, &["new"])]);
    let (file, path) = (FileId(0), Path::new("t").to_owned());
    let ranged = || {
        let log = Log::default().create("t").write("t", 0, "new");
        log.op(OpKind::SyncRange { file, path: path.clone() }).close("t").rename("t", "s.json")
    };
    for name in ALL {
        let plain = at_the_end(&before, &replaced(), name);
        assert_eq!(at_the_end(&before, &ranged(), name), plain, "{name}");
    }
}

#[test]
fn sync_does_not_mend_what_a_failed_fsync_left() {
    let before = tree(&[("s.json", "old")]);
    let failed = What::Failed { call: "fsync".to_owned(), path: Some("s.json".into()), errno: 5 };
    let log = sync_all(Log::default().write("s.json", 0, "new").what(failed));
    expect(&before, &log, &[(&ALL, &["old", "new"])]);
    // What is written anew is not what failed.
    let log = log.write("s.json", 0, "newer").sync("s.json");
    expect(&before, &log, &[(&ALL, &["newer"])]);
}

#[test]
fn a_failed_sync_of_a_folder_makes_no_name_durable() {
    let before = tree(&[("s.json", "old")]);
    let failed = What::Failed { call: "fsync".to_owned(), path: Some("".into()), errno: 5 };
    let log = Log::default().create("t").write("t", 0, "new").sync("t").close("t");
    let log = sync_folder(log.rename("t", "s.json").what(failed), "");
    for name in ["btrfs", "posix"] {
        assert_eq!(at_the_end(&before, &log, name), set(&["old", "new"]), "{name}");
    }
}

#[test]
fn a_sync_of_a_folder_is_one_of_its_mode_as_well() {
    let before = tree(&[("d/s.json", "old")]);
    let chmod = OpKind::Chmod { path: "d".into(), file: None, mode: 0o700 };
    for name in ALL {
        let log = sync_folder(Log::default().op(chmod.clone()), "d");
        let (_, states) = states(&before, &log, name);
        let ended = states.iter().filter(|state| state.ended);
        let modes: BTreeSet<u32> =
            ended.map(|state| state.tree.get(Path::new("d")).unwrap().mode).collect();
        assert_eq!(modes, [0o700].into(), "{name}");
    }
}

#[test]
fn a_folder_that_is_moved_takes_what_is_in_it_along() {
    let before = tree(&[("d/s.json", "old")]);
    let log = Log::default().rename("d", "e");
    for model in &MODELS {
        let found = together(&before, &log, model.name, &["d/s.json", "e/s.json"]);
        assert_eq!(found, set(&["old -", "- old"]), "{model}");
    }
    let (_, states) = states(&before, &log, "posix");
    let folders =
        |tree: &Tree| tree.nodes.values().filter(|node| node.kind == NodeKind::Folder).count();
    assert!(states.iter().all(|state| folders(&state.tree) == 2));
}

/// Twelve parts that nothing orders: all that is legal is tried, each state once.
#[test]
fn a_small_run_is_tried_as_a_whole() {
    let before = tree(&[("s.json", &"o".repeat(12 * 512))]);
    let log = Log::default().write("s.json", 0, &"n".repeat(12 * 512));
    let cuts = cuts(&before, &log, "posix");
    assert!(cuts.is_small());
    let mut found = BTreeSet::new();
    let budget = Budget { states: 5000, seed: 0 };
    let share = cuts.try_within(budget, |state| match found.insert(text(&state.tree, "s.json")) {
        true => Looked::New,
        false => Looked::Known,
    });
    assert!(share.complete, "{share:?}");
    assert_eq!((found.len(), share.states), (1 << 12, 1 << 12));
}

/// A sample is the same for the same seed, keeps to the budget, and takes something from every kind of state.
#[test]
fn a_large_run_is_sampled_by_its_seed() {
    let blocks = 100;
    let before = tree(&[("s.json", &"o".repeat(blocks * 512))]);
    let log = (0..blocks).fold(Log::default(), |log, block| {
        log.write("s.json", block as u64 * 512, &"n".repeat(512))
    });
    let cuts = cuts(&before, &log, "posix");
    let tried = |seed| {
        let (mut found, mut events) = (BTreeSet::new(), BTreeSet::new());
        let share = cuts.try_within(Budget { states: 200, seed }, |state| {
            events.insert(state.events);
            match found.insert(cuts.id(&state)) {
                true => Looked::New,
                false => Looked::Known,
            }
        });
        assert!(!share.complete && share.states <= 200 && share.at_most >= 100.0, "{share:?}");
        assert!(events.last().is_some_and(|last| *last == blocks), "{events:?}");
        found
    };
    assert_eq!(tried(1), tried(1));
    assert_ne!(tried(1), tried(2));
}

/// Only a block that is given to a file for the data holds what was there before.
#[test]
fn old_blocks_show_where_nothing_else_was_written_to_them() {
    let shows = |before: &Tree, log: &Log| at_the_end(before, log, "posix").contains("OLD");
    let nothing = tree(&[]);
    let log = || Log::default().create("s.json");
    assert!(shows(&nothing, &log().write("s.json", 0, "new")));
    assert!(!shows(&nothing, &log().write("s.json", 0, "new").sync("s.json")));
    // The file system knows that what was allocated was not written.
    assert!(!shows(&nothing, &log().allocate("s.json", 3).write("s.json", 0, "new")));
    let before = tree(&[("s.json", "old")]);
    assert!(!shows(&before, &Log::default().write("s.json", 0, "new")), "its block was its own");
    let log = log().write("s.json", 0, "new");
    let (cuts, states) = states(&nothing, &log, "posix");
    let old = states.iter().find(|state| text(&state.tree, "s.json") == "OLD").expect("found");
    assert_eq!(cuts.id(old), "2-2d-old");
    let told =
        "where data is missing, the blocks show what they held before, as parts of other files";
    assert_eq!(cuts.missing(old), ["the data of op 2 (write of s.json)", told]);
    // NULs are enough where they are as bad.
    let smaller: Vec<_> = cuts.with_one_more(old).map(|state| cuts.id(&state)).collect();
    assert_eq!(smaller, ["2-2d", "2"]);
}
