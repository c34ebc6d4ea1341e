//! Runs `crashlab` where all that it could leave behind shows: processes, mounts, and files for temporary use.

// A test says with a panic what went wrong; its support need not do better. Not every test binary uses all of it.
#![allow(clippy::unwrap_used, dead_code)]

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Long enough for anything here on any machine.
const LIMIT: Duration = Duration::from_secs(120);
/// Every process of a run has it in its environment.
const NAME: &str = "CRASHLAB_TEST_RUN";
/// An ordinary user.
pub const NOBODY: u32 = 65534;

/// Runs the command (`$@`) with folders for temporary files of its own, and writes down what is in them afterwards. `$1` is
/// where to, `$2` a command for more of a setting.
const APART: &str = r#"
    left=$1 setting=$2; shift 2
    for folder in /tmp /var/tmp /dev/shm; do mount -t tmpfs -o mode=1777 tmpfs $folder || exit 99; done
    eval "$setting" || exit 98
    trap : INT TERM HUP
    before=$(cat /proc/self/mountinfo)
    "$@"
    code=$?
    { find /tmp /var/tmp /dev/shm -mindepth 1
      [ "$before" = "$(cat /proc/self/mountinfo)" ] || echo "other mounts"; } > "$left"
    exit $code
"#;

/// A folder for a subject, which no sandbox hides.
pub struct Place(tempfile::TempDir);

impl Place {
    /// With these files.
    pub fn with(files: &[(&str, &str)]) -> Place {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let work = folder.path().join("work");
        fs::create_dir(&work).unwrap();
        for (name, text) in files {
            let path = work.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Place(folder)
    }

    /// The folder.
    pub fn path(&self) -> PathBuf {
        self.0.path().join("work")
    }

    /// Makes it an ordinary user's, if that is wished and root runs the tests.
    pub fn given_to(self, nobody: bool) -> Place {
        if nobody && is_root() {
            let owner = format!("{NOBODY}:{NOBODY}");
            let chown = Command::new("chown").args(["-hR", &owner]).arg(self.0.path()).status();
            assert!(chown.unwrap().success());
        }
        self
    }

    /// What is in the folder, and when it was changed.
    pub fn listing(&self) -> String {
        let script = "find . -printf '%p %y %m %U:%G %l %n %T@ %s\\n' | sort; find . -type f -exec cksum {} + | sort";
        let output = Command::new("sh").args(["-c", script]).current_dir(self.path()).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    }

    /// `crashlab` with these arguments.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        Setting::default().run(self, arguments)
    }

    /// `crashlab check` of a program.
    pub fn check(&self, options: &[&str], program: &[&str]) -> Ran {
        self.run(&[&["check", "--faults", "kill"], options, &["--"], program].concat())
    }
}

/// How `crashlab` is run.
#[derive(Default)]
pub struct Setting {
    /// A shell command for the folders and mounts that it finds; only root can have that.
    pub mounts: &'static str,
    /// A shell command that starts it (its last words are the command).
    pub start: &'static [&'static str],
    /// By an ordinary user, though the tests are run by root.
    pub as_nobody: bool,
}

/// What came of it.
pub struct Ran {
    /// The exit code.
    pub code: i32,
    /// All that was printed, standard output first.
    pub said: String,
}

impl Ran {
    /// It must have ended like that, and have said all of these.
    pub fn must_say(&self, code: i32, parts: &[&str]) -> &Ran {
        let said = self.said.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in parts {
            assert!(said.contains(part), "`{part}` is missing:\n{}", self.said);
        }
        assert_eq!(self.code, code, "{}", self.said);
        self
    }
}

/// A run that goes on.
pub struct Going {
    child: Child,
    name: String,
    left: Option<PathBuf>,
}

impl Setting {
    /// Runs it to its end; nothing of it may be left.
    pub fn run(&self, place: &Place, arguments: &[&str]) -> Ran {
        self.start(place, arguments).ended()
    }

    /// Starts it.
    pub fn start(&self, place: &Place, arguments: &[&str]) -> Going {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", std::process::id());
        let left = is_root().then(|| place.0.path().join(format!("left-{number}")));
        let mut words: Vec<String> = Vec::new();
        if let Some(left) = &left {
            let apart = ["unshare", "--mount", "sh", "-c", APART, "sh"].map(str::to_owned);
            words.extend(apart);
            words.extend([left.to_str().unwrap().to_owned(), self.mounts.to_owned()]);
        }
        if self.as_nobody && is_root() {
            let id = NOBODY.to_string();
            let become_nobody =
                ["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"].map(str::to_owned);
            words.extend(become_nobody);
        }
        words.extend(self.start.iter().map(|word| (*word).to_owned()));
        words.push(env!("CARGO_BIN_EXE_crashlab").to_owned());
        words.extend(arguments.iter().map(|word| (*word).to_owned()));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(place.path()).env(NAME, &name);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own, so that a signal can be sent as a terminal does.
        command.process_group(0);
        Going { child: command.spawn().unwrap(), name, left }
    }
}

impl Going {
    /// Sends a signal to `crashlab` and whoever started it, as a terminal does.
    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        let group = nix::unistd::Pid::from_raw(self.child.id().cast_signed());
        nix::sys::signal::killpg(group, signal).unwrap();
    }

    /// What came of it; nothing of it may be left.
    pub fn ended(self) -> Ran {
        let Output { status, stdout, stderr } = self.child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
        let deadline = Instant::now() + LIMIT;
        loop {
            let living = processes(&self.name);
            if living.is_empty() {
                break;
            }
            assert!(Instant::now() < deadline, "left running: {living:?}\n{said}");
            std::thread::yield_now();
        }
        if let Some(left) = &self.left {
            let left = fs::read_to_string(left);
            assert_eq!(left.as_deref().unwrap_or("nothing was looked for"), "", "left:\n{said}");
        }
        Ran { code: status.code().unwrap_or(-1), said }
    }
}

/// The processes of a run that live.
fn processes(name: &str) -> Vec<String> {
    let mark = format!("{NAME}={name}");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let folder = entry.path();
        let is_of_run = fs::read(folder.join("environ"))
            .is_ok_and(|bytes| bytes.split(|byte| *byte == 0).any(|word| word == mark.as_bytes()));
        let state = fs::read_to_string(folder.join("stat")).unwrap_or_default();
        if is_of_run && !state.contains(") Z") && !state.contains(") X") {
            found.push(format!("{}: {state}", folder.display()));
        }
    }
    found
}

/// Whether the tests run as root.
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Compiles a program into the folder, or says why a test is skipped.
pub fn compiled(source: &str, target: &Path, more: &[&str]) -> bool {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-O1", "-Wall", "-pthread"])
        .args(more)
        .arg("-o")
        .arg(target)
        .arg(source);
    match cc.output() {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            eprintln!("skipped: {}", String::from_utf8_lossy(&output.stderr));
            false
        }
        Err(error) => {
            eprintln!("skipped: cc: {error}");
            false
        }
    }
}
