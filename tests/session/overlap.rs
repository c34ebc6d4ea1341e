//! Others that work on the same checkpoint meanwhile.

use long_horizon::log::{Ending, Event};
use long_horizon::queue;
use long_horizon::session::SessionError;
use long_horizon::store::StoreError;
use long_horizon::trace::Trace;

use crate::bench::{Bench, Meanwhile, Never, queued, worked};

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
