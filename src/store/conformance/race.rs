//! Races: two or more processes with one checkpoint, in an order that the case gives. Nothing that was saved is lost, whoever comes
//! late is refused, and what sessions side by side leave is what they leave one after another.
//!
//! The steps here are whole operations of the trait, in one process. What lies between two system calls is for a tracer that holds
//! processes there: [`lab`](super::lab) has its scenarios.

use super::contract::TERMS;
use super::damage::recorded;
use super::{Bench, Case, Failed, ensure, samples};
use crate::checkpoint::Checkpoint;
use crate::queue;
use crate::store::{Claim, Store, StoreError, Wait};

/// The cases of this part.
pub const CASES: &[Case] = &[
    Case { name: "load-load-save-save", applies: |_| true, run: load_load_save_save },
    Case { name: "a-reader-is-not-kept-out", applies: |_| true, run: reader },
    Case { name: "two-claims", applies: |_| true, run: two_claims },
    Case { name: "every-order-ends-alike", applies: |p| p.side_by_side, run: every_order },
    Case { name: "a-question-twice-in-the-queue", applies: |p| p.side_by_side, run: twice },
    Case { name: "a-decision-beside-a-session", applies: |p| p.sees_every_change, run: decision },
    Case { name: "a-lease-ends", applies: |p| p.side_by_side, run: lease },
    Case { name: "a-late-session-is-refused", applies: |p| p.side_by_side, run: late },
    Case { name: "a-late-session-nobody-missed", applies: |p| p.side_by_side, run: unmissed },
    Case { name: "an-older-copy-knows-no-claim", applies: |p| p.side_by_side, run: older_copy },
    Case { name: "many-at-once", applies: |p| p.sees_every_change, run: many },
];

fn claimed<'s>(store: &'s dyn Store) -> Result<Box<dyn Claim + 's>, Failed> {
    match store.claim(&TERMS)? {
        Some(mut claim) => {
            claim.announced();
            Ok(claim)
        }
        None => Err(Failed("it claimed nothing".to_owned())),
    }
}

/// A and B load, A saves, B saves: B is refused, at the latest when it saves.
fn load_load_save_save(bench: &Bench<'_>) -> Result<(), Failed> {
    bench.begin_with(&samples::queue(2))?;
    let with = |sessions_run| Checkpoint { sessions_run, ..samples::queue(2) };
    let (a, b) = (bench.store(), bench.store());
    let a = a.begin(Wait::Fail)?;
    let b = b.begin(Wait::Fail);
    a.save(&with(1))?;
    let refusal = match b {
        Err(error) => error,
        Ok(b) => match b.save(&with(2)) {
            Err(error) => error,
            Ok(()) => return Err(Failed("both saved".to_owned())),
        },
    };
    let expected = matches!(refusal, StoreError::Busy { .. } | StoreError::Changed { .. });
    ensure!(expected, "B was refused with: {refusal}");
    bench.holds(&with(1), "after both")
}

fn reader(bench: &Bench<'_>) -> Result<(), Failed> {
    bench.begin_with(&samples::queue(2))?;
    let store = bench.store();
    let transaction = store.begin(Wait::Fail)?;
    bench.holds(&samples::queue(2), "while another holds it")?;
    drop(transaction);
    let store = bench.store();
    let mut claim = claimed(&*store)?;
    bench.holds(&samples::queue(2), "while a session works")?;
    claim.apply(&samples::answer("q1"))?;
    bench.holds(&samples::queue(2), "before the session saves")
}

/// The second session is refused, or gets another question.
fn two_claims(bench: &Bench<'_>) -> Result<(), Failed> {
    bench.begin_with(&samples::queue(2))?;
    let (a, b) = (bench.store(), bench.store());
    let mut first = claimed(&*a)?;
    ensure!(first.question() == "q1", "A claimed {}", first.question());
    let mut expected = queue::apply(&samples::queue(2), &samples::answer("q1"))?;
    match b.claim(&TERMS) {
        Err(StoreError::Busy { .. }) => {
            ensure!(!bench.promises().side_by_side, "B was turned away, with a question free");
            recorded(&mut *first)?;
        }
        // Without a lock the two have the same question, and the later one is refused.
        Ok(Some(mut second)) if second.question() == "q1" => {
            ensure!(!bench.promises().side_by_side, "both have q1");
            recorded(&mut *first)?;
            ensure!(recorded(&mut *second).is_err(), "both recorded q1");
        }
        Ok(Some(mut second)) => {
            ensure!(second.question() == "q2", "B claimed {}", second.question());
            second.announced();
            let third = bench.store();
            let refused = matches!(third.claim(&TERMS), Err(StoreError::Busy { .. }));
            ensure!(refused, "C was not told that others work on all that is left");
            recorded(&mut *first)?;
            drop(first);
            recorded(&mut *second)?;
            expected = queue::apply(&expected, &samples::answer("q2"))?;
        }
        Ok(None) => return Err(Failed("B was told that the queue is empty".to_owned())),
        Err(error) => return Err(error.into()),
    }
    bench.holds(&expected, "after both")
}

