//! Damage: what is no checkpoint is refused by name, at every way in, and left as it is. What is gone is not made anew in silence.

use std::fs;
use std::os::unix::fs::symlink;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::contract::TERMS;
use super::{Bench, Case, Failed, ensure, samples};
use crate::checkpoint::Checkpoint;
use crate::store::{StoreError, Wait};

/// The cases of this part.
pub const CASES: &[Case] = &[
    Case { name: "damage-is-refused", applies: |_| true, run: damage_is_refused },
    Case { name: "no-bit-falls-over-unseen", applies: |p| p.finds_every_bit, run: bits },
    Case { name: "what-is-no-file-is-refused", applies: |_| true, run: no_file },
    Case { name: "a-link-stays-a-link", applies: |p| p.sees_every_change, run: link },
    Case { name: "what-is-gone-is-not-made-anew", applies: |p| p.sees_every_change, run: gone },
    Case { name: "damaged-while-it-worked", applies: |p| p.sees_every_change, run: meanwhile },
];

/// What damage there is, and what it makes of the file's bytes.
type Damage = (&'static str, fn(&[u8]) -> Vec<u8>);

/// Damage after which no file is a checkpoint.
const DAMAGES: [Damage; 10] = [
    ("empty", |_| Vec::new()),
    ("one byte", |bytes| bytes[..1].to_vec()),
    ("cut in the middle", |bytes| bytes[..bytes.len() / 2].to_vec()),
    ("the last byte missing", |bytes| bytes[..bytes.len() - 2].to_vec()),
    ("more behind it", |bytes| [bytes, b"more"].concat()),
    ("NULs in its place", |bytes| vec![0; bytes.len()]),
    ("the first block of NULs", |bytes| {
        let block = bytes.len().min(512);
        [&vec![0; block], &bytes[block..]].concat()
    }),
    ("a JSON list", |_| b"[]\n".to_vec()),
    ("an unknown field", |_| b"{\"queue\": [], \"more\": 1}\n".to_vec()),
    ("a text", |_| b"to be done\n".to_vec()),
];

/// A checkpoint with something in every part.
fn sample() -> Checkpoint {
    let notes = vec!["a note".to_owned()];
    Checkpoint { notes, sessions_run: 3, ..samples::answered(20) }
}

/// That every way in refuses the file as it is, by name, and leaves it.
fn refused(bench: &Bench<'_>, what: &str) -> Result<(), Failed> {
    let before = fs::read(bench.state())?;
    let store = bench.store();
    let errors = [
        ("read", store.read().err()),
        ("begin", store.begin(Wait::Fail).err()),
        ("claim", store.claim(&TERMS).err()),
    ];
    for (step, error) in errors {
        let Some(error) = error else { return Err(Failed(format!("{what}: {step} took it"))) };
        ensure!(matches!(error, StoreError::Damaged { .. }), "{what}: {step}: {error}");
        let named = error.to_string().contains(&bench.state().display().to_string());
        ensure!(named, "{what}: {step} does not name the file: {error}");
        ensure!(fs::read(bench.state())? == before, "{what}: {step} changed the file");
    }
    Ok(())
}

fn damage_is_refused(bench: &Bench<'_>) -> Result<(), Failed> {
    bench.begin_with(&sample())?;
    let whole = fs::read(bench.state())?;
    for (what, damage) in DAMAGES {
        fs::write(bench.state(), damage(&whole))?;
        refused(bench, what)?;
    }
    fs::write(bench.state(), &whole)?;
    bench.holds(&sample(), "with its bytes as they were")
}

/// One bit of each of some hundred bytes, all over the file.
fn bits(bench: &Bench<'_>) -> Result<(), Failed> {
    const PLACES: usize = 400;
    bench.begin_with(&sample())?;
    let whole = fs::read(bench.state())?;
    let step = (whole.len() / PLACES).max(1);
    for (round, at) in (0..whole.len()).step_by(step).chain(0..100).enumerate() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (round % 8);
        fs::write(bench.state(), &bytes)?;
        match bench.store().read() {
            Err(error) => {
                let refused = matches!(error, StoreError::Damaged { .. });
                ensure!(refused, "bit {} of byte {at}: {error}", round % 8);
            }
            // Where nothing is kept.
            Ok(Some(loaded)) if loaded.checkpoint == sample() => {}
            Ok(found) => {
                return Err(Failed(format!("bit {} of byte {at}: {found:?}", round % 8)));
            }
        }
        ensure!(fs::read(bench.state())? == bytes, "bit {} of byte {at} was changed", round % 8);
    }
    Ok(())
}

