//! Others that work on the same checkpoint meanwhile.

use std::cell::RefCell;
use std::path::PathBuf;

use long_horizon::checkpoint::Checkpoint;
use long_horizon::log::{Ending, Event};
use long_horizon::model::{Echo, Model};
use long_horizon::queue;
use long_horizon::session::{Session, SessionError};
use long_horizon::store::{Holder, Loaded, Store, StoreError, Transaction, Wait};
use long_horizon::trace::Trace;

use crate::bench::{Bench, Meanwhile, Never, queued, script, worked};

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
    assert!(matches!(error, SessionError::Store(StoreError::Changed { .. })), "{error:?}");
    assert_eq!(bench.checkpoint(), resolved);
    let events = bench.events();
    assert!(
        matches!(&events[2], Event::End(end) if end.choice == Ending::Failed && end.after.is_none()),
        "{events:?}"
    );
}

/// A store that remembers what the log held each time the lock was let go.
#[derive(Debug)]
struct Watching<'a> {
    bench: &'a Bench,
    seen: RefCell<Vec<Vec<Event>>>,
}

#[derive(Debug)]
struct Watched<'a> {
    held: Box<dyn Transaction + 'a>,
    store: &'a Watching<'a>,
}

impl Store for Watching<'_> {
    fn read(&self) -> Result<Option<Loaded>, StoreError> {
        self.bench.store.read()
    }

    fn begin(&self, wait: Wait) -> Result<Box<dyn Transaction + '_>, StoreError> {
        Ok(Box::new(Watched { held: self.bench.store.begin(wait)?, store: self }))
    }

    fn target(&self) -> Result<PathBuf, StoreError> {
        self.bench.store.target()
    }

    fn holders(&self) -> Result<Vec<Holder>, StoreError> {
        self.bench.store.holders()
    }
}

impl Transaction for Watched<'_> {
    fn loaded(&self) -> Option<&Loaded> {
        self.held.loaded()
    }

    fn replace(&mut self, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        self.held.replace(checkpoint)
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.store.seen.borrow_mut().push(self.store.bench.events());
    }
}

#[test]
fn start_and_end_are_logged_while_the_lock_is_held() {
    let bench = Bench::holding(&queued(&["rename", "q"]));
    let store = Watching { bench: &bench, seen: RefCell::default() };
    let failing = script(r#"{"q": {"error": "overloaded"}}"#);
    for model in [&Echo as &dyn Model, &failing] {
        let session = Session { store: &store, ..bench.session(model, &[]) };
        let _failed_or_not = session.run(&mut Trace::Off);
    }
    let seen = store.seen.borrow();
    for (released, entries) in [(0, 3), (1, 5)] {
        assert_eq!(seen[released].len(), entries, "{seen:?}");
        assert!(matches!(seen[released].last(), Some(Event::End(_))), "{seen:?}");
    }
}
