//! What a session may cost: nothing where there is nothing to do, and never more than its budget.

use std::path::PathBuf;
use std::time::Duration;

use long_horizon::checkpoint::Checkpoint;
use long_horizon::choice::Choice;
use long_horizon::corpus::Corpus;
use long_horizon::model::{Echo, Message, Model, ModelError, Reply, Request, Tool};
use long_horizon::session::{Limits, Outcome, Session};
use long_horizon::store::{Holder, Loaded, Store, StoreError, Transaction, Wait};
use long_horizon::trace::Trace;

use crate::bench::{Bench, Never, queued, worked};

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
    Loaded { bytes: Some(checkpoint.encode().into()), checkpoint }
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

    fn holders(&self) -> Result<Vec<Holder>, StoreError> {
        Ok(Vec::new())
    }
}

impl Transaction for EmptiedTransaction {
    fn loaded(&self) -> Option<&Loaded> {
        Some(&self.0)
    }

    fn replace(&mut self, _: &Checkpoint) -> Result<(), StoreError> {
        panic!("something was saved");
    }
}

#[test]
fn a_queue_that_became_empty_before_the_lock_was_had_costs_nothing() {
    let bench = Bench::new();
    let session = Session { store: &Emptied, ..bench.session(&Never, &[]) };
    assert_eq!(session.run(&mut Trace::Off).unwrap(), Outcome::Empty);
    assert!(bench.files().is_empty());
}

#[test]
fn a_session_begins_no_call_that_its_budget_might_not_cover() {
    let bench = Bench::holding(&queued(&["q"]));
    let with = |tokens, model| Session {
        limits: Limits { tokens: Some(tokens), tokens_out: 300, call: Duration::from_secs(1) },
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
        fn count_tokens(&self, _: &[Message], _: &[Tool]) -> u64 {
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
    assert_eq!(bench.log.take_failures().len(), 3);
    assert!(bench.checkpoint().queue.is_empty());
}

#[test]
fn the_echo_cites_its_source_and_fits_into_the_limit() {
    let text = "word ".repeat(2_000);
    let corpus =
        Corpus::from_files([("long", format!("## 1. Long\n{text}\n\n[x] y\n").as_str())]).unwrap();
    let bench = Bench::holding(&queued(&["word"]));
    let session = Session { corpus: &corpus, ..bench.session(&Echo, &[]) };
    let done = worked(session.run(&mut Trace::Off).unwrap());
    assert!(done.tokens_out <= 300 && done.tokens_out > 290, "{}", done.tokens_out);
    let Choice::Answer { text: answer, citations } = done.choice else { panic!() };
    assert_eq!(citations, ["long#1"]);
    assert!(text.starts_with(&answer));
}
