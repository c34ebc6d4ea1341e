//! Sessions side by side, from the model call to the log.

use std::cell::RefCell;

use jiff::Timestamp;
use long_horizon::clock::Clock;
use long_horizon::corpus::Corpus;
use long_horizon::history;
use long_horizon::log::{Ending, Event, Log};
use long_horizon::model::{Echo, Message, Model, ModelError, Reply, Request, Tool};
use long_horizon::session::{Limits, Outcome, Session, SessionError};
use long_horizon::store::{SqliteStore, Store, StoreError};
use long_horizon::trace::Trace;

/// A folder with a database and its log, and sessions on it.
struct Bench {
    _folder: tempfile::TempDir,
    store: SqliteStore,
    log: Log,
    corpus: Corpus,
    questions: Vec<String>,
}

impl Bench {
    fn new(questions: &[&str]) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::Fixed("2026-03-01T12:00:00Z".parse::<Timestamp>().unwrap());
        let store = SqliteStore::new(folder.path().join("q.db")).with_clock(clock);
        let log = Log::beside(&store.target().unwrap(), clock);
        let corpus = Corpus::from_files([("a", "## 1. One\nfirst second third\n")]).unwrap();
        let questions = questions.iter().map(|q| (*q).to_owned()).collect();
        Bench { _folder: folder, store, log, corpus, questions }
    }

    fn run(&self, store: &dyn Store, model: &dyn Model) -> Result<Outcome, SessionError> {
        let session = Session {
            store,
            model,
            corpus: &self.corpus,
            questions: &self.questions,
            log: &self.log,
            clock: Clock::System,
            limits: Limits::default(),
        };
        session.run(&mut Trace::Off)
    }

    /// The store, so many seconds later.
    fn later(&self, seconds: i64) -> SqliteStore {
        let begin: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        let moment = Timestamp::from_second(begin.as_second() + seconds).unwrap();
        self.store.clone().with_clock(Clock::Fixed(moment))
    }
}

type Act<'a> = Box<dyn FnMut() + 'a>;

/// A model that does something while it is called, and then answers as the echo does.
struct Meanwhile<'a>(RefCell<Act<'a>>);

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
        (*self.0.borrow_mut())();
        Echo.complete(request)
    }
}

fn session_of(outcome: Outcome) -> (u64, String) {
    match outcome {
        Outcome::Worked(worked) => (worked.session, worked.question),
        other => panic!("{other:?}"),
    }
}

/// The second session runs from its start to its end during the model call of the first.
#[test]
fn a_session_within_a_session_takes_the_next_question_and_the_log_tells_both() {
    let bench = Bench::new(&["first", "second", "third"]);
    let inner = RefCell::new(None);
    let model = Meanwhile(RefCell::new(Box::new(|| {
        assert_eq!(bench.store.holders().unwrap().len(), 1);
        *inner.borrow_mut() = Some(session_of(bench.run(&bench.store, &Echo).unwrap()));
    })));
    let outer = session_of(bench.run(&bench.store, &model).unwrap());
    assert_eq!(outer, (1, "first".to_owned()));
    assert_eq!(*inner.borrow(), Some((2, "second".to_owned())));

    let loaded = bench.store.read().unwrap().unwrap();
    let answered: Vec<&String> = loaded.checkpoint.answers.keys().collect();
    assert_eq!(answered, ["first", "second"]);
    assert_eq!((loaded.checkpoint.sessions_run, loaded.checkpoint.queue.len()), (2, 1));

    let log = bench.log.read().unwrap().entries;
    let settled = history::settle(log, None);
    let sessions = history::sessions(&settled);
    assert!(sessions.iter().all(|session| session.recorded()), "{sessions:#?}");
    assert_eq!(sessions.len(), 2);
    // Each found what the other had left.
    let ends: Vec<_> = settled
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::End(end) => Some((end.question.as_str(), end.before.clone(), end.after.clone())),
            _ => None,
        })
        .collect();
    assert_eq!((ends[0].0, ends[1].0), ("second", "first"));
    assert_eq!(ends[0].2, ends[1].1);
}

#[test]
fn a_session_that_was_overtaken_is_refused_and_logged_as_failed() {
    let bench = Bench::new(&["first"]);
    let model = Meanwhile(RefCell::new(Box::new(|| {
        let early = bench.run(&bench.later(179), &Echo).unwrap_err();
        assert!(matches!(early, SessionError::Store(StoreError::Busy { .. })), "{early}");
        session_of(bench.run(&bench.later(180), &Echo).unwrap());
    })));
    let error = bench.run(&bench.store, &model).unwrap_err();
    assert!(matches!(error, SessionError::Store(StoreError::Overtaken { .. })), "{error}");
    let log = bench.log.read().unwrap().entries;
    let sessions = history::sessions(&log);
    let ends: Vec<Ending> =
        sessions.iter().filter_map(|s| s.end.as_ref()).map(|(_, end)| end.choice).collect();
    assert_eq!(ends, [Ending::Failed, Ending::Answer]);
    assert_eq!(bench.store.read().unwrap().unwrap().checkpoint.sessions_run, 1);
}

#[test]
fn a_model_that_fails_gives_its_question_back() {
    #[derive(Debug)]
    struct Fails;
    impl Model for Fails {
        fn count_tokens(&self, _: &[Message], _: &[Tool]) -> u64 {
            10
        }
        fn complete(&self, _: &Request<'_>) -> Result<Reply, ModelError> {
            Err(ModelError::Failed { why: "overloaded".to_owned() })
        }
    }
    let bench = Bench::new(&["first"]);
    bench.run(&bench.store, &Fails).unwrap_err();
    assert_eq!(bench.store.holders().unwrap(), []);
    assert_eq!(session_of(bench.run(&bench.store, &Echo).unwrap()), (1, "first".to_owned()));
}
