//! Each subject is good or bad in the way that its head says: shown without the lab, on states made by hand.
//!
//! Where a kill is needed, the state that it leaves is laid out by hand, or the kernel kills the subject when it passes a
//! limit on file sizes. Where an overlap is needed, a named pipe in the place of the state holds the subject in its load.
#![allow(clippy::unwrap_used)] // A panic is how a test fails, also in what the tests share.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Subjects that work the first question of `state.json` when they are run without arguments.
const RUNNERS: [&str; 18] = [
    "acks-before-save",
    "busy-trigger",
    "crashes-on-damage",
    "denied-is-absent",
    "fills-in-missing",
    "fixed-temp-name",
    "fresh-start-loader",
    "good-rename",
    "hangs-on-leftover",
    "in-place-writer",
    "lost-temp-files",
    "no-check-saver",
    "pops-first",
    "rename-without-keeping",
    "repeats-work",
    "skips-interrupted",
    "stale-lock-refuser",
    "trusting-loader",
];

/// A folder for one subject.
struct Folder(TempDir);

impl Folder {
    fn empty() -> Self {
        Folder(TempDir::new().unwrap())
    }

    /// With a state of two sessions done and two questions to go.
    fn started() -> Self {
        let folder = Folder::empty();
        folder.write("state.json", &format!("{:#}\n", started()));
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn state(&self) -> Value {
        serde_json::from_str(&self.read("state.json")).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn command(&self, subject: &str) -> Command {
        let mut command = Command::new(binary(subject));
        command.current_dir(self.0.path());
        command
    }

    fn run(&self, subject: &str, arguments: &[&str]) -> Output {
        self.command(subject).args(arguments).output().unwrap()
    }

    fn run_well(&self, subject: &str, arguments: &[&str]) -> Output {
        let output = self.run(subject, arguments);
        assert!(output.status.success(), "{subject}: {output:?}");
        output
    }

    /// Runs the subject until its first write beyond `bytes` in one file, where the kernel kills it.
    fn run_killed_beyond(&self, subject: &str, bytes: u32) {
        assert_eq!(bytes % 512, 0, "the shell counts blocks of 512");
        let status = Command::new("sh")
            .args(["-c", "ulimit -c 0; ulimit -f \"$1\"; exec \"$0\""])
            .arg(binary(subject))
            .arg((bytes / 512).to_string())
            .current_dir(self.0.path())
            // The limit holds for every file: standard output can be one that is longer already.
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.code(), None, "{subject} ended by itself: {status}");
    }
}

fn binary(subject: &str) -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_good-rename")).with_file_name(subject)
}

fn started() -> Value {
    json!({
        "queue": ["third", "fourth"],
        "notes": ["first -> one", "second -> two"],
        "answers": {
            "first": { "text": "one", "citations": [] },
            "second": { "text": "two", "citations": [] },
        },
        "pending": {},
        "sessions_run": 2,
    })
}

/// How often the process has gone to sleep by itself.
fn voluntary_switches(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    (status.lines())
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))
        .expect("a process that waits has a count")
        .trim()
        .parse()
        .unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The seven damages of `started()`.
fn damages() -> Vec<(&'static str, String)> {
    let whole = format!("{:#}\n", started());
    let with = |key: &str, value: Value| {
        let mut state = started();
        state[key] = value;
        format!("{state:#}\n")
    };
    let mut no_queue = started();
    no_queue.as_object_mut().unwrap().remove("queue");
    vec![
        ("truncated", whole[..whole.len() / 2].into()),
        ("empty", String::new()),
        ("not-an-object", "[]\n".into()),
        ("unknown-field", with("surprise", json!(1))),
        ("missing-queue", format!("{no_queue:#}\n")),
        ("queue-is-a-string", with("queue", json!("third"))),
        ("answers-is-a-list", with("answers", json!([]))),
    ]
}

