//! One session, driven through the library: what it asks, what it records, and what it leaves when it fails.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use long_horizon::checkpoint::Checkpoint;
use long_horizon::choice::Choice;
use long_horizon::clock::Clock;
use long_horizon::corpus::Corpus;
use long_horizon::log::{Ending, Event, Log};
use long_horizon::model::{Echo, Message, Model, ModelError, Reply, Request, Scripted};
use long_horizon::session::{Limits, Outcome, Session, SessionError, Worked};
use long_horizon::store::{self, Holder, Loaded, Store, StoreError, StoreKind, Transaction, Wait};
use long_horizon::trace::{Actor, Trace};
use long_horizon::{digest, queue};

/// A folder with a checkpoint in it, or none yet.
struct Bench {
    folder: tempfile::TempDir,
    store: Box<dyn Store>,
    log: Log,
    corpus: Corpus,
    clock: Clock,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = store::open(StoreKind::Json, folder.path().join("q.json"));
        let clock = Clock::Fixed("2026-03-01T12:00:00Z".parse::<Timestamp>().unwrap());
        let log = Log::beside(&store.target().unwrap(), clock);
        let corpus = Corpus::from_files([
            (
                "a",
                "## 1. Rename\nA rename is atomic.\n## 2. Locks\nA lock ends with its holder.\n",
            ),
            (
                "b",
                "## 1. Fsync\nAn fsync makes a file durable in 5 seconds.\n",
            ),
        ]);
        Bench {
            folder,
            store,
            log,
            corpus: corpus.unwrap(),
            clock,
        }
    }

    fn holding(checkpoint: &Checkpoint) -> Self {
        let bench = Self::new();
        std::fs::write(bench.path(), checkpoint.encode()).unwrap();
        bench
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("q.json")
    }

    fn session<'a>(&'a self, model: &'a dyn Model, questions: &'a [String]) -> Session<'a> {
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

    fn run(&self, model: &dyn Model, trace: &mut Trace) -> Result<Outcome, SessionError> {
        self.session(model, &[]).run(trace)
    }

    fn checkpoint(&self) -> Checkpoint {
        Checkpoint::decode(&std::fs::read(self.path()).unwrap()).unwrap()
    }

    fn events(&self) -> Vec<Event> {
        let log = self.log.read().unwrap();
        assert_eq!(log.complaint(), None);
        log.entries.into_iter().map(|entry| entry.event).collect()
    }

    /// Every file in the folder with its bytes.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        files(self.folder.path())
    }
}

fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            (path, bytes)
        })
        .collect()
}

fn queued(questions: &[&str]) -> Checkpoint {
    Checkpoint::fresh(questions.iter().map(|q| (*q).to_owned()).collect())
}

fn script(json: &str) -> Scripted {
    Scripted::parse("test script", json.as_bytes()).unwrap()
}

fn worked(outcome: Outcome) -> Worked {
    match outcome {
        Outcome::Worked(worked) => worked,
        other => panic!("{other:?}"),
    }
}

/// A model that must not be called.
#[derive(Debug)]
struct Never;

impl Model for Never {
    fn count_tokens(&self, _: &[Message]) -> u64 {
        10
    }

    fn complete(&self, _: &Request<'_>) -> Result<Reply, ModelError> {
        panic!("the model was called");
    }
}

/// A model that does something while it is called, and then answers as the echo does.
struct Meanwhile<'a>(RefCell<Box<dyn FnMut(&Request<'_>) + 'a>>);

impl<'a> Meanwhile<'a> {
    fn new(act: impl FnMut(&Request<'_>) + 'a) -> Self {
        Meanwhile(RefCell::new(Box::new(act)))
    }
}

impl std::fmt::Debug for Meanwhile<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meanwhile")
    }
}

impl Model for Meanwhile<'_> {
    fn count_tokens(&self, messages: &[Message]) -> u64 {
        Echo.count_tokens(messages)
    }

    fn complete(&self, request: &Request<'_>) -> Result<Reply, ModelError> {
        (*self.0.borrow_mut())(request);
        Echo.complete(request)
    }
}

