//! From where ops are made: functions and lines, with and without what compilers leave for it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crashlab::op::{Op, OpKind};
use crashlab::recording::{CallSite, FRAMES_MAX, Stack, Trace};
use crashlab::subject::Program;
use crashlab::trace::{self, Options, Undisturbed};

use super::support::{assert_success, folder, log, options, output, sandbox};

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/calls.c")
}

/// The line of the source that has this word behind it.
fn line(word: &str) -> u32 {
    let text = std::fs::read_to_string(source()).unwrap();
    let mark = format!("/* {word} */");
    let mut lines = text.lines().zip(1..).filter(|(line, _)| line.contains(&mark));
    let (Some((_, number)), None) = (lines.next(), lines.next()) else {
        panic!("not one line has {mark}");
    };
    number
}

fn succeeds(command: &mut Command) {
    let ended = output(command).unwrap();
    assert!(ended.status.success(), "{command:?}: {}", String::from_utf8_lossy(&ended.stderr));
}

/// Compiles the program into a folder, under the name `calls`.
fn compiled(into: &Path, options: &[&str]) -> PathBuf {
    let target = into.join("calls");
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-Wno-unused-result", "-pthread"]).args(options);
    succeeds(cc.arg("-o").arg(&target).arg(source()));
    target
}

/// Takes sections out of a program.
fn without(program: &Path, sections: &[&str]) {
    let mut objcopy = Command::new("objcopy");
    let removed = sections.iter().flat_map(|section| ["--remove-section", section]);
    succeeds(objcopy.args(removed).arg(program));
}

/// Runs a program in a folder that holds these files.
fn run(argv: &[&str], files: &[&Path], backtrace: bool) -> Trace {
    let sandbox = sandbox();
    for file in files {
        std::fs::copy(file, sandbox.work().join(file.file_name().unwrap())).unwrap();
    }
    let program = Program {
        argv: argv.iter().map(Into::into).collect(),
        env: Vec::new(),
        stdin: Vec::new(),
        pipe: false,
    };
    let options = Options { backtrace, ..options() };
    let trace = trace::run(&[program], &sandbox, &options, &mut Undisturbed).unwrap();
    assert_success(&trace);
    trace
}

/// What the program does in one of its ways.
fn does(program: &Path, what: &str) -> Trace {
    run(&["./calls", what], &[program], true)
}

fn op(trace: &Trace, wanted: impl Fn(&OpKind) -> bool) -> &Op {
    trace.ops().find(|op| wanted(&op.kind)).unwrap_or_else(|| panic!("{}", log(trace)))
}

/// The stack at the first op of this kind.
fn stack<'a>(trace: &'a Trace, word: &str) -> &'a Stack {
    trace.calls.stack(op(trace, |kind| kind.word() == word).number).unwrap()
}

/// The stack at the op on this path.
fn stack_on<'a>(trace: &'a Trace, path: &str) -> &'a Stack {
    trace.calls.stack(op(trace, |kind| kind.path() == Some(Path::new(path))).number).unwrap()
}

/// `function:line`, of what is known of them.
fn shown(site: &CallSite) -> String {
    let function = site.function.as_deref().unwrap_or("?");
    site.line.map_or(function.to_owned(), |line| format!("{function}:{line}"))
}

fn told(stack: &Stack) -> String {
    shown(stack.site().unwrap())
}

/// The frames in the program itself, from the call outwards.
fn frames(stack: &Stack) -> Vec<String> {
    let own = stack.sites.iter().filter(|site| site.module.ends_with("calls"));
    own.map(|site| shown(site)).collect()
}

fn at(function: &str, word: &str) -> String {
    format!("{function}:{}", line(word))
}

