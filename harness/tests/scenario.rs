//! Scenario files: what loads, what does not and how it is said, where they are found, and that the JSON Schema says the
//! same as the parser.

// A test says with a panic what went wrong; its support need not do better.
#![allow(clippy::unwrap_used)]

mod scenario {
    mod finding;
    mod mistakes;
    mod points;
    mod property;
    mod reading;
    mod schema;
    mod shipped;
    mod validator;
}
#[path = "../../fuzz/replay.rs"]
mod replay;

use std::path::{Path, PathBuf};

use crashlab::scenario::{Scenario, ScenarioError, load};

/// A file with every key of the format, for tests to change. It needs a folder `start` beside it.
const FULL: &str = r#"title = "Every key once"
proves = "That all of them are read"
root = "."
build = "make all"
path = ["out/bin"]
needs = ["prog", "{root}/out/other"]
probe = ["prog", "--version"]

[subject]
command = ["prog", "{dir}/state.json"]
state = ["state.json", "journal"]
env = { LANG = "C" }
files = "start"
setup = [["prog", "init"], "touch ready"]
time-limit = 20
pipe = true
network = true
volatile = ["cache.db"]
ack = ["mark:saved", "^saved [0-9]+$"]
effects = ["sent.log"]

[recovery]
command = "prog --again"
check = ["prog", "verify"]

[[fault]]
kind = "kill"
at = ["all", 12, "13", "12+4096", "rename#1", "mark:model-called", "mark:saved#2"]
expect = ["torn", "leftover"]

[[fault]]
kind = "damage"
file = "journal/0001"
damages = ["truncated", "empty", "bit-flip/*", "missing/a~1b/0"]
at-most = 8
valid = ["is-valid", "0001"]
expect = ["accepted"]

[[fault]]
kind = "overlap"
name = "two-sessions"
processes = { second = ["prog"], first = "prog --slow" }
order = ["second until mark:loaded", "first until end", "second until end"]
says = { second = "^busy" }
expect = ["lost"]

[[fault]]
kind = "idle"
never = ["model-called"]

[[fault]]
kind = "alert"
name = "old-pending"
command = ["prog", "status"]
says = "pending since .* days"
expect = ["unnoticed"]
"#;

/// The least that a file must say.
const LEAST: &str = r#"title = "The least"
proves = "That defaults are filled in"

[subject]
command = "prog > state"
state = ["state"]

[[fault]]
kind = "kill"
"#;

/// A folder with a scenario file in it.
struct OneFile {
    folder: tempfile::TempDir,
    path: PathBuf,
}

impl OneFile {
    fn new(text: &str) -> OneFile {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("start")).unwrap();
        let path = folder.path().join("case.toml");
        std::fs::write(&path, text).unwrap();
        OneFile { folder, path }
    }

    fn load(&self) -> Result<Scenario, Vec<ScenarioError>> {
        load(std::slice::from_ref(&self.path)).map(|mut scenarios| scenarios.remove(0))
    }
}

/// Loads a text as the only scenario file of a folder.
fn load_text(text: &str) -> Result<Scenario, Vec<ScenarioError>> {
    OneFile::new(text).load()
}

/// All mistakes as people see them, with the temporary folder cut out. A message that holds its path is not broken into
/// lines, since the length of that path differs from one machine to the next.
fn rendered(errors: &[ScenarioError], folder: &Path) -> String {
    let real = folder.canonicalize().unwrap();
    let has_path = |text: &str| text.contains(real.to_str().unwrap());
    let columns =
        |error: &ScenarioError| match has_path(error.found()) || has_path(error.expected()) {
            true => usize::MAX,
            false => 80,
        };
    let rendered: Vec<String> = errors.iter().map(|error| error.render(columns(error))).collect();
    let text = rendered.join("\n");
    text.replace(&format!("{}/", real.display()), "/scenarios/")
        .replace(&format!("{}/", folder.display()), "/scenarios/")
        .replace(&real.display().to_string(), "/scenarios")
}
