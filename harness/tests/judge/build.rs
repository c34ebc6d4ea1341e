//! Trees, logs and outcomes in one line each.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crashlab::judge::{
    Controls, Image, Masks, Outcome, Promises, Shapes, State, Versions, versions,
};
use crashlab::op::{Actor, Event, FileId, LockAction, LockFamily, Op, OpKind, Stream, What};
use crashlab::recording::Trace;
use crashlab::subject::{End, Exit};
use crashlab::tree::{Node, NodeKind, Tree};

/// A folder with these files, and the folders that they are in.
pub(crate) fn tree(files: &[(&str, &str)]) -> Tree {
    let node = |kind, mode| Node {
        kind,
        mode,
        uid: 0,
        gid: 0,
        hard_link: None,
        xattrs: Default::default(),
    };
    let mut tree = Tree::default();
    tree.nodes.insert(PathBuf::new(), node(NodeKind::Folder, 0o755));
    for (path, text) in files {
        for folder in Path::new(path).ancestors().skip(1) {
            tree.nodes.insert(folder.into(), node(NodeKind::Folder, 0o755));
        }
        tree.nodes
            .insert(path.into(), node(NodeKind::File(text.as_bytes().to_vec().into()), 0o644));
    }
    tree
}

/// The same with a link.
pub(crate) fn linked(mut tree: Tree, path: &str, target: &str) -> Tree {
    let folder = tree.nodes[Path::new("")].clone();
    let link = Node { kind: NodeKind::Link(target.into()), mode: 0o777, ..folder };
    tree.nodes.insert(path.into(), link);
    tree
}

/// The same with another node at this path.
pub(crate) fn changed(mut tree: Tree, path: &str, change: impl FnOnce(&mut Node)) -> Tree {
    tree.nodes.update(Path::new(path), change).expect("it is there");
    tree
}

/// The state is these paths.
pub(crate) fn state(paths: &[&str]) -> State {
    State { paths: paths.iter().map(PathBuf::from).collect(), ..State::default() }
}

/// A log that is written by calls; it numbers its ops itself.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) events: Vec<Event>,
    ops: u32,
    files: HashMap<PathBuf, FileId>,
}

impl Log {
    pub(crate) fn what(mut self, what: What) -> Log {
        self.events.push(Event { actor: Actor { program: 0, pid: 1, tid: 1 }, what });
        self
    }

    pub(crate) fn op(mut self, kind: OpKind) -> Log {
        self.ops += 1;
        let op = Op { number: self.ops, call: kind.word().to_owned(), kind };
        self.what(What::Op(op))
    }

    fn file(&mut self, path: &str) -> FileId {
        let next = FileId(self.files.len() as u32);
        *self.files.entry(path.into()).or_insert(next)
    }

    pub(crate) fn create(mut self, path: &str) -> Log {
        let file = FileId(self.files.len() as u32);
        self.files.insert(path.into(), file);
        self.op(OpKind::Create { file, path: Some(path.into()), mode: 0o644, owner: (0, 0) })
    }

    pub(crate) fn truncate(mut self, path: &str) -> Log {
        let file = self.file(path);
        self.op(OpKind::Truncate { file, path: path.into(), size: 0, by_open: true })
    }

    pub(crate) fn write(mut self, path: &str, offset: u64, text: &str) -> Log {
        let file = self.file(path);
        let data = text.as_bytes().to_vec().into();
        self.op(OpKind::Write { file, path: path.into(), offset, data, append: false })
    }

    pub(crate) fn append(mut self, path: &str, offset: u64, text: &str) -> Log {
        let file = self.file(path);
        let data = text.as_bytes().to_vec().into();
        self.op(OpKind::Write { file, path: path.into(), offset, data, append: true })
    }

    pub(crate) fn rename(mut self, from: &str, to: &str) -> Log {
        if let Some(file) = self.files.remove(Path::new(from)) {
            self.files.insert(to.into(), file);
        }
        self.op(OpKind::Rename {
            from: from.into(),
            to: to.into(),
            exchange: false,
            no_replace: false,
        })
    }

    /// A second name of a file.
    pub(crate) fn link(mut self, from: &str, to: &str) -> Log {
        let file = self.file(from);
        self.op(OpKind::Link { file, from: Some(from.into()), to: to.into() })
    }