#[test]
fn the_steps_of_an_answer_are_traced_in_order() {
    let bench = Bench::holding(&queued(&["Is a rename atomic?", "next"]));
    let model =
        script(r#"{"Is a rename atomic?": {"answer": {"text": "Yes.", "citations": ["a#1"]}}}"#);
    let mut trace = Trace::Memory(vec![]);
    worked(bench.run(&model, &mut trace).unwrap());
    let Trace::Memory(steps) = trace else {
        panic!()
    };
    let told: Vec<(Actor, &str, &str)> = steps
        .iter()
        .map(|s| {
            assert_eq!(s.kind, s.decided_by);
            (s.kind, s.title, s.detail.as_str())
        })
        .collect();
    assert_eq!(
        told,
        [
            (
                Actor::Code,
                "A trigger starts a session",
                "nobody asked for this run"
            ),
            (
                Actor::Code,
                "Find sources for the first question in the queue",
                "a#1, a#2"
            ),
            (
                Actor::Code,
                "Build the context from notes, not from a transcript",
                "0 notes from earlier sessions, none of their messages"
            ),
            (
                Actor::Model,
                "The model answers the question or flags it",
                r#"answer({"text":"Yes.","citations":["a#1"]})"#
            ),
            (
                Actor::Code,
                "Record the answer and keep a short note of it",
                "Yes."
            ),
            (
                Actor::Code,
                "Write the checkpoint to disk",
                "1 question left in the queue, session 1"
            ),
        ]
    );
    assert!(steps[3].tokens_in > 0 && steps[3].tokens_out > 0);
    assert!(
        steps
            .iter()
            .all(|s| s.kind == Actor::Model || s.tokens_in + s.tokens_out + s.ms == 0)
    );
}

#[test]
fn a_flag_is_traced_as_handed_to_a_person() {
    let bench = Bench::holding(&queued(&["unrelated"]));
    let mut trace = Trace::Memory(vec![]);
    let done = worked(bench.run(&Echo, &mut trace).unwrap());
    assert!(matches!(done.choice, Choice::Flag { .. }));
    let Trace::Memory(steps) = trace else {
        panic!()
    };
    let titles: Vec<_> = steps.iter().map(|s| s.title).collect();
    assert_eq!(
        titles[4..],
        ["A person gets the question", "Write the checkpoint to disk"]
    );
    assert_eq!(steps[1].detail, "none");
    assert_eq!(
        bench.checkpoint().pending["unrelated"],
        "no section of the corpus matches the question"
    );
    assert!(bench.checkpoint().notes.is_empty());
}

#[test]
fn a_trace_file_holds_one_object_a_line() {
    let bench = Bench::holding(&queued(&["rename"]));
    let file = bench.folder.path().join("trace.jsonl");
    bench
        .run(&Echo, &mut Trace::to_file(&file).unwrap())
        .unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(lines.len(), 6);
    let keys: Vec<_> = lines[3].as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "kind",
            "decided_by",
            "title",
            "detail",
            "tokens_in",
            "tokens_out",
            "ms"
        ]
    );
    assert_eq!(
        (&lines[3]["kind"], &lines[3]["decided_by"]),
        (&"model".into(), &"model".into())
    );
}

#[test]
fn the_model_gets_notes_sources_and_question_two_tools_and_no_earlier_message() {
    let bench = Bench::holding(&queued(&["Does a lock end?", "Is fsync durable?"]));
    let seen = RefCell::new(Vec::new());
    let model = Meanwhile::new(|request| {
        assert_eq!(request.max_tokens, 300);
        let names: Vec<_> = request.tools.iter().map(|t| t.name).collect();
        assert_eq!(names, ["answer", "flag_for_review"]);
        assert_eq!(
            request.tools[0].parameters["required"],
            serde_json::json!(["text", "citations"])
        );
        assert_eq!(
            request.tools[1].parameters["required"],
            serde_json::json!(["reason"])
        );
        seen.borrow_mut().push(request.messages.to_vec());
    });
    worked(bench.run(&model, &mut Trace::Off).unwrap());
    worked(bench.run(&model, &mut Trace::Off).unwrap());
    let seen = seen.borrow();
    assert_eq!(seen[1].len(), 2);
    let second = &seen[1][1].content;
    assert!(
        second.contains("- Does a lock end? -> A lock ends with its holder."),
        "{second}"
    );
    assert!(
        second.contains("[b#1] Fsync\nAn fsync makes a file durable"),
        "{second}"
    );
    assert!(second.ends_with("Question: Is fsync durable?"), "{second}");
    // The source of the first session is no source of the second; only its note is there.
    assert!(!second.contains("[a#2]"), "{second}");
    assert!(seen[0][1].content.contains("(none yet)"));
}

