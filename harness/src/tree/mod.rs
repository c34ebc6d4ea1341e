//! Trees: the files, folders, links, modes, owners and bytes of a watched folder. Two equal trees are one state.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::op::Data;

mod diff;
mod model;
mod snapshot;

pub use diff::{Difference, difference};
pub use model::{Inode, Misfit, Model};
pub use snapshot::{SnapshotError, read, write_out};

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

impl Tree {
    /// The entry at a relative path, links not followed.
    pub fn get(&self, path: &Path) -> Option<&Node> {
        self.nodes.get(path)
    }
}

/// Numbers the names of files that have several: each group by the position in path order of its first name.
fn number_hard_links(tree: &mut Tree, groups: impl Iterator<Item = Vec<PathBuf>>) {
    let mut groups: Vec<Vec<PathBuf>> = groups.filter(|names| names.len() > 1).collect();
    groups.iter_mut().for_each(|names| names.sort());
    groups.sort();
    for (number, names) in (0..).zip(groups) {
        for name in names {
            if let Some(node) = tree.nodes.get_mut(&name) {
                node.hard_link = Some(number);
            }
        }
    }
}
