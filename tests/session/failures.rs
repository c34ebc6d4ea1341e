//! A model that fails, or answers what is no answer.

use std::path::PathBuf;

use long_horizon::checkpoint::Checkpoint;
use long_horizon::log::{Ending, Event};
use long_horizon::model::Scripted;
use long_horizon::session::{Session, SessionError};
use long_horizon::store::{Holder, Loaded, Store, StoreError, Transaction, Wait};
use long_horizon::trace::Trace;

use crate::bench::{Bench, queued, script, worked};

/// Whatever goes wrong with the model: the checkpoint is as it was, no temp file is left, and the log says so.
#[test]
fn a_model_that_fails_leaves_everything_as_it_was() {
    let failures = [
        (r#"{"error": "overloaded"}"#, "the model call failed: overloaded"),
        (r#"{"error": "timed out"}"#, "timed out"),
        (r#"{"error": "cut short"}"#, "cut short"),
        (r#"{"launch": {}}"#, "`launch`, which is no tool"),
        (r#"{"answer": {"text": 1, "citations": []}}"#, "invalid type"),
        (r#"{"answer": {"text": "a", "citations": "a#1"}}"#, "invalid type"),
        (r#"{"answer": {"text": "a", "citations": [1]}}"#, "invalid type"),
        (r#"{"answer": {"text": "a"}}"#, "missing field `citations`"),
        (r#"{"answer": {"text": "a", "citations": [], "x": 1}}"#, "unknown field `x`"),
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
        let error =
            bench.run(&script(&format!(r#"{{"q": {reply}}}"#)), &mut Trace::Off).unwrap_err();
        let told = error.to_string();
        assert!(told.contains(words), "{reply}: {told}");
        assert!(told.contains("`q`") && told.contains("nothing was written"), "{reply}: {told}");

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
        .run(&script(&format!(r#"{{"q": {{"text": "{long}"}}}}"#)), &mut Trace::Off)
        .unwrap_err();
    assert!(error.to_string().contains("cut short"), "{error}");
    let fits = "x".repeat(300 * 4);
    worked(
        bench.run(&script(&format!(r#"{{"q": {{"text": "{fits}"}}}}"#)), &mut Trace::Off).unwrap(),
    );
}

#[test]
fn plain_text_is_recorded_as_an_answer_without_citations() {
    let bench = Bench::holding(&queued(&["q"]));
    worked(bench.run(&script(r#"{"q": {"text": "just so"}}"#), &mut Trace::Off).unwrap());
    let answer = &bench.checkpoint().answers["q"];
    assert_eq!((answer.text.as_str(), answer.citations.len()), ("just so", 0));
}

#[test]
fn a_question_that_the_script_does_not_know_is_an_error_that_says_so() {
    let bench = Bench::holding(&queued(&["another q"]));
    let error = bench.run(&script(r#"{"q": {"text": "a"}}"#), &mut Trace::Off).unwrap_err();
    assert!(error.to_string().contains("test script holds no reply"), "{error}");
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
        let error = Scripted::parse("my.json", json.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with("my.json: ") && error.contains(words), "{json}: {error}");
    }
}

/// Replaces the checkpoint, and then cannot make its folder durable.
#[derive(Debug)]
struct Unsynced<'a>(&'a dyn Store);

#[derive(Debug)]
struct UnsyncedTransaction<'a>(Box<dyn Transaction + 'a>);

impl Store for Unsynced<'_> {
    fn read(&self) -> Result<Option<Loaded>, StoreError> {
        self.0.read()
    }

    fn begin(&self, wait: Wait) -> Result<Box<dyn Transaction + '_>, StoreError> {
        Ok(Box::new(UnsyncedTransaction(self.0.begin(wait)?)))
    }

    fn target(&self) -> Result<PathBuf, StoreError> {
        self.0.target()
    }

    fn holders(&self) -> Result<Vec<Holder>, StoreError> {
        self.0.holders()
    }
}

impl Transaction for UnsyncedTransaction<'_> {
    fn loaded(&self) -> Option<&Loaded> {
        self.0.loaded()
    }

    fn replace(&mut self, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        self.0.replace(checkpoint)?;
        let source = std::io::Error::other("the disk is gone");
        Err(StoreError::Unsynced { path: PathBuf::from("q.json"), source })
    }
}

/// The session fails, since the old checkpoint may come back; the one in place is the new one all the same, and the log tells what it holds.
#[test]
fn a_checkpoint_that_was_replaced_and_not_synced_is_logged_as_what_it_is() {
    let bench = Bench::holding(&queued(&["rename"]));
    let model = script(r#"{"rename": {"flag_for_review": {"reason": "r"}}}"#);
    let session = Session { store: &Unsynced(&*bench.store), ..bench.session(&model, &[]) };
    let error = session.run(&mut Trace::Off).unwrap_err();
    assert!(matches!(error, SessionError::Store(StoreError::Unsynced { .. })), "{error}");
    assert!(bench.checkpoint().pending.contains_key("rename"));
    let Some(Event::End(end)) = bench.events().pop() else { panic!() };
    assert_eq!(end.choice, Ending::Flag);
    assert_eq!(end.reason.as_deref(), Some("r"));
    assert!(end.after.is_some());
}
