//! Races: subjects that are known to lose something must be found out, by exploration alone, and the others left in peace.

// A test says with a panic what went wrong; its support need not do better.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use crashlab::judge::Word;
use crashlab::run::{Case, ScenarioResult, Settings, race_alone};
use crashlab::scenario::{CommandLine, FaultKind, RaceFault, Scenario};

#[path = "race/command.rs"]
mod command;
#[path = "race/containers.rs"]
mod containers;
#[path = "race/explored.rs"]
mod explored;
#[path = "race/locks.rs"]
mod locks;
#[path = "race/one_dies.rs"]
mod one_dies;
#[path = "race/waiting.rs"]
mod waiting;

// A part of what it offers is enough here.
#[allow(dead_code)]
#[path = "trace/support.rs"]
mod support;

/// Reads, adds one, and puts the new file in the old one's place. Each program has a temporary name of its own.
const COUNTS: &str = "steps count";

/// A race of these lines over `s`, which holds 5: of shell, or of words for the program `steps`.
struct Race {
    scenario: Scenario,
    fault: RaceFault,
}

impl Race {
    fn of(lines: &[&str]) -> Race {
        let command = |line: &&str| {
            let words = match line.starts_with("steps ") {
                true => line.split(' ').collect(),
                false => vec!["/bin/sh", "-c", line],
            };
            CommandLine::Argv(words.into_iter().map(str::to_owned).collect())
        };
        let names = ('a'..='z').map(String::from);
        let fault = RaceFault::of(names.zip(lines.iter().map(command)).collect());
        let mut scenario = Scenario::new("race", &["true"], "s");
        let programs = support::program("steps");
        scenario.path = programs.parent().map(Into::into).into_iter().collect();
        Race { scenario: scenario.setup("echo 5 > s"), fault }
    }

    fn twice(line: &str) -> Race {
        Race::of(&[line, line])
    }

    fn with(mut self, change: impl FnOnce(&mut RaceFault)) -> Race {
        change(&mut self.fault);
        self
    }

    fn unbounded(self) -> Race {
        self.with(|fault| fault.preemptions = None)
    }

    fn scenario(&self) -> Scenario {
        self.scenario.clone().fault(FaultKind::Race(self.fault.clone()))
    }

    fn run(&self) -> Found {
        let result = race_alone(&self.scenario(), &Settings::default(), None);
        Found(result.unwrap_or_else(|error| panic!("{error}")))
    }

    fn case(&self, id: &str) -> Case {
        let result = race_alone(&self.scenario(), &Settings::default(), Some(id));
        result.unwrap_or_else(|error| panic!("{error}")).faults[0].cases[0].clone()
    }
}

/// Words that programs read with `read x < PATH`, one after another, whichever run they are of.
struct Words {
    path: PathBuf,
    /// Its other end, so that nobody has to wait for that.
    _pipe: File,
}

impl Words {
    /// The first, and then the other over and over.
    fn first_and_then(name: &str, first: &str, then: &str) -> Words {
        let folder = support::program("steps").parent().unwrap().to_owned();
        let path = folder.join(format!("{name}.{}", std::process::id()));
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let mut pipe = File::options().read(true).write(true).open(&path).unwrap();
        write!(pipe, "{first}\n{}", format!("{then}\n").repeat(1000)).unwrap();
        Words { path, _pipe: pipe }
    }

    /// What these programs come to, one run at a time: a shell reads letter by letter.
    fn race(&self, lines: &[&str]) -> Found {
        let lines: Vec<String> = lines
            .iter()
            .map(|line| line.replace("PATH", &self.path.display().to_string()))
            .collect();
        let mut race = Race::of(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        race.scenario.subject.time_limit = 1;
        let settings = Settings { jobs: 1, ..Settings::default() };
        Found(race_alone(&race.scenario(), &settings, None).unwrap())
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        std::fs::remove_file(&self.path).unwrap();
    }
}

struct Found(ScenarioResult);

impl Found {
    fn cases(&self) -> &[Case] {
        &self.0.faults[0].cases
    }

    fn words(&self) -> BTreeSet<Word> {
        self.cases().iter().map(|case| case.verdict.word).collect()
    }

    /// The first case with this verdict: the one with the fewest switches.
    fn first(&self, word: Word) -> &Case {
        let found = self.cases().iter().find(|case| case.verdict.word == word);
        found.unwrap_or_else(|| panic!("no {word}: {}", self.told()))
    }

    fn told(&self) -> String {
        let why = self
            .cases()
            .iter()
            .map(|case| format!("{} {}: {}", case.id, case.verdict.word, case.verdict.why));
        why.collect::<BTreeSet<String>>().into_iter().collect::<Vec<_>>().join("\n")
    }

    #[track_caller]
    fn is_only(&self, words: &[Word]) {
        assert_eq!(self.words(), words.iter().copied().collect(), "{}", self.told());
    }
}
