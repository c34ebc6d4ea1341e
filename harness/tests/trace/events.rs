//! Events that are no ops: marks, closes, reads, output, and what is a gap.

use std::path::{Path, PathBuf};

use crashlab::op::{Event, Stream, What};
use crashlab::recording::Trace;
use crashlab::sandbox::{Sandbox, SandboxOptions, Way, capabilities};
use crashlab::subject::{Exit, OUTPUT_LIMIT, Program};
use crashlab::trace::{self, Detail, Options, Undisturbed};
use crashlab::tree::{Model, Node, NodeKind, Tree};

use crate::support::{
    assert_success, folder, is_root, log, marks, nothing, options, program, sandbox, shell,
    subject, undisturbed,
};

fn position(trace: &Trace, wanted: impl Fn(&What) -> bool) -> Vec<usize> {
    let found = |(index, event): (usize, &Event)| wanted(&event.what).then_some(index);
    trace.events.iter().enumerate().filter_map(found).collect()
}

#[test]
fn marks_by_all_forms() {
    let (trace, _) = undisturbed(subject("marks", &[]), nothing);
    assert_success(&trace);
    assert_eq!(marks(&trace), ["one", "two", "three"]);
}

#[test]
fn only_the_last_close_counts() {
    let (trace, _) = undisturbed(subject("closes", &[]), nothing);
    assert_success(&trace);
    let closes =
        position(&trace, |what| matches!(what, What::Close { path, .. } if path == Path::new("a")));
    let mark = |name: &str| position(&trace, |what| *what == What::Mark(name.into()))[0];
    assert_eq!(closes.len(), 1, "{}", log(&trace));
    assert!(
        mark("second-closed") < closes[0] && closes[0] < mark("child-ended"),
        "{}",
        log(&trace)
    );
}

