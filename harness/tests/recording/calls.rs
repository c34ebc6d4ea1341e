//! Call sites in a recording.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crashlab::recording::{CallSite, Recorded, Recorder, Stack, read, read_from};

use super::property::{sealed, write};
use super::support::{recorded, written};

fn site(function: &str, address: u64) -> Arc<CallSite> {
    Arc::new(CallSite {
        module: "/opt/job".into(),
        address,
        build_id: Some("0123".into()),
        function: Some(function.into()),
        function_offset: None,
        file: Some("/src/job.c".into()),
        folder: Some("/src".into()),
        line: Some(7),
        inlined: address == 1,
    })
}

/// Three writes: the first and the last from one place, the second from another, which has a caller in common with it.
fn with_calls() -> Recorded {
    let write = |number| written(number, Path::new("a"), b"after");
    let mut recorded = recorded((1..=3).map(write).collect());
    let stack = |sites: &[&Arc<CallSite>], whole| Stack {
        sites: sites.iter().map(|site| Arc::clone(site)).collect(),
        told: Some(0),
        whole,
    };
    let (one, other, main) = (site("one", 1), site("other", 2), site("main", 3));
    let calls = &mut recorded.runs[0].trace.calls;
    calls.add(stack(&[&one, &main], true), [1, 3]);
    calls.add(stack(&[&other, &main], false), [2]);
    recorded
}

fn bytes_of(recorded: &Recorded) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    write(recorded, &folder.path().join("f"));
    fs::read(folder.path().join("f")).unwrap()
}

#[test]
fn they_are_read_as_they_were_written() {
    let recorded = with_calls();
    let bytes = bytes_of(&recorded);
    assert!(bytes.starts_with(b"crashlab recording 2\n"));
    let again = read_from(&*bytes, Path::new("f")).unwrap();
    assert_eq!(again, recorded);
    let calls = &again.runs[0].trace.calls;
    let told = |op| calls.site(op).unwrap().to_string();
    assert_eq!(told(1), "at job.c:7 in one (job+0x1)");
    assert_eq!((told(3), told(2)), (told(1), "at job.c:7 in other (job+0x2)".into()));
    let main = "\"function\":\"main\"";
    assert_eq!(
        String::from_utf8_lossy(&bytes).matches(main).count(),
        1,
        "a site stands there once"
    );
}

#[test]
fn where_there_are_none_the_file_is_of_the_version_that_older_labs_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f");
    let mut recorder = Recorder::create(&file).unwrap();
    let Recorded { header, runs } = with_calls();
    recorder.header(&header).unwrap();
    let spool = recorder.begin(&runs[0].before).unwrap();
    runs[0].trace.events.iter().for_each(|event| spool.event(&mut event.clone()));
    recorder.end(&runs[0].trace, &runs[0].after).unwrap();
    recorder.finish().unwrap();
    assert!(fs::read(&file).unwrap().starts_with(b"crashlab recording 1\n"));
    let again = read(&file).unwrap();
    assert!(again.runs[0].trace.calls.is_empty(), "this one was told to leave them out");
}

#[test]
fn what_they_say_is_held_against_what_can_be() {
    let bytes = bytes_of(&with_calls());
    for (from, to, said) in [
        ("crashlab recording 2\n", "crashlab recording 1\n", "no frame begins here"),
        ("\"sites\":[0,1]", "\"sites\":[0,9]", "a call site that is none"),
        ("\"told\":0", "\"told\":7", "a call site that it does not have"),
        ("\"ops\":[1,3]", "\"ops\":[1,4]", "of an op that is not there"),
        ("\"ops\":[1,3]", "\"ops\":[1,2]", "or has another"),
        ("site", "stck", "not understood"),
    ] {
        let at = bytes.windows(from.len()).position(|part| part == from.as_bytes());
        let at = at.unwrap_or_else(|| panic!("{from}"));
        let mut other = bytes.clone();
        other.splice(at..at + from.len(), to.bytes());
        let error = read_from(&*sealed(&other).unwrap(), Path::new("f")).unwrap_err();
        assert!(error.what.contains(said), "{from} -> {to}: {error}");
    }
}
