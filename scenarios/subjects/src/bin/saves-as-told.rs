//! Bad: saves as its argument tells it, in most ways with a sync too few or none, so that one sees what each is for. It
//! reads what was written last time, and fails without a word about the file where it cannot.
//!
//! The lab must say, after a power cut: `torn` where data can be missing, `lost` where only the save can be.

use std::fs::{self, File, OpenOptions};
use std::io::Write;

use crashlab_subjects::{STATE, State, mark};

const TEMPORARY: &str = "state.json.tmp";
const COPY: &str = "copy.json";

fn main() {
    let how = std::env::args().nth(1).unwrap_or_default();
    let bytes = fs::read(STATE).expect("there is something to read");
    let mut state = State::parse(&bytes).expect("what was written last time can be read");
    mark("loaded");
    if state.answer_next().is_none() {
        return;
    }
    match how.as_str() {
        "truncate" => drop(written(STATE, &state)),
        "truncate-sync" => written(STATE, &state).sync_all().expect("it is synced"),
        "rename" => {
            drop(written(TEMPORARY, &state));
            rename();
        }
        "rename-sync" => {
            let file = written(TEMPORARY, &state);
            rename();
            file.sync_all().expect("it is synced");
        }
        "sync-rename" => {
            written(TEMPORARY, &state).sync_all().expect("it is synced");
            rename();
        }
        "sync-rename-sync" => {
            written(TEMPORARY, &state).sync_all().expect("it is synced");
            rename();
            File::open(".").expect("the folder").sync_all().expect("it is synced");
        }
        "in-place" => {
            let mut file = OpenOptions::new().write(true).open(STATE).expect("it can be opened");
            let bytes = state.encode();
            file.write_all(&bytes).expect("the disk is not full");
            file.set_len(bytes.len() as u64).expect("it can be cut");
        }
        "other-descriptor" => {
            drop(written(TEMPORARY, &state));
            File::open(TEMPORARY).expect("it is there").sync_all().expect("it is synced");
            rename();
        }
        // The state is a link into the folder `d`; `by-link` is one to that folder.
        "link" | "link-sync" => {
            written("d/new", &state).sync_all().expect("it is synced");
            fs::rename("d/new", "d/state.json").expect("it can be renamed");
            let folder = if how == "link" { "." } else { "by-link" };
            File::open(folder).expect("the folder").sync_all().expect("it is synced");
        }
        "two-files" => {
            for file in [STATE, COPY] {
                written(TEMPORARY, &state).sync_all().expect("it is synced");
                fs::rename(TEMPORARY, file).expect("it can be renamed");
                File::open(".").expect("the folder").sync_all().expect("it is synced");
            }
        }
        other => panic!("{other:?} is no way to save"),
    }
    mark("saved");
}

/// A file with the state in it, made anew.
fn written(path: &str, state: &State) -> File {
    let mut file = File::create(path).expect("it can be opened for writing");
    file.write_all(&state.encode()).expect("the disk is not full");
    file
}

fn rename() {
    fs::rename(TEMPORARY, STATE).expect("it can be renamed");
}
