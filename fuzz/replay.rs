//! What `cargo test` does with the corpus of a fuzz target: each file as it is, then a fixed number of changed ones.

use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

/// How often each file is changed.
const CHANGED_PER_FILE: u32 = 32;

/// Panics unless `property` holds for every file of the corpus, and for small changes of each, the same ones every time.
pub(crate) fn replay(corpus: impl AsRef<Path>, property: fn(&[u8])) {
    let corpus = corpus.as_ref();
    let entries = read(corpus, std::fs::read_dir(corpus));
    let mut files: Vec<_> = entries.map(|entry| read(corpus, entry).path()).collect();
    assert!(!files.is_empty(), "{}: there is no corpus", corpus.display());
    files.sort();
    for file in files {
        println!("{}", file.display());
        let bytes = read(&file, std::fs::read(&file));
        property(&bytes);
        for_changes(&bytes, property);
    }
}

fn read<T>(path: &Path, result: std::io::Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn for_changes(bytes: &[u8], property: fn(&[u8])) {
    let config = Config { cases: CHANGED_PER_FILE, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let changed = vec(change(), 1..4).prop_map(|changes| {
        changes.iter().fold(bytes.to_vec(), |bytes, change| change.applied_to(bytes))
    });
    let run = TestRunner::new_with_rng(config, rng).run(&changed, |bytes| {
        property(&bytes);
        Ok(())
    });
    match run {
        Ok(()) => {}
        Err(TestError::Fail(reason, bytes)) => {
            panic!("{reason}\nfor b\"{}\"", bytes.escape_ascii())
        }
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}

/// A change of a few bytes.
#[derive(Debug, Clone)]
enum Change {
    Overwrite(Index, u8),
    Insert(Index, u8),
    Remove(Index, usize),
    /// A part once more, somewhere else.
    Repeat(Index, usize, Index),
    /// Nothing from there on.
    Cut(Index),
}

fn change() -> impl Strategy<Value = Change> {
    let byte = || {
        let of_syntax = prop::sample::select(&b"\"'\\{}[]:,=#.-+019eu \t\r\n\0"[..]);
        prop_oneof![of_syntax, any::<u8>()]
    };
    let place = any::<Index>;
    prop_oneof![
        3 => (place(), byte()).prop_map(|(at, byte)| Change::Overwrite(at, byte)),
        3 => (place(), byte()).prop_map(|(at, byte)| Change::Insert(at, byte)),
        2 => (place(), 1..16_usize).prop_map(|(at, length)| Change::Remove(at, length)),
        2 => (place(), 1..64_usize, place()).prop_map(|(from, length, to)| Change::Repeat(from, length, to)),
        1 => place().prop_map(Change::Cut),
    ]
}

impl Change {
    fn applied_to(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        let length = bytes.len();
        let place = |index: &Index| index.index(length + 1);
        let part = |from: &Index, wanted: usize| {
            let from = place(from);
            from..(from + wanted).min(length)
        };
        match self {
            Change::Overwrite(at, byte) => {
                let part = part(at, 1);
                bytes[part].fill(*byte);
            }
            Change::Insert(at, byte) => bytes.insert(place(at), *byte),
            Change::Remove(at, wanted) => drop(bytes.drain(part(at, *wanted))),
            Change::Repeat(from, wanted, to) => {
                let copy = bytes[part(from, *wanted)].to_vec();
                let to = place(to);
                bytes.splice(to..to, copy);
            }
            Change::Cut(at) => bytes.truncate(place(at)),
        }
        bytes
    }
}