#[test]
fn every_runner_works_one_question_and_leaves_its_files_in_order() {
    for subject in RUNNERS {
        let folder = Folder::started();
        folder.run_well(subject, &[]);
        let state = folder.state();
        assert_eq!(state["queue"], json!(["fourth"]), "{subject}");
        assert_eq!(state["sessions_run"], 3, "{subject}");
        let stray = (folder.names().into_iter()).find(|name| {
            !matches!(name.as_str(), "state.json" | "answers.json" | "answers.jsonl")
                && name != "state.json.lock"
        });
        assert_eq!(stray, None, "{subject}");
    }
}

#[test]
fn in_place_writer_leaves_half_a_state_and_cannot_say_which_file_is_at_fault() {
    let folder = Folder::started();
    let mut state = started();
    state["answers"]["first"]["text"] = "x".repeat(9000).into();
    folder.write("state.json", &format!("{state:#}\n"));
    folder.run_killed_beyond("in-place-writer", 4096);
    assert_eq!(folder.read("state.json").len(), 4096);
    let next = folder.run("in-place-writer", &[]);
    assert!(!next.status.success());
    assert!(!stderr(&next).contains("state.json"), "{next:?}");
}

#[test]
fn no_check_saver_erases_what_another_saved_meanwhile() {
    let folder = Folder::empty();
    mkfifo(&folder.path("state.json"), Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    let session = folder.command("no-check-saver").stdout(Stdio::null()).spawn().unwrap();
    // Opening returns once the session has opened the other end: it is now within its load.
    let mut load = OpenOptions::new().write(true).open(folder.path("state.json")).unwrap();
    fs::remove_file(folder.path("state.json")).unwrap();
    let mut others = started();
    others["queue"] = json!([]);
    others["sessions_run"] = 7.into();
    folder.write("state.json", &others.to_string());
    load.write_all(started().to_string().as_bytes()).unwrap();
    drop(load);
    let output = session.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(folder.state()["sessions_run"], 3);
}

#[test]
fn fresh_start_loader_starts_over_on_every_damage() {
    for (name, text) in damages() {
        let folder = Folder::empty();
        folder.write("state.json", &text);
        folder.run_well("fresh-start-loader", &[]);
        let state = folder.state();
        assert_eq!(state["queue"], json!(["second", "third"]), "{name}");
        assert_eq!(state["sessions_run"], 1, "{name}");
    }
}

#[test]
fn crashes_on_damage_changes_nothing_and_names_nothing() {
    for (name, text) in damages() {
        let folder = Folder::empty();
        folder.write("state.json", &text);
        let output = folder.run("crashes-on-damage", &[]);
        assert!(!output.status.success(), "{name}");
        assert!(!stderr(&output).contains("state.json"), "{name}: {output:?}");
        assert_eq!(folder.read("state.json"), text, "{name}");
    }
}

#[test]
fn trusting_loader_takes_whatever_is_json() {
    for (name, text) in damages() {
        let folder = Folder::empty();
        folder.write("state.json", &text);
        let output = folder.run("trusting-loader", &[]);
        let is_json = !matches!(name, "truncated" | "empty");
        assert_eq!(output.status.success(), is_json, "{name}: {output:?}");
    }
}

#[test]
fn denied_is_absent_starts_over_where_it_cannot_read_and_refuses_what_it_can() {
    let folder = Folder::empty();
    // As a mode that forbids to read, but for everybody: a socket cannot be opened.
    let _listener = std::os::unix::net::UnixListener::bind(folder.path("state.json")).unwrap();
    folder.run_well("denied-is-absent", &[]);
    assert_eq!(folder.state()["sessions_run"], 1);
    refuses_all_seven("denied-is-absent");
}

#[test]
fn fills_in_missing_makes_up_an_answer_and_refuses_what_is_wrong() {
    let folder = Folder::empty();
    let mut state = started();
    state["answers"]["first"].as_object_mut().unwrap().remove("text");
    folder.write("state.json", &format!("{state:#}\n"));
    folder.run_well("fills-in-missing", &[]);
    assert_eq!(folder.state()["answers"]["first"], json!({ "text": "", "citations": [] }));
    refuses_all_seven("fills-in-missing");
}

fn refuses_all_seven(subject: &str) {
    for (name, text) in damages() {
        let folder = Folder::empty();
        folder.write("state.json", &text);
        let output = folder.run(subject, &[]);
        assert_eq!(output.status.code(), Some(1), "{subject}, {name}");
        assert!(stderr(&output).contains("state.json"), "{subject}, {name}: {output:?}");
        assert_eq!(folder.read("state.json"), text, "{subject}, {name}");
    }
}

#[test]
fn valid_checkpoint_takes_the_format_in_any_layout_and_nothing_else() {
    let is_valid = |text: &str| {
        let folder = Folder::empty();
        folder.write("state.json", text);
        let output = folder.run("valid-checkpoint", &["state.json"]);
        assert_eq!(output.status.success(), output.stderr.is_empty(), "{output:?}");
        output.status.success()
    };
    let whole = started();
    for text in [
        format!("{whole:#}\n"),
        whole.to_string(),
        format!("\r\n{whole:#}").replace('\n', "\r\n"),
        r#"{"queue": []}"#.to_owned(),
        r#"{"queue": ["\u00fc"], "sessions_run": 18446744073709551615}"#.to_owned(),
    ] {
        assert!(is_valid(&text), "{text}");
    }
    let others = [
        r#"[["a"], [], {}, {}, 0]"#,
        r#"{"queue": [1]}"#,
        r#"{"queue": [], "sessions_run": -1}"#,
        r#"{"queue": [], "answers": {"a": {"text": "b"}}}"#,
        r#"{"queue": [], "answers": {"a": {"text": "b", "citations": [], "more": 1}}}"#,
        r#"{"queue": [], "pending": {"a": "b", "a": "c"}}"#,
        r#"{"queue": [], "queue": []}"#,
        r#"{"queue": []} x"#,
        "\u{feff}{\"queue\": []}",
    ];
    let seven = damages().into_iter().map(|(_, text)| text);
    for text in seven.chain(others.map(str::to_owned)) {
        assert!(!is_valid(&text), "{text}");
    }
    let folder = Folder::empty();
    mkfifo(&folder.path("state.json"), Mode::S_IRWXU).unwrap();
    assert_eq!(folder.run("valid-checkpoint", &["state.json"]).status.code(), Some(1));
}

#[test]
fn good_subjects_refuse_every_damage_by_the_files_name() {
    for subject in ["good-rename", "stale-lock-refuser", "no-check-saver"] {
        refuses_all_seven(subject);
    }
}

#[test]
fn fixed_temp_name_writes_into_a_file_that_another_has_open() {
    let folder = Folder::started();
    folder.write("state.json.tmp", "another is writing this");
    fs::hard_link(folder.path("state.json.tmp"), folder.path("anothers")).unwrap();
    folder.run_well("fixed-temp-name", &["b"]);
    assert_eq!(folder.read("anothers"), folder.read("state.json"));
}

#[test]
fn lost_temp_files_stay() {
    let folder = Folder::started();
    let mut state = started();
    state["answers"]["first"]["text"] = "x".repeat(9000).into();
    folder.write("state.json", &format!("{state:#}\n"));
    folder.run_killed_beyond("lost-temp-files", 4096);
    folder.run_well("lost-temp-files", &[]);
    folder.run_well("lost-temp-files", &[]);
    assert_eq!(folder.names().len(), 2, "{:?}", folder.names());
}

#[test]
fn repeats_work_records_an_answer_twice() {
    let folder = Folder::started();
    folder.run_well("repeats-work", &[]);
    // As after a kill between the two steps: the answer is there, and the queue is as it was.
    folder.write("state.json", &format!("{:#}\n", started()));
    folder.run_well("repeats-work", &[]);
    let answers = folder.read("answers.jsonl");
    let lines: Vec<&str> = answers.lines().collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0], lines[1]);
}

