//! Versions: the states of the state files that a run passed through on purpose, and what it promised of them.
//!
//! One file gets a version when a rename or link gives it its name, when its last changed writable descriptor closes,
//! when it is synced, when a mark is passed, and when one whole `O_APPEND` write is done. What stands between
//! `O_TRUNC` and the close that ends it is never one. Several state files that are named together get a version when
//! each of those that the run changes has got a new one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use regex::bytes::Regex;

use super::image::{Content, Image, State};
use crate::op::{Event, OpKind, Stream, What};
use crate::tree::{Inode, Misfit, Model, Tree};

/// How a version came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// It stood before the run.
    Start,
    /// A rename or link gave the file its name.
    Name,
    /// The last changed writable descriptor closed.
    Close,
    /// It was synced.
    Sync,
    /// A mark was passed.
    Mark,
    /// One whole append was done.
    Append,
    /// It stood after the run.
    End,
}

impl Origin {
    /// A state that the subject may not have meant to leave: the recovery's failure on it strikes it off.
    pub fn is_doubtful(self) -> bool {
        matches!(self, Origin::Close | Origin::Sync | Origin::Mark)
    }
}

/// One version of the state files together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The bytes.
    pub image: Image,
    /// How it came about.
    pub origin: Origin,
    /// The number of the last op before or at which it stood; 0 before all.
    pub after_op: u32,
    /// How many events had been written down when it stood.
    pub at_event: usize,
}

/// What a run passed through.
#[derive(Debug, Clone, Default)]
pub struct Versions {
    /// In order; the first is that of the start. Equal neighbours are one.
    pub all: Vec<Version>,
    /// For each state file, every content that was a version of that file alone.
    pub of_file: BTreeMap<PathBuf, BTreeSet<Content>>,
    /// The state files that the run changes at some point.
    pub changed: BTreeSet<PathBuf>,
    /// The number of versions that are older than the last one promised: those can be `lost`.
    pub promised: usize,
}

/// What makes a mark or a line of output promise the next version.
#[derive(Debug, Clone, Default)]
pub struct Promises {
    /// Marks by name.
    pub marks: Vec<String>,
    /// Lines of standard output or error.
    pub lines: Vec<Regex>,
}

impl Promises {
    fn by_mark(&self, name: &str) -> bool {
        self.marks.iter().any(|mark| mark == name)
    }

    fn by_line(&self, text: &[u8]) -> bool {
        text.split(|byte| *byte == b'\n')
            .any(|line| self.lines.iter().any(|wanted| wanted.is_match(line)))
    }
}

/// Finds the versions in a run that began at `before`.
///
/// `cut` is what the undisturbed run came to, where this one was cut short: a set has a version only when every file
/// that the whole run changes has one, also those that this run did not come to. Without it the run came to its own
/// end with exit code 0, which promises the end.
///
/// # Errors
///
/// [`Misfit`] where the log does not fit the tree.
pub fn versions(
    before: &Tree,
    events: &[Event],
    state: &State,
    promises: &Promises,
    cut: Option<&Versions>,
) -> Result<Versions, Misfit> {
    let mut finder = Finder::new(before, state);
    let changed = finder.changed_by(before, events)?;
    finder.found.changed.extend(changed);
    finder.found.changed.extend(cut.iter().flat_map(|whole| whole.changed.iter().cloned()));
    for (position, event) in events.iter().enumerate() {
        finder.model.apply(event)?;
        finder.see(position + 1, event, promises);
    }
    if cut.is_none() {
        finder.push(Origin::End, events.len());
        finder.each_file();
        finder.promise(finder.found.all.len() - 1);
    }
    Ok(finder.found)
}

struct Finder<'a> {
    state: &'a State,
    model: Model,
    found: Versions,
    /// Changed state files with a new version since the last version of the set.
    fresh: BTreeSet<PathBuf>,
    /// Files changed since their last version.
    dirty: BTreeSet<Inode>,
    /// Files between `O_TRUNC`, or their creation, and the close that ends it.
    unfinished: BTreeMap<Inode, Begun>,
    op: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Begun {
    Truncated,
    Created,
}

