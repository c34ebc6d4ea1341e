//! The contract: what is saved is read, and a session does to a checkpoint what the queue says, nothing more.

use super::{Bench, Case, Failed, ensure, samples};
use crate::checkpoint::Checkpoint;
use crate::choice::Choice;
use crate::queue;
use crate::store::{Store, Terms, Wait};

use std::time::Duration;

/// The cases of this part.
pub const CASES: &[Case] = &[
    Case { name: "reading-creates-nothing", applies: |_| true, run: reading_creates_nothing },
    Case { name: "what-is-saved-is-read", applies: |_| true, run: what_is_saved_is_read },
    Case { name: "every-text-comes-back", applies: |_| true, run: every_text_comes_back },
    Case { name: "every-change-is-made", applies: |_| true, run: every_change_is_made },
    Case { name: "what-is-dropped-is-not-saved", applies: |_| true, run: dropped },
    Case { name: "a-transaction-saves-once", applies: |p| p.sees_every_change, run: saves_once },
    Case { name: "a-session-does-what-the-queue-says", applies: |_| true, run: sessions },
    Case { name: "an-empty-queue-costs-nothing", applies: |_| true, run: empty_queue },
    Case { name: "a-claim-that-is-dropped-is-free", applies: |_| true, run: dropped_claim },
    Case { name: "a-claim-tells-what-it-found", applies: |_| true, run: claim_tells },
];

/// The terms on which the cases claim.
pub(super) const TERMS: Terms<'static> = Terms { fresh: &[], lease: Duration::from_secs(10) };

fn reading_creates_nothing(bench: &Bench<'_>) -> Result<(), Failed> {
    let store = bench.store();
    ensure!(store.read()?.is_none(), "there is a checkpoint where nothing is");
    ensure!(store.holders()?.is_empty(), "someone works on it where nothing is");
    ensure!(store.target()? == bench.state(), "its target is {}", store.target()?.display());
    ensure!(bench.files()?.is_empty(), "reading created {:?}", bench.files()?.keys());
    Ok(())
}

fn what_is_saved_is_read(bench: &Bench<'_>) -> Result<(), Failed> {
    for checkpoint in [samples::queue(3), samples::answered(200), Checkpoint::fresh(vec![])] {
        save(&*bench.store(), &checkpoint)?;
        bench.holds(&checkpoint, "after the save")?;
    }
    for name in bench.files()?.keys() {
        ensure!(name.starts_with(bench.subject.file()), "it left {name}");
        ensure!(!name.ends_with("tmp"), "it left {name}");
    }
    Ok(())
}

fn every_text_comes_back(bench: &Bench<'_>) -> Result<(), Failed> {
    let checkpoint = samples::every_text();
    bench.begin_with(&checkpoint)?;
    bench.holds(&checkpoint, "after the save")
}

/// Saved over whatever is there.
fn save(store: &dyn Store, checkpoint: &Checkpoint) -> Result<(), Failed> {
    Ok(store.begin(Wait::Fail)?.save(checkpoint)?)
}

/// From each of these to each other: removed, added, put between, exchanged.
fn every_change_is_made(bench: &Bench<'_>) -> Result<(), Failed> {
    let base = samples::answered(4);
    let mut fewer = base.clone();
    fewer.queue.remove(1);
    fewer.answers = base.answers.iter().skip(1).map(|(q, a)| (q.clone(), a.clone())).collect();
    let mut turned = base.clone();
    turned.queue.reverse();
    turned.notes = vec!["one".to_owned(), "two".to_owned()];
    turned.answers = base.answers.iter().rev().map(|(q, a)| (q.clone(), a.clone())).collect();
    let mut between = base.clone();
    between.queue.insert(1, "between".to_owned());
    between.notes = vec!["two".to_owned(), "between".to_owned(), "one".to_owned()];
    between.pending.shift_insert(0, "first".to_owned(), "why".to_owned());
    let mut counted = base.clone();
    counted.sessions_run = 7;
    let all = [base, fewer, turned, between, counted, Checkpoint::default()];
    for from in &all {
        for to in &all {
            save(&*bench.store(), from)?;
            save(&*bench.store(), to)?;
            bench.holds(to, "after a change")?;
        }
    }
    Ok(())
}

fn dropped(bench: &Bench<'_>) -> Result<(), Failed> {
    drop(bench.store().begin(Wait::Fail)?);
    ensure!(bench.store().read()?.is_none(), "a transaction that was dropped made a checkpoint");
    let checkpoint = samples::queue(2);
    bench.begin_with(&checkpoint)?;
    drop(bench.store().begin(Wait::Fail)?);
    bench.holds(&checkpoint, "after a transaction that was dropped")
}

