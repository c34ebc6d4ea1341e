//! Trees from and to the disk.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use nix::sys::stat::{Mode, SFlag, mknod};

use super::{Node, NodeKind, Tree};
use crate::op::Data;
use crate::sys::xattr;

/// A tree could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what} {}: {source}", path.display())]
pub struct SnapshotError {
    /// What was tried (`read`, `write`).
    pub what: &'static str,
    /// Where.
    pub path: PathBuf,
    /// The kernel's answer.
    pub source: io::Error,
}

/// Turns an I/O error into one that says what was tried and where.
fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> SnapshotError {
    move |source| SnapshotError { what, path: path.to_owned(), source }
}

/// Device and inode number.
type Inode = (u64, u64);

/// Reads the folder at `root` and all below it.
///
/// Nothing is followed and nothing but regular files is opened. Files with holes are read as the bytes that a
/// program would read. Of the extended attributes only those of the `user.` space are taken.
///
/// # Errors
///
/// [`SnapshotError`] with the path that could not be read.
pub fn read(root: &Path) -> Result<Tree, SnapshotError> {
    read_with(root, false)
}

/// As [`read`], for a folder of the lab's own: where a mode forbids its owner to read, that is lifted for as long as
/// the reading takes, and the tree has the mode as it was.
///
/// # Errors
///
/// [`SnapshotError`] with the path that could not be read.
pub fn read_own(root: &Path) -> Result<Tree, SnapshotError> {
    read_with(root, true)
}

fn read_with(root: &Path, lift: bool) -> Result<Tree, SnapshotError> {
    let found = fs::symlink_metadata(root).map_err(failed("read", root))?;
    if !found.is_dir() {
        return Err(failed("read", root)(io::Error::from(io::ErrorKind::NotADirectory)));
    }
    let mut reader = Reader { root, lift, entries: Vec::new(), contents: HashMap::new() };
    reader.entry(PathBuf::new(), root)?;
    Ok(Tree::from_identities(reader.entries))
}

struct Reader<'a> {
    root: &'a Path,
    /// Modes that forbid the reading are lifted meanwhile.
    lift: bool,
    entries: Vec<(PathBuf, Node, Inode)>,
    /// Content of files that have several names, so that it is read and kept once.
    contents: HashMap<Inode, Data>,
}

impl Reader<'_> {
    /// Adds the entry at `full`, which is `relative` in the tree, and all below it.
    fn entry(&mut self, relative: PathBuf, full: &Path) -> Result<(), SnapshotError> {
        let metadata = fs::symlink_metadata(full).map_err(failed("read", full))?;
        let identity = (metadata.dev(), metadata.ino());
        let _lifted = if self.lift { Lifted::new(full, &metadata)? } else { None };
        let kind = self.kind(full, &metadata, identity)?;
        let xattrs = match kind {
            // The kernel allows this space for these two kinds alone.
            NodeKind::File(_) | NodeKind::Folder => user_attributes(full)?,
            _ => BTreeMap::new(),
        };
        let is_folder = kind == NodeKind::Folder;
        let node = Node {
            mode: if metadata.is_symlink() { 0o777 } else { metadata.mode() & 0o7777 },
            uid: metadata.uid(),
            gid: metadata.gid(),
            hard_link: None,
            kind,
            xattrs,
        };
        self.entries.push((relative.clone(), node, identity));
        if is_folder {
            for child in fs::read_dir(full).map_err(failed("read", full))? {
                let name = child.map_err(failed("read", full))?.file_name();
                let below = relative.join(name);
                let path = self.root.join(&below);
                self.entry(below, &path)?;
            }
        }
        Ok(())
    }

    fn kind(
        &mut self,
        full: &Path,
        metadata: &fs::Metadata,
        identity: Inode,
    ) -> Result<NodeKind, SnapshotError> {
        let file_type = metadata.file_type();
        Ok(if file_type.is_file() {
            NodeKind::File(self.content(full, metadata, identity)?)
        } else if file_type.is_dir() {
            NodeKind::Folder
        } else if file_type.is_symlink() {
            NodeKind::Link(fs::read_link(full).map_err(failed("read", full))?)
        } else if file_type.is_fifo() {
            NodeKind::Fifo
        } else if file_type.is_socket() {
            NodeKind::Socket
        } else {
            NodeKind::Device { block: file_type.is_block_device(), number: metadata.rdev() }
        })
    }

    fn content(
        &mut self,
        full: &Path,
        metadata: &fs::Metadata,
        identity: Inode,
    ) -> Result<Data, SnapshotError> {
        if let Some(data) = self.contents.get(&identity) {
            return Ok(data.clone());
        }
        // The flags only matter if another program put something else there since the look at its kind.
        let mut file = fs::OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(full)
            .map_err(failed("read", full))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed("read", full))?;
        let data = Data::from(bytes);
        if metadata.nlink() > 1 {
            self.contents.insert(identity, data.clone());
        }
        Ok(data)
    }
}

/// A file or folder that its owner may read for as long as this lives.
struct Lifted<'a> {
    path: &'a Path,
    mode: u32,
}