#[test]
fn every_close_of_a_simple_program() {
    let (trace, _) = undisturbed(subject("dup", &[]), nothing);
    let seen: Vec<_> = trace
        .events
        .iter()
        .filter_map(|event| match &event.what {
            What::Close { path, .. } => Some(path.to_string_lossy().into_owned()),
            What::Mark(name) => Some(name.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(seen, ["a", "a-closed", "b", "b-closed"], "{}", log(&trace));
}

#[test]
fn reads_only_where_asked_for() {
    let kinds = |reads| {
        let sandbox = sandbox();
        std::fs::write(sandbox.work().join("given"), "text").unwrap();
        let options =
            Options { detail: if reads { Detail::Reads } else { Detail::Changes }, ..options() };
        let trace =
            trace::run(&[subject("reads", &[])], &sandbox, &options, &mut Undisturbed).unwrap();
        assert_success(&trace);
        let opened = position(
            &trace,
            |what| matches!(what, What::Open { path, readable: true, writable: false, .. } if path == Path::new("given")),
        );
        let read = position(
            &trace,
            |what| matches!(what, What::Read { path, .. } if path == Path::new("given")),
        );
        let failed = position(&trace, |what| matches!(what, What::Failed { .. }));
        assert!(failed.is_empty(), "{}", log(&trace));
        (opened.len(), read.len())
    };
    assert_eq!(kinds(true), (1, 3));
    assert_eq!(kinds(false), (0, 0));
}

/// Without what goes through descriptors that are open already, a log tells of opens, reads and names all the same.
#[test]
fn a_brief_log_tells_what_was_read_before_it_was_overwritten() {
    for sandbox in [sandbox(), Sandbox::new(&SandboxOptions::default()).unwrap()] {
        tells_what_was_read(&sandbox);
    }
}

fn tells_what_was_read(sandbox: &Sandbox) {
    std::fs::write(sandbox.work().join("given"), "text").unwrap();
    let line = "cat given; echo one > t; echo two >> t; mv t given; : > given";
    let options = Options { detail: Detail::Overwrites, ..options() };
    let trace = trace::run(&[shell(line)], sandbox, &options, &mut Undisturbed).unwrap();
    assert_success(&trace);
    assert_eq!(trace.ends[0].stdout, b"text", "what was printed is there all the same");
    let word = |what: &What| match what {
        What::Op(op) => Some(op.kind.word()),
        What::Read { path, .. } if path == Path::new("given") => Some("read"),
        What::Open { readable: false, writable: true, .. } => Some("open"),
        What::Output { .. } | What::Open { .. } | What::Read { .. } => Some("?"),
        _ => None,
    };
    let mut seen: Vec<_> = trace.events.iter().filter_map(|event| word(&event.what)).collect();
    seen.dedup();
    let all = ["read", "create", "open", "rename", "truncate", "open"];
    assert_eq!(seen, all, "{}", log(&trace));
    assert_eq!(std::fs::read(sandbox.work().join("given")).unwrap(), b"");
}

/// What is read through memory no call tells: the brief log says that it does not know, and says nothing of a file that was
/// only replaced.
#[test]
fn a_brief_log_does_not_hide_that_a_file_was_mapped() {
    if capabilities().way == Way::Plain {
        eprintln!("not tried: without namespaces each read is a stop");
        return;
    }
    let unclear = |line: &str| {
        let sandbox = Sandbox::new(&SandboxOptions::default()).unwrap();
        std::fs::write(sandbox.work().join("given"), "text").unwrap();
        let argv = ["python3", "-c", line].map(Into::into).to_vec();
        let options = Options { detail: Detail::Overwrites, ..options() };
        let program = Program { argv, env: Vec::new(), stdin: Vec::new(), pipe: true };
        let trace = trace::run(&[program], &sandbox, &options, &mut Undisturbed).unwrap();
        assert_success(&trace);
        let is_read =
            |what: &What| matches!(what, What::Read { path, .. } if path == Path::new("given"));
        let reads = trace.events.iter().filter(|event| is_read(&event.what)).count();
        (trace.gaps.iter().filter_map(|gap| gap.path.clone()).collect::<Vec<_>>(), reads > 0)
    };
    let map = "import mmap, os; f = os.open('given', os.O_RDONLY); mmap.mmap(f, 0, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE)[0]";
    assert_eq!(unclear(map), ([Path::new("given").to_owned()].to_vec(), false));
    let map = format!("{map}; open('given', 'w')");
    assert_eq!(unclear(&map), ([Path::new("given").to_owned()].to_vec(), false));
    assert_eq!(unclear("open('given', 'w')"), (Vec::new(), false));
    assert_eq!(unclear("open('given').read(); open('given', 'w')"), (Vec::new(), true));
}

/// What is copied out of a watched file inside the kernel was read there, and before it was written.
#[test]
fn copies_inside_the_kernel_are_reads_too() {
    let kinds = |reads| -> Vec<&'static str> {
        let sandbox = sandbox();
        std::fs::write(sandbox.work().join("given"), "text of it").unwrap();
        let options =
            Options { detail: if reads { Detail::Reads } else { Detail::Changes }, ..options() };
        let program = Program { pipe: true, ..subject("copies", &[]) };
        let trace = trace::run(&[program], &sandbox, &options, &mut Undisturbed).unwrap();
        assert_success(&trace);
        assert!(trace.gaps.is_empty(), "{}", log(&trace));
        let word = |what: &What| match what {
            What::Read { path, .. } => Some(if path == Path::new("given") { "read" } else { "?" }),
            What::Op(op) if op.kind.word() == "write" => Some("write"),
            What::Output { .. } => Some("output"),
            _ => None,
        };
        trace.events.iter().filter_map(|event| word(&event.what)).collect()
    };
    let all =
        ["read", "write", "read", "write", "read", "read", "output", "read", "write", "write"];
    assert_eq!(kinds(true), all);
    assert_eq!(kinds(false), all.into_iter().filter(|word| *word != "read").collect::<Vec<_>>());
}

#[test]
fn failures_say_what_and_why() {
    let (trace, _) = undisturbed(subject("renameat2", &[]), nothing);
    let expected =
        What::Failed { call: "renameat2".into(), path: Some("a".into()), errno: nix::libc::EEXIST };
    assert_eq!(position(&trace, |what| *what == expected).len(), 1, "{}", log(&trace));
}

/// What the kernel did by itself is an op of its own, and what it did not do is none.
#[test]
fn writes_that_sync_and_renames_that_do_nothing() {
    let count = |name: &str, words: [&str; 2]| {
        let (trace, _) = undisturbed(subject(name, &[]), nothing);
        words.map(|word| trace.ops().filter(|op| op.kind.word() == word).count())
    };
    assert_eq!(count("append", ["write", "sync"]), [8, 2]);
    assert_eq!(count("pwritev", ["write", "sync"]), [8, 2]);
    // An exchange, one with RENAME_NOREPLACE, and one with a whiteout where the file system has them.
    let [renames, _] = count("renameat2", ["rename", "link"]);
    assert!((2..=3).contains(&renames), "{renames}");
}

fn outputs(trace: &Trace, wanted: Stream) -> Vec<u8> {
    let bytes = trace.events.iter().filter_map(|event| match &event.what {
        What::Output { stream, bytes } if *stream == wanted => Some(&**bytes),
        _ => None,
    });
    bytes.flatten().copied().collect()
}

#[test]
fn output_and_input() {
    for (pipe, word) in [(false, "terminal"), (true, "pipe")] {
        let program = Program { stdin: b"from the lab\n".to_vec(), pipe, ..subject("output", &[]) };
        let (trace, _) = undisturbed(program, nothing);
        assert_success(&trace);
        let expected = format!("{word}\nfrom the lab\n");
        assert_eq!(String::from_utf8_lossy(&trace.ends[0].stdout), expected);
        assert_eq!(trace.ends[0].stderr, b"to stderr\n");
        assert_eq!(outputs(&trace, Stream::Stdout), expected.as_bytes());
        assert_eq!(outputs(&trace, Stream::Stderr), b"to stderr\n");
    }
}

#[test]
fn much_output_is_cut_and_said_so() {
    for pipe in [false, true] {
        let program = Program { pipe, ..subject("flood", &["3000000"]) };
        let (trace, _) = undisturbed(program, nothing);
        assert_eq!(trace.ends[0].exit, Exit::Code(0));
        assert_eq!(trace.ends[0].stdout, vec![b'o'; OUTPUT_LIMIT]);
        assert_eq!(outputs(&trace, Stream::Stdout).len(), OUTPUT_LIMIT);
        assert!(trace.gaps.iter().any(|gap| gap.what.contains("thrown away")), "{:?}", trace.gaps);
    }
}

#[test]
fn moves_across_the_border_are_gaps() {
    let sandbox = sandbox();
    // Beside the work folder: renames do not cross file systems.
    let outside = tempfile::TempDir::new_in(sandbox.work().parent().unwrap()).unwrap();
    let program = subject("outside", &[outside.path().to_str().unwrap()]);
    let trace = trace::run(&[program], &sandbox, &options(), &mut Undisturbed).unwrap();
    assert_success(&trace);
    let gaps: Vec<_> =
        trace.gaps.iter().map(|gap| gap.path.as_deref().unwrap().to_str().unwrap()).collect();
    assert_eq!(gaps, ["inside", "back", "back"], "{}", log(&trace));
    let calls: Vec<_> = trace.ops().map(|op| op.call.as_str()).collect();
    assert_eq!(
        calls,
        ["open", "write", "write"].map(|call| if call == "open" { "openat" } else { call })
    );
}

/// Files are known however deep they lie; what goes by a path that the kernel does not tell is a gap.
#[test]
fn below_the_longest_path() {
    let metadata = |kind| Node {
        kind,
        mode: 0o755,
        uid: nix::unistd::geteuid().as_raw(),
        gid: nix::unistd::getegid().as_raw(),
        hard_link: None,
        xattrs: Default::default(),
    };
    let mut path = PathBuf::new();
    let mut before = Tree::default();
    for _ in 0..3000 {
        path.push("d");
        before.nodes.insert(path.clone(), metadata(NodeKind::Folder));
    }
    let mut file = metadata(NodeKind::File(b"old".to_vec().into()));
    file.hard_link = Some("near".into());
    before.nodes.insert(path.join("file"), file.clone());
    before.nodes.insert("near".into(), file);
    let sandbox = sandbox();
    sandbox.fill(&before).unwrap();
    let run = || {
        trace::run(&[subject("deep", &["near"])], &sandbox, &options(), &mut Undisturbed).unwrap()
    };
    let trace = std::thread::scope(|scope| {
        let small = std::thread::Builder::new().stack_size(256 << 10);
        small.spawn_scoped(scope, run).unwrap().join().unwrap()
    });
    assert_success(&trace);
    let lines: Vec<&str> = trace.ops().map(|op| op.kind.word()).collect();
    assert_eq!(lines, ["write", "write"], "{}", log(&trace));
    let gaps: Vec<&str> = trace.gaps.iter().map(|gap| gap.what.as_str()).collect();
    assert_eq!(gaps, ["below a path of more than 4096 bytes, which the kernel does not tell"]);
    let mut model = Model::new(&before);
    for event in &trace.events {
        model.apply(event).unwrap();
    }
    let after = sandbox.snapshot().unwrap();
    let bytes = |path: &Path| after.get(path).map(|node| node.kind.clone());
    assert_eq!(bytes(&path.join("file")), Some(NodeKind::File(b"newx".to_vec().into())));
    assert!(model.tree().get(&path.join("file")).is_some());
}

#[test]
fn calls_of_another_table_are_one_gap() {
    let (trace, _) = undisturbed(subject("foreign", &[]), nothing);
    if trace.ends[0].exit == Exit::Code(77) {
        eprintln!("skipped: this kernel runs no 32-bit calls");
        return;
    }
    assert_success(&trace);
    assert_eq!(trace.gaps.len(), 1, "{}", log(&trace));
}

#[test]
fn an_ignored_set_uid_bit_is_a_gap() {
    use std::os::unix::fs::{PermissionsExt, chown};
    if !is_root() {
        eprintln!("skipped: only root can give a program away");
        return;
    }
    let elsewhere = folder();
    std::fs::set_permissions(elsewhere.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let copy = elsewhere.path().join("program");
    std::fs::copy(program("marks"), &copy).unwrap();
    chown(&copy, Some(12), None).unwrap();
    std::fs::set_permissions(&copy, PermissionsExt::from_mode(0o4755)).unwrap();
    let program = Program { argv: vec![copy.into()], ..subject("marks", &[]) };
    let (trace, _) = undisturbed(program, nothing);
    assert_success(&trace);
    assert!(trace.gaps.iter().any(|gap| gap.what.contains("set-uid")), "{}", log(&trace));
}

#[test]
fn lines_are_aligned() {
    let (trace, _) = undisturbed(subject("renameat2", &[]), nothing);
    let lines: Vec<String> = trace.events.iter().map(trace::describe).collect();
    let rename = lines.iter().find(|line| line.contains("<->")).unwrap();
    let column = |line: &str, word: &str| line.find(word).unwrap();
    assert_eq!(column(rename, "renameat2"), column(&lines[0], "executed"), "{lines:#?}");
    assert!(rename.ends_with("a <-> b"), "{rename}");
    let failed = lines.iter().find(|line| line.contains("EEXIST")).unwrap();
    assert!(
        failed.contains("renameat2") && failed.contains("a  = EEXIST (File exists)"),
        "{failed}"
    );
}
