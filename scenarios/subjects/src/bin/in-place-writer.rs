//! Bad: writes its state over itself. It truncates the file, then fills it piece by piece, so that a kill in between
//! leaves an empty or a half-written file, on which the next session fails without a word about which file it was.
//!
//! The lab must say, after a kill: `torn`.

use std::fs::{self, File};
use std::io::Write;

use crashlab_subjects::{STATE, State, mark};

/// Bytes a write, as a small buffer would hand them on.
const BUFFER: usize = 6000;

fn main() {
    let bytes = fs::read(STATE).expect("there is something to read");
    let mut state = State::parse(&bytes).expect("what was written last time can be read");
    mark("loaded");
    if state.answer_next().is_none() {
        return;
    }
    // The fault: from here to the last write there is no whole state on the disk.
    let mut file = File::create(STATE).expect("it can be opened for writing");
    for piece in state.encode().chunks(BUFFER) {
        file.write_all(piece).expect("the disk is not full");
    }
    drop(file);
    mark("saved");
}
