//! What stands in the place of a damaged file.

use std::path::{Path, PathBuf};

use crate::tree::{FileBytes, Node, NodeKind, Tree};

/// What stands in the place of a damaged file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remains {
    /// A file of these bytes.
    Bytes(Vec<u8>),
    /// The file, which nobody may read; who wants to see it must have given up the right to override modes.
    Unreadable,
    /// An empty folder.
    Folder,
    /// A symbolic link to [`nowhere`](Remains::nowhere).
    DanglingLink,
    /// A socket that nobody listens at.
    Socket,
    /// A named pipe.
    Fifo,
}

impl Remains {
    /// Where a dangling link in the place of this file leads: beside it, to a name that nobody has.
    pub fn nowhere(file: &Path) -> PathBuf {
        let mut name = file.file_name().unwrap_or_default().to_owned();
        name.push(".nowhere");
        name.into()
    }

    /// The tree with this in the place of a file, which is at `place`. What is done to a file is seen by all of its
    /// names; another thing takes the place of this name alone.
    pub fn put(&self, tree: &Tree, place: &Path) -> Tree {
        let Some(file) = tree.get(place) else {
            return tree.clone();
        };
        let named = match self {
            Remains::Bytes(bytes) => {
                Node { kind: NodeKind::File(FileBytes::from(bytes.clone())), ..file.clone() }
            }
            Remains::Unreadable => Node { mode: 0, ..file.clone() },
            Remains::Folder => another(file, NodeKind::Folder, 0o755),
            Remains::DanglingLink => another(file, NodeKind::Link(Remains::nowhere(place)), 0o777),
            Remains::Socket => another(file, NodeKind::Socket, 0o755),
            Remains::Fifo => another(file, NodeKind::Fifo, 0o644),
        };
        let is_file = matches!(self, Remains::Bytes(_) | Remains::Unreadable);
        let is_name = |node: &Node| node.hard_link.is_some() && node.hard_link == file.hard_link;
        let entries = tree.nodes.iter().enumerate().map(|(position, (path, node))| {
            let here = path == place || (is_file && is_name(node));
            let now = if here { named.clone() } else { node.clone() };
            let shared = node.hard_link.clone().filter(|_| is_file || path != place);
            (path.clone(), now, shared.ok_or(position))
        });
        Tree::from_identities(entries)
    }
}

/// Something else with the owner of the file.
fn another(file: &Node, kind: NodeKind, mode: u32) -> Node {
    Node { kind, mode, hard_link: None, xattrs: Default::default(), ..file.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_names() -> Tree {
        let file = |text: &str| Node {
            kind: NodeKind::File(text.as_bytes().into()),
            mode: 0o640,
            uid: 1,
            gid: 2,
            hard_link: None,
            xattrs: Default::default(),
        };
        let entries = [("a", "one", 1), ("b", "other", 2), ("c", "one", 1)];
        Tree::from_identities(entries.map(|(path, text, inode)| (path.into(), file(text), inode)))
    }

    #[test]
    fn what_is_done_to_a_file_is_seen_by_all_of_its_names() {
        let tree = two_names();
        let put = Remains::Bytes(b"on".to_vec()).put(&tree, Path::new("c"));
        for name in ["a", "c"] {
            let node = &put.nodes[Path::new(name)];
            assert_eq!(node.kind, NodeKind::File(b"on"[..].into()), "{name}");
            assert_eq!((node.mode, node.hard_link.clone()), (0o640, Some("a".into())), "{name}");
        }
        assert_eq!(put.nodes[Path::new("b")], tree.nodes[Path::new("b")]);
        let put = Remains::Unreadable.put(&tree, Path::new("a"));
        let modes: Vec<u32> = put.nodes.values().map(|node| node.mode).collect();
        assert_eq!(modes, [0, 0o640, 0]);
    }

    #[test]
    fn another_thing_takes_the_place_of_one_name() {
        let tree = two_names();
        let put = Remains::Fifo.put(&tree, Path::new("a"));
        assert_eq!(put.nodes[Path::new("a")].kind, NodeKind::Fifo);
        assert!(put.nodes.values().all(|node| node.hard_link.is_none()), "{put:?}");
        assert!(put.nodes.values().all(|node| (node.uid, node.gid) == (1, 2)), "{put:?}");
        assert_eq!(put.nodes[Path::new("c")].kind, tree.nodes[Path::new("c")].kind);
    }
}
