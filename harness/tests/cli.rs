//! The command line, through the binary: help, `list`, `init`, `schema`, exit codes, and output that nobody reads.

// A test says with a panic what went wrong; its support need not do better.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use clap::Parser;
use crashlab::cli::{Args, Command as Wanted, plan};
use crashlab::judge::Word;
use crashlab::scenario::load;

/// Runs `crashlab` in the folder.
fn crashlab_in(folder: &Path, args: &[&str]) -> Output {
    command(args, folder).output().unwrap()
}

/// Whatever the environment of the tests says about terminals shall not show.
fn command(args: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crashlab"));
    command
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .env_remove("COLUMNS")
        .env_remove("CLICOLOR_FORCE");
    command
}

fn crashlab(args: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    crashlab_in(folder.path(), args)
}

/// Exit code, standard output and standard error, for a snapshot.
fn told(output: &Output) -> String {
    let code = output.status.code().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    format!("exit code {code}\n--- standard output\n{stdout}--- standard error\n{stderr}")
}

/// A folder with scenarios of all kinds.
fn scenarios() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let scenarios = folder.path().join("scenarios");
    fs::create_dir_all(scenarios.join("half-written")).unwrap();
    let subject = "[subject]\ncommand = \"prog\"\nstate = [\"state.json\", \"index\"]\n";
    let in_place = format!(
        "title = \"A writer in place\"\nproves = \"That a kill between the truncation and the last write leaves a file that nobody can read\"\n{subject}[[fault]]\nkind = \"kill\"\nexpect = [\"torn\", \"leftover\"]\n[[fault]]\nkind = \"kill\"\nat = [3, \"12+4096\", \"rename#1\", \"mark:model-called\", \"mark:model-called#2\", \"sync-range#1\", \"unlink#4\"]\n"
    );
    fs::write(scenarios.join("half-written/in-place.toml"), in_place).unwrap();
    let all = format!(
        "title = \"The rest\"\nproves = \"That the list says what each fault is\"\nneeds = [\"prog\", \"python3\"]\nprobe = [\"python3\", \"-c\", \"import tinydb\"]\n{subject}[[fault]]\nkind = \"damage\"\n[[fault]]\nkind = \"damage\"\nfile = \"index\"\ndamages = [\"empty\", \"truncated\"]\nexpect = [\"accepted\"]\n[[fault]]\nkind = \"overlap\"\nname = \"two-sessions\"\nprocesses = {{ a = \"prog\", b = \"prog\" }}\norder = [\"a until mark:loaded\", \"b until end\"]\nexpect = [\"lost\"]\n[[fault]]\nkind = \"idle\"\n[[fault]]\nkind = \"idle\"\nnever = [\"model-called\"]\n[[fault]]\nkind = \"alert\"\nname = \"old-pending\"\ncommand = \"prog status\"\nsays = \"old\"\nexpect = [\"unnoticed\"]\n"
    );
    fs::write(scenarios.join("rest.toml"), all).unwrap();
    folder
}

#[test]
fn help_reads_well_in_80_columns() {
    for arguments in [
        &["--help"][..],
        &["-h"],
        &["run", "--help"],
        &["list", "--help"],
        &["record", "--help"],
        &["replay", "--help"],
        &["damage", "--help"],
        &["init", "--help"],
        &["schema", "--help"],
        &["doctor", "--help"],
        &["completions", "--help"],
        &["man", "--help"],
    ] {
        let output = crashlab(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        let help = String::from_utf8(output.stdout).unwrap();
        let widest = help.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{arguments:?} needs {widest:?} columns");
        let name = arguments.join("_").replace('-', "");
        insta::assert_snapshot!(format!("help_of_{name}"), help);
    }
}

#[test]
fn list_for_people() {
    let folder = scenarios();
    let output = crashlab_in(folder.path(), &["list", "scenarios"]);
    assert!(String::from_utf8_lossy(&output.stdout).lines().all(|line| line.chars().count() <= 80));
    insta::assert_snapshot!(told(&output));
}

#[test]
fn list_for_machines() {
    let folder = scenarios();
    let output = crashlab_in(folder.path(), &["list", "scenarios", "--json"]);
    let listed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(listed[1]["faults"][2]["kind"], "overlap");
    insta::assert_snapshot!(told(&output));
}

#[test]
fn damages_that_apply_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let question = "Is a file that was renamed over another one on the disk already?";
    let state = format!("{{\n  \"queue\": [],\n  \"answers\": {{\"{question}\": [\"no\"]}}\n}}\n");
    fs::write(folder.path().join("state.json"), state).unwrap();
    let output = crashlab_in(folder.path(), &["damage", "--list", "state.json"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(told(&output));
    let output = crashlab_in(folder.path(), &["damage", "--list", "state.json", "--json"]);
    let listed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        listed.as_array().unwrap().len(),
        text.lines().filter(|line| !line.starts_with(' ')).count()
    );
    let missing = listed.as_array().unwrap().iter().find(|one| one["name"] == "missing/*").unwrap();
    assert_eq!((&missing["places"], &missing["first"]), (&4.into(), &"missing/queue".into()));
    // What is listed can be made, and what has another name cannot.
    for (name, code) in [("missing/queue", 0), ("missing/queu", 2), ("missin/queue", 2)] {
        let output = crashlab_in(folder.path(), &["damage", name, "state.json"]);
        assert_eq!(output.status.code(), Some(code), "{}", told(&output));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(said.contains("did you mean `"), code == 2, "{said}");
    }
}

#[test]
fn what_is_missing_is_skipped_and_counts_only_where_that_is_denied() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = "title = \"One\"\nproves = \"Nothing\"\nbuild = \"exit 1\"\nneeds = [\"no-such-program\"]\n[subject]\ncommand = \"true\"\nstate = [\"s\"]\n[[fault]]\nkind = \"kill\"\n";
    fs::write(folder.path().join("one.toml"), scenario).unwrap();
    let code = |arguments: &[&str]| crashlab_in(folder.path(), arguments).status.code();
    assert_eq!(code(&["run", "one.toml"]), Some(0));
    assert_eq!(code(&["run", "one.toml", "--deny", "skipped"]), Some(1));
    let record = crashlab_in(folder.path(), &["record", "one.toml"]);
    let replay = crashlab_in(folder.path(), &["replay", "one.toml", "kill@1"]);
    for output in [record, replay] {
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(stderr, "error: skipped: no-such-program is not installed\n");
        assert_eq!(output.status.code(), Some(3));
    }
}

