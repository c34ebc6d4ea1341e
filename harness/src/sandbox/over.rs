//! Work folders that lie over a large one: what a program changes goes to a layer of its own (overlayfs), and the rest is
//! not copied.
//!
//! A tree of such a work folder holds the paths that some run changed, with what links among them lead to, and no others. Which these are, runs tell: a run
//! that changes a path of the large folder which is not among them adds it, and then what was seen so far is not to be
//! compared with what comes; who runs programs looks at [`Lower::generation`] and begins again.
//!
//! Two things an overlay does otherwise than a folder: a folder of the lower layer cannot be renamed (EXDEV), and a
//! write to a file of several names parts them. So a folder that a program tries to rename is copied whole, and of a
//! file all names are.

use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::sys::stat::{Mode, SFlag, mknod};

use crate::sys::xattr;
use crate::tree::{self, Node, NodeKind, SnapshotError, Tree};

/// Marks a folder of the upper layer that hides the one below it.
const OPAQUE: &str = "user.overlay.opaque";
/// What overlayfs writes down for itself.
const OWN_ATTRIBUTES: &str = "user.overlay.";
/// As many links as Linux follows in one look-up (`MAXSYMLINKS`, include/linux/namei.h).
const LINKS_FOLLOWED_MAX: usize = 40;

/// A large folder that work folders lie over. Shared by all sandboxes of one program.
#[derive(Debug)]
pub struct Lower {
    folder: PathBuf,
    state: Vec<PathBuf>,
    copied: Mutex<Copied>,
}

/// What of the large folder is in the trees.
#[derive(Debug, Default)]
struct Copied {
    /// Every path, with the folders that lead to it.
    paths: BTreeSet<PathBuf>,
    /// Folders with all that is in them, so that nothing of the lower layer shows through.
    whole: BTreeSet<PathBuf>,
    /// How often something was added.
    generation: u64,
}

impl Lower {
    /// The folder is an absolute path; of it, what stands at the state paths (relative) is in every tree.
    pub fn new(folder: &Path, state: &[PathBuf]) -> Lower {
        let lower =
            Lower { folder: folder.to_owned(), state: state.to_vec(), copied: Mutex::default() };
        lower.add(Path::new(""));
        lower.follow_state(&Tree::default());
        lower
    }

    /// The large folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Grows whenever a path is added, so that trees from before are not to be compared with those that come.
    pub fn generation(&self) -> u64 {
        self.copied().generation
    }

    /// What the large folder holds at the paths that are in the trees.
    ///
    /// # Errors
    ///
    /// [`SnapshotError`] with the path that could not be read.
    pub fn tree(&self) -> Result<Tree, SnapshotError> {
        tree::read_some(&self.folder, &self.copied().paths)
    }

    /// A program could not rename this folder, since it is one of the lower layer: from now on it is a copy.
    pub fn copy_whole(&self, folder: &Path) {
        if self.lies_below(folder).is_some_and(|found| found.is_dir()) {
            self.add_all(folder);
            let mut copied = self.copied();
            if copied.whole.insert(folder.to_owned()) {
                copied.generation += 1;
            }
        }
    }

    fn copied(&self) -> MutexGuard<'_, Copied> {
        self.copied.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a tree into an upper layer that is empty and not mounted.
    pub(super) fn write(&self, tree: &Tree, upper: &Path) -> Result<(), SnapshotError> {
        tree::write_out(tree, upper)?;
        let copied = self.copied();
        let is_folder =
            |path: &Path| tree.get(path).is_some_and(|node| node.kind == NodeKind::Folder);
        let hidden = |path: &Path| path.ancestors().skip(1).any(|at| copied.whole.contains(at));
        for path in &copied.paths {
            let Some(parent) = path.parent().filter(|parent| is_folder(parent)) else {
                continue;
            };
            if tree.get(path).is_none() && !hidden(path) {
                insist(&upper.join(parent), || whiteout(&upper.join(path)))
                    .map_err(failed("hide", path))?;
            }
        }
        for path in copied.whole.iter().filter(|path| is_folder(path)) {
            let at = upper.join(path);
            insist(&at, || xattr::set(&at, OPAQUE, b"y")).map_err(failed("cover", path))?;
        }
        Ok(())
    }

    /// The tree that an upper layer stands for; what it holds beyond what was known is added.
    pub(super) fn read(&self, upper: &Path) -> Result<Tree, SnapshotError> {
        let raw = tree::read_own(upper)?;
        let mut entries = Vec::new();
        for (path, node) in &raw.nodes {
            let (path, mut node) = (path.clone(), node.clone());
            if is_whiteout(&node) {
                self.add_all(&path);
                continue;
            }
            if node.xattrs.contains_key(OPAQUE) {
                self.add_all(&path);
            } else {
                self.add(&path);
            }
            node.xattrs.retain(|name, _| !name.starts_with(OWN_ATTRIBUTES));
            let identity = node.hard_link.clone().ok_or_else(|| path.clone());
            entries.push((path, node, identity));
        }
        let tree = Tree::from_identities(entries);
        for (path, node) in &tree.nodes {
            if matches!(node.kind, NodeKind::Link(_)) {
                self.follow_into(&tree, path);
            }
        }
        self.follow_state(&tree);
        Ok(tree)
    }

