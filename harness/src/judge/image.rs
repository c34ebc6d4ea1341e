//! An image: the bytes of the state files, which is all that verdicts compare.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::op::Data;
use crate::tree::{Inode, Model, Node, NodeKind, Tree};

/// What is at a state path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Content {
    /// Nothing, or a link that leads nowhere.
    Absent,
    /// A regular file's bytes, links followed.
    Bytes(Data),
    /// Something that has no bytes to compare: a pipe, a socket, a device.
    Special,
}

/// The contents of all state files together; a folder counts as all files below it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Image {
    /// Content by path: that of the state file as the scenario names it, or of a file below a named folder.
    pub files: BTreeMap<PathBuf, Content>,
}

/// Which files are state.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// Files and folders, relative to the watched folder.
    pub paths: Vec<PathBuf>,
    /// The absolute path at which the programs see the watched folder: links to it stay inside.
    pub seen: PathBuf,
    /// Among them, those that may hold anything after a crash; they are left out.
    pub volatile: Vec<PathBuf>,
}

impl State {
    /// The image of a tree.
    pub fn image(&self, tree: &Tree) -> Image {
        self.image_of(&Model::new(tree))
    }

    /// The image of the tree at which a model stands.
    pub fn image_of(&self, model: &Model) -> Image {
        let mut image = Image::default();
        for path in &self.paths {
            match model.resolve(path, &self.seen) {
                Some(inode) => self.collect(model, path, inode, &mut image),
                None => _ = image.files.insert(path.clone(), Content::Absent),
            }
        }
        image.files.retain(|path, _| !self.volatile.contains(path));
        image
    }

    fn collect(&self, model: &Model, path: &Path, inode: Inode, image: &mut Image) {
        if let Some(names) = model.names(inode) {
            for (name, child) in names {
                self.collect(model, &path.join(name), child, image);
            }
            return;
        }
        let content = match model.bytes(inode) {
            Some(bytes) => Content::Bytes(Data(bytes.into())),
            None => Content::Special,
        };
        image.files.insert(path.to_owned(), content);
    }

    /// The tree with the state files as in the image. A file or folder that the tree does not have takes its mode and
    /// owner from `like`, or from the folder that it is in.
    pub fn put(&self, image: &Image, tree: &Tree, like: &Tree) -> Tree {
        let model = Model::new(tree);
        let mut result = tree.clone();
        let old = self.image_of(&model);
        for path in old.files.keys().chain(image.files.keys()) {
            let Some(place) = model.resolve_path(path, &self.seen) else {
                continue;
            };
            match image.files.get(path) {
                None | Some(Content::Absent) => _ = result.nodes.remove(&place),
                Some(Content::Special) => {}
                Some(Content::Bytes(bytes)) => put_file(&mut result, like, place, bytes),
            }
        }
        result
    }

    /// The state path by which a file is known, if it is one: the inode is named by it, or lies below it.
    pub fn path_of(&self, model: &Model, inode: Inode) -> Option<PathBuf> {
        self.paths
            .iter()
            .find_map(|path| below(model, path, model.resolve(path, &self.seen)?, inode))
    }
}

fn below(model: &Model, path: &Path, at: Inode, wanted: Inode) -> Option<PathBuf> {
    if at == wanted {
        return Some(path.to_owned());
    }
    model.names(at)?.find_map(|(name, child)| below(model, &path.join(name), child, wanted))
}

impl Image {
    /// No state file is there at all.
    pub fn is_nothing(&self) -> bool {
        self.files.values().all(|content| *content == Content::Absent)
    }
}

fn put_file(tree: &mut Tree, like: &Tree, place: PathBuf, bytes: &Data) {
    for folder in place.ancestors().skip(1) {
        if let (None, Some(node)) = (tree.nodes.get(folder), like.nodes.get(folder)) {
            tree.nodes.insert(folder.to_owned(), node.clone());
        }
    }
    let folder = place.parent().and_then(|folder| tree.nodes.get(folder));
    let (uid, gid) = folder.map_or((0, 0), |folder| (folder.uid, folder.gid));
    let new = || Node {
        kind: NodeKind::Folder,
        mode: 0o644,
        uid,
        gid,
        hard_link: None,
        xattrs: BTreeMap::new(),
    };
    let node =
        tree.nodes.get(&place).or_else(|| like.nodes.get(&place)).cloned().unwrap_or_else(new);
    let group = node.hard_link;
    let node = Node { kind: NodeKind::File(bytes.clone()), ..node };
    // All names of one file have the same bytes.
    for other in tree.nodes.values_mut().filter(|other| group.is_some() && other.hard_link == group)
    {
        other.kind = node.kind.clone();
    }
    tree.nodes.insert(place, node);
}

impl Content {
    /// The bytes, if there are any.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Content::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}
