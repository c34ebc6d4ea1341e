//! Which files of a folder are scenarios, and what they are called.

use std::path::{Path, PathBuf};

use crashlab::scenario::load;

use crate::{LEAST, rendered};

fn put(folder: &Path, files: &[&str]) {
    for file in files {
        let path = folder.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, LEAST).unwrap();
    }
}

fn names(paths: &[PathBuf]) -> Vec<String> {
    load(paths).unwrap().into_iter().map(|scenario| scenario.name).collect()
}

#[test]
fn a_folder_is_searched_and_what_holds_no_scenarios_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    put(
        folder.path(),
        &[
            "b.toml",
            "a/two.toml",
            "a/one.toml",
            "a/deep/er.toml",
            "a/notes.md",
            "a/files/x.toml",
            "a/target/x.toml",
            "a/corpus/x.toml",
            ".hidden/x.toml",
            ".x.toml",
            "package/Cargo.toml",
            "package/x.toml",
            "package/sub/x.toml",
            "target.toml",
        ],
    );
    assert_eq!(names(&[folder.path().to_owned()]), ["a/deep/er", "a/one", "a/two", "b", "target"]);
}

#[test]
fn a_given_package_is_searched_but_its_own_files_are_none() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), &["Cargo.toml", "clippy.toml", "scenarios/x.toml"]);
    assert_eq!(names(&[folder.path().to_owned()]), ["scenarios/x"]);
}

#[test]
fn a_given_file_is_taken_whatever_it_is_called() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), &["files/.odd.scenario"]);
    assert_eq!(names(&[folder.path().join("files/.odd.scenario")]), [".odd"]);
}

#[test]
fn a_file_that_is_reached_twice_is_loaded_once() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), &["a/x.toml", "a/y.toml"]);
    let given = [folder.path().join("a/y.toml"), folder.path().join("a"), folder.path().to_owned()];
    assert_eq!(names(&given), ["y", "x"]);
}

#[test]
fn equal_names_become_whole_paths() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), &["a/x.toml", "b/x.toml", "b/y.toml"]);
    let whole = |name: &str| folder.path().join(name).display().to_string();
    assert_eq!(
        names(&[folder.path().join("a"), folder.path().join("b")]),
        [whole("a/x"), whole("b/x"), "y".into()]
    );
}

#[test]
fn links_that_go_round_end() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), &["a/x.toml"]);
    std::os::unix::fs::symlink("..", folder.path().join("a/up")).unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path().join("a/dangling")).unwrap();
    std::os::unix::fs::symlink("loop", folder.path().join("loop")).unwrap();
    assert_eq!(names(&[folder.path().to_owned()]), ["a/x"]);
}

#[test]
fn mistakes_of_all_files_are_said_together() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), &["good.toml"]);
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    std::fs::write(folder.path().join("a.toml"), LEAST.replace("title", "titel")).unwrap();
    std::fs::write(folder.path().join("b.toml"), b"title = \"\xff\"\n").unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path().join("c.toml")).unwrap();
    let given = [folder.path().to_owned(), folder.path().join("empty"), folder.path().join("none")];
    let errors = load(&given).unwrap_err();
    insta::assert_snapshot!(rendered(&errors, folder.path()));
}
