//! What must hold for any bytes as a recording, for property tests and for the fuzz target `recording`.

use std::path::Path;

use crashlab::recording::{Recorded, Recorder, read, read_from};

/// Panics unless the bytes are refused for a reason that can be shown, or are a recording that can be written and read again;
/// and so with sums that fit, as nobody's accident but a forger's file has them.
pub(crate) fn holds_for(bytes: &[u8]) {
    refused_or_whole(bytes);
    if let Some(sealed) = sealed(bytes) {
        refused_or_whole(&sealed);
    }
}

fn refused_or_whole(bytes: &[u8]) {
    match read_from(bytes, Path::new("the-file")) {
        Err(error) => {
            let told = error.to_string();
            assert!(told.contains("the-file") && told.contains("; "), "{told}");
            assert!(!told.contains('\n') && told.chars().count() < 1000, "{told}");
            assert!(error.offset.is_some_and(|at| at <= bytes.len() as u64), "{told}");
        }
        Ok(recorded) => assert!(again(&recorded) == recorded, "written and read, it is another"),
    }
}

/// The recording, written and read again.
pub(crate) fn again(recorded: &Recorded) -> Recorded {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("again");
    write(recorded, &file);
    read(&file).expect("what was just written")
}

pub(crate) fn write(recorded: &Recorded, file: &Path) {
    let has_calls = recorded.runs.iter().any(|run| !run.trace.calls.is_empty());
    let recorder = match has_calls {
        true => Recorder::create_with_calls(file),
        false => Recorder::create(file),
    };
    let mut recorder = recorder.expect("a new file");
    recorder.header(&recorded.header).expect("a header");
    for run in &recorded.runs {
        let spool = recorder.begin(&run.before).expect("a run");
        for event in &run.trace.events {
            let mut taken = event.clone();
            spool.event(&mut taken);
            assert!(taken == *event, "the spool changed an event");
        }
        recorder.end(&run.trace, &run.after).expect("its end");
    }
    recorder.finish().expect("the end");
}

/// The same frames with the sums that they should have, as docs/recording-format.md says; `None` where no frames can be made out.
pub(crate) fn sealed(bytes: &[u8]) -> Option<Vec<u8>> {
    let line = bytes.iter().take(64).position(|byte| *byte == b'\n')? + 1;
    let mut sealed = bytes[..line].to_vec();
    let mut sum = sum(&[&bytes[..line], &[0; 16]]);
    let mut left = &bytes[line..];
    while let Some((head, rest)) = left.split_at_checked(12) {
        let len = usize::try_from(u64::from_le_bytes(head[4..].try_into().ok()?)).ok()?;
        let Some((content, rest)) = rest.split_at_checked(len) else { break };
        sum = self::sum(&[content, head, &sum]);
        sealed.extend([head, content, &sum].concat());
        left = rest.get(16..).unwrap_or_default();
    }
    sealed.extend(left);
    Some(sealed)
}

fn sum(parts: &[&[u8]]) -> [u8; 16] {
    blake3::hash(&parts.concat()).as_bytes()[..16].try_into().expect("16 of 32")
}