fn saves_once(bench: &Bench<'_>) -> Result<(), Failed> {
    bench.begin_with(&samples::queue(2))?;
    let store = bench.store();
    let mut transaction = store.begin(Wait::Fail)?;
    let first = Checkpoint { sessions_run: 1, ..samples::queue(2) };
    transaction.replace(&first)?;
    let second = Checkpoint { sessions_run: 2, ..samples::queue(2) };
    ensure!(transaction.replace(&second).is_err(), "it saved over what it had not read");
    drop(transaction);
    bench.holds(&first, "after the second save")
}

/// Whole queues, answered and flagged by turns, and over what was answered or pending before.
fn sessions(bench: &Bench<'_>) -> Result<(), Failed> {
    let mut expected = samples::queue(9);
    expected.queue.push("p".to_owned());
    let again = queue::apply(&samples::queue(1), &samples::answer("q1"))?;
    expected.answers = again.answers;
    save(&*bench.store(), &expected)?;
    for number in 0.. {
        let store = bench.store();
        let Some(mut claim) = store.claim(&TERMS)? else { break };
        let question = claim.question().to_owned();
        ensure!(Some(&question) == expected.queue.first(), "it claimed {question:?}");
        ensure!(claim.session() == expected.sessions_run + 1, "it is session {}", claim.session());
        let choice = match number % 3 {
            1 => Choice::Flag { reason: format!("{question} is for a person") },
            _ => samples::answer(&question),
        };
        expected = queue::apply(&expected, &choice)?;
        let applied = claim.apply(&choice)?.clone();
        ensure!(applied.next == expected, "{question} was to be {:?}", applied.next);
        ensure!(
            applied.after == crate::digest::sha256(&expected.encode()),
            "the digest after {question} is another"
        );
        claim.announced();
        claim.commit()?;
        drop(claim);
        bench.holds(&expected, &format!("after the session of {question}"))?;
    }
    ensure!(expected.queue.is_empty(), "left: {:?}", expected.queue);
    Ok(())
}

fn empty_queue(bench: &Bench<'_>) -> Result<(), Failed> {
    ensure!(bench.store().claim(&TERMS)?.is_none(), "it claimed a question of no queue");
    ensure!(bench.store().read()?.is_none(), "an empty queue made a checkpoint");
    let checkpoint = samples::queue(0);
    bench.begin_with(&checkpoint)?;
    let before = bench.files()?;
    ensure!(bench.store().claim(&TERMS)?.is_none(), "it claimed a question of an empty queue");
    ensure!(
        bench.files()?.get(bench.subject.file()) == before.get(bench.subject.file()),
        "an empty queue was written to"
    );
    Ok(())
}

fn dropped_claim(bench: &Bench<'_>) -> Result<(), Failed> {
    let checkpoint = samples::queue(2);
    bench.begin_with(&checkpoint)?;
    for applied in [false, true] {
        let store = bench.store();
        let Some(mut claim) = store.claim(&TERMS)? else {
            return Err(Failed("it claimed nothing".to_owned()));
        };
        ensure!(claim.question() == "q1", "it claimed {}", claim.question());
        claim.announced();
        if applied {
            claim.apply(&samples::answer("q1"))?;
        }
        drop(claim);
        bench.holds(&checkpoint, "after a claim that was dropped")?;
        ensure!(bench.store().holders()?.is_empty(), "the claim is held after it was dropped");
    }
    Ok(())
}

fn claim_tells(bench: &Bench<'_>) -> Result<(), Failed> {
    let store = bench.store();
    let fresh = ["q1".to_owned(), "q2".to_owned()];
    let claim = store.claim(&Terms { fresh: &fresh, ..TERMS })?;
    let Some(mut claim) = claim else { return Err(Failed("it claimed nothing".to_owned())) };
    ensure!(claim.loaded().is_none() && claim.before().is_none(), "it found what was not there");
    claim.apply(&samples::answer("q1"))?;
    claim.commit()?;
    drop(claim);
    let expected = queue::apply(&Checkpoint::fresh(fresh.to_vec()), &samples::answer("q1"))?;
    bench.holds(&expected, "after the first session")?;
    let store = bench.store();
    let Some(claim) = store.claim(&TERMS)? else {
        return Err(Failed("it claimed nothing".to_owned()));
    };
    let digest = crate::digest::sha256(&expected.encode());
    ensure!(claim.before() == Some(digest.as_str()), "it found {:?}", claim.before());
    ensure!(
        claim.loaded().is_some_and(|loaded| loaded.checkpoint == expected),
        "it loaded another checkpoint"
    );
    Ok(())
}
