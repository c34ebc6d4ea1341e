//! The tree that runs begin with: a copy of the folders that are watched, or the changed part of one that is too large for that.

use std::path::{Path, PathBuf};

use super::super::LabError;
use super::super::heavy::heavy_folders;
use super::super::needs::look_for_needs;
use super::{Stage, show};
use crate::op::What;
use crate::recording::Trace;
use crate::sandbox::Lower;
use crate::scenario::Scenario;
use crate::trace::Undisturbed;
use crate::tree::{self, Tree};
use crate::watched::Watched;

impl Stage<'_> {
    /// The tree that every run begins with: the scenario's files, after its setup commands.
    ///
    /// # Errors
    ///
    /// [`LabError::Missing`] where the scenario's probe fails, [`LabError::Scenario`] where a setup command fails.
    pub fn prepare(&self) -> Result<Tree, LabError> {
        look_for_needs(self.scenario)?;
        self.probe()?;
        if let Some(lower) = &self.over {
            return self.changed_part(lower);
        }
        let subject = &self.scenario.subject;
        self.set_up(match (&subject.files, subject.watched()) {
            (files, Some(watched)) => self.copy_of(files.as_deref(), &watched)?,
            (Some(files), None) => as_ones_own(tree::read(files)?),
            (None, None) => self.empty()?,
        })
    }

    fn set_up(&self, mut tree: Tree) -> Result<Tree, LabError> {
        for command in &self.scenario.subject.setup {
            let (trace, after) =
                self.run(std::slice::from_ref(command), &tree, false, &mut Undisturbed)?;
            if !trace.ends[0].exit.success() {
                let what = format!("the setup {}", show(command));
                return Err(LabError::failed_in(&self.scenario.file, &what, &trace));
            }
            tree = after;
        }
        Ok(tree)
    }

    /// The watched folders with what they hold now; `files`, if they are given, in the place of where programs begin.
    fn copy_of(&self, files: Option<&Path>, watched: &Watched) -> Result<Tree, LabError> {
        let mut tree = self.empty()?;
        for part in &watched.parts {
            let begins_here = *part == watched.current;
            let (folder, shown) = match files {
                Some(files) if begins_here => (files.to_owned(), Vec::new()),
                _ => (watched.base.join(part), below(&self.shown, part)),
            };
            tree.graft(part, as_ones_own(tree::read_around(&folder, &shown)?));
        }
        Ok(tree)
    }

    /// Of a large folder, what the subject changes.
    fn changed_part(&self, lower: &Lower) -> Result<Tree, LabError> {
        let command = std::slice::from_ref(&self.scenario.subject.command);
        self.until_known(|| {
            let tree = self.set_up(as_ones_own(lower.tree()?))?;
            self.run(command, &tree, false, &mut Undisturbed)?;
            Ok(tree)
        })
    }

    /// Does the work, and again whenever it comes upon more of a large folder than its trees hold so far.
    pub(in crate::run) fn until_known<T>(
        &self,
        mut work: impl FnMut() -> Result<T, LabError>,
    ) -> Result<T, LabError> {
        loop {
            let known = self.generation();
            let result = work();
            if known == self.generation() {
                return result;
            }
        }
    }

    pub(super) fn generation(&self) -> u64 {
        self.over.as_ref().map_or(0, |lower| lower.generation())
    }

    /// A run in a large folder that came upon more of it than its trees hold is not to be compared with others.
    pub(super) fn must_be_known(
        &self,
        lower: &Lower,
        trace: &Trace,
        known: u64,
    ) -> Result<(), LabError> {
        for event in &trace.events {
            // An overlay cannot rename a folder that lies below it.
            if let What::Failed { path: Some(path), errno: libc::EXDEV, .. } = &event.what {
                lower.copy_whole(path);
            }
        }
        match lower.generation() == known {
            true => Ok(()),
            false => Err(LabError::Lab(format!(
                "{}: the program changes more of {} than its first run did",
                self.scenario.file.display(),
                lower.folder().display()
            ))),
        }
    }

    pub(in crate::run) fn empty(&self) -> Result<Tree, LabError> {
        self.sandbox.reset()?;
        Ok(self.sandbox.snapshot()?)
    }
}

/// The folders that are too large to be copied, relative to what holds all that is watched.
pub(super) fn shown(scenario: &Scenario, watched: &Watched) -> Vec<PathBuf> {
    let subject = &scenario.subject;
    let is_copied = |part: &&PathBuf| subject.files.is_none() || **part != watched.current;
    let heavy = |part: &PathBuf| {
        let found = heavy_folders(&watched.base.join(part), &below(&subject.state, part));
        found.into_iter().map(|folder| part.join(folder)).collect::<Vec<_>>()
    };
    watched.parts.iter().filter(is_copied).flat_map(heavy).collect()
}

/// Those of the paths that lie in a folder, relative to it.
fn below(paths: &[PathBuf], folder: &Path) -> Vec<PathBuf> {
    paths.iter().filter_map(|path| path.strip_prefix(folder).ok()).map(Path::to_owned).collect()
}

/// An ordinary user cannot give files away, and root in a container none to who is not there: a copy of them is its own,
/// as with `cp -r`.
fn as_ones_own(mut tree: Tree) -> Tree {
    let (uid, gid) = (nix::unistd::geteuid(), nix::unistd::getegid());
    let known = |map: &str| std::fs::read_to_string(map).unwrap_or_default();
    let (users, groups) = (known("/proc/self/uid_map"), known("/proc/self/gid_map"));
    tree.nodes.update_all(|_, node| {
        if !uid.is_root() || !is_mapped(&users, node.uid) || !is_mapped(&groups, node.gid) {
            (node.uid, node.gid) = (uid.as_raw(), gid.as_raw());
        }
    });
    tree
}

/// Whether a user namespace has this id, by its map: a line for each range, with the first id inside, the first outside, and
/// how many there are.
fn is_mapped(map: &str, id: u32) -> bool {
    map.lines().any(|line| {
        let mut numbers = line.split_whitespace().filter_map(|number| number.parse::<u64>().ok());
        let (first, _, count) = (numbers.next(), numbers.next(), numbers.next());
        let (first, id) = (first.unwrap_or(0), u64::from(id));
        (first..first + count.unwrap_or(0)).contains(&id)
    })
}
