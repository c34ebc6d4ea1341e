//! What needs a tracer: kills, power cuts and other sessions at every file operation of a program that uses the store, as scenarios
//! for `crashlab`.
//!
//! ```
//! use long_horizon::store::conformance::lab::{Part, Program};
//!
//! let text = Program::long_horizon("sqlite", "queue.db").scenario(Part::Kill);
//! assert!(text.contains("kind = \"kill\""));
//! // std::fs::write("kill.toml", text)?; then: crashlab run kill.toml
//! ```

use std::fmt::Write;

/// What is in the queue at first.
const QUESTIONS: [&str; 5] = [
    "Is a rename atomic?",
    "What does fsync make durable?",
    "When is a lock released?",
    "How is a torn write found?",
    "Which writes to a pipe may be torn?",
];

/// A program that keeps a checkpoint in a store, by its command lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The name of the store, for titles.
    pub store: String,
    /// The name of the checkpoint's file.
    pub state: String,
    /// Makes a checkpoint with two sessions done, and another queue than a session makes where there is none: else a loss of everything
    /// could not be told from a good end.
    pub setup: Vec<String>,
    /// Runs one session.
    pub session: Vec<String>,
    /// Works the queue to its end: what a user would run next.
    pub until_empty: Vec<String>,
    /// Loads the checkpoint and says whether it is whole.
    pub verify: Vec<String>,
    /// Prints the checkpoint in the reference's format.
    pub export: Vec<String>,
}

/// What is done to a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// One session, killed after every file operation and inside every write.
    Kill,
    /// The first session, which makes the checkpoint, killed likewise.
    FirstKill,
    /// One session, and the power fails, on every disk.
    Power,
    /// The first session, and the power fails likewise.
    FirstPower,
    /// The seven damages that no checkpoint survives.
    Damage,
    /// A second session comes at each place where a first one can stand, and both end as they would one after another.
    Overlap,
    /// Two sessions at once in the orders of their file operations with at most one preemption, as far as a small budget goes, and
    /// one of them dies.
    Race,
}

impl Part {
    /// All of them.
    pub const ALL: [Part; 7] = [
        Part::Kill,
        Part::FirstKill,
        Part::Power,
        Part::FirstPower,
        Part::Damage,
        Part::Overlap,
        Part::Race,
    ];
}

impl Program {
    /// `long-horizon` with one of its own stores.
    pub fn long_horizon(store: &str, state: &str) -> Program {
        let words = |words: &[&str]| -> Vec<String> {
            let place = format!("{store}:{state}");
            let all = ["long-horizon"].iter().chain(words).map(|word| (*word).to_owned());
            all.chain(["--state".to_owned(), place]).collect()
        };
        let run = |more: &[&str]| words(&[&["run", "--model", "stub"], more].concat());
        let questions: Vec<&str> = QUESTIONS.iter().flat_map(|q| ["--question", q]).collect();
        Program {
            store: store.to_owned(),
            state: state.to_owned(),
            setup: run(&[&questions, &["--sessions", "2"][..]].concat()),
            session: run(&[]),
            until_empty: run(&["--until-empty"]),
            verify: words(&["verify"]),
            export: words(&["export"]),
        }
    }

    /// The scenario, as the text of a file.
    pub fn scenario(&self, part: Part) -> String {
        let store = &self.store;
        let (title, proves) = match part {
            Part::Kill => (
                format!("A session with the store {store}, killed everywhere"),
                "A kill leaves the old or the new checkpoint, and the queue ends as if there had been none",
            ),
            Part::FirstKill => (
                format!("The first session with the store {store}, killed everywhere"),
                "Also the very first checkpoint appears whole or not at all",
            ),
            Part::Power => (
                format!("The power fails during a session with the store {store}"),
                "A session survives a power cut on every disk",
            ),
            Part::FirstPower => (
                format!("The power fails during the first session with the store {store}"),
                "Also the very first checkpoint survives a power cut on every disk",
            ),
            Part::Damage => (
                format!("The store {store} meets a damaged checkpoint"),
                "All seven damages are refused by name, and no byte is touched",
            ),
            Part::Overlap => (
                format!("Two sessions at once with the store {store}"),
                "Both end as they would one after another, or the second is refused",
            ),
            Part::Race => (
                format!("Two sessions with the store {store}, in many orders"),
                "No order of file operations loses what a session did",
            ),
        };
        let mut text = String::new();
        let mut line = |words: String| {
            // Writing to a string cannot fail.
            let _ok = writeln!(text, "{words}");
        };
        line(format!("title = {title:?}"));
        line(format!("proves = {proves:?}"));
        line("[subject]".to_owned());
        line(format!("command = {}", list(&self.session)));
        // What sessions side by side leave is compared by what it says: a database may keep it in more than one way.
        match part {
            Part::Overlap => line("state = [\"exported.json\"]".to_owned()),
            _ => line(format!("state = [{:?}]", self.state)),
        }
        if !matches!(part, Part::FirstKill | Part::FirstPower) {
            line(format!("setup = [{}]", list(&self.setup)));
        }
        if !matches!(part, Part::Damage | Part::Overlap | Part::Race) {
            line("[recovery]".to_owned());
            line(format!("command = {}", list(&self.until_empty)));
            line(format!("check = {}", list(&self.verify)));
        }
        match part {
            Part::Kill | Part::FirstKill => line("[[fault]]\nkind = \"kill\"".to_owned()),
            Part::Power | Part::FirstPower => {
                line("[[fault]]\nkind = \"power\"\nstates = 15\nmodel = [\"all\"]".to_owned());
                // Where a folder has to be synced for each of its entries, all of it: a sync less than needed shows only in states in
                // which much else is on the disk.
                line("[[fault]]\nkind = \"power\"\nstates = 400\nmodel = [\"btrfs\"]".to_owned());
            }
            Part::Damage => line("[[fault]]\nkind = \"damage\"".to_owned()),
            Part::Overlap => {
                for mark in ["loaded", "model-called", "checked", "saved"] {
                    line(self.overlap(mark));
                }
            }
            Part::Race => {
                line(self.race("two-sessions", "preemptions = 1\nschedules = 30"));
                line(self.race("one-dies", "preemptions = 0\nkill-one = true\nschedules = 30"));
            }
        }
        text
    }

    /// Two sessions in the orders that the bounds leave. What one says of the queue is what it was at its own end, which two that
    /// work side by side need not see one after another: it is not compared.
    fn race(&self, name: &str, bounds: &str) -> String {
        let session = format!("exec {} > /dev/null", shell(&self.session));
        let view = shell(&self.export);
        format!(
            "[[fault]]\nkind = \"race\"\nname = \"{name}\"\n\
             processes = {{ a = {session:?}, b = {session:?} }}\nview = {view:?}\n{bounds}"
        )
    }

    /// A second session while the first one stands at a mark; then the outcome is exported.
    fn overlap(&self, mark: &str) -> String {
        let session = list(&self.session);
        let export = format!("{} > exported.json", shell(&self.export));
        format!(
            "[[fault]]\nkind = \"overlap\"\nname = \"second-comes-at-{mark}\"\n\
             processes = {{ a = {session}, b = {session}, export = {export:?} }}\n\
             order = [\"a until mark:{mark}\", \"b until end\", \"a until end\", \"export until end\"]"
        )
    }
}

/// A list of strings in TOML: the same as in Rust, for texts without control characters.
fn list(words: &[String]) -> String {
    format!("{words:?}")
}

/// The words for a shell.
fn shell(words: &[String]) -> String {
    let quoted = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''")));
    quoted.collect::<Vec<_>>().join(" ")
}