#[test]
fn start_and_end_are_logged_with_digests_around_the_model_call() {
    let before = queued(&["Is a rename atomic?"]);
    let bench = Bench::holding(&before);
    let model = Meanwhile::new(|_| {
        let events = bench.events();
        assert!(matches!(events.as_slice(), [Event::Start(_)]), "{events:?}");
    });
    worked(bench.run(&model, &mut Trace::Off).unwrap());
    let events = bench.events();
    let [Event::Start(start), Event::End(end)] = events.as_slice() else {
        panic!("{events:?}");
    };
    assert_eq!(start.session, 1);
    assert_eq!(start.pid, std::process::id());
    assert_eq!(start.question, "Is a rename atomic?");
    assert_eq!(start.before, Some(digest::sha256(&before.encode())));
    assert_eq!(
        (end.session, end.pid, &end.before),
        (1, start.pid, &start.before)
    );
    assert_eq!(
        end.after,
        Some(digest::sha256(&std::fs::read(bench.path()).unwrap()))
    );
    assert_eq!(end.choice, Ending::Answer);
    assert_eq!(end.cited[0].section, "a#1");
    assert_eq!(
        end.cited[0].sha256,
        Some(bench.corpus.get("a#1").unwrap().sha256())
    );
    assert!(end.tokens_in > 0 && end.tokens_out > 0);
}

#[test]
fn a_fresh_queue_has_no_digest_before() {
    let bench = Bench::new();
    let questions = ["rename".to_owned(), "other".to_owned()];
    worked(
        bench
            .session(&Echo, &questions)
            .run(&mut Trace::Off)
            .unwrap(),
    );
    let events = bench.events();
    assert!(
        matches!(&events[0], Event::Start(start) if start.before.is_none()),
        "{events:?}"
    );
    assert_eq!(bench.checkpoint().queue, ["other"]);
}

