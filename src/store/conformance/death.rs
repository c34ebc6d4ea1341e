//! Death: a process is killed with a claim in its hand. Its question is free at once, and nothing else has changed.
//!
//! These cases need a process that can be killed: [`Subject::claimer`](super::Subject::claimer) starts it, and it calls
//! [`claim_and_wait`]. A test does that by starting itself again.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Child;

use super::contract::TERMS;
use super::damage::recorded;
use super::{Bench, Case, Failed, ensure, samples};
use crate::queue;
use crate::store::{Store, StoreError, Wait};

/// The cases of this part.
pub const CASES: &[Case] = &[
    Case { name: "a-dead-session-frees-its-question", applies: |_| true, run: dead },
    Case { name: "a-living-session-keeps-its-question", applies: |_| true, run: living },
];

/// What a claimer prints, on a line of its own, when it has its claim.
const CLAIMED: &str = "claimed";

/// Claims the next question, says so on standard output, and waits until standard input ends. Meant to be killed meanwhile.
///
/// # Errors
///
/// Where the store refuses.
pub fn claim_and_wait(store: &dyn Store) -> Result<(), StoreError> {
    let Some(mut claim) = store.claim(&TERMS)? else { return Ok(()) };
    claim.announced();
    // Whoever started this has gone away if it cannot be told, and will not be heard of either.
    let _told = writeln!(std::io::stdout(), "\n{CLAIMED}");
    let _ended = std::io::stdin().read_to_end(&mut Vec::new());
    Ok(())
}

/// The claimer, which has its claim; `None` where the subject has none.
fn claimer(bench: &Bench<'_>) -> Result<Option<Child>, Failed> {
    let Some(started) = bench.subject.claimer(&bench.folder) else { return Ok(None) };
    let mut child = started?;
    let Some(output) = child.stdout.take() else {
        return Err(Failed("the claimer's output is no pipe".to_owned()));
    };
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    ensure!(lines.any(|line| line == CLAIMED), "the claimer claimed nothing");
    Ok(Some(child))
}

fn dead(bench: &Bench<'_>) -> Result<(), Failed> {
    bench.begin_with(&samples::queue(2))?;
    let Some(mut child) = claimer(bench)? else { return Ok(()) };
    child.kill()?;
    child.wait()?;
    bench.holds(&samples::queue(2), "after the kill")?;
    ensure!(bench.store().holders()?.is_empty(), "a dead session works on it");
    let store = bench.store();
    let Some(mut claim) = store.claim(&TERMS)? else {
        return Err(Failed("it claimed nothing".to_owned()));
    };
    ensure!(claim.question() == "q1", "the question of the dead is not free: {}", claim.question());
    recorded(&mut *claim)?;
    drop(claim);
    let expected = queue::apply(&samples::queue(2), &samples::answer("q1"))?;
    bench.holds(&expected, "after the next session")?;
    Ok(bench.store().begin(Wait::Fail)?.save(&expected)?)
}

fn living(bench: &Bench<'_>) -> Result<(), Failed> {
    if !bench.promises().sees_every_change {
        return Ok(());
    }
    bench.begin_with(&samples::queue(1))?;
    let Some(mut child) = claimer(bench)? else { return Ok(()) };
    let store = bench.store();
    let refused = match store.claim(&TERMS) {
        Err(StoreError::Busy { .. }) => Ok(()),
        other => Err(Failed(format!("the question of the living was given away: {other:?}"))),
    };
    let held = bench.store().holders()?.len();
    child.kill()?;
    child.wait()?;
    refused?;
    ensure!(held == 1, "{held} work on it");
    Ok(())
}