/// Three claims, recorded in each of the six orders: what is left is what one after another leaves.
fn every_order(bench: &Bench<'_>) -> Result<(), Failed> {
    // Seven notes in all, so that the oldest falls out.
    let mut start = samples::queue(3);
    start.notes = (1..=4).map(|number| format!("note {number}")).collect();
    let mut expected = start.clone();
    for question in ["q1", "q2", "q3"] {
        expected = queue::apply(&expected, &samples::answer(question))?;
    }
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let existing = bench.store().read()?.is_some();
        match existing {
            true => bench.store().begin(Wait::Fail)?.save(&start)?,
            false => bench.begin_with(&start)?,
        }
        let stores = [bench.store(), bench.store(), bench.store()];
        let mut claims = Vec::new();
        for store in &stores {
            claims.push(Some(claimed(&**store)?));
        }
        let sessions: Vec<u64> = claims.iter().flatten().map(|claim| claim.session()).collect();
        ensure!(sessions == [1, 2, 3], "they are the sessions {sessions:?}");
        for index in order {
            if let Some(mut claim) = claims[index].take() {
                recorded(&mut *claim)?;
            }
        }
        bench.holds(&expected, &format!("after the order {order:?}"))?;
    }
    Ok(())
}

/// A question that stands twice in the queue is worked by one at a time.
fn twice(bench: &Bench<'_>) -> Result<(), Failed> {
    let questions = ["q", "r", "q"].map(str::to_owned).to_vec();
    bench.begin_with(&Checkpoint::fresh(questions))?;
    let (a, b, c) = (bench.store(), bench.store(), bench.store());
    let mut first = claimed(&*a)?;
    let mut second = claimed(&*b)?;
    ensure!((first.question(), second.question()) == ("q", "r"), "they claimed others");
    ensure!(matches!(c.claim(&TERMS), Err(StoreError::Busy { .. })), "C has q as well");
    recorded(&mut *second)?;
    drop(second);
    recorded(&mut *first)?;
    drop(first);
    let third = claimed(&*c)?;
    ensure!(third.question() == "q", "C claimed {}", third.question());
    Ok(())
}

/// A person decides while a session works: that waits, or both are in.
fn decision(bench: &Bench<'_>) -> Result<(), Failed> {
    bench.begin_with(&samples::queue(2))?;
    let (a, b) = (bench.store(), bench.store());
    let mut session = claimed(&*a)?;
    let resolved = queue::resolve(&samples::queue(2), "p", "decided")?;
    let mut expected = match b.begin(Wait::Fail) {
        Err(StoreError::Busy { .. }) => samples::queue(2),
        Err(error) => return Err(error.into()),
        Ok(person) => {
            person.save(&resolved)?;
            bench.holds(&resolved, "after the decision")?;
            resolved
        }
    };
    recorded(&mut *session)?;
    drop(session);
    let found = bench.store().read()?.map(|loaded| loaded.checkpoint);
    // The session claimed first, so what it records stands first.
    let decided = expected.answers.contains_key("p");
    expected = queue::apply(&samples::queue(2), &samples::answer("q1"))?;
    if decided {
        expected = queue::resolve(&expected, "p", "decided")?;
    }
    ensure!(found.as_ref() == Some(&expected), "it holds {found:?}, not {expected:?}");
    Ok(())
}

/// Until its last moment a lease holds, and after it the question is another's.
fn lease(bench: &Bench<'_>) -> Result<(), Failed> {
    bench.begin_with(&samples::queue(1))?;
    let store = bench.store();
    let first = claimed(&*store)?;
    for second in [0, 9] {
        let other = bench.store_at(second);
        let refused = matches!(other.claim(&TERMS), Err(StoreError::Busy { .. }));
        ensure!(refused, "the question was given away after {second} seconds of 10");
        ensure!(other.holders()?.len() == 1, "nobody works on it after {second} seconds");
    }
    let other = bench.store_at(10);
    ensure!(other.holders()?.is_empty(), "someone works on it after 10 seconds of 10");
    let second = claimed(&*other)?;
    ensure!(second.question() == "q1", "it claimed {}", second.question());
    ensure!(second.number() > first.number(), "the number of the claim is not a higher one");
    Ok(())
}

