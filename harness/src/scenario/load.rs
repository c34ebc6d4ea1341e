//! Finds scenario files and reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use super::Scenario;
use super::error::ScenarioError;
use super::resolve::resolve;

/// Loads scenarios: each path is a file, or a folder that is searched for `*.toml`.
///
/// Below a folder, packages (folders with a `Cargo.toml`), the folders `files`, `target` and `corpus`, and names that
/// begin with a dot are passed over; links are followed, each folder is searched once. Scenarios come in the order of
/// `paths`, those of a folder sorted by name; a file that is reached twice is loaded once.
///
/// A scenario is named by its path below the given folder without `.toml` (a file that was given itself: by its file
/// name). Where that gives two of them one name, they are named by their paths as given.
///
/// # Errors
///
/// Everything that is wrong with any of the files, a path that cannot be read, and a folder without scenarios.
pub fn load(paths: &[PathBuf]) -> Result<Vec<Scenario>, Vec<ScenarioError>> {
    let mut errors = Vec::new();
    let mut found = Vec::new();
    let mut known = BTreeSet::new();
    for path in paths {
        match find(path) {
            Ok(files) => {
                found.extend(files.into_iter().filter(|file| known.insert(real(&file.path))))
            }
            Err(error) => errors.push(error),
        }
    }
    part_equal_names(&mut found);
    let mut scenarios = Vec::new();
    for Found { path, name } in &found {
        let read = std::fs::read_to_string(path)
            .map_err(|error| vec![unreadable(path, &error)])
            .and_then(|text| resolve(path, name, &text));
        match read {
            Ok(scenario) => scenarios.push(scenario),
            Err(mut wrong) => errors.append(&mut wrong),
        }
    }
    if errors.is_empty() { Ok(scenarios) } else { Err(errors) }
}

impl Scenario {
    /// The scenario in a text that is, or is to be, the content of `file`: folders are looked for beside it, and the
    /// scenario has its name. The file itself is not looked at.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the text.
    pub fn parse(file: &Path, text: &str) -> Result<Scenario, Vec<ScenarioError>> {
        resolve(file, &file_name_of(file), text)
    }
}

/// A scenario file and what its scenario is called.
struct Found {
    path: PathBuf,
    name: String,
}

/// The scenario files that a path given by the user stands for.
fn find(given: &Path) -> Result<Vec<Found>, ScenarioError> {
    let metadata = std::fs::metadata(given).map_err(|error| unreadable(given, &error))?;
    if !metadata.is_dir() {
        let name = file_name_of(given);
        let path = given.to_owned();
        return Ok(vec![Found { path, name }]);
    }
    let mut files = Vec::new();
    search(given, &mut BTreeSet::new(), &mut files)?;
    if files.is_empty() {
        return Err(ScenarioError::whole(
            given,
            "there is no scenario in this folder",
            "at least one `*.toml` in it or below it (packages, `files`, `target`, `corpus` and names that begin with a dot are passed over); `crashlab init -o FILE` writes one to start from",
        ));
    }
    let found =
        |path: PathBuf| Found { name: name_of(path.strip_prefix(given).unwrap_or(&path)), path };
    Ok(files.into_iter().map(found).collect())
}

/// Adds the scenario files in and below the folder, sorted. A package's own `*.toml` files are none.
fn search(
    folder: &Path,
    searched: &mut BTreeSet<PathBuf>,
    files: &mut Vec<PathBuf>,
) -> Result<(), ScenarioError> {
    if !searched.insert(real(folder)) {
        return Ok(());
    }
    let entries = std::fs::read_dir(folder)
        .and_then(|entries| entries.collect::<io::Result<Vec<_>>>())
        .map_err(|error| unreadable(folder, &error))?;
    let mut paths: Vec<PathBuf> = entries.iter().map(std::fs::DirEntry::path).collect();
    paths.sort();
    let package = is_package(folder);
    for path in paths {
        if is_passed_over(&path) {
            continue;
        }
        if path.is_dir() {
            if !is_package(&path) {
                search(&path, searched, files)?;
            }
        } else if !package && path.extension() == Some(OsStr::new("toml")) {
            files.push(path);
        }
    }
    Ok(())
}

fn is_package(folder: &Path) -> bool {
    folder.join("Cargo.toml").exists()
}

fn is_passed_over(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with('.') || (matches!(&*name, "files" | "target" | "corpus") && path.is_dir())
}

fn file_name_of(path: &Path) -> String {
    name_of(Path::new(path.file_name().unwrap_or_default()))
}

fn name_of(path: &Path) -> String {
    path.with_extension("").to_string_lossy().into_owned()
}

/// Names by the whole path where two would be equal, until no two are.
fn part_equal_names(found: &mut [Found]) {
    loop {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for file in &*found {
            *counts.entry(file.name.clone()).or_default() += 1;
        }
        let mut changed = false;
        for file in &mut *found {
            let whole = name_of(&file.path);
            if counts[&file.name] > 1 && file.name != whole {
                file.name = whole;
                changed = true;
            }
        }
        if !changed {
            return;
        }
    }
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn unreadable(path: &Path, error: &io::Error) -> ScenarioError {
    ScenarioError::whole(
        path,
        format!("cannot read it: {error}"),
        "a scenario file, or a folder with scenario files",
    )
}
