//! Trees from and to the disk.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use nix::sys::stat::{Mode, SFlag, mknod};

use super::reach::{Folder, Top};
use super::{BYTES_MAX, FileBytes, Node, NodeKind, Tree};
use crate::sys::xattr;

mod sparse;

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
/// Nothing is followed and nothing but regular files is opened. Holes stay holes, where the file system tells of them,
/// and take no time and no memory. Of the extended attributes only those of the `user.` space are taken.
///
/// # Errors
///
/// [`SnapshotError`] with the path that could not be read, also where the files up to it hold more than [`BYTES_MAX`].
pub fn read(root: &Path) -> Result<Tree, SnapshotError> {
    read_with(root, false, &[])
}

/// As [`read`], with these folders (relative) taken as empty.
///
/// # Errors
///
/// As [`read`].
pub fn read_around(root: &Path, empty: &[PathBuf]) -> Result<Tree, SnapshotError> {
    read_with(root, false, empty)
}

/// As [`read`], for a folder of the lab's own: where a mode forbids its owner to read, that is lifted for as long as
/// the reading takes, and the tree has the mode as it was.
///
/// # Errors
///
/// As [`read`].
pub fn read_own(root: &Path) -> Result<Tree, SnapshotError> {
    read_with(root, true, &[])
}

/// Reads those of the paths (relative) at which there is something.
///
/// # Errors
///
/// As [`read`].
pub(crate) fn read_some(root: &Path, paths: &BTreeSet<PathBuf>) -> Result<Tree, SnapshotError> {
    let mut reader = Reader::new(root, false, &[])?;
    for path in paths {
        match reader.entry(path.clone()) {
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => {}
            read => drop(read?),
        }
    }
    Ok(Tree::from_identities(std::mem::take(&mut reader.entries)))
}

fn read_with(root: &Path, lift: bool, empty: &[PathBuf]) -> Result<Tree, SnapshotError> {
    let found = fs::symlink_metadata(root).map_err(failed("read", root))?;
    if !found.is_dir() {
        return Err(failed("read", root)(io::Error::from(io::ErrorKind::NotADirectory)));
    }
    let mut reader = Reader::new(root, lift, empty)?;
    reader.all()?;
    Ok(Tree::from_identities(std::mem::take(&mut reader.entries)))
}

/// A folder on the disk with all that is below it, however deep.
struct Place<'a> {
    root: &'a Path,
    top: Top,
}

/// An entry on the disk: its whole path, for people, and one that the kernel takes.
struct Spot {
    full: PathBuf,
    at: PathBuf,
    /// What the short path goes through.
    _parent: Option<Folder>,
}

impl<'a> Place<'a> {
    fn open(root: &'a Path, what: &'static str) -> Result<Place<'a>, SnapshotError> {
        Ok(Place { root, top: Top::open(root).map_err(failed(what, root))? })
    }

    /// The entry at a relative path, which need not be there yet; `what` is to be done with it.
    fn spot(&mut self, relative: &Path, what: &'static str) -> Result<Spot, SnapshotError> {
        let Some(name) = relative.file_name() else {
            let at = self.root.to_owned();
            return Ok(Spot { full: at.clone(), at, _parent: None });
        };
        let full = self.root.join(relative);
        let parent = self.top.parent(relative).map_err(failed(what, &full))?;
        Ok(Spot { full, at: parent.entry(name), _parent: Some(parent) })
    }
}

impl Spot {
    fn failed(&self, what: &'static str) -> impl FnOnce(io::Error) -> SnapshotError {
        failed(what, &self.full)
    }

    fn set_mode(&self, mode: u32) -> io::Result<()> {
        fs::set_permissions(&self.at, fs::Permissions::from_mode(mode))
    }
}

struct Reader<'a> {
    place: Place<'a>,
    /// Modes that forbid the reading are lifted meanwhile.
    lift: bool,
    /// So many more bytes a tree may hold.
    room: u64,
    /// Folders that are taken as empty.
    empty: &'a [PathBuf],
    /// Folders whose modes were lifted, with these modes: all below them is still to be read.
    closed: Vec<(PathBuf, u32)>,
    entries: Vec<(PathBuf, Node, Inode)>,
    /// Content of files that have several names, so that it is read and kept once.
    contents: HashMap<Inode, FileBytes>,
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        // From below, since a mode can forbid the way to what is inside.
        while let Some((relative, mode)) = self.closed.pop() {
            if let Ok(spot) = self.place.spot(&relative, "close") {
                put_back(&spot, mode);
            }
        }
    }
}

