//! Files that are no recordings any more, or never were.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use crashlab::op::What;
use crashlab::recording::{ReadError, Recorded, read_from};

use super::property::{sealed, write};
use super::support::{Place, event, printed, recorded, written};

/// A small recording, and its file's bytes.
fn small() -> (Recorded, Vec<u8>) {
    let recorded = recorded(vec![
        printed(b"said"),
        written(1, Path::new("a"), b"after"),
        event(What::Mark("mark".into())),
    ]);
    let folder = tempfile::tempdir().unwrap();
    write(&recorded, &folder.path().join("f"));
    let bytes = fs::read(folder.path().join("f")).unwrap();
    (recorded, bytes)
}

fn refused(bytes: &[u8]) -> ReadError {
    match read_from(bytes, Path::new("some-file")) {
        Ok(_) => panic!("taken for a recording"),
        Err(error) => error,
    }
}

#[test]
fn a_flipped_byte_anywhere_is_refused_with_its_frame() {
    let (recorded, bytes) = small();
    assert!(read_from(&*bytes, Path::new("f")).unwrap() == recorded);
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        let error = refused(&flipped);
        assert!(error.offset.is_some_and(|offset| offset <= at as u64), "{at}: {error}");
    }
}

#[test]
fn a_recording_that_was_cut_is_unfinished_from_its_last_whole_frame_on() {
    let (_, bytes) = small();
    let mut last = 0;
    for len in 0..bytes.len() {
        let error = refused(&bytes[..len]);
        let offset = error.offset.unwrap();
        assert!(last <= offset && offset <= len as u64, "{len}: {error}");
        assert!(len == 0 || error.what.contains("unfinished"), "{len}: {error}");
        last = offset;
    }
    let more = [&bytes[..], b"x"].concat();
    assert!(refused(&more).what.contains("more after the recording's end"));
}

#[test]
fn what_it_says_is_held_against_what_can_be() {
    let (_, bytes) = small();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    for (from, to, said) in [
        (
            "crashlab recording 1\n",
            "crashlab recording 3\n",
            "version 3, and this crashlab reads the versions up to 2",
        ),
        ("crashlab recording 1\n", "crashlab recordinG 1\n", "no recording of crashlab"),
        ("\"number\":1", "\"number\":2", "op 2 is out of place"),
        ("\"run\":1", "\"run\":2", "the run 2 is out of place"),
        ("\"runs\":1", "\"runs\":7", "there are 1 runs, and not 7"),
        ("befo", "aftr", "`befo` is out of place"),
        ("befo", "done", "not understood"),
        ("evnt", "evxt", "no frame begins here"),
        ("\"path\":\"a\"", "\"path\":\"/\"", "no place for /"),
        ("\"path\":\"b\"", "\"path\":\"a\"", "an entry twice"),
        ("\"path\":\"link\"", "\"path\":\"x/yz\"", "no place for x/yz"),
        ("\"size\":6", "\"size\":3", "behind its end"),
        ("end ", "gap ", "not understood"),
    ] {
        assert!(text.contains(from), "{from}");
        let at = bytes.windows(from.len()).position(|part| part == from.as_bytes()).unwrap();
        let mut other = bytes.clone();
        other.splice(at..at + from.len(), to.bytes());
        let error = refused(&sealed(&other).unwrap());
        assert!(error.what.contains(said), "{from} -> {to}: {error}");
    }
}

/// A forger's lengths: no memory is taken for what is not there.
#[test]
fn absurd_lengths_are_refused() {
    let (_, bytes) = small();
    for tag in ["head", "byte", "evnt", "whol"] {
        let at = bytes.windows(4).position(|part| part == tag.as_bytes()).unwrap();
        for len in [u64::MAX, 1 << 60, 1 << 40, 65 << 20, 10_000] {
            let mut other = bytes.clone();
            other[at + 4..at + 12].copy_from_slice(&len.to_le_bytes());
            assert_eq!(refused(&other).offset, Some(at as u64));
        }
    }
    // A place that is none.
    let place = |from: &str, to: &str| {
        let at = bytes.windows(from.len()).rposition(|part| part == from.as_bytes());
        let mut other = bytes.clone();
        other.splice(at.unwrap()..at.unwrap() + from.len(), to.bytes());
        refused(&sealed(&other).unwrap())
    };
    let text = String::from_utf8_lossy(&bytes);
    let at = text.rfind("\"parts\":[[0,[").unwrap();
    let parts: String = text[at..].chars().take_while(|letter| *letter != ']').collect();
    let len = parts.len();
    let other = format!("\"parts\":[[0,[{:>1$}", "9,5", len - "\"parts\":[[0,[".len());
    assert!(place(&parts, &other).what.contains("no piece"), "{parts} -> {other}");
}

#[test]
fn the_corpus_of_the_fuzz_target() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/recording");
    crate::replay::replay(corpus, super::property::holds_for);
}

#[test]
fn a_reader_that_fails_is_no_panic() {
    struct Broken;
    impl io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is broken"))
        }
    }
    let error = read_from(Broken, Path::new("f")).unwrap_err();
    assert!(error.to_string().contains("the disk is broken"), "{error}");
}

/// The lab is killed while it records: what happened so far is there, and it is no recording.
#[test]
fn a_lab_that_is_killed_leaves_an_unfinished_recording() {
    let place = Place::with(&[("s", "1")]);
    let file = place.file("f");
    let mut lab = Command::new(env!("CARGO_BIN_EXE_crashlab"))
        .args(["record", "--time-limit", "600", "-o"])
        .arg(&file)
        .args(["--", "sh", "-c", "echo 2 > t; mv t s; sleep 30"])
        .current_dir(place.work())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let told = || fs::read(&file).unwrap_or_default();
    let has =
        |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    while !has(&told(), "Rename") {
        assert!(lab.try_wait().unwrap().is_none(), "it ended");
        std::thread::yield_now();
    }
    lab.kill().unwrap();
    lab.wait().unwrap();
    let path = file.to_str().unwrap();
    for args in [&["check", "--recording", path][..], &["replay", "--recording", path, "kill@1"]] {
        let (code, _, said) = place.crashlab(args);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains(path) && said.contains("unfinished"), "{said}");
        assert!(said.contains(&format!("byte {}", told().len())), "{said}");
    }
    // The next lab removes what the killed one had.
    place.record("g", "echo 2 > s");
}
