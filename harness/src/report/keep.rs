//! Keeping: the folders of findings, for a person to look into.

use std::path::{Path, PathBuf};

use super::{Event, Reporter};
use crate::judge::Grade;
use crate::run::{Case, Evidence};
use crate::tree::{SnapshotError, Tree, write_out};

/// Keeps the folders of every finding, and hands all events on.
pub struct Keep<'a> {
    inner: &'a mut dyn Reporter,
    folder: &'a Path,
    /// How many cases were kept.
    pub kept: usize,
    /// What could not be kept, in words.
    pub failures: Vec<String>,
}

impl std::fmt::Debug for Keep<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keep").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl<'a> Keep<'a> {
    /// Keeps below this folder: a folder for each scenario, in it one for each case.
    pub fn new(inner: &'a mut dyn Reporter, folder: &'a Path) -> Keep<'a> {
        Keep { inner, folder, kept: 0, failures: Vec::new() }
    }
}

impl Reporter for Keep<'_> {
    fn event(&mut self, event: Event<'_>) {
        if let Event::Ended { result, .. } = event {
            let cases = result.faults.iter().flat_map(|fault| &fault.cases);
            for case in cases.filter(|case| case.verdict.grade == Grade::Fault) {
                let folder = self.folder.join(&result.name);
                let kept = keep_case(case, &folder);
                match kept {
                    Ok(_) => self.kept += 1,
                    Err(error) => self.failures.push(error.to_string()),
                }
            }
        }
        self.inner.event(event);
    }
}

/// Writes the folder of a case below `folder`, as it was before the run, after the crash and at the end.
///
/// # Errors
///
/// [`SnapshotError`] where it cannot be written, or is there already.
pub fn keep_case(case: &Case, folder: &Path) -> Result<String, SnapshotError> {
    let Evidence { before, crashed, ended, .. } = &case.evidence;
    keep_trees(&case.id, [before.as_deref(), crashed.as_deref(), ended.as_deref()], folder)
}

/// Where [`keep_case`] keeps what the crash left.
pub(crate) fn crashed_folder(id: &str, folder: &Path) -> PathBuf {
    folder.join(folder_name(id)).join("crashed")
}

/// Writes trees of a case below `folder`: as it was before the run, after the crash and at the end.
///
/// # Errors
///
/// As [`keep_case`].
pub(crate) fn keep_trees(
    id: &str,
    trees: [Option<&Tree>; 3],
    folder: &Path,
) -> Result<String, SnapshotError> {
    let place: PathBuf = folder.join(folder_name(id));
    for (name, tree) in ["before", "crashed", "end"].into_iter().zip(trees) {
        let Some(tree) = tree else { continue };
        let path = place.join(name);
        let failed = |source| SnapshotError { what: "write", path: path.clone(), source };
        std::fs::create_dir_all(&place).map_err(failed)?;
        std::fs::create_dir(&path).map_err(failed)?;
        write_out(tree, &path)?;
    }
    Ok(place.display().to_string())
}

/// A name for the folder of a case. Ids with a JSON pointer can be longer than a name may be, and differ in a slash
/// alone: a piece of their hash keeps them apart.
fn folder_name(id: &str) -> String {
    const LETTERS_MAX: usize = 50;
    let name: String = id.replace(['/', '\0'], "_").chars().take(LETTERS_MAX).collect();
    if id.chars().count() <= LETTERS_MAX && !id.contains(['_', '\0']) {
        return name;
    }
    format!("{name}-{}", &blake3::hash(id.as_bytes()).to_hex()[..8])
}

#[cfg(test)]
mod tests {
    use super::folder_name;

    #[test]
    fn every_id_has_a_name_of_its_own() {
        assert_eq!(folder_name("kill@12+4096"), "kill@12+4096");
        assert_eq!(folder_name("damage:truncated/57"), "damage:truncated_57");
        let long = format!("damage:missing/{}", "ä".repeat(300));
        let ids = ["damage:missing/a/b", "damage:missing/a_b", &long, &format!("{long}x")];
        let names: std::collections::BTreeSet<String> = ids.map(folder_name).into();
        assert_eq!(names.len(), ids.len());
        assert!(names.iter().all(|name| name.len() < 255 && !name.contains('/')));
    }
}