    /// Adds a path, if the large folder has it, with the folders that lead to it and the other names of the file.
    fn add(&self, path: &Path) {
        let Some(found) = self.lies_below(path) else {
            return;
        };
        if self.copied().paths.contains(path) {
            return;
        }
        let mut names = vec![path.to_owned()];
        if !found.is_dir() && found.nlink() > 1 {
            names.extend(self.names_of(&found));
        }
        let mut copied = self.copied();
        copied.generation += 1;
        let with_parents = names.iter().flat_map(|name| name.ancestors().map(Path::to_owned));
        copied.paths.extend(with_parents);
        drop(copied);
        if found.is_symlink() {
            self.follow_into(&Tree::default(), path);
        }
    }

    /// The same with all that is below the path.
    fn add_all(&self, path: &Path) {
        self.add(path);
        for below in self.walk(path) {
            self.add(&below);
        }
    }

    /// What the large folder has at a path that is reached without a link.
    fn lies_below(&self, path: &Path) -> Option<Metadata> {
        let above = path.ancestors().skip(1);
        let is_folder =
            |at: &Path| fs::symlink_metadata(self.folder.join(at)).is_ok_and(|it| it.is_dir());
        if !above.into_iter().all(is_folder) {
            return None;
        }
        fs::symlink_metadata(self.folder.join(path)).ok()
    }

    /// All that is below a folder of the large one, which itself is reached without a link.
    fn walk(&self, path: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        if !self.lies_below(path).is_some_and(|it| it.is_dir()) {
            return found;
        }
        let mut folders = vec![path.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(self.folder.join(&folder)).into_iter().flatten().flatten() {
                let below = folder.join(entry.file_name());
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    folders.push(below.clone());
                }
                found.push(below);
            }
        }
        found
    }

    fn names_of(&self, file: &Metadata) -> Vec<PathBuf> {
        let mut names = self.walk(Path::new(""));
        names.retain(|name| {
            fs::symlink_metadata(self.folder.join(name))
                .is_ok_and(|found| (found.dev(), found.ino()) == (file.dev(), file.ino()))
        });
        names
    }

    /// Adds what the state paths lead to, through links as a program would go, in a folder of this tree.
    fn follow_state(&self, tree: &Tree) {
        self.state.iter().for_each(|state| self.follow_into(tree, state));
    }

    fn follow_into(&self, tree: &Tree, path: &Path) {
        if let Some(end) = self.follow(tree, path) {
            self.add_all(&end);
        }
    }

    fn follow(&self, tree: &Tree, path: &Path) -> Option<PathBuf> {
        let mut left: VecDeque<PathBuf> = components(path)?;
        let mut at = PathBuf::new();
        let mut followed = 0;
        while let Some(name) = left.pop_front() {
            if name.as_os_str() == ".." {
                at.pop();
                continue;
            }
            let next = at.join(name);
            let Some(target) = self.link(tree, &next) else {
                at = next;
                continue;
            };
            self.add(&next);
            followed += 1;
            if followed > LINKS_FOLLOWED_MAX {
                return None;
            }
            let inside = target.strip_prefix(&self.folder).ok();
            if inside.is_some() {
                at = PathBuf::new();
            }
            let mut longer = components(inside.unwrap_or(&target))?;
            longer.extend(left);
            left = longer;
        }
        Some(at)
    }

    fn link(&self, tree: &Tree, path: &Path) -> Option<PathBuf> {
        match tree.get(path).map(|node| &node.kind) {
            Some(NodeKind::Link(target)) => Some(target.clone()),
            Some(_) => None,
            None => fs::read_link(self.folder.join(path)).ok(),
        }
    }
}

/// The paths in an upper layer of all that is no folder and that programs see.
pub(super) fn files(upper: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(upper.join(&folder)).into_iter().flatten().flatten() {
            let path = folder.join(entry.file_name());
            match entry.metadata() {
                Ok(it) if it.is_dir() => folders.push(path),
                Ok(it) if it.file_type().is_char_device() && it.rdev() == 0 => {}
                _ => found.push(path),
            }
        }
    }
    found
}

/// The parts of a relative path; `None` for an absolute one, which leaves the folder.
fn components(path: &Path) -> Option<VecDeque<PathBuf>> {
    path.components()
        .filter(|part| *part != Component::CurDir)
        .map(|part| match part {
            Component::Normal(_) | Component::ParentDir => Some(PathBuf::from(part.as_os_str())),
            _ => None,
        })
        .collect()
}

/// A name of the lower layer that is gone: a device of the number 0, which nothing else is.
fn is_whiteout(node: &Node) -> bool {
    node.kind == NodeKind::Device { block: false, number: 0 }
}

/// Anybody may make one (Linux 5.8).
fn whiteout(path: &Path) -> io::Result<()> {
    Ok(mknod(path, SFlag::S_IFCHR, Mode::empty(), 0)?)
}

/// Does something in a folder whose mode may forbid it to its owner.
fn insist(folder: &Path, act: impl Fn() -> io::Result<()>) -> io::Result<()> {
    match act() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let before = fs::symlink_metadata(folder)?.permissions();
            fs::set_permissions(folder, fs::Permissions::from_mode(before.mode() | 0o700))?;
            let done = act();
            fs::set_permissions(folder, before)?;
            done
        }
        other => other,
    }
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> SnapshotError {
    move |source| SnapshotError { what, path: path.to_owned(), source }
}
