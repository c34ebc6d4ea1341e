//! One whole session of the program with a stub for a model, from its start to its exit: what a scheduler's tick costs
//! beside the model call. Next to it a tick with nothing to do, and the least that any process costs.
#![allow(missing_docs, reason = "what the criterion macros define")]

use std::path::Path;
use std::process::{Command, Stdio};

use criterion::{BatchSize, Criterion};

const PROGRAM: &str = env!("CARGO_BIN_EXE_long-horizon");

fn run(program: &str, arguments: &[&str], folder: &Path) {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null());
    assert!(command.status().expect("a process").success());
}

fn folder() -> tempfile::TempDir {
    match std::env::var_os("CHECKPOINT_BENCH_DIR") {
        Some(parent) => tempfile::tempdir_in(parent).expect("a folder"),
        None => tempfile::tempdir().expect("a folder"),
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("session");
    group.bench_function("one", |bencher| {
        let session = |folder: tempfile::TempDir| {
            run(PROGRAM, &["run", "--model", "stub:scripted"], folder.path());
            folder
        };
        bencher.iter_batched(folder, session, BatchSize::PerIteration)
    });
    group.bench_function("nothing-to-do", |bencher| {
        let folder = folder();
        let drain = ["run", "--model", "stub:scripted", "--until-empty"];
        run(PROGRAM, &drain, folder.path());
        bencher.iter(|| run(PROGRAM, &["run", "--model", "stub:scripted"], folder.path()))
    });
    group.bench_function("true", |bencher| {
        let folder = folder();
        bencher.iter(|| run("true", &[], folder.path()))
    });
    group.finish();
    criterion.final_summary();
}
