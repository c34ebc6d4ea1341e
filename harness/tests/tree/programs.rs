//! Random programs of file operations: the model comes to the tree that the real folder comes to, and whoever follows their
//! log step by step to what is seen of each of their trees.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crashlab::fault::crash_state::crash_states;
use crashlab::fault::kill::points;
use crashlab::judge::{Follower, Image, State};
use crashlab::op::{Op, OpKind, What};
use crashlab::scenario::KillPoint;
use crashlab::tree::{Model, Tree, difference, read, write_out};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use super::program::{ALLOCATIONS, Run, Step, programs};

/// Programs that are tried on each file system.
const PROGRAMS: u32 = 2000;
const STEPS_MAX: usize = 30;

fn runner(cases: u32) -> TestRunner {
    TestRunner::new(Config { cases, source_file: Some(file!()), ..Config::default() })
}

fn compared(a: &Tree, b: &Tree) -> Result<(), TestCaseError> {
    let differences: Vec<String> = difference(a, b).iter().map(ToString::to_string).collect();
    prop_assert!(differences.is_empty(), "on the disk, and in the model: {differences:#?}");
    prop_assert!(a == b && a.hash() == b.hash());
    Ok(())
}

/// Runs programs below a folder, and gives how often each op was done.
fn try_programs(folder: &Path) -> BTreeMap<String, u32> {
    let scratch = tempfile::tempdir_in(folder).unwrap();
    let scratch = fs::canonicalize(scratch.path()).map(|path| (scratch, path)).unwrap();
    let (done, number) = (RefCell::new(BTreeMap::<String, u32>::new()), RefCell::new(0));
    let program = |steps: Vec<Step>| {
        *number.borrow_mut() += 1;
        let root = scratch.1.join(number.borrow().to_string());
        fs::create_dir(&root).unwrap();
        let mut model = Model::new(&read(&root).unwrap());
        let mut run = Run::new(&root);
        steps.iter().for_each(|step| run.step(step));
        for event in &run.events {
            model.apply(event).map_err(|misfit| TestCaseError::fail(misfit.to_string()))?;
        }
        compared(&read(&root).unwrap(), &model.tree())?;
        for (word, count) in run.done {
            *done.borrow_mut().entry(word).or_default() += count;
        }
        fs::remove_dir_all(&root).unwrap();
        Ok(())
    };
    runner(PROGRAMS).run(&programs(STEPS_MAX), program).unwrap_or_else(|error| panic!("{error}"));
    done.into_inner()
}

const OPS: [&str; 19] = [
    "create",
    "CreateUnnamed",
    "write",
    "truncate",
    "Copy",
    "RenameFlags(0x0)",
    "RenameFlags(EXCHANGE)",
    "RenameFlags(NOREPLACE)",
    "link",
    "LinkOpen",
    "symlink",
    "unlink",
    "mkdir",
    "rmdir",
    "mknod",
    "chmod",
    "chown",
    "xattr",
    "FallocateFlags(KEEP_SIZE | PUNCH_HOLE)",
];

/// None of the ops that every file system has was left out by chance.
fn assert_covered(done: &BTreeMap<String, u32>) {
    for op in OPS {
        assert!(done.get(op).is_some_and(|count| *count > 10), "{op} was hardly done: {done:#?}");
    }
}

#[test]
fn a_program_leaves_on_the_disk_what_it_leaves_in_the_model() {
    let done = try_programs(&std::env::temp_dir());
    assert_covered(&done);
    let folder = tempfile::tempfile().unwrap();
    for mode in ALLOCATIONS {
        rustix::fs::ftruncate(&folder, 3 * 4096).unwrap();
        if rustix::fs::fallocate(&folder, mode, 4096, 4096).is_err() {
            println!("not tried: {mode:?} does not work on this file system");
            continue;
        }
        let count = done.get(&format!("{mode:?}")).copied().unwrap_or(0);
        assert!(count > 10, "{mode:?} was hardly done: {done:#?}");
    }
}

#[test]
fn a_program_leaves_in_memory_what_it_leaves_in_the_model() {
    let memory = Path::new("/dev/shm");
    if tempfile::tempdir_in(memory).is_err() {
        println!("skipped: no file system in memory at {}", memory.display());
        return;
    }
    assert_covered(&try_programs(memory));
}

/// State files of every sort: there or not, links, folders, all of it, and some below others.
fn states() -> impl Strategy<Value = Vec<PathBuf>> {
    let path = proptest::sample::select(&["", "a", "b", "a/b", "a/c", "b/a", "c"][..]);
    proptest::collection::vec(path.prop_map(PathBuf::from), 1..4)
}

/// Which contents are not the same in both.
fn changed(before: &Image, after: &Image) -> BTreeSet<PathBuf> {
    let paths = before.files.keys().chain(after.files.keys());
    paths.filter(|path| before.files.get(*path) != after.files.get(*path)).cloned().collect()
}

