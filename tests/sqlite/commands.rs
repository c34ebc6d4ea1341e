//! Every command with a database.

use long_horizon::store::{SqliteStore, Store, Terms};
use std::time::Duration;

use crate::command::{Folder, redacted};

const ATOMIC: &str =
    "Can a program rely on one 512-byte sector being written atomically in a power failure?";
const WEAR: &str = "How many write cycles does a flash cell endure before it wears out?";
const STATE: [&str; 2] = ["--state", "sqlite:q.db"];

fn with_state<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [args, &STATE].concat()
}

fn worked() -> Folder {
    let folder = Folder::new();
    folder.ok(&with_state(&["run", "--until-empty", "--model", "stub:scripted"]));
    folder
}

#[test]
fn all_commands_say_of_a_database_what_they_say_of_a_file() {
    let folder = worked();
    let json = Folder::new();
    json.ok(&["run", "--until-empty", "--model", "stub:scripted", "--state", "q.db"]);
    let alike = |args: &[&str]| {
        let ours = folder.run(&with_state(args));
        let theirs = json.run(&[args, &["--state", "q.db"]].concat());
        assert_eq!(redacted(&ours.text()), redacted(&theirs.text()), "{args:?}");
    };
    for args in [
        &["status"][..],
        &["status", "--json", "--max-queue", "0"],
        &["pending"],
        &["timeline"],
        &["verify", "--notes"],
        &["has-work"],
        &["run"],
        &["export"],
        &["resolve", WEAR, "--note", "ask the vendor", "--by", "zoe"],
        &["resolve", WEAR, "--note", "again", "--by", "zoe"],
        &["stop", "--by", "ann", "--reason", "repairs"],
        &["run"],
        &["resume"],
        &["pending", "--json"],
        &["verify"],
    ] {
        alike(args);
    }
}

#[test]
fn a_checkpoint_goes_through_a_database_without_a_changed_byte() {
    let folder = worked();
    assert_eq!(folder.ok(&with_state(&["export"])), include_str!("../golden/worked.json"));
    let note = "No: write a checksum with it, whatever the device says. \u{2014} Zo\u{eb}";
    folder.ok(&with_state(&["resolve", ATOMIC, "--note", note, "--by", "zoe"]));
    let note = "Out of scope here; ask the vendor \u{1F4BE}.";
    folder.ok(&with_state(&["resolve", WEAR, "--note", note, "--by", "zoe"]));
    assert_eq!(folder.ok(&with_state(&["export"])), include_str!("../golden/resolved.json"));
    for golden in [include_str!("../golden/worked.json"), include_str!("../golden/resolved.json")] {
        let folder = Folder::new();
        folder.write("in.json", golden);
        folder.ok(&with_state(&["import", "in.json"]));
        assert_eq!(folder.ok(&with_state(&["export"])), golden);
        folder.ok(&["import", "in.json", "--state", "json:out.json"]);
        assert_eq!(folder.read("out.json"), golden);
    }
}

