//! Folders with programs that are recorded, and recordings made by hand.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crashlab::op::{Actor, Event, FileId, Op, OpKind, Stream, What};
use crashlab::recording::{Calls, Gap, Header, Recorded, Recording, Trace};
use crashlab::scenario::Scenario;
use crashlab::subject::{End, Exit};
use crashlab::tree::{Node, NodeKind, Tree};

/// A folder in which programs are recorded, and one beside it for the recordings.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn with(files: &[(&str, &str)]) -> Place {
        let place = Place { folder: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap() };
        fs::create_dir(place.work()).unwrap();
        for (name, text) in files {
            fs::write(place.work().join(name), text).unwrap();
        }
        place
    }

    /// The folder of the programs.
    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// A file beside it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `crashlab` in the folder, or beside it where that is gone: exit code, standard output and standard error.
    pub(crate) fn crashlab<S: AsRef<OsStr>>(&self, args: &[S]) -> (i32, String, String) {
        self.crashlab_with(args, "")
    }

    /// The same with text on standard input.
    pub(crate) fn crashlab_with<S: AsRef<OsStr>>(
        &self,
        args: &[S],
        input: &str,
    ) -> (i32, String, String) {
        let work = self.work();
        let here = if work.is_dir() { work } else { self.folder.path().to_owned() };
        let mut child = Command::new(env!("CARGO_BIN_EXE_crashlab"))
            .args(args)
            .current_dir(here)
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    }

    /// Records a line for `sh -c` into a file of this name.
    pub(crate) fn record(&self, name: &str, line: &str) -> PathBuf {
        let file = self.file(name);
        let output = ["record".as_ref(), "-o".as_ref(), file.as_os_str()];
        let command = ["--", "sh", "-c", line].map(OsStr::new);
        let (code, _, said) = self.crashlab(&[&output[..], &command].concat());
        assert_eq!(code, 0, "{said}");
        file
    }
}

/// A folder, a file in it with these bytes, and another name of it.
pub(crate) fn tree(bytes: &[u8]) -> Tree {
    let node = |kind| Node {
        kind,
        mode: 0o755,
        uid: 4711,
        gid: 0,
        hard_link: None,
        xattrs: BTreeMap::from([("user.note".to_owned(), vec![0, 255])]),
    };
    Tree::from_identities([
        (PathBuf::new(), node(NodeKind::Folder), 0),
        ("a".into(), node(NodeKind::File(bytes.into())), 1),
        ("b".into(), node(NodeKind::File(bytes.into())), 1),
        ("link".into(), node(NodeKind::Link("a".into())), 2),
        ("pipe".into(), node(NodeKind::Fifo), 3),
        ("null".into(), node(NodeKind::Device { block: false, number: 259 }), 4),
    ])
}

/// A recording of one run with these events, made by a user 4711.
pub(crate) fn recorded(events: Vec<Event>) -> Recorded {
    let scenario = Scenario::new("by hand", &["true"], "a");
    let end = End {
        exit: Exit::Code(0),
        stdout: b"out".to_vec(),
        stderr: Vec::new(),
        elapsed: Duration::from_nanos(1_500),
    };
    let gap = Gap { what: "something".into(), path: Some("a".into()), at_event: 1 };
    let trace = Trace {
        events,
        ends: vec![end],
        gaps: vec![gap],
        calls: Calls::default(),
        elapsed: Duration::from_nanos(2_000),
    };
    let mut header = Header::of(&scenario, &[]);
    // What the machine of the tests says of itself shall not matter.
    (header.user, header.env) = ((4711, 0), BTreeMap::new());
    let run = Recording { before: tree(b"before"), trace, after: tree(b"after") };
    Recorded { header, runs: vec![run] }
}

/// An event of the only program.
pub(crate) fn event(what: What) -> Event {
    Event { actor: Actor { program: 0, pid: 10, tid: 11 }, what }
}

/// A write of these bytes; it is the op of this number.
pub(crate) fn written(number: u32, path: &Path, data: &[u8]) -> Event {
    let path = path.to_owned();
    let kind = OpKind::Write { file: FileId(1), path, offset: 0, data: data.into(), append: false };
    event(What::Op(Op { number, call: "write".into(), kind }))
}

pub(crate) fn printed(bytes: &[u8]) -> Event {
    event(What::Output { stream: Stream::Stdout, bytes: bytes.into() })
}

/// Every path of a recording's first run.
pub(crate) fn paths(recorded: &Recorded) -> Vec<PathBuf> {
    recorded.runs[0].trace.ops().filter_map(|op| op.kind.path().map(Path::to_owned)).collect()
}