fn no_file(bench: &Bench<'_>) -> Result<(), Failed> {
    for what in ["folder", "pipe", "link to a folder"] {
        match what {
            "folder" => fs::create_dir(bench.state())?,
            "pipe" => mkfifo(&bench.state(), Mode::S_IRWXU)?,
            _ => symlink(".", bench.state())?,
        }
        let store = bench.store();
        for error in [store.read().err(), store.begin(Wait::Fail).err(), store.claim(&TERMS).err()]
        {
            let refused = matches!(error, Some(StoreError::Unreadable { .. }));
            ensure!(refused, "a {what} in its place: {error:?}");
        }
        match what {
            "folder" => fs::remove_dir(bench.state())?,
            _ => fs::remove_file(bench.state())?,
        }
    }
    Ok(())
}

fn link(bench: &Bench<'_>) -> Result<(), Failed> {
    fs::create_dir(bench.folder.join("elsewhere"))?;
    bench.begin_with(&sample())?;
    fs::rename(bench.state(), bench.folder.join("elsewhere/kept"))?;
    symlink("elsewhere/kept", bench.state())?;
    let store = bench.store();
    let target = store.target()?;
    ensure!(target == bench.folder.join("elsewhere/kept"), "its target is {}", target.display());
    let next = Checkpoint { sessions_run: 4, ..sample() };
    store.begin(Wait::Fail)?.save(&next)?;
    bench.holds(&next, "through a link")?;
    ensure!(bench.state().is_symlink(), "the link is none any more");
    fs::remove_file(bench.folder.join("elsewhere/kept"))?;
    let error = bench.store().read().err();
    let refused = matches!(error, Some(StoreError::Unreadable { .. }));
    ensure!(refused, "a link that leads to nothing: {error:?}");
    Ok(())
}

/// The file is removed while a transaction holds it, and while a session works.
fn gone(bench: &Bench<'_>) -> Result<(), Failed> {
    bench.begin_with(&sample())?;
    let store = bench.store();
    let transaction = store.begin(Wait::Fail)?;
    fs::remove_file(bench.state())?;
    let error = transaction.save(&Checkpoint { sessions_run: 4, ..sample() }).err();
    ensure!(matches!(error, Some(StoreError::Deleted { .. })), "saved though gone: {error:?}");
    ensure!(!bench.state().exists(), "it was made anew by a transaction");

    bench.begin_with(&sample())?;
    let store = bench.store();
    let Some(mut claim) = store.claim(&TERMS)? else {
        return Err(Failed("it claimed nothing".to_owned()));
    };
    claim.announced();
    fs::remove_file(bench.state())?;
    let error = recorded(&mut *claim);
    ensure!(matches!(error, Err(StoreError::Deleted { .. })), "recorded though gone: {error:?}");
    drop(claim);
    ensure!(!bench.state().exists(), "it was made anew by a session");
    Ok(())
}

/// Applies and commits the answer to whatever was claimed.
pub(super) fn recorded(claim: &mut dyn crate::store::Claim) -> Result<(), StoreError> {
    let choice = samples::answer(claim.question());
    match claim.apply(&choice) {
        Ok(_) => claim.commit(),
        Err(crate::store::ClaimError::Store(error)) => Err(error),
        Err(crate::store::ClaimError::Step(_)) => Ok(()),
    }
}

fn meanwhile(bench: &Bench<'_>) -> Result<(), Failed> {
    bench.begin_with(&sample())?;
    let store = bench.store();
    let Some(mut claim) = store.claim(&TERMS)? else {
        return Err(Failed("it claimed nothing".to_owned()));
    };
    claim.announced();
    fs::write(bench.state(), "[]\n")?;
    let error = recorded(&mut *claim);
    ensure!(
        matches!(error, Err(StoreError::DamagedMeanwhile { .. })),
        "damaged while a session worked: {error:?}"
    );
    drop(claim);
    ensure!(fs::read(bench.state())? == b"[]\n", "what was damaged was changed");
    Ok(())
}
