//! What is different between two trees, for people.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};

use super::{FileBytes, Node, NodeKind, Tree};

mod bytes;

pub(crate) use bytes::escaped;
pub use bytes::{compare_bytes, compare_contents};

/// One thing that is different at one path. Printed, it is one line, or a line and a short indented excerpt below;
/// how much of it was cut is said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Where, relative to the trees' top, which is the empty path.
    pub path: PathBuf,
    /// What.
    pub change: Change,
}

/// A way in which a path differs between two trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Only the second tree has it.
    Added(Node),
    /// Only the first tree has it.
    Removed(Node),
    /// Both have it, as something else (a device with another number is something else).
    Kind {
        /// In the first tree.
        before: NodeKind,
        /// In the second.
        after: NodeKind,
    },
    /// A file of other bytes.
    Bytes {
        /// In the first tree.
        before: FileBytes,
        /// In the second.
        after: FileBytes,
    },
    /// A symbolic link to somewhere else.
    Target {
        /// In the first tree.
        before: PathBuf,
        /// In the second.
        after: PathBuf,
    },
    /// Other permission bits.
    Mode {
        /// In the first tree.
        before: u32,
        /// In the second.
        after: u32,
    },
    /// Another owner or group.
    Owner {
        /// User and group in the first tree.
        before: (u32, u32),
        /// User and group in the second.
        after: (u32, u32),
    },
    /// The file has other names besides this one.
    OtherNames {
        /// In the first tree.
        before: BTreeSet<PathBuf>,
        /// In the second.
        after: BTreeSet<PathBuf>,
    },
    /// An extended attribute was set, changed or removed.
    Attribute {
        /// Its name.
        name: String,
        /// In the first tree.
        before: Option<Vec<u8>>,
        /// In the second.
        after: Option<Vec<u8>>,
    },
}

/// All differences, in the order of the paths; none for equal trees.
pub fn difference(a: &Tree, b: &Tree) -> Vec<Difference> {
    let (names_a, names_b) = (Names::of(a), Names::of(b));
    let paths: BTreeSet<&PathBuf> = a.nodes.keys().chain(b.nodes.keys()).collect();
    let mut found = Vec::new();
    for path in paths {
        let mut add = |change| found.push(Difference { path: path.clone(), change });
        match (a.nodes.get(path), b.nodes.get(path)) {
            (Some(before), None) => add(Change::Removed(before.clone())),
            (None, Some(after)) => add(Change::Added(after.clone())),
            (Some(before), Some(after)) => {
                compare_nodes(before, after, &mut add);
                let (before, after) = (names_a.besides(path, before), names_b.besides(path, after));
                if before != after {
                    add(Change::OtherNames { before, after });
                }
            }
            (None, None) => {}
        }
    }
    found
}

/// All that one node says about itself.
fn compare_nodes(before: &Node, after: &Node, add: &mut impl FnMut(Change)) {
    match (&before.kind, &after.kind) {
        (NodeKind::File(a), NodeKind::File(b)) if a != b => {
            add(Change::Bytes { before: a.clone(), after: b.clone() });
        }
        (NodeKind::Link(a), NodeKind::Link(b)) if a != b => {
            add(Change::Target { before: a.clone(), after: b.clone() });
        }
        (a, b) if a != b => add(Change::Kind { before: a.clone(), after: b.clone() }),
        _ => {}
    }
    if before.mode != after.mode {
        add(Change::Mode { before: before.mode, after: after.mode });
    }
    let (old_owner, new_owner) = ((before.uid, before.gid), (after.uid, after.gid));
    if old_owner != new_owner {
        add(Change::Owner { before: old_owner, after: new_owner });
    }
    let names: BTreeSet<&String> = before.xattrs.keys().chain(after.xattrs.keys()).collect();
    for name in names {
        let (old, new) = (before.xattrs.get(name), after.xattrs.get(name));
        if old != new {
            add(Change::Attribute {
                name: name.clone(),
                before: old.cloned(),
                after: new.cloned(),
            });
        }
    }
}

