//! For each subject: its log, replayed by plain calls into an empty folder, gives the folder that it left.

use std::path::Path;

use crashlab::recording::Trace;
use crashlab::sandbox::{Sandbox, SandboxOptions, Way, capabilities};
use crashlab::subject::Exit;
use crashlab::trace::{self, Undisturbed};
use crashlab::tree::{self, Model, difference};

use crate::replay::Replay;
use crate::support::{assert_success, folder, log, nothing, subject, undisturbed};
use crate::{folders, support};

/// Both folders must be equal.
pub(crate) fn assert_faithful(trace: &Trace, sandbox: &Sandbox, prepare: fn(&Path)) {
    let copy = folder();
    prepare(copy.path());
    assert_modelled(trace, sandbox, copy.path());
    Replay::into(copy.path()).all(trace.ops());
    let (real, replayed) = (folders::read(sandbox.work()), folders::read(copy.path()));
    assert_eq!(real, replayed, "the run left, and its log gives:\n{}", log(trace));
}

/// The file system in memory must come to the same tree, from the same log.
fn assert_modelled(trace: &Trace, sandbox: &Sandbox, before: &Path) {
    let mut model = Model::new(&tree::read(before).expect("the folder before can be read"));
    for event in &trace.events {
        model.apply(event).unwrap_or_else(|misfit| panic!("{misfit}:\n{}", log(trace)));
    }
    let (mut modelled, mut real) = (model.tree(), sandbox.snapshot().expect("it can be read"));
    // The top folders were made by different hands.
    modelled.nodes.remove(Path::new(""));
    real.nodes.remove(Path::new(""));
    let differences: Vec<String> =
        difference(&real, &modelled).iter().map(ToString::to_string).collect();
    assert!(differences.is_empty(), "{differences:#?}\n{}", log(trace));
}

pub(crate) fn faithful(name: &str, args: &[&str]) -> Trace {
    let (trace, sandbox) = undisturbed(subject(name, args), nothing);
    assert_success(&trace);
    assert_faithful(&trace, &sandbox, nothing);
    assert!(trace.gaps.is_empty(), "{}", log(&trace));
    assert!(trace.ops().count() > 0, "{}", log(&trace));
    trace
}

macro_rules! faithful {
    ($($name:ident)*) => {
        $(#[test] fn $name() { faithful(stringify!($name), &[]); })*
    };
}

faithful! {
    basic folders fork vfork exec threads exit_group dup chdir openat tmpfile renameat2 append pwritev copy_file_range
    sendfile splice fallocate truncate links chmod chown utimens io_uring mmap nodes big
}

#[test]
fn static_binary() {
    faithful("static", &[]);
}

#[test]
fn xattr() {
    let (trace, sandbox) = undisturbed(subject("xattr", &[]), nothing);
    assert_success(&trace);
    assert_faithful(&trace, &sandbox, nothing);
}

#[test]
fn signals() {
    let (trace, sandbox) = undisturbed(subject("signals", &[]), nothing);
    let stderr = String::from_utf8_lossy(&trace.ends[0].stderr);
    assert_eq!(trace.ends[0].exit, Exit::Signal(9), "{stderr}{}", log(&trace));
    assert_faithful(&trace, &sandbox, nothing);
    let handled = std::fs::read(sandbox.work().join("handled")).unwrap();
    assert!(handled.starts_with(b"usr1\n"), "the handler ran");
    assert!(sandbox.work().join("after-stop").exists(), "{}", log(&trace));
}

fn with_files(folder: &Path) {
    std::fs::write(folder.join("a"), "was there before").unwrap();
    std::fs::write(folder.join("gone"), "too").unwrap();
    std::fs::hard_link(folder.join("gone"), folder.join("second-name")).unwrap();
    std::fs::create_dir(folder.join("d")).unwrap();
    std::fs::write(folder.join("d/x"), "deep").unwrap();
}

#[test]
fn files_that_were_there_before() {
    let (trace, sandbox) = undisturbed(support::subject("basic", &[]), with_files);
    assert_success(&trace);
    assert_faithful(&trace, &sandbox, with_files);
}

/// In a mount namespace, where the program sees the folder elsewhere than the lab does.
#[test]
fn in_namespaces() {
    if capabilities().way == Way::Plain {
        eprintln!("skipped: this machine has no namespaces for the lab");
        return;
    }
    for name in [
        "basic",
        "links",
        "chdir",
        "openat",
        "tmpfile",
        "renameat2",
        "mmap",
        "threads",
        "daemon",
        "chown",
    ] {
        let options = SandboxOptions {
            keep_visible: vec![support::program(name).parent().unwrap().to_owned()],
            ..SandboxOptions::default()
        };
        let sandbox = Sandbox::new(&options).unwrap();
        assert_ne!(sandbox.work(), sandbox.seen());
        let program = [subject(name, &[])];
        let trace = trace::run(&program, &sandbox, &support::options(), &mut Undisturbed).unwrap();
        assert_success(&trace);
        assert_faithful(&trace, &sandbox, nothing);
        assert!(trace.gaps.is_empty() && trace.ops().count() > 0, "{}", log(&trace));
    }
}
