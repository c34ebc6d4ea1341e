//! Bad: does not expect that its state can be damaged. It changes nothing, which is well, but it ends in a panic that
//! does not say which file is at fault, so that nobody knows what to repair.
//!
//! The lab must say, after damage: `crashed`.

use std::fs;
use std::path::Path;

use crashlab_subjects::{STATE, State, mark, replace};

fn main() {
    let bytes = fs::read(STATE).unwrap_or_else(|_| State::fresh().encode());
    // The fault: a panic is no message to whoever has to repair the file.
    let mut state = State::parse(&bytes).expect("a state");
    mark("loaded");
    if state.answer_next().is_some() {
        replace(Path::new(STATE), &state.encode()).expect("it can be saved");
        mark("saved");
    }
}