/// All that is saved is told with its line, and the rename with the whole way to it.
fn assert_saved_with_lines(trace: &Trace, how: &str) {
    for (word, function, mark) in [
        ("create", "save_state", "CREATES"),
        ("write", "put_text", "WRITES"),
        ("sync", "save_state", "SYNCS"),
        ("rename", "save_state", "RENAMES"),
    ] {
        assert_eq!(told(stack(trace, word)), at(function, mark), "{how}: {word}");
    }
    let way = [at("save_state", "RENAMES"), at("job", "CALLS-SAVE"), at("main", "CALLS-JOB")];
    let rename = stack(trace, "rename");
    let frames = frames(rename);
    let from = frames.iter().position(|frame| *frame == way[0]).unwrap();
    assert_eq!(frames[from..from + 3], way, "{how}");
    assert!(rename.whole, "{how}: {frames:?}");
    let site = rename.site().unwrap();
    assert_eq!(site.file.as_deref(), Some(&*source()), "{how}");
    // What the compiler has inlined is told as what the source says.
    let write = stack(trace, "write");
    let place = write.told.unwrap();
    assert!(write.sites[place].inlined && !write.sites[place + 1].inlined, "{how}");
    assert_eq!(shown(&write.sites[place + 1]), at("save_state", "CALLS-INLINED"), "{how}");
}

#[test]
fn lines_are_found_by_every_kind_of_unwind_table_and_by_frame_pointers() {
    const EH_FRAME: &[&str] = &[".eh_frame", ".eh_frame_hdr"];
    const NO_TABLES: &[&str] = &[".eh_frame", ".eh_frame_hdr", ".debug_frame"];
    for (how, options, removed) in [
        ("frame pointers and tables", &["-g", "-O0", "-fno-omit-frame-pointer"][..], &[][..]),
        (".eh_frame", &["-g", "-O2", "-fomit-frame-pointer"], &[]),
        ("at a fixed address", &["-g", "-O2", "-no-pie", "-fno-pie"], &[]),
        (".eh_frame without its index", &["-g", "-O2"], &[".eh_frame_hdr"]),
        (
            ".debug_frame",
            &["-g", "-O2", "-fomit-frame-pointer", "-fno-asynchronous-unwind-tables"],
            EH_FRAME,
        ),
        (
            "frame pointers",
            &["-g", "-O2", "-fno-omit-frame-pointer", "-fno-asynchronous-unwind-tables"],
            NO_TABLES,
        ),
        ("packed", &["-g", "-O2", "-gz=zlib"], &[]),
        ("static", &["-g", "-O2", "-static", "-DSTATIC"], &[]),
    ] {
        let folder = folder();
        let program = compiled(folder.path(), options);
        if !removed.is_empty() {
            without(&program, removed);
        }
        assert_saved_with_lines(&does(&program, "save"), how);
    }
}

#[test]
fn without_lines_there_are_functions_and_without_those_addresses() {
    for options in [&["-O2"][..], &["-O2", "-static", "-DSTATIC"]] {
        let folder = folder();
        let program = compiled(folder.path(), options);
        let named = does(&program, "save");
        let rename = stack(&named, "rename");
        let site = rename.site().unwrap();
        assert_eq!((told(rename).as_str(), site.line), ("save_state", None), "{options:?}");
        assert!(site.function_offset.is_some_and(|offset| offset > 0), "{site:?}");
        assert!(rename.whole, "{rename:?}");
        succeeds(Command::new("strip").arg(&program));
        let stripped = does(&program, "save");
        let bare = stack(&stripped, "rename");
        let own = |stack: &Stack| -> Vec<u64> {
            let own = stack.sites.iter().filter(|site| site.module.ends_with("calls"));
            own.map(|site| site.address).collect()
        };
        assert_eq!(own(bare), own(rename), "{options:?}");
        if !options.contains(&"-static") {
            let bare = bare.site().unwrap();
            assert_eq!(bare.to_string(), format!("at calls+{:#x}", site.address));
        }
    }
}

/// Its first caller is found all the same, by the C library's own table.
#[test]
fn a_stack_that_cannot_be_followed_is_said_to_be_cut() {
    let folder = folder();
    let options = ["-g", "-O2", "-fomit-frame-pointer", "-fno-asynchronous-unwind-tables"];
    let program = compiled(folder.path(), &options);
    without(&program, &[".eh_frame", ".eh_frame_hdr", ".debug_frame"]);
    let trace = does(&program, "save");
    let rename = stack(&trace, "rename");
    assert_eq!(told(rename), at("save_state", "RENAMES"));
    assert!(!rename.whole, "{rename:?}");
}

