//! Trees: the files, folders, links, modes, owners and bytes of a watched folder. Two equal trees are one state.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::path::{Path, PathBuf};

use crate::op::Data;

mod acl;
mod diff;
mod model;
mod reach;
mod snapshot;

pub(crate) use diff::escaped;
pub use diff::{Change, Difference, compare_bytes, difference};
pub use model::{Inode, Misfit, Model, unaccounted};
pub(crate) use reach::Top;
pub use snapshot::{SnapshotError, read, read_around, read_own, write_out};

/// A tree is kept in memory with all of its bytes, holes too, so that no folder with more than this is read.
pub const BYTES_MAX: u64 = 1 << 30;

/// A folder and all below it. Keys are relative; the folder itself is the empty path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tree {
    /// Every entry by its path.
    pub nodes: BTreeMap<PathBuf, Node>,
}

/// One entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Node {
    /// What it is, with its content.
    pub kind: NodeKind,
    /// Permission bits (`07777`); 0o777 for links.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Names of one file share a number (the position of the first of them in path order); `None` with one name.
    pub hard_link: Option<u32>,
    /// Extended attributes of the `user.` space.
    pub xattrs: BTreeMap<String, Vec<u8>>,
}

/// What a [`Node`] is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// A regular file.
    File(Data),
    /// A folder.
    Folder,
    /// A symbolic link and what it points to.
    Link(PathBuf),
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A device, block or character, with its number.
    Device {
        /// A block device.
        block: bool,
        /// Its number.
        number: u64,
    },
}

impl Node {
    /// Equal but for the number that names of one file share, which another name alone can change.
    pub fn is_like(&self, other: &Node) -> bool {
        Node { hard_link: None, ..self.clone() } == Node { hard_link: None, ..other.clone() }
    }
}

impl Tree {
    /// Builds a tree from entries that each come with the identity of their inode, and numbers the hard links:
    /// entries of equal identity are names of one file. The numbers that the nodes come with are ignored, and
    /// folders never share one.
    pub fn from_identities<K: Hash + Eq>(
        entries: impl IntoIterator<Item = (PathBuf, Node, K)>,
    ) -> Tree {
        let sorted: BTreeMap<PathBuf, (Node, K)> =
            entries.into_iter().map(|(path, node, identity)| (path, (node, identity))).collect();
        // The position of the first name, and how many names there are.
        let mut names: HashMap<&K, (u32, u32)> = HashMap::new();
        for (position, (node, identity)) in (0u32..).zip(sorted.values()) {
            if node.kind != NodeKind::Folder {
                names.entry(identity).or_insert((position, 0)).1 += 1;
            }
        }
        let numbers: Vec<Option<u32>> = sorted
            .values()
            .map(|(node, identity)| match names.get(identity) {
                Some((first, count)) if *count > 1 && node.kind != NodeKind::Folder => Some(*first),
                _ => None,
            })
            .collect();
        let nodes = sorted
            .into_iter()
            .zip(numbers)
            .map(|((path, (node, _)), hard_link)| (path, Node { hard_link, ..node }))
            .collect();
        Tree { nodes }
    }

    /// Puts another tree at a path, with the folders on the way to it; what was there before is gone.
    pub fn graft(&mut self, path: &Path, other: Tree) {
        let own = std::mem::take(&mut self.nodes);
        let own = own.into_iter().filter(|(known, _)| !known.starts_with(path));
        let top = other.nodes.get(Path::new("")).cloned();
        let on_the_way = path.ancestors().skip(1).filter_map(|above| {
            Some((above.to_owned(), Node { mode: 0o755, xattrs: BTreeMap::new(), ..top.clone()? }))
        });
        let grafted =
            other.nodes.into_iter().map(|(below, node)| match below.as_os_str().is_empty() {
                true => (path.to_owned(), node),
                false => (path.join(below), node),
            });
        let identity = |tree: usize, (path, node): (PathBuf, Node)| {
            let of_one = node.hard_link.ok_or_else(|| path.clone());
            (path, node, (tree, of_one))
        };
        // Those of its own last: they stay as they are.
        let entries = on_the_way.map(|entry| identity(0, entry));
        let entries = entries.chain(grafted.map(|entry| identity(1, entry)));
        *self = Tree::from_identities(entries.chain(own.map(|entry| identity(2, entry))));
    }

    /// The entry at a relative path, links not followed.
    pub fn get(&self, path: &Path) -> Option<&Node> {
        self.nodes.get(path)
    }

    /// A hash of everything in the tree: equal trees have equal hashes, and different trees different ones.
    pub fn hash(&self) -> [u8; 32] {
        let mut hasher = Encoder(blake3::Hasher::new());
        hasher.number(self.nodes.len() as u64);
        for (path, node) in &self.nodes {
            hasher.path(path);
            hasher.node(node);
        }
        *hasher.0.finalize().as_bytes()
    }
}

/// Feeds values to a hash so that no two sequences of values give the same bytes: all that varies in length is
/// led by its length, and all that varies in kind by a tag.
struct Encoder(blake3::Hasher);

impl Encoder {
    fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    /// By components, since paths that differ in doubled slashes alone are equal.
    fn path(&mut self, path: &Path) {
        self.number(path.components().count() as u64);
        for component in path.components() {
            self.bytes(component.as_os_str().as_encoded_bytes());
        }
    }

    fn node(&mut self, node: &Node) {
        match &node.kind {
            NodeKind::File(data) => {
                self.number(0);
                self.bytes(data);
            }
            NodeKind::Folder => self.number(1),
            NodeKind::Link(target) => {
                self.number(2);
                self.path(target);
            }
            NodeKind::Fifo => self.number(3),
            NodeKind::Socket => self.number(4),
            NodeKind::Device { block, number } => {
                self.number(if *block { 5 } else { 6 });
                self.number(*number);
            }
        }
        for number in [node.mode, node.uid, node.gid] {
            self.number(number.into());
        }
        self.number(node.hard_link.map_or(0, |position| u64::from(position) + 1));
        self.number(node.xattrs.len() as u64);
        for (name, value) in &node.xattrs {
            self.bytes(name.as_bytes());
            self.bytes(value);
        }
    }
}