/// The names of each file that has several, by the first of them.
struct Names<'a>(BTreeMap<&'a Path, BTreeSet<&'a PathBuf>>);

impl<'a> Names<'a> {
    fn of(tree: &'a Tree) -> Self {
        let mut groups: BTreeMap<&Path, BTreeSet<&PathBuf>> = BTreeMap::new();
        for (path, node) in &tree.nodes {
            if let Some(first) = &node.hard_link {
                groups.entry(first).or_default().insert(path);
            }
        }
        Names(groups)
    }

    fn besides(&self, path: &Path, node: &Node) -> BTreeSet<PathBuf> {
        let group = node.hard_link.as_deref().and_then(|first| self.0.get(first));
        group
            .into_iter()
            .flatten()
            .filter(|name| **name != path)
            .map(|name| (*name).clone())
            .collect()
    }
}

/// A path for people: what could move a terminal's cursor is escaped.
struct Shown<'a>(&'a Path);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.as_os_str().is_empty() {
            return f.write_str("(the folder itself)");
        }
        f.write_str(&bytes::escaped(self.0.as_os_str().as_encoded_bytes()))
    }
}

fn describe(kind: &NodeKind) -> String {
    match kind {
        NodeKind::File(content) => {
            format!("a file of {}", bytes::count(content.len() as usize, "byte"))
        }
        NodeKind::Folder => "a folder".into(),
        NodeKind::Link(target) => format!("a symbolic link to {}", Shown(target)),
        NodeKind::Fifo => "a named pipe".into(),
        NodeKind::Socket => "a socket".into(),
        NodeKind::Device { block, number } => {
            let (major, minor) = (nix::sys::stat::major(*number), nix::sys::stat::minor(*number));
            format!("a {} device {major}:{minor}", if *block { "block" } else { "character" })
        }
    }
}

fn list(names: &BTreeSet<PathBuf>) -> String {
    /// More names than this are counted, not listed.
    const SHOWN: usize = 4;
    if names.is_empty() {
        return "none".into();
    }
    let mut text =
        names.iter().take(SHOWN).map(|name| Shown(name).to_string()).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text += &format!(" and {} more", names.len() - SHOWN);
    }
    text
}

fn attribute(value: Option<&[u8]>) -> String {
    /// Longer values are cut to this many bytes.
    const SHOWN: usize = 40;
    match value {
        None => "not set".into(),
        Some(value) if value.len() > SHOWN => {
            format!(
                "\"{}\" and {} more",
                bytes::escaped(&value[..SHOWN]),
                bytes::count(value.len() - SHOWN, "byte")
            )
        }
        Some(value) => format!("\"{}\"", bytes::escaped(value)),
    }
}

impl Display for Difference {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let path = Shown(&self.path);
        match &self.change {
            Change::Added(node) => {
                write!(f, "{path}: added: {}, mode {:04o}", describe(&node.kind), node.mode)
            }
            Change::Removed(node) => {
                write!(f, "{path}: removed: {}, mode {:04o}", describe(&node.kind), node.mode)
            }
            Change::Kind { before, after } => {
                write!(f, "{path}: {} became {}", describe(before), describe(after))
            }
            Change::Bytes { before, after } => {
                write!(f, "{path}: {}", compare_contents(before, after))
            }
            Change::Target { before, after } => {
                write!(f, "{path}: points to {}, before to {}", Shown(after), Shown(before))
            }
            Change::Mode { before, after } => {
                write!(f, "{path}: mode {after:04o}, before {before:04o}")
            }
            Change::Owner { before, after } => {
                write!(f, "{path}: owner {}:{}, before {}:{}", after.0, after.1, before.0, before.1)
            }
            Change::OtherNames { before, after } => {
                write!(
                    f,
                    "{path}: other names of the same file: {}, before {}",
                    list(after),
                    list(before)
                )
            }
            Change::Attribute { name, before, after } => write!(
                f,
                "{path}: attribute {}: {}, before {}",
                bytes::escaped(name.as_bytes()),
                attribute(after.as_deref()),
                attribute(before.as_deref())
            ),
        }
    }
}