#[test]
fn threads_handlers_and_new_programs_have_stacks_of_their_own() {
    let folder = folder();
    let program = compiled(folder.path(), &["-g", "-O2"]);
    let trace = does(&program, "threads");
    for (path, word) in [("first", "FIRST"), ("second", "SECOND")] {
        let stack = stack_on(&trace, path);
        assert_eq!(told(stack), at(path, word));
        assert!(stack.whole && !frames(stack).iter().any(|frame| frame.starts_with("main")));
    }
    let trace = does(&program, "signal");
    let stack = stack_on(&trace, "by-handler");
    let way = [at("handler", "HANDLES"), at("interrupt_itself", "INTERRUPTS")];
    assert_eq!(frames(stack)[..2], way, "through the signal: {stack:?}");
    assert!(stack.whole, "{stack:?}");
    let trace = does(&program, "trap");
    let way = [at("last_handler", "HANDLES-TRAP"), at("trap", "TRAPS"), at("main", "CALLS-TRAP")];
    assert_eq!(frames(stack_on(&trace, "trapped"))[..3], way, "where nothing was called");
    let trace = does(&program, "exec");
    assert_eq!(told(stack_on(&trace, "before")), at("main", "BEFORE-EXEC"));
    assert_eq!(told(stack_on(&trace, "after")), at("main", "AFTER-EXEC"));
    let trace = does(&program, "vfork");
    assert_eq!(told(stack_on(&trace, "by-child")), at("main", "BY-CHILD"));
    assert_eq!(told(stack_on(&trace, "by-parent")), at("main", "BY-PARENT"));
}

#[test]
fn a_library_that_came_later_and_a_program_that_is_gone() {
    let folder = folder();
    let program = compiled(folder.path(), &["-g", "-O2"]);
    let library = folder.path().join("libcalls.so");
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-g", "-O2", "-shared", "-fPIC", "-DLIBRARY", "-o"]);
    succeeds(cc.arg(&library).arg(source()));
    let trace = run(&["./calls", "library"], &[&program, &library], true);
    assert_eq!(told(stack_on(&trace, "early")), at("main", "EARLY"));
    let by_library = stack_on(&trace, "by-library");
    assert_eq!(told(by_library), at("save_in_library", "IN-LIBRARY"));
    assert!(by_library.site().unwrap().module.ends_with("libcalls.so"), "{by_library:?}");
    assert_eq!(frames(by_library)[0], at("main", "CALLS-LIBRARY"));
    let trace = does(&program, "deleted");
    assert_eq!(told(stack(&trace, "unlink")), at("main", "DELETES"));
    assert_eq!(told(stack_on(&trace, "afterwards")), at("main", "AFTER-DELETION"));
}

#[test]
fn nothing_is_taken_where_nobody_asks() {
    let folder = folder();
    let program = compiled(folder.path(), &["-g"]);
    let trace = run(&["./calls", "save"], &[&program], false);
    assert!(trace.ops().count() > 0 && trace.calls.is_empty());
}

/// Of an interpreted program the frames of its interpreter are seen, and no more.
#[test]
fn of_a_script_the_interpreter_is_seen() {
    let found = output(Command::new("python3").args(["-c", "import sys; print(sys.executable)"]));
    let Some(found) = found.ok().filter(|found| found.status.success()) else {
        eprintln!("skipped: there is no python3 here");
        return;
    };
    let python = String::from_utf8(found.stdout).unwrap();
    let script = "import os\n\
        with open('s.tmp', 'w') as file: file.write('text')\n\
        os.replace('s.tmp', 's.json')\n";
    let trace = run(&[python.trim(), "-I", "-c", script], &[], true);
    for word in ["create", "write", "rename"] {
        let stack = stack(&trace, word);
        let site = stack.site().unwrap();
        let module = site.module.file_name().unwrap().to_string_lossy().into_owned();
        assert!(module.contains("python"), "{word}: {site}");
        assert!(stack.sites.len() > 3 && stack.sites.len() <= 4 * FRAMES_MAX, "{stack:?}");
    }
}
