//! Save and load of the checkpoint, each beside what it could at best cost.
//!
//! - A save beside the bare sequence of its own system calls, on the same bytes in the same folder. What is saved is what a
//!   session saves: the checkpoint that it loaded, with one answer more; and beside it, once per size, a checkpoint of which
//!   nothing was loaded. Both sides are done in turn within one measurement, so that a disk that is slower for a while is
//!   slower for both; the ratio of their medians is printed at the end.
//! - What a session asks of a store, a claim, the decision and the save, of `json` and of `sqlite`.
//! - A load beside `serde_json` reading the same bytes into plain structs.
//!
//! `CHECKPOINT_BENCH_DIR` is the folder in which the files lie (default: a new one in the system's folder for temporary
//! files): what a save costs is mostly what its file system asks for a sync.
#![allow(missing_docs, reason = "what the criterion macros define")]

use std::collections::BTreeMap;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput};
use long_horizon::checkpoint::{Answer, Checkpoint};
use long_horizon::choice::Choice;
use long_horizon::queue;
use long_horizon::store::{self, StoreKind, Terms, Wait};

mod bare;

const ANSWERS: [usize; 3] = [10, 1_000, 10_000];

/// A queue of 100 questions, and so many answers of 200 characters with two citations each.
fn checkpoint(answers: usize) -> Checkpoint {
    let question = |number: usize| format!("What does file system number {number} do after a cut?");
    let answer = |number: usize| Answer {
        text: format!(
            "{number}: {}",
            "It keeps \"old\" or new, never a part of either. ".repeat(4)
        ),
        citations: vec!["linux#3".to_owned(), format!("posix#{}", number % 9)],
    };
    let mut checkpoint = Checkpoint::fresh((answers..answers + 100).map(question).collect());
    checkpoint.answers = (0..answers).map(|number| (question(number), answer(number))).collect();
    checkpoint.notes =
        (0..answers.min(6)).map(|number| format!("{} -> yes", question(number))).collect();
    checkpoint.sessions_run = answers as u64;
    checkpoint
}

/// A folder with a checkpoint in it.
struct Place {
    _folder: tempfile::TempDir,
    state: PathBuf,
}

impl Place {
    fn new(bytes: &[u8]) -> Place {
        let folder = match std::env::var_os("CHECKPOINT_BENCH_DIR") {
            Some(parent) => tempfile::tempdir_in(parent),
            None => tempfile::tempdir(),
        };
        let folder = folder.expect("a folder for the files");
        let state = folder.path().join("state.json");
        fs::write(&state, bytes).expect("a first checkpoint");
        Place { _folder: folder, state }
    }
}

/// Where what is saved comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Saved {
    /// Loaded in the same transaction, as a session does it.
    Loaded,
    /// Made in memory.
    Made,
}

/// The checkpoint after a session answered the first question.
fn worked(checkpoint: &Checkpoint) -> Checkpoint {
    let text = "It keeps \"old\" or new, never a part of either. ".repeat(4);
    let choice = Choice::Answer { text, citations: vec!["linux#3".to_owned()] };
    queue::apply(checkpoint, &choice).expect("a question in the queue")
}

/// The times of one save over `loaded` and of its bare sequence, each alone, in turn the one or the other first.
fn save_both(
    kind: StoreKind,
    from: Saved,
    state: &Path,
    loaded: &[u8],
    bare_first: bool,
) -> (Duration, Duration) {
    let first = bare_first.then(|| bare_save(kind, state, loaded));
    let ours = save(kind, from, state, loaded);
    (ours, first.unwrap_or_else(|| bare_save(kind, state, loaded)))
}

fn save(kind: StoreKind, from: Saved, state: &Path, loaded: &[u8]) -> Duration {
    fs::write(state, loaded).expect("the checkpoint");
    let store = store::open(kind, state);
    let mut transaction = store.begin(Wait::Fail).expect("nobody else holds it");
    let next = match from {
        Saved::Loaded => worked(&transaction.loaded().expect("a checkpoint").checkpoint),
        Saved::Made => worked(&Checkpoint::decode(loaded).expect("our own bytes")),
    };
    let begun = Instant::now();
    transaction.replace(black_box(&next)).expect("a save");
    let elapsed = begun.elapsed();
    assert_eq!(fs::read(state).expect("the checkpoint"), next.encode());
    elapsed
}

fn bare_save(kind: StoreKind, state: &Path, loaded: &[u8]) -> Duration {
    fs::write(state, loaded).expect("the checkpoint");
    let bytes = worked(&Checkpoint::decode(loaded).expect("our own bytes")).encode();
    let lock = bare::lock(state);
    let begun = Instant::now();
    match kind {
        StoreKind::Json => bare::json(state, &lock, black_box(&bytes), loaded),
        StoreKind::Reference => bare::reference(state, black_box(&bytes)),
        StoreKind::Sqlite => unreachable!("a database has no bare sequence here"),
    }
    begun.elapsed()
}

