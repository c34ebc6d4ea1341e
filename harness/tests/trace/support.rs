//! Compiling the subjects, running them, and what a run leaves.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{OnceLock, PoisonError, RwLock};
use std::time::Duration;

use crashlab::op::{Op, What};
use crashlab::recording::Trace;
use crashlab::sandbox::{Sandbox, SandboxOptions};
use crashlab::subject::{Exit, Program};
use crashlab::trace::{self, Budget, Detail, Director, Options, Undisturbed};
use tempfile::TempDir;

/// Names a folder that holds the compiled subjects already.
pub(crate) const PROGRAMS: &str = "CRASHLAB_TEST_PROGRAMS";

/// Where the subjects are compiled to. Nothing runs when a test process ends, so the folder is not removed then: it is
/// the build's own and the next run overwrites it.
fn compiled() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        if let Some(ready) = std::env::var_os(PROGRAMS) {
            return ready.into();
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("trace-programs");
        std::fs::create_dir_all(&folder).unwrap();
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
        let makes: Vec<_> = std::fs::read_dir(sources)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
            .map(|source| {
                let name = source.file_stem().unwrap().to_owned();
                (compile(&source, &folder.join(&name), &[]), name)
            })
            .collect();
        for (mut compiler, name) in makes {
            assert!(compiler.wait().unwrap().success(), "{} does not compile", name.display());
        }
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/basic.c");
        let mut compiler = compile(&source, &folder.join("static"), &["-static"]);
        assert!(compiler.wait().unwrap().success(), "a static program does not link");
        folder
    })
}

fn compile(source: &Path, target: &Path, more: &[&str]) -> std::process::Child {
    // To a name of its own first: a program that still runs somewhere cannot be overwritten.
    let mut cc = Command::new("sh");
    cc.args([
        "-c",
        r#"cc -std=gnu11 -O1 -Wall -Wno-unused-result -pthread "$@" -o "$0.$$" && mv "$0.$$" "$0""#,
    ]);
    cc.arg(target).arg(source).args(more).spawn().unwrap()
}

/// Held while this process starts others otherwise than by the lab, for reading, and by who must be alone then, for writing: until it
/// executes its program, a child has all descriptors that this process has, also those that the lab has just closed.
static STARTS: RwLock<()> = RwLock::new(());

/// Starts a program and waits for its end.
pub(crate) fn output(command: &mut Command) -> std::io::Result<Output> {
    let _starts = STARTS.read().unwrap_or_else(PoisonError::into_inner);
    command.output()
}

/// Nothing is started by [`output`] meanwhile.
pub(crate) fn while_nothing_starts<T>(work: impl FnOnce() -> T) -> T {
    let _alone = STARTS.write().unwrap_or_else(PoisonError::into_inner);
    work()
}

/// A subject with its arguments.
pub(crate) fn subject(name: &str, args: &[&str]) -> Program {
    let mut argv = vec![compiled().join(name).into_os_string()];
    argv.extend(args.iter().map(OsString::from));
    Program { argv, env: Vec::new(), stdin: Vec::new(), pipe: false }
}

/// A line of shell, with its output in a pipe.
pub(crate) fn shell(line: &str) -> Program {
    let argv = ["/bin/sh", "-c", line].map(Into::into).to_vec();
    Program { argv, env: Vec::new(), stdin: Vec::new(), pipe: true }
}

/// The path of a compiled program.
pub(crate) fn program(name: &str) -> PathBuf {
    compiled().join(name)
}

/// How the tests trace.
pub(crate) fn options() -> Options {
    Options {
        time_limit: Duration::from_secs(60),
        detail: Detail::Changes,
        budget: Budget::default(),
        pin: None,
        backtrace: false,
        containers: false,
    }
}

/// A sandbox that needs no namespaces.
pub(crate) fn sandbox() -> Sandbox {
    Sandbox::new(&SandboxOptions { plain: true, ..SandboxOptions::default() }).unwrap()
}

/// A run that nobody disturbs, and the folder that it left.
pub(crate) fn undisturbed(program: Program, prepare: fn(&Path)) -> (Trace, Sandbox) {
    steered(&[program], prepare, &mut Undisturbed)
}

/// A run under a director, and the folder that it left.
pub(crate) fn steered(
    programs: &[Program],
    prepare: fn(&Path),
    director: &mut dyn Director,
) -> (Trace, Sandbox) {
    let sandbox = sandbox();
    prepare(sandbox.work());
    let trace = trace::run(programs, &sandbox, &options(), director).unwrap();
    (trace, sandbox)
}

/// Nothing there before.
pub(crate) fn nothing(_: &Path) {}

/// A temporary folder.
pub(crate) fn folder() -> TempDir {
    TempDir::new().unwrap()
}

/// The log, a line for each event: what a failing test shows.
pub(crate) fn log(trace: &Trace) -> String {
    let lines = trace.events.iter().map(trace::describe);
    let gaps = trace.gaps.iter().map(|gap| format!("gap: {gap:?}"));
    lines.chain(gaps).collect::<Vec<_>>().join("\n")
}

/// The program must have ended with exit code 0.
pub(crate) fn assert_success(trace: &Trace) {
    for end in &trace.ends {
        let stderr = String::from_utf8_lossy(&end.stderr);
        assert_eq!(end.exit, Exit::Code(0), "stderr: {stderr}\n{}", log(trace));
    }
}

/// The ops, cloned.
pub(crate) fn ops(trace: &Trace) -> Vec<Op> {
    trace.ops().cloned().collect()
}

/// The marks in their order.
pub(crate) fn marks(trace: &Trace) -> Vec<String> {
    let mark = |what: &What| match what {
        What::Mark(name) => Some(name.clone()),
        _ => None,
    };
    trace.events.iter().filter_map(|event| mark(&event.what)).collect()
}

/// Whether the tests run as root.
pub(crate) fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}