impl<'a> Finder<'a> {
    fn new(before: &Tree, state: &'a State) -> Finder<'a> {
        let model = Model::new(before);
        let mut finder = Finder {
            state,
            model,
            found: Versions::default(),
            fresh: BTreeSet::new(),
            dirty: BTreeSet::new(),
            unfinished: BTreeMap::new(),
            op: 0,
        };
        finder.push(Origin::Start, 0);
        finder.each_file();
        finder
    }

    /// The state files whose content is another than before at some point of the run.
    fn changed_by(&self, before: &Tree, events: &[Event]) -> Result<BTreeSet<PathBuf>, Misfit> {
        let mut model = Model::new(before);
        let start = self.state.image_of(&model);
        let mut changed = BTreeSet::new();
        for event in events {
            model.apply(event)?;
            if matches!(&event.what, What::Op(op) if op.kind.changes()) {
                let now = self.state.image_of(&model);
                changed.extend(
                    now.files
                        .iter()
                        .filter(|(path, content)| start.files.get(*path) != Some(content))
                        .map(|(path, _)| path.clone()),
                );
            }
        }
        Ok(changed)
    }

    fn see(&mut self, position: usize, event: &Event, promises: &Promises) {
        match &event.what {
            What::Op(op) => {
                self.op = op.number;
                self.see_op(position, &op.kind);
            }
            What::Close { file, .. } => {
                if let Some(inode) = self.model.inode(*file) {
                    self.unfinished.remove(&inode);
                    if self.dirty.contains(&inode) {
                        self.file_version(inode, Origin::Close, position);
                    }
                }
            }
            What::Mark(name) => {
                if self
                    .unfinished
                    .keys()
                    .all(|inode| self.state.path_of(&self.model, *inode).is_none())
                {
                    self.push(Origin::Mark, position);
                    self.each_file();
                }
                if promises.by_mark(name) {
                    self.promise(self.found.all.len());
                }
            }
            What::Output { stream, bytes } => {
                self.promise(self.found.all.len() - 1);
                if matches!(stream, Stream::Stdout | Stream::Stderr) && promises.by_line(bytes) {
                    self.promise(self.found.all.len());
                }
            }
            _ => {}
        }
    }

    fn see_op(&mut self, position: usize, kind: &OpKind) {
        match kind {
            OpKind::Write { file, data, append, .. } => {
                let Some(inode) = self.model.inode(*file) else {
                    return;
                };
                self.dirty.insert(inode);
                if *append
                    && self.unfinished.get(&inode) != Some(&Begun::Truncated)
                    && self.ends_lines(inode, data.len())
                {
                    self.file_version(inode, Origin::Append, position);
                }
            }
            OpKind::Truncate { file, by_open, .. } => {
                let Some(inode) = self.model.inode(*file) else {
                    return;
                };
                self.dirty.insert(inode);
                if *by_open {
                    self.unfinished.insert(inode, Begun::Truncated);
                }
            }
            OpKind::Create { file, .. } => {
                let Some(inode) = self.model.inode(*file) else {
                    return;
                };
                // A new file under the state's own name is as unfinished as a truncated one.
                self.dirty.insert(inode);
                self.unfinished.insert(inode, Begun::Created);
            }
            OpKind::Allocate { file, .. } => self.dirty.extend(self.model.inode(*file)),
            OpKind::Rename { to, from, exchange, .. } => {
                self.named(to, position);
                if *exchange {
                    self.named(from, position);
                }
            }
            OpKind::Link { to, .. } | OpKind::Symlink { path: to, .. } => self.named(to, position),
            OpKind::Sync { file, .. } => {
                let Some(inode) = self.model.inode(*file) else {
                    return;
                };
                if self.dirty.contains(&inode)
                    && self.unfinished.get(&inode) != Some(&Begun::Truncated)
                {
                    self.file_version(inode, Origin::Sync, position);
                }
            }
            _ => {}
        }
    }

    /// A name was given: every state file that is reached by it has a new version.
    fn named(&mut self, path: &std::path::Path, position: usize) {
        let Some(inode) = self.model.resolve(path, &self.state.seen) else {
            return;
        };
        self.unfinished.remove(&inode);
        let mut open = vec![inode];
        while let Some(inode) = open.pop() {
            let below: Option<Vec<Inode>> =
                self.model.names(inode).map(|names| names.map(|(_, inode)| inode).collect());
            match below {
                Some(below) => open.extend(below),
                None => self.file_version(inode, Origin::Name, position),
            }
        }
    }

    /// A file of whole lines has versions only where a line ends; any other has one after each append.
    fn ends_lines(&self, inode: Inode, appended: usize) -> bool {
        let Some(bytes) = self.model.bytes(inode) else {
            return false;
        };
        let before = &bytes[..bytes.len().saturating_sub(appended)];
        bytes.ends_with(b"\n")
            || !(before.is_empty() || before.ends_with(b"\n") || before.contains(&b'\n'))
    }

    fn file_version(&mut self, inode: Inode, origin: Origin, position: usize) {
        self.dirty.remove(&inode);
        let Some(path) = self.state.path_of(&self.model, inode) else {
            return;
        };
        if let Some(bytes) = self.model.bytes(inode) {
            let content = Content::Bytes(crate::op::Data(bytes.into()));
            self.found.of_file.entry(path.clone()).or_default().insert(content);
        }
        self.fresh.insert(path);
        if self.found.changed.is_subset(&self.fresh) {
            self.push(origin, position);
        }
    }

    fn each_file(&mut self) {
        for (path, content) in self.state.image_of(&self.model).files {
            self.found.of_file.entry(path).or_default().insert(content);
        }
    }

    fn push(&mut self, origin: Origin, at_event: usize) {
        self.fresh.clear();
        let image = self.state.image_of(&self.model);
        match self.found.all.last_mut().filter(|last| last.image == image) {
            // The end stands for certain, however its bytes first came about.
            Some(last) if origin == Origin::End && last.origin != Origin::Start => {
                last.origin = Origin::End
            }
            Some(_) => {}
            None => self.found.all.push(Version { image, origin, after_op: self.op, at_event }),
        }
    }

    fn promise(&mut self, version: usize) {
        self.found.promised = self.found.promised.max(version);
    }
}