#[test]
fn an_import_takes_nothing_but_a_checkpoint_and_no_place_that_is_taken() {
    let folder = worked();
    folder.write("in.json", "{\"queue\": []}");
    let before = folder.files();
    let ran = folder.run(&with_state(&["import", "in.json"]));
    insta::assert_snapshot!(ran.text(), @"
    error: q.db: there is a checkpoint already; nothing was written; import into another file
    [exit 1]
    ");
    folder.write("bad.json", "{\"queue\": 1}");
    let ran = folder.run(&["import", "bad.json", "--state", "sqlite:new.db"]);
    insta::assert_snapshot!(ran.text(), @"
    error: bad.json: it is no checkpoint: the number 1 instead of a list of questions at line 1, column 11 (/queue); nothing was written
    [exit 65]
    ");
    assert_eq!(folder.run(&["import", "none.json", "--state", "sqlite:new.db"]).code, Some(1));
    assert_eq!(folder.files()["q.db"], before["q.db"]);
    assert!(!folder.at("new.db").exists());
}

#[test]
fn the_store_is_told_by_name_or_before_the_file() {
    let folder = Folder::new();
    folder.ok(&["run", "--store", "sqlite"]);
    assert!(folder.read_bytes("long-horizon.db").starts_with(b"SQLite format 3\0"));
    folder.ok(&["run", "--store", "sqlite", "--state", "a.db"]);
    folder.ok(&["run", "--store", "sqlite", "--state", "sqlite:a.db"]);
    assert!(folder.ok(&["status", "--state", "sqlite:a.db"]).contains("answers   2"));
    let ran = folder.run(&["run", "--store", "json", "--state", "sqlite:a.db"]);
    insta::assert_snapshot!(ran.text(), @"
    error: --state says the store `sqlite`, and --store says `json`; give one of them
    [exit 2]
    ");
    assert_eq!(
        folder.run(&["has-work", "--store", "json", "--state", "sqlite:a.db"]).code,
        Some(255)
    );
    // Neither takes the other's file.
    folder.ok(&["run", "--state", "s.json"]);
    for state in ["json:a.db", "reference:a.db", "sqlite:s.json"] {
        assert_eq!(folder.run(&["run", "--state", state]).code, Some(65), "{state}");
    }
}

#[test]
fn who_works_now_is_told_while_others_go_on() {
    let folder = Folder::new();
    folder.ok(&with_state(&["run", "--model", "stub:scripted"]));
    let store = SqliteStore::new(folder.at("q.db"));
    let claim = |lease| {
        let mut claim = store.claim(&Terms { fresh: &[], lease }).unwrap().unwrap();
        claim.announced();
        claim
    };
    let first = claim(Duration::from_secs(3_600));
    assert!(folder.ok(&with_state(&["status"])).contains("running   yes\n"));
    let _second = claim(Duration::from_secs(3_600));
    let status = folder.ok(&with_state(&["status"]));
    assert!(status.contains("running   yes, 2 sessions"), "{status}");
    let status = folder.ok(&with_state(&["status", "--json"]));
    assert!(status.contains(r#""running":{"pid":null,"sessions":2}"#), "{status}");
    let stop = folder.run(&with_state(&["stop"]));
    assert!(stop.stderr.contains("2 sessions work on it now"), "{}", stop.stderr);
    folder.ok(&with_state(&["resume"]));

    // Nine are left to others, and then all that is left is claimed.
    let ran = folder.run(&with_state(&["run", "--until-empty", "--model", "stub:scripted"]));
    assert_eq!(ran.code, Some(75), "{ran:?}");
    assert!(ran.stderr.contains("another session holds the checkpoint"), "{ran:?}");
    drop(first);
    let ran = folder.run(&with_state(&["run", "--model", "stub:scripted"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let status = folder.ok(&with_state(&["status"]));
    assert!(status.contains("sessions  11"), "{status}");
}

#[test]
fn a_damaged_database_is_65_everywhere_and_255_for_has_work() {
    for damaged in [&b""[..], b"{\"queue\": []}", &[0; 4096]] {
        let folder = worked();
        folder.write("q.db", damaged);
        let before = folder.files();
        for args in [
            &["run"][..],
            &["status"],
            &["pending"],
            &["verify"],
            &["export"],
            &["import", "in.json"],
            &["resolve", WEAR, "--note", "n", "--by", "me"],
        ] {
            folder.write("in.json", "{\"queue\": []}");
            let ran = folder.run(&with_state(args));
            assert_eq!(ran.code, Some(65), "{args:?}: {ran:?}");
            assert!(ran.stderr.starts_with("error: q.db: "), "{args:?}: {ran:?}");
        }
        assert_eq!(folder.run(&with_state(&["has-work"])).code, Some(255));
        let mut after = folder.files();
        after.retain(|name, _| before.contains_key(name));
        assert_eq!(after, before);
    }
}