#[test]
fn pops_first_never_answers_what_it_popped() {
    let folder = Folder::started();
    folder.run_well("pops-first", &[]);
    // As after a kill between the two steps: the question is gone, and its answer is not there.
    fs::remove_file(folder.path("answers.json")).unwrap();
    folder.run_well("pops-first", &[]);
    let answers: Value = serde_json::from_str(&folder.read("answers.json")).unwrap();
    assert_eq!(answers.as_object().unwrap().keys().collect::<Vec<_>>(), ["fourth"]);
    assert_eq!(folder.state()["queue"], json!([]));
}

#[test]
fn skips_interrupted_drops_the_question_whose_session_was_killed() {
    let folder = Folder::started();
    folder.write("current.txt", "third");
    folder.run_well("skips-interrupted", &[]);
    let state = folder.state();
    assert_eq!(state["queue"], json!([]));
    assert_eq!(state["answers"].get("third"), None);
}

#[test]
fn busy_trigger_asks_and_writes_with_nothing_to_do() {
    let folder = Folder::started();
    for sessions in 3..=5 {
        folder.run_well("busy-trigger", &[]);
        assert_eq!(folder.state()["sessions_run"], sessions);
    }
}

#[test]
fn silent_status_tells_the_age_and_is_content() {
    let folder = Folder::started();
    let mut state = started();
    state["pending"]["fifth"] = "the sources disagree".into();
    folder.write("state.json", &format!("{state:#}\n"));
    folder.write("waiting-since.json", r#"{"fifth": 86400}"#);
    let output = folder.run_well("silent-status", &["status"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let days: u64 = (text.lines())
        .find_map(|line| line.strip_prefix("oldest pending: ")?.strip_suffix(" days"))
        .unwrap()
        .parse()
        .unwrap();
    assert!(days > 20_000, "{text}");
}

#[test]
fn trusting_notes_finds_every_note_good() {
    let folder = Folder::started();
    folder.write("facts.txt", "third: 3\nfourth: 4\n");
    folder.run_well("trusting-notes", &["run"]);
    assert_eq!(folder.state()["notes"][2], "third -> 3");
    folder.write("facts.txt", "third: 33\n");
    folder.run_well("trusting-notes", &["verify"]);
}

#[test]
fn rename_without_keeping_loses_mode_and_link() {
    let folder = Folder::started();
    fs::set_permissions(folder.path("state.json"), Permissions::from_mode(0o400)).unwrap();
    folder.run_well("rename-without-keeping", &[]);
    let mode = fs::metadata(folder.path("state.json")).unwrap().permissions().mode();
    assert_ne!(mode & 0o777, 0o400);

    let folder = Folder::started();
    fs::rename(folder.path("state.json"), folder.path("real.json")).unwrap();
    symlink("real.json", folder.path("state.json")).unwrap();
    folder.run_well("rename-without-keeping", &[]);
    assert!(!folder.path("state.json").is_symlink());
}

#[test]
fn hangs_on_leftover_waits_and_changes_nothing() {
    let folder = Folder::started();
    folder.write("state.json.lock", "");
    let mut session = folder.command("hangs-on-leftover").spawn().unwrap();
    // It sleeps between two looks; when it has slept 20 times it has looked often enough.
    while voluntary_switches(session.id()) < 20 {
        assert_eq!(session.try_wait().unwrap(), None, "it did not wait");
    }
    assert_eq!(folder.state(), started());
    fs::remove_file(folder.path("state.json.lock")).unwrap();
    assert!(session.wait().unwrap().success());
    assert_eq!(folder.state()["sessions_run"], 3);
}

#[test]
fn stale_lock_refuser_names_the_file_and_changes_nothing() {
    let folder = Folder::started();
    folder.write("state.json.lock", "");
    let output = folder.run("stale-lock-refuser", &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("state.json is in use"));
    assert_eq!(folder.state(), started());
}

#[test]
fn acks_before_save_promises_what_it_cannot_keep() {
    let folder = Folder::started();
    // A folder in the place of the temporary file: the save must fail.
    fs::create_dir(folder.path("state.json.tmp")).unwrap();
    let output = folder.run("acks-before-save", &[]);
    assert!(!output.status.success());
    assert_eq!(output.stdout, b"saved the answer to third\n");
    assert_eq!(folder.state(), started());
}

#[test]
fn good_counter_counts_each_run_that_renamed() {
    let folder = Folder::empty();
    folder.run_well("good-counter", &[]);
    // As after a kill within the save: the count is old, and a temporary file lies beside it.
    folder.write("count.txt.tmp", "9");
    folder.run_well("good-counter", &[]);
    assert_eq!(folder.read("count.txt"), "2\n");
    assert_eq!(folder.names(), ["count.txt"]);
}

#[test]
fn good_append_log_drops_a_torn_last_line_and_goes_on() {
    let folder = Folder::empty();
    folder.run_well("good-append-log", &[]);
    let undisturbed = folder.read("log.txt");
    let folder = Folder::empty();
    folder.run_killed_beyond("good-append-log", 4096);
    let torn = folder.read("log.txt");
    assert_eq!(torn.len(), 4096);
    folder.run_well("good-append-log", &[]);
    let text = folder.read("log.txt");
    assert_eq!(text.lines().next(), undisturbed.lines().next());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[1], "1 xxxxx", "the torn line is gone, and its number is given again");
    assert!(lines[2].starts_with("2 x") && lines[3] == "3 xxxxx");
    assert_eq!(lines.len(), 4);
}

#[test]
fn good_rename_keeps_the_mode_and_does_nothing_when_there_is_nothing_to_do() {
    let folder = Folder::started();
    fs::set_permissions(folder.path("state.json"), Permissions::from_mode(0o600)).unwrap();
    folder.write("state.json.tmp", "of a session that was killed");
    folder.run_well("good-rename", &[]);
    folder.run_well("good-rename", &[]);
    let mode = fs::metadata(folder.path("state.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let done = folder.read("state.json");
    assert_eq!(folder.state()["queue"], json!([]));
    fs::remove_file(folder.path("state.json.lock")).unwrap();
    folder.run_well("good-rename", &[]);
    assert_eq!(folder.read("state.json"), done);
    assert_eq!(folder.names(), ["state.json"]);
}

#[test]
fn canned_provider_answers_each_request_and_ends_as_its_program_does() {
    let folder = Folder::empty();
    let mut provider = folder
        .command("canned-provider")
        .args(["sh", "-c", "echo $0 $1 $OPENAI_API_KEY; read wait; exit 3"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(provider.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let address = line.strip_prefix("--base-url http://").unwrap().strip_suffix(" none\n").unwrap();
    for body in ["{}", r#"{"model":"any"}"#] {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["choices"][0]["message"]["tool_calls"][0]["function"]["name"], "answer");
    }
    drop(provider.stdin.take());
    assert_eq!(provider.wait().unwrap().code(), Some(3));
}

#[test]
fn good_timestamp_differs_between_equal_runs_in_nothing_but_the_time() {
    let runs = [(); 2].map(|()| {
        let folder = Folder::empty();
        folder.run_well("good-timestamp", &[]);
        let mut state = folder.state();
        let saved_at = state["saved_at"].take();
        assert!(saved_at.as_u64().unwrap() > 0);
        state
    });
    assert_eq!(runs[0], runs[1]);
    assert_eq!(runs[0]["runs"], 1);
}
