//! An image: the bytes of the state files, which is all that verdicts compare.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::discriminant;
use std::path::{Path, PathBuf};

use crate::digest::{Digest, Encoder};
use crate::shared::SharedMap;
use crate::tree::{FileBytes, Inode, Model, Node, NodeKind, Tree};

/// What is at a state path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Content {
    /// Nothing, or a link that leads nowhere.
    Absent,
    /// A regular file's bytes; where a state path itself is a link, it is followed.
    Bytes(FileBytes),
    /// What a link below a folder that is state points to.
    Link(PathBuf),
    /// Something that has no bytes to compare: a pipe, a socket, a device.
    Special,
}

/// The contents of all state files together; a folder counts as all files below it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Image {
    /// Content by path: that of the state file as the scenario names it, or of a file below a named folder.
    pub files: SharedMap<PathBuf, Content>,
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
                Some(inode) => image.files.extend(contents_below(model, path, inode)),
                None => _ = image.files.insert(path.clone(), Content::Absent),
            }
        }
        image.files.retain(|path, _| !self.volatile.contains(path));
        image
    }

    /// The tree with the state files as in the image. A file or folder that the tree does not have takes its mode and
    /// owner from `like`, or from the folder that it is in.
    pub fn put(&self, image: &Image, tree: &Tree, like: &Tree) -> Tree {
        let model = Model::new(tree);
        let mut result = tree.clone();
        let old = self.image_of(&model);
        for path in old.files.keys().chain(image.files.keys()) {
            let Some(place) = self.place(&model, path) else {
                continue;
            };
            match image.files.get(path) {
                None | Some(Content::Absent) => _ = result.nodes.remove(&place),
                Some(Content::Special) => {}
                Some(Content::Bytes(bytes)) => {
                    put_node(&mut result, like, place, NodeKind::File(bytes.clone()), 0o644)
                }
                Some(Content::Link(target)) => {
                    put_node(&mut result, like, place, NodeKind::Link(target.clone()), 0o777)
                }
            }
        }
        result
    }

    /// Where a state path leads: links on the way to a named path are followed, those below a folder are state.
    pub fn place(&self, model: &Model, path: &Path) -> Option<PathBuf> {
        self.paths.iter().find_map(|named| {
            let below = path.strip_prefix(named).ok()?;
            let place = model.resolve_path(named, &self.seen)?;
            Some(if below.as_os_str().is_empty() { place } else { place.join(below) })
        })
    }

    /// A state path that leads out of the watched folder, or nowhere at all.
    pub fn unwatched(&self, tree: &Tree) -> Option<&Path> {
        let model = Model::new(tree);
        let leads = |path: &&PathBuf| model.resolve_path(path, &self.seen).is_none();
        self.paths.iter().find(leads).map(PathBuf::as_path)
    }

    /// The image without the files below state folders that are not familiar: such a file is a temp or lock file that
    /// happened to be there at that moment.
    pub fn without_strangers(&self, image: &Image, familiar: impl Fn(&Path) -> bool) -> Image {
        let files = image.files.iter();
        let files = files.filter(|(path, _)| self.paths.contains(path) || familiar(path));
        Image { files: files.map(|(path, content)| (path.clone(), content.clone())).collect() }
    }
}

/// Paths whose numbers do not count: names with a process id in them are alike.
#[derive(Debug, Clone, Default)]
pub struct Shapes(BTreeSet<String>);

impl Shapes {
    /// Takes in every path.
    pub fn learn<'a>(&mut self, paths: impl Iterator<Item = &'a PathBuf>) {
        self.0.extend(paths.map(|path| shape(path)));
    }

    /// A path like it was learnt.
    pub fn contains(&self, path: &Path) -> bool {
        self.0.contains(&shape(path))
    }
}

/// A path with each number in it as one sign.
pub fn shape(path: &Path) -> String {
    let mut shape = String::new();
    for letter in path.to_string_lossy().chars() {
        let letter = if letter.is_ascii_digit() { '#' } else { letter };
        if letter != '#' || !shape.ends_with('#') {
            shape.push(letter);
        }
    }
    shape
}

/// The content of a file, or of all files below a folder, by the paths that they have where the folder has this one.
pub(super) fn contents_below(model: &Model, path: &Path, inode: Inode) -> Vec<(PathBuf, Content)> {
    let mut found = Vec::new();
    let mut open = vec![(path.to_owned(), inode)];
    while let Some((path, inode)) = open.pop() {
        match model.names(inode) {
            Some(names) => open.extend(names.map(|(name, child)| (path.join(name), child))),
            None => found.push((path, content_of(model, inode))),
        }
    }
    found
}

pub(super) fn content_of(model: &Model, inode: Inode) -> Content {
    match (model.content(inode), model.target(inode)) {
        (Some(content), _) => Content::Bytes(content.clone()),
        (None, Some(target)) => Content::Link(target.to_owned()),
        (None, None) => Content::Special,
    }
}

impl Image {
    /// No state file is there at all.
    pub fn is_nothing(&self) -> bool {
        self.files.values().all(|content| *content == Content::Absent)
    }
}

fn put_node(tree: &mut Tree, like: &Tree, place: PathBuf, kind: NodeKind, mode: u32) {
    for folder in place.ancestors().skip(1) {
        if let (None, Some(node)) = (tree.get(folder), like.get(folder)) {
            tree.nodes.insert(folder.to_owned(), node.clone());
        }
    }
    let folder = place.parent().and_then(|folder| tree.get(folder));
    let (uid, gid) = folder.map_or((0, 0), |folder| (folder.uid, folder.gid));
    let new =
        || Node { kind: kind.clone(), mode, uid, gid, hard_link: None, xattrs: BTreeMap::new() };
    let is_alike = |node: &&Node| discriminant(&node.kind) == discriminant(&kind);
    let known = [&*tree, like].into_iter().filter_map(|tree| tree.get(&place)).find(is_alike);
    let node = Node { kind: kind.clone(), ..known.cloned().unwrap_or_else(new) };
    // All names of one file have the same bytes.
    if let Some(first) = &node.hard_link {
        let is_name = |(_, other): &(&PathBuf, &Node)| other.hard_link.as_ref() == Some(first);
        let names: Vec<PathBuf> =
            tree.nodes.iter().filter(is_name).map(|(path, _)| path.clone()).collect();
        for name in names {
            tree.nodes.update(&name, |other| other.kind = kind.clone());
        }
    }
    tree.nodes.insert(place, node);
}

impl Content {
    /// What is in the file, if it is one.
    pub fn file(&self) -> Option<&FileBytes> {
        match self {
            Content::Bytes(file) => Some(file),
            _ => None,
        }
    }

    /// The bytes, if there are any; none of a file that is too long for that, as one with holes can be.
    pub fn bytes(&self) -> Option<Cow<'_, [u8]>> {
        self.file()?.whole()
    }
}

impl Digest for Content {
    fn feed(&self, into: &mut Encoder) {
        match self {
            Content::Absent => into.number(0),
            Content::Bytes(file) => {
                into.number(1);
                file.feed(into);
            }
            Content::Link(target) => {
                into.number(2);
                into.path(target);
            }
            Content::Special => into.number(3),
        }
    }
}
