//! Memory does not grow with what a program writes.

use std::path::Path;
use std::process::Command;

use super::support::Place;

/// MiB that the subject writes.
const WRITTEN: usize = 256;
/// KiB that the lab may have of its own, as `ulimit -d` counts it: files that are mapped are none.
const ALLOWED: usize = 64 << 10;

fn rewriting(place: &Place) -> String {
    let program = place.file("rewrite");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/rewrite.c");
    let compiled = Command::new("cc").arg("-o").arg(&program).arg(source).status().unwrap();
    assert!(compiled.success());
    program.to_str().unwrap().to_owned()
}

fn bounded(place: &Place, options: &str) {
    let line = format!(
        "ulimit -d {ALLOWED}; exec '{}' record {options} --time-limit 600 -- '{}' {WRITTEN}",
        env!("CARGO_BIN_EXE_crashlab"),
        rewriting(place)
    );
    let output = Command::new("sh").args(["-c", &line]).current_dir(place.work()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{options}: {}: {said}", output.status);
    let lines = String::from_utf8_lossy(&output.stdout);
    assert_eq!(lines.matches("1048576 bytes at 0").count(), WRITTEN);
}

#[test]
fn a_run_that_writes_more_than_there_is_memory_is_recorded() {
    let place = Place::with(&[("s", "")]);
    bounded(&place, "");
    bounded(&place, "-o ../f");
    let size = place.file("f").metadata().unwrap().len();
    assert!(size > (WRITTEN as u64) << 20, "it holds what was written: {size}");
    // And it is read without more memory.
    let line = format!(
        "ulimit -d {ALLOWED}; exec '{}' replay --recording ../f kill@write#{WRITTEN}",
        env!("CARGO_BIN_EXE_crashlab")
    );
    let output = Command::new("sh").args(["-c", &line]).current_dir(place.work()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
}

/// Where the disk has no room for the log, nobody can know what the run did: it is ended, and nothing passes for a recording.
#[test]
fn a_log_that_finds_no_room_ends_the_run() {
    let place = Place::with(&[("s", "")]);
    let program = rewriting(&place);
    for (options, said) in [
        ("-o ../f", "cannot write the recording ../f: File too large"),
        ("", "not seen: the log cannot be written, so the run was ended: File too large"),
    ] {
        // A file may have 10 MiB, and the subject's own has one.
        let line = format!(
            "trap '' XFSZ; ulimit -f 20480; exec '{}' record {options} -- '{program}' 64",
            env!("CARGO_BIN_EXE_crashlab")
        );
        let output =
            Command::new("sh").args(["-c", &line]).current_dir(place.work()).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && told.contains(said), "{told}");
        assert!(!place.file("f").exists());
    }
}