impl<'a> Lifted<'a> {
    fn new(path: &'a Path, metadata: &fs::Metadata) -> Result<Option<Lifted<'a>>, SnapshotError> {
        let needed = match metadata.file_type() {
            kind if kind.is_dir() => 0o500,
            kind if kind.is_file() => 0o400,
            _ => 0,
        };
        let mode = metadata.mode() & 0o7777;
        if mode & needed == needed || nix::unistd::geteuid().is_root() {
            return Ok(None);
        }
        fs::set_permissions(path, fs::Permissions::from_mode(mode | needed))
            .map_err(failed("read", path))?;
        Ok(Some(Lifted { path, mode }))
    }
}

impl Drop for Lifted<'_> {
    fn drop(&mut self) {
        // The folder is the lab's own and soon emptied: a mode that cannot be put back misleads nobody.
        _ = fs::set_permissions(self.path, fs::Permissions::from_mode(self.mode));
    }
}

fn user_attributes(path: &Path) -> Result<BTreeMap<String, Vec<u8>>, SnapshotError> {
    let mut attributes = BTreeMap::new();
    for name in xattr::list(path).map_err(failed("read the extended attributes of", path))? {
        if !name.to_bytes().starts_with(b"user.") {
            continue;
        }
        let text = name
            .to_str()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
            .map_err(failed("read the names of the extended attributes of", path))?;
        let value =
            xattr::get(path, &name).map_err(failed("read the extended attributes of", path))?;
        attributes.insert(text.to_owned(), value);
    }
    Ok(attributes)
}

/// Writes the tree into the folder `root`, which exists and is empty.
///
/// Everything that [`read`] sees is restored, so that `read(root)` gives the tree again; a tree without the empty
/// path leaves the folder itself as it is.
///
/// # Errors
///
/// [`SnapshotError`] with the path that could not be written: also where a tree names a place outside of the
/// folder, and where an owner, device or attribute that differs from what comes by itself may not be set.
pub fn write_out(tree: &Tree, root: &Path) -> Result<(), SnapshotError> {
    // The first name of each file that has several.
    let mut first_names: HashMap<u32, PathBuf> = HashMap::new();
    for (path, node) in &tree.nodes {
        let full = place(tree, path, root)?;
        if let Some(group) = node.hard_link {
            if let Some(first) = first_names.get(&group) {
                fs::hard_link(first, &full).map_err(failed("link", &full))?;
                continue;
            }
            first_names.insert(group, full.clone());
        }
        if !path.as_os_str().is_empty() {
            create(node, &full)?;
        }
        if node.kind != NodeKind::Folder {
            set_metadata(node, &full)?;
        }
    }
    // Last and from below, since a mode can forbid what was still to be done inside.
    for (path, node) in tree.nodes.iter().rev() {
        if node.kind == NodeKind::Folder {
            set_metadata(node, &root.join(path))?;
        }
    }
    Ok(())
}

/// Where an entry goes: never outside of `root`, also not through a link.
fn place(tree: &Tree, path: &Path, root: &Path) -> Result<PathBuf, SnapshotError> {
    let reject =
        |why: &str| failed("write", path)(io::Error::new(io::ErrorKind::InvalidInput, why));
    if path.as_os_str().is_empty() {
        let folder = tree.nodes.get(path).is_some_and(|node| node.kind == NodeKind::Folder);
        return if folder {
            Ok(root.to_owned())
        } else {
            Err(reject("the top of a tree is a folder"))
        };
    }
    if !path.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(reject("a path of a tree is relative and has no `.` or `..`"));
    }
    match path.parent().and_then(|parent| tree.nodes.get(parent)) {
        Some(parent) if parent.kind == NodeKind::Folder => Ok(root.join(path)),
        None if path.components().count() == 1 => Ok(root.join(path)),
        _ => Err(reject("the tree has no folder to hold it")),
    }
}

/// Makes the entry, open to its owner alone; [`set_metadata`] does the rest.
fn create(node: &Node, full: &Path) -> Result<(), SnapshotError> {
    match &node.kind {
        NodeKind::File(data) => fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(full)
            .and_then(|mut file| file.write_all(data))
            .map_err(failed("write", full)),
        NodeKind::Folder => fs::create_dir(full)
            .and_then(|()| fs::set_permissions(full, fs::Permissions::from_mode(0o700)))
            .map_err(failed("make the folder", full)),
        NodeKind::Link(target) => {
            std::os::unix::fs::symlink(target, full).map_err(failed("link", full))
        }
        NodeKind::Fifo => make_node(full, SFlag::S_IFIFO, 0),
        NodeKind::Socket => make_node(full, SFlag::S_IFSOCK, 0),
        NodeKind::Device { block: true, number } => make_node(full, SFlag::S_IFBLK, *number),
        NodeKind::Device { block: false, number } => make_node(full, SFlag::S_IFCHR, *number),
    }
}

fn make_node(full: &Path, kind: SFlag, device: u64) -> Result<(), SnapshotError> {
    mknod(full, kind, Mode::S_IRUSR | Mode::S_IWUSR, device)
        .map_err(io::Error::from)
        .map_err(failed("make the node", full))
}

/// Attributes first, since a mode can forbid them; the mode after the owner, whose change clears set-id bits.
fn set_metadata(node: &Node, full: &Path) -> Result<(), SnapshotError> {
    for (name, value) in &node.xattrs {
        xattr::set(full, name, value).map_err(failed("set the extended attributes of", full))?;
    }
    let found = fs::symlink_metadata(full).map_err(failed("read", full))?;
    if (found.uid(), found.gid()) != (node.uid, node.gid) {
        std::os::unix::fs::lchown(full, Some(node.uid), Some(node.gid))
            .map_err(failed("set the owner of", full))?;
    }
    if !matches!(node.kind, NodeKind::Link(_)) {
        fs::set_permissions(full, fs::Permissions::from_mode(node.mode))
            .map_err(failed("set the mode of", full))?;
    }
    Ok(())
}
