//! A bench for one session: a folder, a small corpus, and models that watch or interfere.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use long_horizon::checkpoint::Checkpoint;
use long_horizon::clock::Clock;
use long_horizon::corpus::Corpus;
use long_horizon::log::{Event, Log};
use long_horizon::model::{Echo, Message, Model, ModelError, Reply, Request, Scripted, Tool};
use long_horizon::session::{Limits, Outcome, Session, SessionError, Worked};
use long_horizon::store::{self, Store, StoreKind};
use long_horizon::trace::Trace;

/// A folder with a checkpoint in it, or none yet.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) store: Box<dyn Store>,
    pub(crate) log: Log,
    pub(crate) corpus: Corpus,
    pub(crate) clock: Clock,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = store::open(StoreKind::Json, folder.path().join("q.json"));
        let clock = Clock::Fixed("2026-03-01T12:00:00Z".parse::<Timestamp>().unwrap());
        let log = Log::beside(&store.target().unwrap(), clock);
        let corpus = Corpus::from_files([
            ("a", "## 1. Rename\nA rename is atomic.\n## 2. Locks\nA lock ends with its holder.\n"),
            ("b", "## 1. Fsync\nAn fsync makes a file durable in 5 seconds.\n"),
        ]);
        Bench { folder, store, log, corpus: corpus.unwrap(), clock }
    }

    pub(crate) fn holding(checkpoint: &Checkpoint) -> Self {
        let bench = Self::new();
        std::fs::write(bench.path(), checkpoint.encode()).unwrap();
        bench
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("q.json")
    }

    pub(crate) fn session<'a>(
        &'a self,
        model: &'a dyn Model,
        questions: &'a [String],
    ) -> Session<'a> {
        Session {
            store: &*self.store,
            model,
            corpus: &self.corpus,
            questions,
            log: &self.log,
            clock: self.clock,
            limits: Limits::default(),
        }
    }

    pub(crate) fn run(
        &self,
        model: &dyn Model,
        trace: &mut Trace,
    ) -> Result<Outcome, SessionError> {
        self.session(model, &[]).run(trace)
    }

    pub(crate) fn checkpoint(&self) -> Checkpoint {
        Checkpoint::decode(&std::fs::read(self.path()).unwrap()).unwrap()
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        let log = self.log.read().unwrap();
        assert_eq!(log.complaint(), None);
        log.entries.into_iter().map(|entry| entry.event).collect()
    }

    /// Every file in the folder with its bytes.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        files(self.folder.path())
    }
}

pub(crate) fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            (path, bytes)
        })
        .collect()
}

pub(crate) fn queued(questions: &[&str]) -> Checkpoint {
    Checkpoint::fresh(questions.iter().map(|q| (*q).to_owned()).collect())
}

pub(crate) fn script(json: &str) -> Scripted {
    Scripted::parse("test script", json.as_bytes()).unwrap()
}

pub(crate) fn worked(outcome: Outcome) -> Worked {
    match outcome {
        Outcome::Worked(worked) => worked,
        other => panic!("{other:?}"),
    }
}

/// A model that must not be called.
#[derive(Debug)]
pub(crate) struct Never;

impl Model for Never {
    fn count_tokens(&self, _: &[Message], _: &[Tool]) -> u64 {
        10
    }

    fn complete(&self, _: &Request<'_>) -> Result<Reply, ModelError> {
        panic!("the model was called");
    }
}

/// A model that does something while it is called, and then answers as the echo does.
pub(crate) struct Meanwhile<'a>(RefCell<Act<'a>>);

type Act<'a> = Box<dyn FnMut(&Request<'_>) + 'a>;

impl<'a> Meanwhile<'a> {
    pub(crate) fn new(act: impl FnMut(&Request<'_>) + 'a) -> Self {
        Meanwhile(RefCell::new(Box::new(act)))
    }
}

impl std::fmt::Debug for Meanwhile<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meanwhile")
    }
}

impl Model for Meanwhile<'_> {
    fn count_tokens(&self, messages: &[Message], tools: &[Tool]) -> u64 {
        Echo.count_tokens(messages, tools)
    }

    fn complete(&self, request: &Request<'_>) -> Result<Reply, ModelError> {
        (*self.0.borrow_mut())(request);
        Echo.complete(request)
    }
}