#[test]
fn mistakes_are_shown_and_nothing_is_listed() {
    let folder = scenarios();
    fs::write(folder.path().join("scenarios/wrong.toml"), "titel = \"x\"\n").unwrap();
    for command in
        [&["list", "scenarios"][..], &["run", "scenarios"], &["record", "scenarios/wrong.toml"]]
    {
        let output = crashlab_in(folder.path(), command);
        assert_eq!(output.status.code(), Some(2), "{command:?}");
        assert!(output.stdout.is_empty(), "{command:?}");
    }
    let output = crashlab_in(folder.path(), &["list", "scenarios"]);
    insta::assert_snapshot!(told(&output));
}

/// Records a subject in a folder of its own.
fn recorded(command: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let scenario = format!(
        "title = \"One\"\nproves = \"Nothing\"\n[subject]\ncommand = {command:?}\nstate = [\"state\"]\n[[fault]]\nkind = \"kill\"\n"
    );
    fs::write(folder.path().join("one.toml"), scenario).unwrap();
    crashlab_in(folder.path(), &["record", "one.toml"])
}

#[test]
fn a_record_that_ends_badly_says_what_was_not_seen() {
    // A signal that does nothing by itself, to the lab.
    let output = recorded(&["sh", "-c", "kill -URG $PPID; echo x > state; exit 3"]);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("state  create"), "{stdout}");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "error: not seen: kill of a process outside the run was refused\n\
         error: the subject ended with exit code 3\n"
    );
}

#[test]
fn a_record_that_is_not_whole_is_3() {
    let program =
        "import os, sys\ntry: os.chroot('.')\nexcept OSError: sys.exit(77)\nopen('/state', 'w')";
    let output = recorded(&["python3", "-c", program]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("exit code 77") {
        eprintln!("skipped: nobody may change its root here");
        return;
    }
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("not seen: chroot: what the process did"), "{stderr}");
    assert!(stderr.contains("does not account for what the run left: state: added"), "{stderr}");
}

#[test]
fn a_selection_of_nothing_is_a_mistake() {
    let folder = scenarios();
    let arguments = ["run", "scenarios", "--only", "half-writen", "--only", "nothing"];
    let output = crashlab_in(folder.path(), &arguments);
    insta::assert_snapshot!(told(&output));
}

/// The plan that `crashlab run` makes of these arguments.
fn run_plan(arguments: &[&str]) -> plan::RunPlan {
    let arguments = [&["crashlab", "run"], arguments].concat();
    let Wanted::Run(args) = Args::try_parse_from(arguments).unwrap().command else {
        panic!("another command")
    };
    plan::run(&args).unwrap()
}

#[test]
fn what_run_is_told_is_what_is_planned() {
    let folder = scenarios();
    let path = folder.path().join("scenarios");
    let path = path.to_str().unwrap();
    let plain = run_plan(&[path]);
    assert_eq!(plain.scenarios.len(), 2);
    assert!(plain.jobs >= 1 && plain.build && plain.pin);
    assert!(!plain.json && !plain.strictness.allow_not_measured);
    assert_eq!((plain.strictness.deny, plain.keep), (vec![], None));

    let told = run_plan(&[
        path,
        "-j",
        "3",
        "--json",
        "--deny",
        "leftover,skipped",
        "--deny",
        "metadata",
        "--allow-not-measured",
        "--only",
        "in-pl",
        "--only",
        "nothing",
        "--no-build",
        "--no-pin",
        "--no-fork-server",
        "--keep",
        "kept",
    ]);
    let names: Vec<&str> = told.scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
    assert_eq!(names, ["half-written/in-place"]);
    assert_eq!(told.jobs, 3);
    assert!(told.json && told.strictness.allow_not_measured && !told.build && !told.pin);
    assert_eq!(told.strictness.deny, [Word::Leftover, Word::Skipped, Word::Metadata]);
    assert_eq!(told.keep.as_deref(), Some(Path::new("kept")));
    assert!(told.recoveries.no_fork_server);
}

