//! Scenarios made in code, for tests.

use std::path::PathBuf;

use super::{CommandLine, DamageFault, Fault, FaultKind, KillPoint, Recovery, Scenario, Subject};

impl Scenario {
    /// A scenario without faults: the program and its arguments, and the state file it keeps. Everything else is as
    /// in a file that says no more, and can be set in the fields.
    ///
    /// ```
    /// use crashlab::scenario::Scenario;
    ///
    /// let mut scenario = Scenario::new("nightly", &["sh", "-c", "date > stamp"], "stamp").kill_everywhere();
    /// scenario.subject.pipe = true;
    /// ```
    pub fn new(name: &str, argv: &[&str], state: &str) -> Scenario {
        let command = CommandLine::Argv(argv.iter().map(|word| (*word).to_owned()).collect());
        Scenario {
            file: PathBuf::from(name),
            name: name.to_owned(),
            title: String::new(),
            proves: String::new(),
            root: PathBuf::from("/"),
            build: None,
            path: Vec::new(),
            needs: Vec::new(),
            probe: None,
            subject: Subject {
                command: command.clone(),
                state: vec![state.into()],
                env: Default::default(),
                files: None,
                folder: None,
                watch: Vec::new(),
                setup: Vec::new(),
                time_limit: 10,
                pipe: false,
                network: false,
                volatile: Vec::new(),
                ack: Vec::new(),
                effects: Vec::new(),
            },
            recovery: Recovery { command, check: None, depth: 1 },
            faults: Vec::new(),
        }
    }

    /// With a command that prepares the work folder, for `sh -c`.
    #[must_use]
    pub fn setup(mut self, line: &str) -> Scenario {
        self.subject.setup.push(CommandLine::Shell(line.to_owned()));
        self
    }

    /// With this recovery instead of the subject's own command.
    #[must_use]
    pub fn recovery(mut self, argv: &[&str]) -> Scenario {
        self.recovery.command =
            CommandLine::Argv(argv.iter().map(|word| (*word).to_owned()).collect());
        self
    }

    /// With one more fault, of which nothing is expected.
    #[must_use]
    pub fn fault(mut self, kind: FaultKind) -> Scenario {
        self.faults.push(Fault { kind, expect: Vec::new(), line: 0 });
        self
    }

    /// With a kill at every point.
    #[must_use]
    pub fn kill_everywhere(self) -> Scenario {
        self.fault(FaultKind::Kill { at: vec![KillPoint::All] })
    }

    /// With the seven damages of its state file.
    #[must_use]
    pub fn damage_everything(self) -> Scenario {
        let file = self.subject.state[0].clone();
        self.fault(FaultKind::Damage(DamageFault::seven(file)))
    }

    /// With these verdicts and warnings expected of the fault that was added last.
    #[must_use]
    pub fn expect(mut self, words: &[crate::judge::Word]) -> Scenario {
        if let Some(fault) = self.faults.last_mut() {
            fault.expect = words.to_vec();
        }
        self
    }
}