impl<'a> Reader<'a> {
    fn new(root: &'a Path, lift: bool, empty: &'a [PathBuf]) -> Result<Reader<'a>, SnapshotError> {
        Ok(Reader {
            place: Place::open(root, "read")?,
            lift,
            room: BYTES_MAX,
            empty,
            closed: Vec::new(),
            entries: Vec::new(),
            contents: HashMap::new(),
        })
    }

    fn all(&mut self) -> Result<(), SnapshotError> {
        self.entry(PathBuf::new())?;
        let mut folders = vec![PathBuf::new()];
        while let Some(relative) = folders.pop() {
            let full = self.place.root.join(&relative);
            let names = self.place.top.folder(&relative).and_then(|folder| folder.names());
            for name in names.map_err(failed("read", &full))? {
                let below = relative.join(name);
                if self.entry(below.clone())? && !self.empty.contains(&below) {
                    folders.push(below);
                }
            }
        }
        Ok(())
    }

    /// Adds the entry at a path; tells whether it is a folder.
    fn entry(&mut self, relative: PathBuf) -> Result<bool, SnapshotError> {
        let spot = self.place.spot(&relative, "read")?;
        let metadata = fs::symlink_metadata(&spot.at).map_err(spot.failed("read"))?;
        let closed = if self.lift { lift(&spot, &metadata)? } else { None };
        let node = self.node(&spot, &metadata);
        match closed {
            Some(mode) if metadata.is_dir() => self.closed.push((relative.clone(), mode)),
            Some(mode) => put_back(&spot, mode),
            None => {}
        }
        self.entries.push((relative, node?, (metadata.dev(), metadata.ino())));
        Ok(metadata.is_dir())
    }

    fn node(&mut self, spot: &Spot, metadata: &fs::Metadata) -> Result<Node, SnapshotError> {
        let kind = self.kind(spot, metadata)?;
        let xattrs = match kind {
            // The kernel allows this space for these two kinds alone.
            NodeKind::File(_) | NodeKind::Folder => user_attributes(spot)?,
            _ => BTreeMap::new(),
        };
        Ok(Node {
            mode: if metadata.is_symlink() { 0o777 } else { metadata.mode() & 0o7777 },
            uid: metadata.uid(),
            gid: metadata.gid(),
            hard_link: None,
            kind,
            xattrs,
        })
    }

    fn kind(&mut self, spot: &Spot, metadata: &fs::Metadata) -> Result<NodeKind, SnapshotError> {
        let file_type = metadata.file_type();
        Ok(if file_type.is_file() {
            NodeKind::File(self.content(spot, metadata)?)
        } else if file_type.is_dir() {
            NodeKind::Folder
        } else if file_type.is_symlink() {
            NodeKind::Link(fs::read_link(&spot.at).map_err(spot.failed("read"))?)
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
        spot: &Spot,
        metadata: &fs::Metadata,
    ) -> Result<FileBytes, SnapshotError> {
        let identity = (metadata.dev(), metadata.ino());
        if let Some(content) = self.contents.get(&identity) {
            return Ok(content.clone());
        }
        // The flags only matter if another program put something else there since the look at its kind.
        let file = fs::OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(&spot.at)
            .map_err(spot.failed("read"))?;
        let content = sparse::read(&file, metadata, &mut self.room);
        let content = content.map_err(spot.failed("read"))?;
        if metadata.nlink() > 1 {
            self.contents.insert(identity, content.clone());
        }
        Ok(content)
    }
}

/// Lets the owner read what its mode forbids to read; the mode that it had, where that was needed.
fn lift(spot: &Spot, metadata: &fs::Metadata) -> Result<Option<u32>, SnapshotError> {
    let needed = match metadata.file_type() {
        kind if kind.is_dir() => 0o500,
        kind if kind.is_file() => 0o400,
        _ => 0,
    };
    let mode = metadata.mode() & 0o7777;
    if mode & needed == needed || nix::unistd::geteuid().is_root() {
        return Ok(None);
    }
    spot.set_mode(mode | needed).map_err(spot.failed("read"))?;
    Ok(Some(mode))
}

fn put_back(spot: &Spot, mode: u32) {
    // The folder is the lab's own and soon emptied: a mode that cannot be put back misleads nobody.
    _ = spot.set_mode(mode);
}

fn user_attributes(spot: &Spot) -> Result<BTreeMap<String, Vec<u8>>, SnapshotError> {
    let mut attributes = BTreeMap::new();
    for name in xattr::list(&spot.at).map_err(spot.failed("read the extended attributes of"))? {
        if !name.to_bytes().starts_with(b"user.") {
            continue;
        }
        let text = name
            .to_str()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
            .map_err(spot.failed("read the names of the extended attributes of"))?;
        let value =
            xattr::get(&spot.at, &name).map_err(spot.failed("read the extended attributes of"))?;
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
    let mut place = Place::open(root, "write")?;
    // The first name of each file that has several.
    let mut first_names: HashMap<&Path, &Path> = HashMap::new();
    let mut folders = Vec::new();
    for (path, node) in &tree.nodes {
        check(tree, path)?;
        let spot = place.spot(path, "write")?;
        if let Some(group) = node.hard_link.as_deref() {
            if let Some(first) = first_names.get(group) {
                let first = place.spot(first, "link")?;
                fs::hard_link(&first.at, &spot.at).map_err(spot.failed("link"))?;
                continue;
            }
            first_names.insert(group, path);
        }
        if !path.as_os_str().is_empty() {
            create(node, &spot)?;
        }
        if node.kind == NodeKind::Folder {
            folders.push((path, node));
        } else {
            set_metadata(node, &spot)?;
        }
    }
    // Last and from below, since a mode can forbid what was still to be done inside.
    for (path, node) in folders.into_iter().rev() {
        set_metadata(node, &place.spot(path, "write")?)?;
    }
    Ok(())
}

/// An entry never goes outside of the folder, also not through a link.
fn check(tree: &Tree, path: &Path) -> Result<(), SnapshotError> {
    let reject =
        |why: &str| failed("write", path)(io::Error::new(io::ErrorKind::InvalidInput, why));
    if path.as_os_str().is_empty() {
        let folder = tree.get(path).is_some_and(|node| node.kind == NodeKind::Folder);
        return if folder { Ok(()) } else { Err(reject("the top of a tree is a folder")) };
    }
    if !path.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(reject("a path of a tree is relative and has no `.` or `..`"));
    }
    match path.parent().and_then(|parent| tree.get(parent)) {
        Some(parent) if parent.kind == NodeKind::Folder => Ok(()),
        None if path.components().count() == 1 => Ok(()),
        _ => Err(reject("the tree has no folder to hold it")),
    }
}

/// Makes the entry, open to its owner alone; [`set_metadata`] does the rest.
fn create(node: &Node, spot: &Spot) -> Result<(), SnapshotError> {
    match &node.kind {
        NodeKind::File(content) => fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&spot.at)
            .and_then(|file| sparse::write(&file, content))
            .map_err(spot.failed("write")),
        NodeKind::Folder => fs::create_dir(&spot.at)
            .or_else(|error| if spot.at.is_dir() { Ok(()) } else { Err(error) })
            .and_then(|()| spot.set_mode(0o700))
            .map_err(spot.failed("make the folder")),
        NodeKind::Link(target) => {
            std::os::unix::fs::symlink(target, &spot.at).map_err(spot.failed("link"))
        }
        NodeKind::Fifo => make_node(spot, SFlag::S_IFIFO, 0),
        NodeKind::Socket => make_node(spot, SFlag::S_IFSOCK, 0),
        NodeKind::Device { block: true, number } => make_node(spot, SFlag::S_IFBLK, *number),
        NodeKind::Device { block: false, number } => make_node(spot, SFlag::S_IFCHR, *number),
    }
}

fn make_node(spot: &Spot, kind: SFlag, device: u64) -> Result<(), SnapshotError> {
    mknod(&spot.at, kind, Mode::S_IRUSR | Mode::S_IWUSR, device)
        .map_err(io::Error::from)
        .map_err(spot.failed("make the node"))
}

/// Attributes first, since a mode can forbid them; the mode after the owner, whose change clears set-id bits.
fn set_metadata(node: &Node, spot: &Spot) -> Result<(), SnapshotError> {
    for (name, value) in &node.xattrs {
        xattr::set(&spot.at, name, value).map_err(spot.failed("set the extended attributes of"))?;
    }
    let found = fs::symlink_metadata(&spot.at).map_err(spot.failed("read"))?;
    if (found.uid(), found.gid()) != (node.uid, node.gid) {
        std::os::unix::fs::lchown(&spot.at, Some(node.uid), Some(node.gid))
            .map_err(spot.failed("set the owner of"))?;
    }
    if !matches!(node.kind, NodeKind::Link(_)) {
        spot.set_mode(node.mode).map_err(spot.failed("set the mode of"))?;
    }
    Ok(())
}
