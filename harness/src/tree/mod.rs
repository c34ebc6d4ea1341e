//! Trees: the files, folders, links, modes, owners and bytes of a watched folder. Two equal trees are one state.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::path::{Path, PathBuf};

use crate::digest::{self, Digest, Encoder};
use crate::shared::SharedMap;

mod acl;
mod content;
mod diff;
mod model;
mod reach;
mod snapshot;

pub(crate) use acl::set_attribute;
pub use content::{FileBytes, TooLong};
pub(crate) use diff::escaped;
pub use diff::{Change, Difference, compare_bytes, compare_contents, difference};
pub(crate) use model::allocate;
pub use model::{Inode, Misfit, Model, unaccounted};
pub(crate) use reach::Top;
pub(crate) use snapshot::read_some;
pub use snapshot::{SnapshotError, read, read_around, read_own, write_out};

/// A tree is kept in memory with all of its bytes, so that no folder with more than this is read; holes do not count.
pub const BYTES_MAX: u64 = 1 << 30;

/// A folder and all below it. Keys are relative; the folder itself is the empty path.
///
/// Copies share all that they have in common, and so do their digests: a tree for each moment of a run costs what the
/// moments changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tree {
    /// Every entry by its path.
    pub nodes: SharedMap<PathBuf, Node>,
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
    /// Names of one file share the first of them in path order; `None` with one name.
    pub hard_link: Option<PathBuf>,
    /// Extended attributes of the `user.` space.
    pub xattrs: BTreeMap<String, Vec<u8>>,
}

/// What a [`Node`] is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// A regular file.
    File(FileBytes),
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

impl NodeKind {
    /// What `mknod(2)` makes of type bits as in `st_mode`, with nothing in it.
    pub(crate) fn made(mode: u32, device: u64) -> NodeKind {
        match mode & 0o170000 {
            0o010000 => NodeKind::Fifo,
            0o140000 => NodeKind::Socket,
            0o060000 => NodeKind::Device { block: true, number: device },
            0o020000 => NodeKind::Device { block: false, number: device },
            _ => NodeKind::File(FileBytes::default()),
        }
    }
}

impl Node {
    /// Equal but for the name that names of one file share, which another name alone can change.
    pub fn is_like(&self, other: &Node) -> bool {
        Node { hard_link: None, ..self.clone() } == Node { hard_link: None, ..other.clone() }
    }
}

impl Tree {
    /// Builds a tree from entries that each come with the identity of their inode, and tells of hard links: entries of
    /// equal identity are names of one file. What the nodes say of that themselves is ignored, and folders never
    /// share an inode.
    pub fn from_identities<K: Hash + Eq>(
        entries: impl IntoIterator<Item = (PathBuf, Node, K)>,
    ) -> Tree {
        let sorted: BTreeMap<PathBuf, (Node, K)> =
            entries.into_iter().map(|(path, node, identity)| (path, (node, identity))).collect();
        // The first name, and how many names there are.
        let mut names: HashMap<&K, (&PathBuf, u32)> = HashMap::new();
        for (path, (node, identity)) in &sorted {
            if node.kind != NodeKind::Folder {
                names.entry(identity).or_insert((path, 0)).1 += 1;
            }
        }
        let shared = |node: &Node, identity| {
            let (first, count) = names.get(identity).filter(|_| node.kind != NodeKind::Folder)?;
            (*count > 1).then(|| (*first).clone())
        };
        let with_names = sorted.iter().map(|(path, (node, identity))| {
            (path.clone(), Node { hard_link: shared(node, identity), ..node.clone() })
        });
        Tree { nodes: with_names.collect() }
    }

    /// Puts another tree at a path, with the folders on the way to it; what was there before is gone.
    pub fn graft(&mut self, path: &Path, other: Tree) {
        let own = std::mem::take(&mut self.nodes);
        let own = own.iter().filter(|(known, _)| !known.starts_with(path));
        let top = other.nodes.get(Path::new(""));
        let on_the_way = path.ancestors().skip(1).filter_map(|above| {
            Some((above.to_owned(), Node { mode: 0o755, xattrs: BTreeMap::new(), ..top?.clone() }))
        });
        let grafted = other.nodes.iter().map(|(below, node)| match below.as_os_str().is_empty() {
            true => (path.to_owned(), node.clone()),
            false => (path.join(below), node.clone()),
        });
        let identity = |tree: usize, (path, node): (PathBuf, Node)| {
            let of_one = node.hard_link.clone().ok_or_else(|| path.clone());
            (path, node, (tree, of_one))
        };
        // Those of its own last: they stay as they are.
        let entries = on_the_way.map(|entry| identity(0, entry));
        let entries = entries.chain(grafted.map(|entry| identity(1, entry)));
        let own = own.map(|(path, node)| identity(2, (path.clone(), node.clone())));
        *self = Tree::from_identities(entries.chain(own));
    }

    /// The entry at a relative path, links not followed.
    pub fn get(&self, path: &Path) -> Option<&Node> {
        self.nodes.get(path)
    }

    /// What is at a path and below it.
    pub fn below<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = (&'a Path, &'a Node)> {
        let from = self.nodes.starting_at(path).map(|(path, node)| (path.as_path(), node));
        from.take_while(move |(below, _)| below.starts_with(path))
    }

    /// The same tree, with all that it has in common with another one shared with that.
    pub fn sharing(&self, other: &Tree) -> Tree {
        let mut nodes = other.nodes.clone();
        nodes.retain(|path, _| self.nodes.contains_key(path));
        for (path, node) in &self.nodes {
            let kind = match (&node.kind, other.get(path).map(|other| &other.kind)) {
                (NodeKind::File(own), Some(NodeKind::File(other))) => {
                    NodeKind::File(own.sharing(other))
                }
                _ => node.kind.clone(),
            };
            if other.get(path) != Some(node) {
                nodes.insert(path.clone(), Node { kind, ..node.clone() });
            }
        }
        Tree { nodes }
    }

    /// A hash of everything in the tree: equal trees have equal hashes, and different trees different ones (see
    /// [`crate::digest`]).
    ///
    /// It is made of the hashes of entries, and those of files of the hashes of their blocks, all of which are kept, so
    /// that it costs what was changed since another tree of which this is a copy was hashed.
    pub fn hash(&self) -> digest::Hash {
        let mut encoder = Encoder::new(digest::Kind::Tree);
        encoder.digest(self.nodes.digest());
        encoder.finish()
    }
}

impl Digest for Node {
    fn feed(&self, into: &mut Encoder) {
        match &self.kind {
            NodeKind::File(content) => {
                into.number(0);
                content.feed(into);
            }
            NodeKind::Folder => into.number(1),
            NodeKind::Link(target) => {
                into.number(2);
                into.path(target);
            }
            NodeKind::Fifo => into.number(3),
            NodeKind::Socket => into.number(4),
            NodeKind::Device { block, number } => {
                into.number(if *block { 5 } else { 6 });
                into.number(*number);
            }
        }
        for number in [self.mode, self.uid, self.gid] {
            into.number(number.into());
        }
        into.number(self.hard_link.is_some().into());
        if let Some(first) = &self.hard_link {
            into.path(first);
        }
        into.number(self.xattrs.len() as u64);
        for (name, value) in &self.xattrs {
            into.bytes(name.as_bytes());
            into.bytes(value);
        }
    }
}