#[test]
fn one_scenario_is_one_scenario() {
    let folder = scenarios();
    let output = crashlab_in(folder.path(), &["replay", "scenarios", "kill@1"]);
    insta::assert_snapshot!(told(&output));
}

#[test]
fn init_prints_a_scenario() {
    let output = crashlab(&["init"]);
    assert_eq!(output.status.code(), Some(0));
    insta::assert_snapshot!(String::from_utf8(output.stdout).unwrap());
}

#[test]
fn init_writes_a_file_once() {
    let folder = tempfile::tempdir().unwrap();
    let first = crashlab_in(folder.path(), &["init", "-o", "mine.toml"]);
    let printed = crashlab(&["init"]).stdout;
    assert_eq!(fs::read(folder.path().join("mine.toml")).unwrap(), printed);
    fs::write(folder.path().join("mine.toml"), "mine").unwrap();
    let again = crashlab_in(folder.path(), &["init", "-o", "mine.toml"]);
    assert_eq!(fs::read(folder.path().join("mine.toml")).unwrap(), b"mine");
    let nowhere = crashlab_in(folder.path(), &["init", "-o", "no/where.toml"]);
    let all = [told(&first), told(&again), told(&nowhere)].join("\n");
    insta::assert_snapshot!(all);
}

/// The template loads as it stands, and with everything that is commented out; it leaves no key of the format out.
#[test]
fn the_template_is_right_in_both_forms() {
    let folder = tempfile::tempdir().unwrap();
    let template = String::from_utf8(crashlab(&["init"]).stdout).unwrap();
    let whole: String = template
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(setting) if setting.starts_with('[') || is_setting(setting) => {
                format!("{setting}\n")
            }
            _ => format!("{line}\n"),
        })
        .collect();
    assert!(whole.contains("\n[recovery]\n"));
    for (name, text, faults) in [("as-it-is.toml", &template, 2), ("whole.toml", &whole, 7)] {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        let scenario =
            load(&[path]).unwrap_or_else(|errors| panic!("{}\n{text}", errors[0])).remove(0);
        assert_eq!(scenario.faults.len(), faults);
    }
    let schema = crashlab::scenario::schema_text();
    for key in keys(&serde_json::from_str(&schema).unwrap()) {
        let key_line = format!("{key} = ");
        let table = [format!("[{key}]"), format!("[[{key}]]")];
        let there =
            |line: &str| line.starts_with(&key_line) || table.iter().any(|table| line == table);
        assert!(whole.lines().any(there), "the template does not show `{key}`");
    }
}

fn is_setting(text: &str) -> bool {
    let key = text.split_once(" = ").map(|(key, _)| key);
    key.is_some_and(|key| key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'))
}

fn keys(schema: &serde_json::Value) -> Vec<String> {
    let mut all = Vec::new();
    match schema {
        serde_json::Value::Object(object) => {
            for (keyword, inner) in object {
                if keyword == "properties" {
                    all.extend(inner.as_object().unwrap().keys().cloned());
                }
                all.extend(keys(inner));
            }
        }
        serde_json::Value::Array(items) => all.extend(items.iter().flat_map(keys)),
        _ => {}
    }
    all
}

#[test]
fn schema_prints_the_schema() {
    let output = crashlab(&["schema"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), crashlab::scenario::schema_text());
}

#[test]
fn a_wrong_command_line_is_2() {
    for arguments in [
        &["rum"][..],
        &[],
        &["run"],
        &["run", "x", "-j", "0"],
        &["run", "x", "--deny", "torn"],
        &["list", "x", "--jsn"],
        &["replay", "x"],
    ] {
        let output = crashlab(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{arguments:?}");
    }
}

/// Runs `crashlab` with this as its standard output.
fn into(stdout: impl Into<Stdio>, arguments: &[&str], folder: &Path) -> Output {
    let mut command = command(arguments, folder);
    command.stdout(stdout).stderr(Stdio::piped());
    command.spawn().unwrap().wait_with_output().unwrap()
}

#[test]
fn a_reader_that_went_away_is_no_error() {
    let folder = scenarios();
    for arguments in [
        &["schema"][..],
        &["init"],
        &["list", "scenarios"],
        &["list", "scenarios", "--json"],
        &["--help"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = into(writer, arguments, folder.path());
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(
            output.stderr.is_empty(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn a_full_disk_is_said() {
    let folder = scenarios();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = into(full, &["list", "scenarios"], folder.path());
    insta::assert_snapshot!(told(&output));
}
