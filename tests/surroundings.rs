//! What lies around a checkpoint and is not as it should be: none of it blocks a command, or changes what it ends with.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, also in what tests share")]

mod command;

use std::os::unix::fs::{MetadataExt, chown, symlink};

use command::Folder;
use long_horizon::checkpoint::Checkpoint;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::Value;

const STATE: &str = "long-horizon.json";
const LOG: &str = "long-horizon.json.log.jsonl";
const STOP: &str = "long-horizon.json.stop";
/// Owns nothing, on every system.
const NOBODY: u32 = 65534;

fn checkpoint(folder: &Folder) -> Checkpoint {
    Checkpoint::decode(folder.read(STATE).as_bytes()).unwrap()
}

/// Reading a pipe would wait for a writer, and a device has no end.
#[test]
fn a_log_that_is_no_file_is_told_and_waited_for_by_nobody() {
    for (what, make) in [
        ("a named pipe", (|path| mkfifo(path, Mode::S_IRWXU).unwrap()) as fn(&std::path::Path)),
        ("a device", |path| symlink("/dev/zero", path).unwrap()),
        ("a folder", |path| std::fs::create_dir(path).unwrap()),
    ] {
        let folder = Folder::new();
        make(&folder.at(LOG));
        for args in [&["run"][..], &["run", "--sessions", "2"], &["status"], &["timeline"]] {
            let ran = folder.run(args);
            assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
            let warning = format!("warning: {LOG}: cannot ");
            assert_eq!(
                ran.stderr.matches(&warning).count(),
                sessions_of(args),
                "{args:?}: {ran:?}"
            );
            assert!(ran.stderr.contains(&format!("it is {what}, not a file")), "{args:?}: {ran:?}");
        }
        assert_eq!(checkpoint(&folder).sessions_run, 3);
    }
}

/// How often a command finds out that it cannot use the log, the same reason counted once for each session.
fn sessions_of(args: &[&str]) -> usize {
    args.get(2).map_or(1, |count| count.parse().unwrap())
}

#[test]
fn a_stop_file_that_is_a_pipe_is_an_error_and_not_a_go() {
    let folder = Folder::new();
    mkfifo(&folder.at(STOP), Mode::S_IRWXU).unwrap();
    let ran = folder.run(&["run"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains(&format!("{STOP}: cannot read the stop file")), "{ran:?}");
    assert_eq!(folder.run(&["has-work"]).code, Some(255));
    assert!(!folder.at(STATE).exists());
    folder.ok(&["resume"]);
    folder.ok(&["run"]);
}

#[test]
fn a_broken_corpus_or_model_matters_only_where_there_is_work() {
    let broken = [
        &["run", "--corpus", "no-such-folder"][..],
        &["run", "--model", "stub:scripted=no-such-file"],
    ];
    let folder = Folder::new();
    for args in broken {
        assert_eq!(folder.run(args).code, Some(1), "{args:?}");
    }
    folder.ok(&["stop"]);
    for args in broken.into_iter().chain([&["run", "--queue", "no-such-file"][..]]) {
        assert!(folder.ok(args).contains("stopped"), "{args:?}");
    }
    folder.ok(&["resume"]);
    folder.write(STATE, Checkpoint::fresh(vec![]).encode());
    for args in broken {
        assert_eq!(folder.ok(args).lines().next(), Some("nothing to do: the queue is empty"));
    }
    folder.write(STATE, "{");
    for args in broken {
        assert_eq!(folder.run(args).code, Some(65), "{args:?}");
    }
}

#[test]
fn an_empty_queue_has_the_first_step_in_its_trace_and_no_other() {
    let folder = Folder::new();
    folder.write(STATE, Checkpoint::fresh(vec![]).encode());
    folder.ok(&["run", "--trace", "t.jsonl"]);
    let trace = folder.read("t.jsonl");
    assert_eq!(trace.lines().count(), 1);
    assert!(trace.contains("A trigger starts a session"), "{trace}");
}

#[test]
fn a_question_that_is_given_twice_is_queued_once_whatever_wrote_the_file() {
    let folder = Folder::new();
    folder.write("q.txt", "\u{feff}one?\r\n\r\n  two?  \r\n# no question\r\none?\r\n");
    folder.ok(&["run", "--sessions", "0", "--queue", "q.txt"]);
    assert!(!folder.at(STATE).exists());
    folder.ok(&["run", "--queue", "q.txt", "--question", "three?", "--question", "two?"]);
    let checkpoint = checkpoint(&folder);
    assert!(checkpoint.answers.contains_key("one?") || checkpoint.pending.contains_key("one?"));
    assert_eq!(checkpoint.queue, ["two?", "three?"]);
}

#[test]
fn a_part_of_the_corpus_that_cannot_be_read_is_not_left_out_in_silence() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.at("corpus/not-a-file.md")).unwrap();
    folder.write("corpus/a.md", "\u{feff}## 1. One\ntext\n## 2. Two\nrest\n");
    let run = || folder.run(&["run", "--corpus", "corpus", "--question", "rest"]);
    symlink("nowhere", folder.at("corpus/b.md")).unwrap();
    let ran = run();
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.starts_with("error: corpus/b.md: cannot read the corpus: "), "{ran:?}");

    std::fs::remove_file(folder.at("corpus/b.md")).unwrap();
    folder.write("corpus/b.md", "## 1. A\n\n## 1. B\n");
    let ran = run();
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.starts_with("error: corpus/b.md, line 3: section 1 is there twice"),
        "{ran:?}"
    );

    std::fs::remove_file(folder.at("corpus/b.md")).unwrap();
    assert_eq!(run().code, Some(0));
    assert_eq!(checkpoint(&folder).answers["rest"].citations, ["a#2"]);
}

#[test]
fn json_holds_nothing_that_a_terminal_obeys() {
    let folder = Folder::new();
    let question = "q\u{1b}[2J\u{9b}31m\u{7f}\u{202e}";
    let ran = folder.run(&["run", "--json", "--question", question, "--model", "stub"]);
    let obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!ran.stdout.contains(obeyed), "{ran:?}");
    let first: Value = serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(first["question"], question);
}

#[test]
fn a_decision_may_begin_with_a_dash() {
    let folder = Folder::new();
    folder.write("s.json", r#"{"q": {"flag_for_review": {"reason": "r"}}}"#);
    folder.ok(&["run", "--question", "q", "--model", "stub:scripted=s.json"]);
    folder.ok(&["resolve", "q", "--note", "-5 degrees", "--by", "me"]);
    assert_eq!(checkpoint(&folder).answers["q"].text, "-5 degrees");
}

/// What the superuser's session makes must serve the owner of the checkpoint as well. Only the superuser can try this.
#[test]
fn lock_and_log_belong_to_the_owner_of_the_checkpoint() {
    let folder = Folder::new();
    folder.ok(&["run"]);
    let (lock, log) = (folder.at("long-horizon.json.lock"), folder.at(LOG));
    std::fs::remove_file(&lock).unwrap();
    std::fs::remove_file(&log).unwrap();
    if chown(folder.at(STATE), Some(NOBODY), Some(NOBODY)).is_err() {
        return;
    }
    folder.ok(&["run"]);
    for path in [lock, log] {
        let found = std::fs::metadata(&path).unwrap();
        assert_eq!((found.uid(), found.gid()), (NOBODY, NOBODY), "{}", path.display());
    }
}
