//! The command, as a person and a scheduler meet it.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, also in what tests share")]

mod command;

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use command::{Folder, Ran, redacted};
use insta::assert_snapshot;
use long_horizon::checkpoint::Checkpoint;
use long_horizon::store::{self, StoreKind, Wait};

const STATE: &str = "long-horizon.json";
const ATOMIC: &str =
    "Can a program rely on one 512-byte sector being written atomically in a power failure?";
const WEAR: &str = "How many write cycles does a flash cell endure before it wears out?";

/// A folder in which all twelve questions were worked.
fn worked() -> Folder {
    let folder = Folder::new();
    folder.ok(&["run", "--until-empty", "--model", "stub:scripted"]);
    folder
}

fn checkpoint(folder: &Folder) -> Checkpoint {
    Checkpoint::decode(folder.read(STATE).as_bytes()).unwrap()
}

fn shown(ran: &Ran) -> String {
    redacted(&ran.text())
}

#[test]
fn twelve_questions_take_twelve_sessions_and_two_resolves_and_the_bytes_are_the_formats() {
    let folder = Folder::new();
    for session in 1..=12 {
        let out = folder.ok(&["run", "--model", "stub:scripted"]);
        assert!(out.starts_with(&format!("session {session}: ")), "{out}");
    }
    // Both golden files were made from the questions and the script by a separate program, with Python's json.dumps.
    assert_eq!(folder.read(STATE), include_str!("golden/worked.json"));
    assert_eq!(worked().read(STATE), folder.read(STATE));

    let note = "No: write a checksum with it, whatever the device says. \u{2014} Zo\u{eb}";
    folder.ok(&["resolve", ATOMIC, "--note", note, "--by", "zoe"]);
    folder.ok(&[
        "resolve",
        WEAR,
        "--note",
        "Out of scope here; ask the vendor \u{1F4BE}.",
        "--by",
        "zoe",
    ]);
    assert_eq!(folder.read(STATE), include_str!("golden/resolved.json"));
    let mut left: Vec<_> = folder.files().into_keys().collect();
    left.retain(|name| !name.starts_with(STATE));
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn help_reads_well() {
    let folder = Folder::new();
    assert_snapshot!("help", folder.ok(&["--help"]));
    for name in [
        "run",
        "status",
        "pending",
        "resolve",
        "timeline",
        "stop",
        "resume",
        "verify",
        "export",
        "import",
        "has-work",
        "completions",
        "man",
    ] {
        assert_snapshot!(format!("help-{name}"), folder.ok(&[name, "--help"]));
    }
}

#[test]
fn what_people_read_after_all_is_worked() {
    let folder = worked();
    assert_snapshot!("status", shown(&folder.run(&["status"])));
    assert_snapshot!("status-json", shown(&folder.run(&["status", "--json"])));
    assert_snapshot!("pending", shown(&folder.run(&["pending"])));
    assert_snapshot!("pending-json", shown(&folder.run(&["pending", "--json"])));
    assert_snapshot!("verify", shown(&folder.run(&["verify", "--notes"])));
    assert_snapshot!("verify-json", shown(&folder.run(&["verify", "--notes", "--json"])));
    folder.ok(&["resolve", WEAR, "--note", "ask the vendor", "--by", "zoe"]);
    folder.ok(&["stop", "--by", "ann", "--reason", "repairs"]);
    folder.ok(&["resume"]);
    assert_snapshot!("timeline", shown(&folder.run(&["timeline"])));
    assert_snapshot!("timeline-json", shown(&folder.run(&["timeline", "--json"])));
    assert_snapshot!("run-empty", shown(&folder.run(&["run"])));
}

#[test]
fn what_a_run_prints() {
    let args = [
        "run",
        "--sessions",
        "5",
        "--model",
        "stub:scripted",
        "--max-tokens",
        "100000",
        "--max-seconds",
        "3600",
    ];
    let folder = Folder::new();
    let ran = folder.run(&args);
    let text = shown(&ran);
    let text =
        regex::Regex::new(r"\d+ of 3600 seconds").unwrap().replace(&text, "N of 3600 seconds");
    assert_snapshot!("run", text);
    let folder = Folder::new();
    assert_snapshot!(
        "run-json",
        shown(&folder.run(&["run", "--json", "--question", "Is a rename atomic?"]))
    );
}

#[test]
fn commands_that_only_look_write_nothing() {
    let folder = worked();
    let before = folder.files();
    for args in [
        &["status"][..],
        &["pending"],
        &["timeline"],
        &["verify", "--notes"],
        &["run", "--until-empty"],
        &["resolve", "no such question", "--note", "n", "--by", "me"],
        &["resume"],
    ] {
        folder.run(args);
        assert_eq!(folder.files(), before, "{args:?}");
    }
    assert_eq!(folder.run(&["has-work"]).code, Some(1));
    assert_eq!(folder.files(), before);

    // And where nothing is there yet, nothing appears.
    let fresh = Folder::new();
    fresh.write("none.txt", "# no question\n");
    for args in [
        &["status"][..],
        &["pending"],
        &["timeline"],
        &["verify"],
        &["has-work"],
        &["run", "--queue", "none.txt"],
    ] {
        fresh.run(args);
        assert_eq!(fresh.files().into_keys().collect::<Vec<_>>(), ["none.txt"], "{args:?}");
    }
}

#[test]
fn only_a_pending_question_can_be_resolved() {
    let folder = Folder::new();
    folder.ok(&["run", "--sessions", "5", "--model", "stub:scripted"]);
    let before = folder.read(STATE);
    let resolve = |question| folder.run(&["resolve", question, "--note", "n", "--by", "me"]);
    assert_snapshot!("resolve-queued", shown(&resolve(WEAR)));
    assert_snapshot!(
        "resolve-answered",
        shown(&resolve("How often does ext4 commit its journal by default?"))
    );
    assert_snapshot!("resolve-near", shown(&resolve("can a program rely on one 512-byte sector")));
    assert_snapshot!("resolve-unknown", shown(&resolve("Why?")));
    assert_eq!(folder.read(STATE), before);
    let sessions = checkpoint(&folder).sessions_run;
    folder.ok(&["resolve", ATOMIC, "--note", "no", "--by", "me"]);
    assert_eq!(checkpoint(&folder).sessions_run, sessions);
    assert_eq!(resolve(ATOMIC).code, Some(1));

    let fresh = Folder::new();
    let ran = fresh.run(&["resolve", WEAR, "--note", "n", "--by", "me"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("there is no checkpoint"), "{ran:?}");
    assert!(!fresh.at(STATE).exists());
    for args in [&["--note", "", "--by", "me"][..], &["--note", "n", "--by", ""], &["--note", "n"]]
    {
        assert_eq!(fresh.run(&[&["resolve", WEAR], args].concat()).code, Some(2), "{args:?}");
    }
}

#[test]
fn resolve_waits_for_the_lock_and_says_for_whom() {
    let folder = worked();
    let store = store::open(StoreKind::Json, folder.at(STATE));
    let held = store.begin(Wait::Fail).unwrap();
    let mut resolve = folder
        .command(&["resolve", WEAR, "--note", "n", "--by", "me"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(resolve.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(
        said,
        format!(
            "{STATE}: process {} works on it; waiting until it has ended\n",
            std::process::id()
        )
    );
    assert!(checkpoint(&folder).pending.contains_key(WEAR));
    drop(held);
    assert!(resolve.wait().unwrap().success());
    assert!(checkpoint(&folder).answers.contains_key(WEAR));
}

#[test]
fn a_session_that_finds_the_lock_held_ends_with_75_and_names_the_holder() {
    let folder = Folder::new();
    folder.ok(&["run"]);
    let before = folder.files();
    let store = store::open(StoreKind::Json, folder.at(STATE));
    let held = store.begin(Wait::Fail).unwrap();
    let ran = folder.run(&["run"]);
    assert_eq!(ran.code, Some(75));
    assert!(ran.stderr.contains(STATE), "{ran:?}");
    assert!(ran.stderr.contains(&format!("process {}", std::process::id())), "{ran:?}");
    assert!(
        folder.ok(&["status"]).contains(&format!("running   yes, process {}", std::process::id()))
    );
    drop(held);
    let mut after = folder.files();
    after.insert("long-horizon.json.lock".to_owned(), before["long-horizon.json.lock"].clone());
    assert_eq!(after, before);
    assert!(folder.ok(&["status"]).contains("running   no"));
}

#[test]
fn a_damaged_checkpoint_is_65_everywhere_and_255_for_has_work() {
    let folder = worked();
    folder.write(STATE, "{\"queue\": [");
    let before = folder.files();
    for args in [
        &["run"][..],
        &["status"],
        &["pending"],
        &["verify"],
        &["resolve", WEAR, "--note", "n", "--by", "me"],
    ] {
        let ran = folder.run(args);
        assert_eq!(ran.code, Some(65), "{args:?}: {ran:?}");
        assert!(ran.stderr.starts_with(&format!("error: {STATE}: ")), "{args:?}: {ran:?}");
    }
    assert_eq!(folder.run(&["has-work"]).code, Some(255));
    let mut after = folder.files();
    after.retain(|name, _| before.contains_key(name));
    assert_eq!(after, before);
}

#[test]
fn has_work_speaks_to_systemd() {
    let folder = Folder::new();
    folder.write("none.txt", "\n# nothing\n");
    let code = |args: &[&str]| folder.run(&[&["has-work"], args].concat()).code;
    assert_eq!(code(&[]), Some(0));
    assert_eq!(code(&["--queue", "none.txt"]), Some(1));
    assert_eq!(code(&["--queue", "missing.txt"]), Some(255));
    assert_eq!(code(&["--no-such-flag"]), Some(255));
    assert_eq!(code(&["--help"]), Some(0));
    assert_eq!(code(&["--state", "no/such/folder/x.json"]), Some(255));
    std::os::unix::fs::symlink("nowhere", folder.at("dangling.json")).unwrap();
    assert_eq!(code(&["--state", "dangling.json"]), Some(255));
    folder.ok(&["stop"]);
    assert_eq!(code(&[]), Some(1));
    folder.ok(&["resume"]);
    folder.ok(&["run", "--until-empty", "--model", "stub:scripted"]);
    assert_eq!(code(&[]), Some(1));
    assert_eq!(code(&["--json"]), Some(1));
}

#[test]
fn a_stop_is_honoured_before_the_next_session_and_resume_ends_it() {
    let folder = Folder::new();
    folder.ok(&["run"]);
    assert_snapshot!("stop", shown(&folder.run(&["stop", "--by", "ann", "--reason", "looks odd"])));
    assert_snapshot!("stop-again", shown(&folder.run(&["stop", "--by", "bob"])));
    let before = folder.files();
    assert_snapshot!("run-stopped", shown(&folder.run(&["run", "--until-empty"])));
    assert_eq!(folder.files(), before);
    assert!(folder.ok(&["status"]).contains("stopped   yes, by ann since "));
    assert_snapshot!("resume", shown(&folder.run(&["resume", "--by", "ann"])));
    assert_snapshot!("resume-again", shown(&folder.run(&["resume"])));
    folder.ok(&["run"]);
    assert_eq!(checkpoint(&folder).sessions_run, 2);

    // Stopped for its repair: no session looks at it, so none complains.
    folder.ok(&["stop"]);
    folder.write(STATE, "{");
    folder.ok(&["run"]);
    assert_eq!(folder.read(STATE), "{");
}

/// The run is held after its first session by a full pipe; then someone stops it.
#[test]
fn a_stop_during_a_run_is_honoured_between_its_sessions() {
    use nix::fcntl::{FcntlArg, fcntl};
    use std::io::Write;

    let folder = Folder::new();
    nix::unistd::mkfifo(&folder.at("trace"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let (mut output, mut full) = std::io::pipe().unwrap();
    let capacity = fcntl(&full, FcntlArg::F_SETPIPE_SZ(4096)).unwrap();
    full.write_all(&vec![b' '; usize::try_from(capacity).unwrap()]).unwrap();
    let mut run = folder
        .command(&["run", "--until-empty", "--model", "stub:scripted", "--trace", "trace"])
        .stdout(full)
        .spawn()
        .unwrap();
    let trace = BufReader::new(std::fs::File::open(folder.at("trace")).unwrap());
    // Kept open: a trace that nobody reads would be a warning.
    let mut lines = trace.lines();
    lines
        .find(|line| line.as_ref().unwrap().contains("Write the checkpoint to disk"))
        .unwrap()
        .unwrap();
    folder.ok(&["stop", "--by", "ann"]);
    let mut text = String::new();
    output.read_to_string(&mut text).unwrap();
    assert!(run.wait().unwrap().success());
    assert_eq!(checkpoint(&folder).sessions_run, 1);
    assert!(text.contains("session 1: ") && text.contains("stopped by ann"), "{text}");
    assert!(!text.contains("session 2: "), "{text}");
}

#[test]
fn a_budget_ends_with_what_is_open_and_what_is_left() {
    let folder = Folder::new();
    let out =
        folder.ok(&["run", "--until-empty", "--model", "stub:scripted", "--max-tokens", "2000"]);
    let left: u64 = regex::Regex::new(r"budget: (\d+) of 2000 tokens left; (\d+) questions open")
        .unwrap()
        .captures(&out)
        .unwrap_or_else(|| panic!("{out}"))[1]
        .parse()
        .unwrap();
    let open = checkpoint(&folder).queue;
    assert!(left < 2000 && !open.is_empty() && open.len() < 12, "{out}");
    for question in &open {
        assert!(out.contains(&format!("\n  {question}\n")), "{question}: {out}");
    }
    let spent: u64 = {
        let log = folder.read("long-horizon.json.log.jsonl");
        let ends = log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        ends.filter(|e| e["event"] == "end")
            .map(|e| e["tokens_in"].as_u64().unwrap() + e["tokens_out"].as_u64().unwrap())
            .sum()
    };
    assert_eq!(left, 2000 - spent);

    let before = folder.read(STATE);
    let out = folder.ok(&["run", "--until-empty", "--max-seconds", "0", "--max-tokens", "1"]);
    assert!(out.contains("the time is over"), "{out}");
    assert!(out.contains("budget: 1 of 1 tokens left, 0 of 0 seconds left"), "{out}");
    let out = folder.ok(&["run", "--json", "--max-tokens", "300"]);
    let end: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(end["end"], "tokens");
    assert_eq!(end["budget"]["tokens"], serde_json::json!({"max": 300, "used": 0, "left": 300}));
    assert_eq!(end["open"].as_array().unwrap().len(), open.len());
    assert_eq!(folder.read(STATE), before);
}

#[test]
fn questions_come_from_a_file_and_from_the_command_line_and_only_into_a_fresh_queue() {
    let folder = Folder::new();
    folder.write("q.txt", "# head\r\n first \r\n\r\nsecond\n");
    let fresh = ["run", "--queue", "q.txt", "--question", "third", "--question", "first"];
    assert_eq!(folder.run(&fresh).stderr, "");
    assert_eq!(checkpoint(&folder).queue, ["second", "third"]);
    assert_eq!(folder.run(&fresh).stderr, "");
    let ran = folder.run(&["run", "--question", "a new one"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.contains("1 of them are not in it"), "{ran:?}");
    assert!(!checkpoint(&folder).queue.contains(&"a new one".to_owned()));
    assert_eq!(folder.run(&["run", "--queue", "missing.txt"]).code, Some(1));
    assert_eq!(folder.run(&["run", "--question", ""]).code, Some(2));
}

#[test]
fn a_failing_model_ends_the_run_with_1_and_the_sessions_before_it_are_kept() {
    let folder = Folder::new();
    folder.write("s.json", r#"{"a": {"text": "fine"}, "b": {"error": "overloaded"}}"#);
    let ran = folder.run(&[
        "run",
        "--until-empty",
        "--question",
        "a",
        "--question",
        "b",
        "--model",
        "stub:scripted=s.json",
    ]);
    assert_snapshot!("run-failed", shown(&ran));
    assert_eq!(checkpoint(&folder).queue, ["b"]);
    assert_eq!(checkpoint(&folder).sessions_run, 1);
    for model in ["gpt", "stub:scripted="] {
        assert_eq!(folder.run(&["run", "--model", model]).code, Some(2), "{model}");
    }
    assert_eq!(folder.run(&["run", "--model", "stub:scripted=missing.json"]).code, Some(1));
}

#[test]
fn a_reader_that_goes_away_is_no_failure_and_no_work_is_lost() {
    let folder = Folder::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = folder
        .command(&["run", "--until-empty", "--model", "stub:scripted"])
        .stdout(writer)
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
    assert_eq!(checkpoint(&folder).sessions_run, 12);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    assert!(folder.command(&["timeline"]).stdout(writer).status().unwrap().success());
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let folder = worked();
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = folder.command(&["status"]).stdout(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("cannot write the output"));
    folder.ok(&["run"]);
    let fresh = Folder::new();
    let output = fresh.command(&["has-work"]).stdout(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(255));
}

#[test]
fn a_link_is_followed_and_everything_sits_beside_its_target() {
    let folder = Folder::new();
    std::fs::create_dir(folder.at("data")).unwrap();
    folder.write(
        "data/real.json",
        Checkpoint::fresh(vec!["Is a rename atomic?".to_owned()]).encode(),
    );
    std::os::unix::fs::symlink("data/real.json", folder.at("link.json")).unwrap();
    folder.ok(&["run", "--state", "link.json"]);
    folder.ok(&["stop", "--state", "link.json"]);
    let mut names: Vec<_> =
        std::fs::read_dir(folder.at("data")).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["real.json", "real.json.lock", "real.json.log.jsonl", "real.json.stop"]);
    assert!(folder.at("link.json").is_symlink());
}

#[test]
fn nothing_in_a_question_is_obeyed_by_the_terminal() {
    let folder = Folder::new();
    let out = folder.ok(&["run", "--question", "a\u{1b}[2Jb\nsession 9: answered"]);
    assert!(out.contains("a\\u{1b}[2Jb\\nsession 9: answered"), "{out}");
    assert!(!out.contains('\u{1b}'), "{out:?}");
}