/// Whatever goes wrong with the model: the checkpoint is as it was, no temp file is left, and the log says so.
#[test]
fn a_model_that_fails_leaves_everything_as_it_was() {
    let failures = [
        (
            r#"{"error": "overloaded"}"#,
            "the model call failed: overloaded",
        ),
        (r#"{"error": "timed out"}"#, "timed out"),
        (r#"{"error": "cut short"}"#, "cut short"),
        (r#"{"launch": {}}"#, "`launch`, which is no tool"),
        (
            r#"{"answer": {"text": 1, "citations": []}}"#,
            "invalid type",
        ),
        (
            r#"{"answer": {"text": "a", "citations": "a#1"}}"#,
            "invalid type",
        ),
        (
            r#"{"answer": {"text": "a", "citations": [1]}}"#,
            "invalid type",
        ),
        (r#"{"answer": {"text": "a"}}"#, "missing field `citations`"),
        (
            r#"{"answer": {"text": "a", "citations": [], "x": 1}}"#,
            "unknown field `x`",
        ),
        (r#"{"answer": ["a", []]}"#, "expected a JSON object"),
        (r#"{"flag_for_review": {}}"#, "missing field `reason`"),
        (
            r#"{"answer": {"text": "a", "citations": []}, "flag_for_review": {"reason": "b"}}"#,
            "2 tools at once",
        ),
        (r#"{"text": ""}"#, "empty"),
    ];
    for (reply, words) in failures {
        let bench = Bench::holding(&queued(&["q"]));
        let before = bench.files();
        let error = bench
            .run(&script(&format!(r#"{{"q": {reply}}}"#)), &mut Trace::Off)
            .unwrap_err();
        let told = error.to_string();
        assert!(told.contains(words), "{reply}: {told}");
        assert!(
            told.contains("`q`") && told.contains("nothing was written"),
            "{reply}: {told}"
        );

        let mut after = bench.files();
        after.retain(|path, _| {
            !path.ends_with("q.json.lock") && !path.ends_with("q.json.log.jsonl")
        });
        assert_eq!(after, before, "{reply}");
        match bench.events().as_slice() {
            [Event::Start(_), Event::End(end)] => {
                assert_eq!(end.choice, Ending::Failed, "{reply}");
                assert_eq!(end.after, None, "{reply}");
                assert!(end.reason.as_ref().unwrap().contains(words), "{reply}");
            }
            other => panic!("{reply}: {other:?}"),
        }
    }
}

#[test]
fn a_reply_longer_than_the_limit_is_cut_short() {
    let bench = Bench::holding(&queued(&["q"]));
    let long = "x".repeat(300 * 4 + 1);
    let error = bench
        .run(
            &script(&format!(r#"{{"q": {{"text": "{long}"}}}}"#)),
            &mut Trace::Off,
        )
        .unwrap_err();
    assert!(error.to_string().contains("cut short"), "{error}");
    let fits = "x".repeat(300 * 4);
    worked(
        bench
            .run(
                &script(&format!(r#"{{"q": {{"text": "{fits}"}}}}"#)),
                &mut Trace::Off,
            )
            .unwrap(),
    );
}

#[test]
fn plain_text_is_recorded_as_an_answer_without_citations() {
    let bench = Bench::holding(&queued(&["q"]));
    worked(
        bench
            .run(&script(r#"{"q": {"text": "just so"}}"#), &mut Trace::Off)
            .unwrap(),
    );
    let answer = &bench.checkpoint().answers["q"];
    assert_eq!(
        (answer.text.as_str(), answer.citations.len()),
        ("just so", 0)
    );
}

#[test]
fn a_question_that_the_script_does_not_know_is_an_error_that_says_so() {
    let bench = Bench::holding(&queued(&["another q"]));
    let error = bench
        .run(&script(r#"{"q": {"text": "a"}}"#), &mut Trace::Off)
        .unwrap_err();
    assert!(
        error.to_string().contains("test script holds no reply"),
        "{error}"
    );
}

#[test]
fn an_empty_queue_costs_nothing() {
    for bench in [Bench::new(), Bench::holding(&queued(&[]))] {
        let before = bench.files();
        assert_eq!(bench.run(&Never, &mut Trace::Off).unwrap(), Outcome::Empty);
        assert_eq!(bench.files(), before);
    }
}

/// Says one thing without the lock and another with it.
#[derive(Debug)]
struct Emptied;

#[derive(Debug)]
struct EmptiedTransaction(Loaded);

fn loaded(checkpoint: Checkpoint) -> Loaded {
    Loaded {
        bytes: Some(checkpoint.encode()),
        checkpoint,
    }
}

impl Store for Emptied {
    fn read(&self) -> Result<Option<Loaded>, StoreError> {
        Ok(Some(loaded(queued(&["q"]))))
    }

    fn begin(&self, _: Wait) -> Result<Box<dyn Transaction + '_>, StoreError> {
        Ok(Box::new(EmptiedTransaction(loaded(queued(&[])))))
    }

    fn target(&self) -> Result<PathBuf, StoreError> {
        Ok(PathBuf::from("/nowhere"))
    }

    fn holder(&self) -> Result<Option<Holder>, StoreError> {
        Ok(None)
    }
}

impl Transaction for EmptiedTransaction {
    fn loaded(&self) -> Option<&Loaded> {
        Some(&self.0)
    }

    fn save(self: Box<Self>, _: &Checkpoint) -> Result<Vec<u8>, StoreError> {
        panic!("something was saved");
    }
}

#[test]
fn a_queue_that_became_empty_before_the_lock_was_had_costs_nothing() {
    let bench = Bench::new();
    let session = Session {
        store: &Emptied,
        ..bench.session(&Never, &[])
    };
    assert_eq!(session.run(&mut Trace::Off).unwrap(), Outcome::Empty);
    assert!(bench.files().is_empty());
}

#[test]
fn an_overlapping_session_is_refused_before_any_model_call() {
    let bench = Bench::holding(&queued(&["rename"]));
    let model = Meanwhile::new(|_| match bench.run(&Never, &mut Trace::Off) {
        Err(SessionError::Store(StoreError::Busy { holder, .. })) => {
            assert_eq!(holder.pid, Some(std::process::id()))
        }
        other => panic!("{other:?}"),
    });
    worked(bench.run(&model, &mut Trace::Off).unwrap());
    assert_eq!(bench.checkpoint().sessions_run, 1);
}

/// The counter stays with a `resolve`, so a check of the counter alone would erase the person's decision.
#[test]
fn a_resolve_that_ignored_the_lock_is_not_erased_by_the_session_that_overlapped_it() {
    let mut before = queued(&["rename"]);
    before.pending.insert("p".to_owned(), "why".to_owned());
    let bench = Bench::holding(&before);
    let resolved = queue::resolve(&before, "p", "a person's decision").unwrap();
    assert_eq!(resolved.sessions_run, before.sessions_run);
    let model = Meanwhile::new(|_| std::fs::write(bench.path(), resolved.encode()).unwrap());
    let error = bench.run(&model, &mut Trace::Off).unwrap_err();
    assert!(
        matches!(error, SessionError::Store(StoreError::Changed { .. })),
        "{error:?}"
    );
    assert_eq!(bench.checkpoint(), resolved);
    let events = bench.events();
    assert!(
        matches!(&events[1], Event::End(end) if end.choice == Ending::Failed),
        "{events:?}"
    );
}

#[test]
fn a_session_begins_no_call_that_its_budget_might_not_cover() {
    let bench = Bench::holding(&queued(&["q"]));
    let with = |tokens, model| Session {
        limits: Limits {
            tokens: Some(tokens),
            tokens_out: 300,
            call: Duration::from_secs(1),
        },
        ..bench.session(model, &[])
    };
    assert_eq!(
        with(309, &Never).run(&mut Trace::Off).unwrap(),
        Outcome::OverBudget { needed: 310 }
    );
    assert!(bench.events().is_empty());
    assert_eq!(bench.checkpoint(), queued(&["q"]));

    /// Needs 10 tokens, as `Never` does, but answers.
    #[derive(Debug)]
    struct Ten;
    impl Model for Ten {
        fn count_tokens(&self, _: &[Message]) -> u64 {
            10
        }
        fn complete(&self, request: &Request<'_>) -> Result<Reply, ModelError> {
            Echo.complete(request)
        }
    }
    worked(with(310, &Ten).run(&mut Trace::Off).unwrap());
}

#[test]
fn a_log_that_cannot_be_written_does_not_stop_the_queue() {
    let bench = Bench::holding(&queued(&["rename"]));
    std::fs::create_dir(bench.log.path()).unwrap();
    worked(bench.run(&Echo, &mut Trace::Off).unwrap());
    assert_eq!(bench.log.take_failures().len(), 2);
    assert!(bench.checkpoint().queue.is_empty());
}

#[test]
fn the_echo_cites_its_source_and_fits_into_the_limit() {
    let text = "word ".repeat(2_000);
    let corpus =
        Corpus::from_files([("long", format!("## 1. Long\n{text}\n\n[x] y\n").as_str())]).unwrap();
    let bench = Bench::holding(&queued(&["word"]));
    let session = Session {
        corpus: &corpus,
        ..bench.session(&Echo, &[])
    };
    let done = worked(session.run(&mut Trace::Off).unwrap());
    assert!(
        done.tokens_out <= 300 && done.tokens_out > 290,
        "{}",
        done.tokens_out
    );
    let Choice::Answer {
        text: answer,
        citations,
    } = done.choice
    else {
        panic!()
    };
    assert_eq!(citations, ["long#1"]);
    assert!(text.starts_with(&answer));
}

#[test]
fn a_script_with_a_mistake_is_refused_with_its_name() {
    for (json, words) in [
        ("[]", "invalid type"),
        (r#"{"q": {}}"#, "the reply is empty"),
        (r#"{"q": {"text": 1}}"#, "must be a string"),
        (r#"{"q": {"error": "x", "text": "y"}}"#, "must stand alone"),
        (r#"{"q": "a"}"#, "invalid type"),
    ] {
        let error = Scripted::parse("my.json", json.as_bytes())
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("my.json: ") && error.contains(words),
            "{json}: {error}"
        );
    }
}