/// Every time that was measured, by store and size: of the save, and of the bare sequence.
type Pairs = BTreeMap<(&'static str, Saved, usize), (Vec<Duration>, Vec<Duration>)>;

fn saves(criterion: &mut Criterion, pairs: &mut Pairs) {
    for kind in [StoreKind::Json, StoreKind::Reference] {
        let mut group = criterion.benchmark_group(format!("save/{kind}"));
        for (answers, from) in
            ANSWERS.map(|answers| [(answers, Saved::Loaded), (answers, Saved::Made)]).concat()
        {
            let bytes = checkpoint(answers).encode();
            let place = Place::new(&bytes);
            let pairs = pairs.entry((kind.name(), from, answers)).or_default();
            group.throughput(Throughput::Bytes(bytes.len() as u64));
            group.bench_function(BenchmarkId::new(format!("{from:?}"), answers), |bencher| {
                bencher.iter_custom(|times| {
                    let mut sum = Duration::ZERO;
                    for _ in 0..times {
                        let (ours, bare) =
                            save_both(kind, from, &place.state, &bytes, pairs.0.len() % 2 == 1);
                        pairs.0.push(ours);
                        pairs.1.push(bare);
                        sum += ours;
                    }
                    sum
                })
            });
        }
        group.finish();
    }
}

/// What a session asks of its store: a claim, the decision applied, and saved.
fn claims(criterion: &mut Criterion) {
    for kind in [StoreKind::Json, StoreKind::Sqlite] {
        let mut group = criterion.benchmark_group(format!("claim-apply-commit/{kind}"));
        for answers in ANSWERS {
            let place = Place::new(b"");
            fs::remove_file(&place.state).expect("nothing in its place");
            let store = store::open(kind, &place.state);
            let transaction = store.begin(Wait::Fail).expect("nobody else holds it");
            transaction.save(&checkpoint(answers)).expect("a save");
            let whole = fs::read(&place.state).expect("what was saved");
            group.bench_function(BenchmarkId::from_parameter(answers), |bencher| {
                bencher.iter_custom(|times| {
                    let mut sum = Duration::ZERO;
                    for _ in 0..times {
                        fs::write(&place.state, &whole).expect("the checkpoint");
                        let begun = Instant::now();
                        let terms = Terms { fresh: &[], lease: Duration::from_secs(60) };
                        let claim = store.claim(&terms).expect("nobody else holds it");
                        let mut claim = claim.expect("a question in the queue");
                        let text = "old or new".to_owned();
                        let choice = Choice::Answer { text, citations: Vec::new() };
                        claim.apply(black_box(&choice)).expect("a decision that fits");
                        claim.commit().expect("a save");
                        sum += begun.elapsed();
                    }
                    sum
                })
            });
        }
        group.finish();
    }
}

fn loads(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("load");
    for answers in ANSWERS {
        let bytes = checkpoint(answers).encode();
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(BenchmarkId::new("long-horizon", answers), |bencher| {
            bencher.iter(|| Checkpoint::decode(black_box(&bytes)).expect("our own bytes"))
        });
        group.bench_function(BenchmarkId::new("serde_json", answers), |bencher| {
            bencher.iter(|| {
                serde_json::from_slice::<plain::Checkpoint>(black_box(&bytes)).expect("JSON")
            })
        });
    }
    group.finish();
}

/// What `serde_json` reads into: the same fields, nothing checked beyond their types.
mod plain {
    use indexmap::IndexMap;
    use serde::Deserialize;

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only read into")]
    pub(super) struct Checkpoint {
        queue: Vec<String>,
        notes: Vec<String>,
        answers: IndexMap<String, Answer>,
        pending: IndexMap<String, String>,
        sessions_run: u64,
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only read into")]
    struct Answer {
        text: String,
        citations: Vec<String>,
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut pairs = Pairs::new();
    saves(&mut criterion, &mut pairs);
    claims(&mut criterion);
    loads(&mut criterion);
    criterion.final_summary();
    println!("save: the store, its bare system calls, and how many times as long (medians)");
    for ((store, from, answers), (mut ours, mut bare)) in pairs {
        if ours.is_empty() {
            continue;
        }
        let (ours, bare) = (median(&mut ours), median(&mut bare));
        let ratio = ours.as_secs_f64() / bare.as_secs_f64();
        let from = format!("{from:?}");
        println!(
            "{store:>10} {from:>6} {answers:>6} answers {ours:>10.1?} {bare:>10.1?} {ratio:>6.3} x"
        );
    }
}
