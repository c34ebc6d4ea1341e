//! What a recording says of itself: who was recorded, and how it is to be judged.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::fault::power::DiskModel;
use crate::op::path;
use crate::scenario::{
    CommandLine, DamageFault, Fault, FaultKind, KillPoint, PowerFault, Recovery, Scenario, Subject,
};

/// Variables that change what programs write. No others are kept: a recording is given to others, and an environment holds
/// secrets.
const VARIABLES: &[&str] = &["LANG", "LANGUAGE", "TZ", "SOURCE_DATE_EPOCH", "PYTHONHASHSEED"];
const VARIABLES_OF_LOCALE: &str = "LC_";

/// The first frame of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The version of the lab that wrote it.
    pub crashlab: String,
    /// The processor, as Rust names it (`x86_64`).
    pub arch: String,
    /// Owner and group of what the subject made.
    pub user: (u32, u32),
    /// What the recording is called: the command, or a scenario's name.
    pub name: String,
    /// The subject.
    pub command: CommandLine,
    /// What a user would run next.
    pub recover: CommandLine,
    /// Must succeed after each recovery.
    pub check: Option<CommandLine>,
    /// The folder at whose path the programs saw the work folder; `None` for a place of the lab's own.
    #[serde(with = "path::option")]
    pub folder: Option<PathBuf>,
    /// More folders that were watched, each at its own path.
    #[serde(with = "path::list")]
    pub watch: Vec<PathBuf>,
    /// What `{root}` in a command stood for.
    #[serde(with = "path")]
    pub root: PathBuf,
    /// Folders in front of `PATH`.
    #[serde(with = "path::list")]
    pub path: Vec<PathBuf>,
    /// Folders in the work folder that were too large to be copied: they are not in the trees.
    #[serde(with = "path::list")]
    pub shown: Vec<PathBuf>,
    /// The folder was too large to be copied: the trees hold only what the program touches of it.
    pub partial: bool,
    /// Variables of the environment that were set for the programs, or that change what they write.
    pub env: BTreeMap<String, String>,
    /// State files; none where they are to be found.
    #[serde(with = "path::list")]
    pub state: Vec<PathBuf>,
    /// Files that may hold anything after a crash.
    #[serde(with = "path::list")]
    pub volatile: Vec<PathBuf>,
    /// What promises the next version.
    pub ack: Vec<String>,
    /// Files whose lines are effects.
    #[serde(with = "path::list")]
    pub effects: Vec<PathBuf>,
    /// Kills are tried.
    pub kill: bool,
    /// The power fails on these disks.
    pub power: Vec<String>,
    /// So many different states at most, on each of them.
    pub power_states: Option<usize>,
    /// So many seconds at most.
    pub power_seconds: Option<u64>,
    /// What a sample of their states is drawn by.
    pub power_seed: u64,
    /// The seven damages are tried on this file.
    #[serde(with = "path::option")]
    pub damage: Option<PathBuf>,
    /// How many kills in a row.
    pub depth: usize,
    /// Seconds that one run may take.
    pub time_limit: u64,
    /// Standard output was a pipe.
    pub pipe: bool,
    /// The network could be used.
    pub network: bool,
}

impl Header {
    /// What is to be known of a scenario; `shown` are the folders that its copies leave out.
    pub fn of(scenario: &Scenario, shown: &[PathBuf]) -> Header {
        let Scenario { name, root, path, subject, recovery, .. } = scenario;
        let damage = scenario.faults.iter().find_map(|fault| match &fault.kind {
            FaultKind::Damage(damage) => Some(damage.file.clone()),
            _ => None,
        });
        let power = scenario.faults.iter().find_map(|fault| match &fault.kind {
            FaultKind::Power(power) => Some(power),
            _ => None,
        });
        let is_kill = |fault: &Fault| matches!(fault.kind, FaultKind::Kill { .. });
        let mut env: BTreeMap<String, String> =
            std::env::vars().filter(|(variable, _)| is_kept(variable)).collect();
        env.extend(subject.env.clone());
        Header {
            crashlab: env!("CARGO_PKG_VERSION").to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
            user: (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw()),
            name: name.clone(),
            command: subject.command.clone(),
            recover: recovery.command.clone(),
            check: recovery.check.clone(),
            folder: subject.folder.clone(),
            watch: subject.watch.clone(),
            root: root.clone(),
            path: path.clone(),
            shown: shown.to_vec(),
            partial: false,
            env,
            state: subject.state.clone(),
            volatile: subject.volatile.clone(),
            ack: subject.ack.clone(),
            effects: subject.effects.clone(),
            kill: (damage.is_none() && power.is_none()) || scenario.faults.iter().any(is_kill),
            power: power
                .iter()
                .flat_map(|power| &power.models)
                .map(|model| model.name.to_owned())
                .collect(),
            power_states: power.and_then(|power| power.states),
            power_seconds: power.and_then(|power| power.seconds),
            power_seed: power.map_or(0, |power| power.seed),
            damage,
            depth: recovery.depth,
            time_limit: subject.time_limit,
            pipe: subject.pipe,
            network: subject.network,
        }
    }

    /// A disk that this lab does not know, if there is one.
    pub(super) fn unknown_disk(&self) -> Option<&str> {
        let known = |name: &&String| name.parse::<&DiskModel>().is_err();
        self.power.iter().find(known).map(String::as_str)
    }

    /// The scenario that tries what was recorded.
    pub fn scenario(&self) -> Scenario {
        let mut kinds = Vec::new();
        if self.kill {
            kinds.push(FaultKind::Kill { at: vec![KillPoint::All] });
        }
        let models: Vec<&DiskModel> =
            self.power.iter().filter_map(|name| name.parse().ok()).collect();
        if !models.is_empty() {
            let (states, seconds) = (self.power_states, self.power_seconds);
            let power = PowerFault { models, states, seconds, seed: self.power_seed };
            kinds.push(FaultKind::Power(power));
        }
        kinds.extend(self.damage.clone().map(DamageFault::seven).map(FaultKind::Damage));
        let fault = |kind| Fault { kind, expect: Vec::new(), line: 0 };
        Scenario {
            file: PathBuf::from(&self.name),
            name: self.name.clone(),
            title: String::new(),
            proves: String::new(),
            root: self.root.clone(),
            build: None,
            path: self.path.clone(),
            needs: Vec::new(),
            probe: None,
            subject: Subject {
                command: self.command.clone(),
                state: self.state.clone(),
                env: self.env.clone(),
                files: None,
                folder: self.folder.clone(),
                watch: self.watch.clone(),
                setup: Vec::new(),
                time_limit: self.time_limit,
                pipe: self.pipe,
                network: self.network,
                volatile: self.volatile.clone(),
                ack: self.ack.clone(),
                effects: self.effects.clone(),
            },
            recovery: Recovery {
                command: self.recover.clone(),
                check: self.check.clone(),
                depth: self.depth,
            },
            faults: kinds.into_iter().map(fault).collect(),
        }
    }
}

fn is_kept(variable: &str) -> bool {
    VARIABLES.contains(&variable) || variable.starts_with(VARIABLES_OF_LOCALE)
}
