//! The image of a model that goes through a log, kept up to date by what each event touches.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::image::{Content, Image, State, content_of, contents_below};
use crate::op::{Event, FileId, OpKind, What};
use crate::shared::SharedMap;
use crate::tree::{Inode, Misfit, Model, Tree};

/// A model that goes through a log, with the image of its state files.
#[derive(Debug, Clone)]
pub struct Follower<'a> {
    state: &'a State,
    /// The tree as it stands.
    pub model: Model,
    /// The state files as they stand.
    pub image: Image,
    /// Where each of the state's paths leads.
    places: SharedMap<usize, Place>,
    /// The state's paths, by number, that lead to a path of the tree.
    leading: SharedMap<PathBuf, BTreeSet<usize>>,
    /// Those that lead over an entry, or would if it were there.
    leading_over: SharedMap<PathBuf, BTreeSet<usize>>,
    /// Some of the state's paths lie below others: what one of them shows, another one can show otherwise.
    is_nested: bool,
}

/// Where a path of the state leads.
#[derive(Debug, Clone, Default)]
struct Place {
    /// Where there is something, or could be; `None` where it leads out of the folder.
    path: Option<PathBuf>,
    /// The entries that it leads over, the last one too.
    over: Vec<PathBuf>,
}

impl<'a> Follower<'a> {
    /// Begins at a tree.
    pub fn new(tree: &Tree, state: &'a State) -> Follower<'a> {
        let model = Model::new(tree);
        let image = state.image_of(&model);
        let paths: BTreeSet<&Path> = state.paths.iter().map(PathBuf::as_path).collect();
        let is_below = |path: &PathBuf| path.ancestors().skip(1).any(|above| paths.contains(above));
        let is_nested = paths.len() < state.paths.len() || state.paths.iter().any(is_below);
        let mut follower = Follower {
            state,
            model,
            image,
            places: SharedMap::new(),
            leading: SharedMap::new(),
            leading_over: SharedMap::new(),
            is_nested,
        };
        (0..state.paths.len()).for_each(|number| follower.look_up(number));
        follower
    }

    /// Applies an event, and gives the state paths whose content is another than before it.
    ///
    /// # Errors
    ///
    /// [`Misfit`] where the event does not fit the tree.
    pub fn apply(&mut self, event: &Event) -> Result<BTreeSet<PathBuf>, Misfit> {
        self.model.apply(event)?;
        let What::Op(op) = &event.what else {
            return Ok(BTreeSet::new());
        };
        Ok(match &op.kind {
            OpKind::Write { file, .. }
            | OpKind::Truncate { file, .. }
            | OpKind::Allocate { file, .. } => self.rewritten(*file),
            OpKind::Rename { from, to, .. } => self.renamed(&[from, to]),
            OpKind::Create { path: Some(path), .. }
            | OpKind::Link { to: path, .. }
            | OpKind::Symlink { path, .. }
            | OpKind::Unlink { path }
            | OpKind::Mkdir { path, .. }
            | OpKind::Rmdir { path }
            | OpKind::Mknod { path, .. } => self.renamed(&[path]),
            // Modes, owners and attributes are no content.
            _ => BTreeSet::new(),
        })
    }

    /// The state paths by which a file is known: those that lead to it, or to a folder that it is below.
    pub fn paths_of(&self, inode: Inode) -> Vec<PathBuf> {
        let mut found = BTreeSet::new();
        for path in self.model.paths(inode) {
            for place in path.ancestors() {
                let Some(numbers) = self.leading.get(place) else {
                    continue;
                };
                // Below a place there is something only if a folder is there.
                let below = path.strip_prefix(place).unwrap_or(&path);
                found
                    .extend(numbers.iter().map(|number| joined(&self.state.paths[*number], below)));
            }
        }
        found.into_iter().filter(|path| !self.state.volatile.contains(path)).collect()
    }

    /// A file is state.
    pub fn is_state(&self, inode: Inode) -> bool {
        !self.paths_of(inode).is_empty()
    }

    /// The files at a path and below it, no link followed.
    pub fn files_below(&self, path: &Path) -> Vec<Inode> {
        let mut files = Vec::new();
        let mut open: Vec<Inode> = self.model.find(path).into_iter().collect();
        while let Some(inode) = open.pop() {
            match self.model.names(inode) {
                Some(names) => open.extend(names.map(|(_, inode)| inode)),
                None => files.push(inode),
            }
        }
        files
    }

    /// The bytes of a file changed.
    fn rewritten(&mut self, file: FileId) -> BTreeSet<PathBuf> {
        let Some(inode) = self.model.inode(file) else {
            return BTreeSet::new();
        };
        let now = content_of(&self.model, inode);
        let mut paths = self.paths_of(inode);
        paths.retain(|path| self.image.files.get(path) != Some(&now));
        for path in &paths {
            self.image.files.insert(path.clone(), now.clone());
        }
        paths.into_iter().collect()
    }

    /// Something else is at these paths of the tree.
    fn renamed(&mut self, paths: &[&PathBuf]) -> BTreeSet<PathBuf> {
        // By the number of the state's path, and where below it.
        let mut touched: BTreeSet<(usize, PathBuf)> = BTreeSet::new();
        for path in paths {
            let over = self.leading_over.starting_at(path.as_path());
            let over = over.take_while(|(over, _)| over.starts_with(path));
            let again: BTreeSet<usize> = over.flat_map(|(_, numbers)| numbers).copied().collect();
            for number in again {
                self.look_up(number);
                touched.insert((number, PathBuf::new()));
            }
            for place in path.ancestors().skip(1) {
                let numbers = self.leading.get(place).into_iter().flatten();
                let below = path.strip_prefix(place).unwrap_or(path);
                touched.extend(numbers.map(|number| (*number, below.to_owned())));
            }
        }
        let before = self.image.clone();
        match self.is_nested {
            _ if touched.is_empty() => return BTreeSet::new(),
            true => self.image = self.state.image_of(&self.model),
            false => touched.iter().for_each(|(number, below)| self.look_at(*number, below)),
        }
        let mut changed = BTreeSet::new();
        for (number, below) in &touched {
            let path = joined(&self.state.paths[*number], below);
            for (one, other) in [(&before, &self.image), (&self.image, &before)] {
                let here = one.files.starting_at(path.as_path());
                let here = here.take_while(|(here, _)| here.starts_with(&path));
                let differs =
                    |(here, it): &(&PathBuf, &Content)| other.files.get(*here) != Some(*it);
                changed.extend(here.filter(differs).map(|(here, _)| here.clone()));
            }
        }
        changed
    }

    /// Takes what one of the state's paths leads to, or what is below it, into the image anew.
    fn look_at(&mut self, number: usize, below: &Path) {
        let path = joined(&self.state.paths[number], below);
        let here = self.image.files.starting_at(path.as_path()).map(|(here, _)| here);
        let here: Vec<PathBuf> = here.take_while(|here| here.starts_with(&path)).cloned().collect();
        here.iter().for_each(|gone| _ = self.image.files.remove(gone));
        let is_named = below.as_os_str().is_empty();
        let place = self.places.get(&number).and_then(|place| place.path.as_ref());
        let inode = place.and_then(|place| self.model.find(&joined(place, below)));
        let now = match inode {
            Some(inode) => contents_below(&self.model, &path, inode),
            None if is_named => vec![(path, Content::Absent)],
            None => Vec::new(),
        };
        let volatile = &self.state.volatile;
        self.image.files.extend(now.into_iter().filter(|(path, _)| !volatile.contains(path)));
    }

    /// Finds out where a path of the state leads now.
    fn look_up(&mut self, number: usize) {
        let (path, seen) = (&self.state.paths[number], &self.state.seen);
        let mut over = Vec::new();
        let place = self.model.resolve_over(path, seen, |path| over.push(path.to_owned()));
        let new = Place { path: place, over };
        let old = self.places.get(&number).cloned().unwrap_or_default();
        leave(&mut self.leading, old.path.iter(), number);
        leave(&mut self.leading_over, old.over.iter(), number);
        join(&mut self.leading, new.path.iter(), number);
        join(&mut self.leading_over, new.over.iter(), number);
        self.places.insert(number, new);
    }
}

fn joined(path: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() { path.to_owned() } else { path.join(below) }
}

fn join<'p>(
    numbers: &mut SharedMap<PathBuf, BTreeSet<usize>>,
    paths: impl Iterator<Item = &'p PathBuf>,
    number: usize,
) {
    for path in paths {
        let mut here = numbers.get(path).cloned().unwrap_or_default();
        here.insert(number);
        numbers.insert(path.clone(), here);
    }
}

fn leave<'p>(
    numbers: &mut SharedMap<PathBuf, BTreeSet<usize>>,
    paths: impl Iterator<Item = &'p PathBuf>,
    number: usize,
) {
    for path in paths {
        let left = numbers.update(path, |here| {
            here.remove(&number);
            here.is_empty()
        });
        if left == Some(true) {
            numbers.remove(path);
        }
    }
}