/// Its question was taken over: it is refused, before and after the other has recorded, and cannot give back what is not its own.
fn late(bench: &Bench<'_>) -> Result<(), Failed> {
    bench.begin_with(&samples::queue(1))?;
    let (a, b, c) = (bench.store(), bench.store(), bench.store());
    let mut first = claimed(&*a)?;
    let later = bench.store_at(10);
    let mut second = claimed(&*later)?;
    let error = recorded(&mut *first);
    let refused = matches!(error, Err(StoreError::Overtaken { .. }));
    ensure!(refused, "the late session, before the other: {error:?}");
    drop(first);
    bench.holds(&samples::queue(1), "after the late session")?;
    let refused = matches!(b.claim(&TERMS), Err(StoreError::Busy { .. }));
    ensure!(refused, "the late session gave away what is another's");
    recorded(&mut *second)?;
    drop(second);
    let expected = queue::apply(&samples::queue(1), &samples::answer("q1"))?;
    bench.holds(&expected, "after the other")?;

    c.begin(Wait::Fail)?.save(&samples::queue(1))?;
    let mut first = claimed(&*c)?;
    let later = bench.store_at(10);
    recorded(&mut *claimed(&*later)?)?;
    let error = recorded(&mut *first);
    let refused = matches!(error, Err(StoreError::Overtaken { .. }));
    ensure!(refused, "the late session, after the other: {error:?}");
    drop(first);
    bench.holds(&expected, "after both")
}

/// Its lease is over, and nobody took the question: what was paid for is recorded.
fn unmissed(bench: &Bench<'_>) -> Result<(), Failed> {
    bench.begin_with(&samples::queue(1))?;
    let store = bench.store();
    let mut claim = claimed(&*store)?;
    ensure!(bench.store_at(11).holders()?.is_empty(), "someone works on it");
    recorded(&mut *claim)?;
    drop(claim);
    let expected = queue::apply(&samples::queue(1), &samples::answer("q1"))?;
    bench.holds(&expected, "after the session")
}

/// The checkpoint is put back as it was before the claim: the session is refused, and its number goes to no other while it lives.
fn older_copy(bench: &Bench<'_>) -> Result<(), Failed> {
    bench.begin_with(&samples::queue(2))?;
    let copy = std::fs::read(bench.state())?;
    let (a, b) = (bench.store(), bench.store());
    let mut first = claimed(&*a)?;
    std::fs::write(bench.state(), copy)?;
    let second = claimed(&*b)?;
    ensure!(second.question() == "q1", "B claimed {}", second.question());
    ensure!(second.number() != first.number(), "both have the number {:?}", first.number());
    let error = recorded(&mut *first);
    let refused = matches!(error, Err(StoreError::Overtaken { .. }));
    ensure!(refused, "the session of another copy: {error:?}");
    Ok(())
}

/// Threads that work a queue to its end: each question is recorded once.
fn many(bench: &Bench<'_>) -> Result<(), Failed> {
    const QUESTIONS: usize = 24;
    const WORKERS: usize = 4;
    bench.begin_with(&samples::queue(QUESTIONS))?;
    let work = || -> Result<usize, StoreError> {
        let mut done = 0;
        loop {
            let store = bench.store();
            match store.claim(&TERMS) {
                Ok(Some(mut claim)) => {
                    claim.announced();
                    recorded(&mut *claim)?;
                    done += 1;
                }
                Ok(None) => return Ok(done),
                Err(StoreError::Busy { .. }) => std::thread::yield_now(),
                Err(error) => return Err(error),
            }
        }
    };
    let done = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join()).collect::<Vec<_>>()
    });
    let mut count = 0;
    for worker in done {
        match worker {
            Ok(done) => count += done?,
            Err(_) => return Err(Failed("a worker panicked".to_owned())),
        }
    }
    ensure!(count == QUESTIONS, "{count} sessions recorded {QUESTIONS} questions");
    let Some(loaded) = bench.store().read()? else {
        return Err(Failed("there is no checkpoint".to_owned()));
    };
    let checkpoint = loaded.checkpoint;
    ensure!(checkpoint.queue.is_empty(), "left: {:?}", checkpoint.queue);
    ensure!(checkpoint.answers.len() == QUESTIONS, "{} answers", checkpoint.answers.len());
    ensure!(checkpoint.sessions_run == QUESTIONS as u64, "{} counted", checkpoint.sessions_run);
    Ok(())
}
