//! Against Python's own `json`, where there is a `python3`: both directions, many values in one process.

use std::io::Write;
use std::process::{Command, Stdio};

use long_horizon::checkpoint::Checkpoint;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use super::{command, model, strategy, vectors};

/// Reads lines, each a JSON list of a value and of a file's text. Prints for each the value and the file's content as
/// this project must write them, then the value in other layouts that it must read.
const SCRIPT: &str = r#"
import json, sys
for line in sys.stdin:
    value, text = json.loads(line)
    same = json.dumps(value, indent=2) + "\n"
    back = json.dumps(json.loads(text), indent=2) + "\n"
    others = [
        json.dumps(value),
        json.dumps(value, indent=2, ensure_ascii=False).replace("\n", "\r\n"),
        json.dumps(value, indent="\t", sort_keys=True),
    ]
    print(json.dumps([same, back, *others]))
"#;

const VALUES: usize = 400;

#[test]
fn python_and_we_write_the_same_bytes_and_read_each_other() {
    if !command::shell_and_man::have("python3") {
        return;
    }
    let python = Command::new("python3")
        .args(["-c", SCRIPT])
        .env("PYTHONIOENCODING", "utf-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 starts");
    let checkpoints = values();
    let lines: Vec<String> = checkpoints
        .iter()
        .map(|checkpoint| {
            let text = String::from_utf8(checkpoint.encode()).expect("ASCII");
            serde_json::json!([model::value(checkpoint), text]).to_string()
        })
        .collect();
    for (checkpoint, answer) in checkpoints.iter().zip(ask(python, &lines)) {
        let bytes = checkpoint.encode();
        let [same, back, others @ ..] = answer.as_slice() else {
            panic!("the script prints two texts and more");
        };
        assert_eq!(String::from_utf8_lossy(&bytes), *same, "Python prints the value otherwise");
        assert_eq!(
            String::from_utf8_lossy(&bytes),
            *back,
            "Python reads our file and prints it otherwise"
        );
        let loaded = Checkpoint::decode(same.as_bytes()).expect("what Python prints loads");
        assert_eq!(loaded.encode(), same.as_bytes());
        for other in others {
            let loaded = Checkpoint::decode(other.as_bytes());
            // Sorted keys change the order, which equality of these maps does not look at.
            assert_eq!(loaded.as_ref(), Ok(checkpoint), "{other}");
        }
    }
}

/// The fixed vectors were printed by Python; this says so again wherever there is one.
fn values() -> Vec<Checkpoint> {
    let mut runner = TestRunner::deterministic();
    let strategy = strategy::checkpoint();
    let mut any = || strategy.new_tree(&mut runner).expect("a value").current();
    let mut values = vec![
        Checkpoint::decode(vectors::FULL.as_bytes()).expect("the vector loads"),
        Checkpoint::default(),
    ];
    values.extend(std::iter::repeat_with(&mut any).take(VALUES));
    values
}

fn ask(mut python: std::process::Child, lines: &[String]) -> Vec<Vec<String>> {
    let mut stdin = python.stdin.take().expect("piped");
    let output = std::thread::scope(|scope| {
        // Written apart from the reading: both pipes can be full at once.
        scope.spawn(move || stdin.write_all(lines.join("\n").as_bytes()).expect("python reads"));
        python.wait_with_output().expect("python ends")
    });
    assert!(output.status.success(), "python failed");
    let answers: Vec<Vec<String>> = String::from_utf8(output.stdout)
        .expect("ASCII")
        .lines()
        .map(|line| serde_json::from_str(line).expect("a list of texts"))
        .collect();
    assert_eq!(answers.len(), lines.len());
    answers
}