#[test]
fn who_follows_a_log_sees_what_each_of_its_trees_shows() {
    let scratch = tempfile::tempdir().unwrap();
    let (root, number) = (fs::canonicalize(scratch.path()).unwrap(), RefCell::new(0));
    let program = |(steps, paths): (Vec<Step>, Vec<PathBuf>)| {
        *number.borrow_mut() += 1;
        let root = root.join(number.borrow().to_string());
        fs::create_dir(&root).unwrap();
        let before = read(&root).unwrap();
        let mut run = Run::new(&root);
        steps.iter().for_each(|step| run.step(step));
        let (seen, volatile) = (root.clone(), vec!["c".into()]);
        let state = State { paths, seen, volatile };
        let mut follower = Follower::new(&before, &state);
        let mut inodes = BTreeSet::new();
        for event in &run.events {
            let last = follower.image.clone();
            let told = follower.apply(event).unwrap();
            let image = state.image(&follower.model.tree());
            prop_assert_eq!(&told, &changed(&last, &image), "{:?}", event);
            prop_assert_eq!(&follower.image, &image, "{:?}", event);
            if let What::Op(op) = &event.what {
                inodes.extend(op.kind.file().and_then(|file| follower.model.inode(file)));
            }
        }
        for inode in inodes {
            let content = follower.model.content(inode);
            for path in follower.paths_of(inode).iter().filter(|_| content.is_some()) {
                let shown = follower.image.files.get(path).and_then(|content| content.file());
                // Where some state lies below other state, a link can be shown for what it leads to.
                prop_assert!(state.paths.len() > 1 || shown == content, "{path:?}");
            }
        }
        fs::remove_dir_all(&root).unwrap();
        Ok(())
    };
    runner(400)
        .run(&(programs(STEPS_MAX), states()), program)
        .unwrap_or_else(|error| panic!("{error}"));
}

/// Also inside of writes, each cut of which goes on from the one before it.
#[test]
fn a_kill_leaves_what_the_log_up_to_it_leaves() {
    let scratch = tempfile::tempdir().unwrap();
    let (root, number) = (fs::canonicalize(scratch.path()).unwrap(), RefCell::new(0));
    let program = |steps: Vec<Step>| {
        *number.borrow_mut() += 1;
        let root = root.join(number.borrow().to_string());
        fs::create_dir(&root).unwrap();
        let before = read(&root).unwrap();
        let mut run = Run::new(&root);
        steps.iter().for_each(|step| run.step(step));
        let state = State { paths: vec!["a".into()], seen: root.clone(), ..State::default() };
        let places = points(&run.events, &BTreeSet::new(), &KillPoint::All).unwrap();
        let states = crash_states(&before, &run.events, &state, places.clone());
        let states = states.collect::<Result<Vec<_>, _>>().unwrap();
        prop_assert_eq!(states.len(), places.len());
        for crash in states {
            let mut events = run.events[..crash.events].to_vec();
            if let (KillPoint::Inside(_, bytes), Some(last)) = (&crash.point, events.last_mut())
                && let What::Op(Op { kind: OpKind::Write { data, .. }, .. }) = &mut last.what
            {
                *data = data.slice(..*bytes as usize);
            }
            let mut model = Model::new(&before);
            events.iter().for_each(|event| model.apply(event).unwrap());
            compared(&crash.tree, &model.tree())?;
            prop_assert_eq!(&crash.survivor, &state.image(&crash.tree));
        }
        fs::remove_dir_all(&root).unwrap();
        Ok(())
    };
    runner(150).run(&programs(STEPS_MAX), program).unwrap_or_else(|error| panic!("{error}"));
}

/// Every tree of a run stays what it was when the run goes on, and can be written out.
#[test]
fn earlier_trees_stay_as_they_were() {
    let scratch = tempfile::tempdir().unwrap();
    let (root, number) = (fs::canonicalize(scratch.path()).unwrap(), RefCell::new(0));
    let program = |steps: Vec<Step>| {
        *number.borrow_mut() += 1;
        let (one, other) = (
            root.join(number.borrow().to_string()),
            root.join(format!("{}-again", number.borrow())),
        );
        fs::create_dir(&one).unwrap();
        let mut model = Model::new(&read(&one).unwrap());
        let mut run = Run::new(&one);
        let mut trees = Vec::new();
        for step in &steps {
            let from = run.events.len();
            run.step(step);
            for event in &run.events[from..] {
                model.apply(event).map_err(|misfit| TestCaseError::fail(misfit.to_string()))?;
            }
            trees.push((model.tree(), read(&one).unwrap()));
        }
        for (modelled, real) in &trees {
            compared(real, modelled)?;
        }
        if let Some((modelled, _)) = trees.get(trees.len() / 2) {
            fs::create_dir(&other).unwrap();
            write_out(modelled, &other).unwrap();
            compared(&read(&other).unwrap(), modelled)?;
            fs::remove_dir_all(&other).unwrap();
        }
        fs::remove_dir_all(&one).unwrap();
        Ok(())
    };
    runner(200).run(&programs(STEPS_MAX), program).unwrap_or_else(|error| panic!("{error}"));
}