    pub(crate) fn symlink(self, target: &str, path: &str) -> Log {
        self.op(OpKind::Symlink { target: target.into(), path: path.into(), owner: (0, 0) })
    }

    /// So many bytes are there, zeros where there were none.
    pub(crate) fn allocate(mut self, path: &str, len: u64) -> Log {
        let file = self.file(path);
        self.op(OpKind::Allocate { file, path: path.into(), mode: 0, offset: 0, len })
    }

    pub(crate) fn lock(mut self, path: &str, action: LockAction) -> Log {
        let file = self.file(path);
        let family = LockFamily::Flock;
        self.op(OpKind::Lock { file, path: path.into(), family, action })
    }

    pub(crate) fn sync(mut self, path: &str) -> Log {
        let file = self.file(path);
        self.op(OpKind::Sync { file, path: path.into(), data_only: false })
    }

    pub(crate) fn reads(mut self, path: &str) -> Log {
        let file = self.file(path);
        self.what(What::Read { file, path: path.into() })
    }

    pub(crate) fn close(mut self, path: &str) -> Log {
        let file = self.file(path);
        self.what(What::Close { file, path: path.into() })
    }

    pub(crate) fn mark(self, name: &str) -> Log {
        self.what(What::Mark(name.to_owned()))
    }

    pub(crate) fn says(self, line: &str) -> Log {
        self.what(What::Output { stream: Stream::Stdout, bytes: line.as_bytes().into() })
    }

    /// Replaces `s.json` by temp file and rename.
    pub(crate) fn replace(self, text: &str) -> Log {
        self.create("t").write("t", 0, text).close("t").rename("t", "s.json")
    }
}

/// The versions of a run that came to its end.
pub(crate) fn found(before: &Tree, log: &Log, state: &State) -> Versions {
    versions(before, &log.events, state, &Promises::default(), None).expect("the log fits")
}

/// The bytes of every version of one file, `-` for absence.
pub(crate) fn texts(versions: &Versions, path: &str) -> Vec<String> {
    let text = |image: &Image| match image
        .files
        .get(Path::new(path))
        .and_then(|content| content.bytes())
    {
        Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        None => "-".to_owned(),
    };
    versions.all.iter().map(|version| text(&version.image)).collect()
}

/// A run that began at `start`, left `end`, and ended with this exit after saying this on standard error.
pub(crate) fn outcome(state: &State, start: &Tree, end: &Tree, exit: Exit, said: &str) -> Outcome {
    let finish =
        End { exit, stdout: Vec::new(), stderr: said.as_bytes().to_vec(), elapsed: Duration::ZERO };
    let trace = Trace {
        events: Vec::new(),
        ends: Vec::new(),
        gaps: Vec::new(),
        calls: Default::default(),
        elapsed: Duration::ZERO,
    };
    Outcome {
        start: Arc::new(start.clone()),
        end: Arc::new(end.clone()),
        image: state.image(end),
        finish,
        trace: Arc::new(trace),
        unread: Default::default(),
        forked: false,
    }
}

/// Controls of a recovery that is a function of the text of `s.json` (`None`: no file); an error is a failure.
pub(crate) fn controls(
    versions: &Versions,
    recovery: &dyn Fn(Option<&str>) -> Result<String, String>,
) -> Controls {
    let state = state(&["s.json"]);
    let run = |text: Option<&str>| recovered(&state, text, recovery);
    let mut of_version = HashMap::new();
    for version in &versions.all {
        let text = version.image.files[Path::new("s.json")]
            .bytes()
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        of_version.insert(version.image.clone(), run(text.as_deref()));
    }
    let began_with_state = !versions.all[0].image.is_nothing();
    let (masks, shapes) = (Masks::default(), Shapes::default());
    Controls { of_version, none: run(None), masks, shapes, began_with_state }
}

/// What that recovery makes of one text.
pub(crate) fn recovered(
    state: &State,
    text: Option<&str>,
    recovery: &dyn Fn(Option<&str>) -> Result<String, String>,
) -> Outcome {
    let start = text.map_or_else(|| tree(&[]), |text| tree(&[("s.json", text)]));
    match recovery(text) {
        Ok(end) => outcome(state, &start, &tree(&[("s.json", &end)]), Exit::Code(0), ""),
        Err(said) => outcome(state, &start, &start, Exit::Code(1), &said),
    }
}
