//! Versions: the states of the state files that a run passed through on purpose, and what it promised of them.
//!
//! One file gets a version when a rename or link gives it its name, when its last changed writable descriptor closes,
//! when it is synced, when a mark is passed, and when one whole `O_APPEND` write is done. What stands between
//! `O_TRUNC` and the close that ends it is never one. Several state files that are named together get a version when
//! each of those that the run changes has got a new one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use regex::bytes::Regex;

use super::follow::Follower;
use super::image::{Content, Image, Shapes, State};
use crate::op::{Event, OpKind, Stream, What};
use crate::shared::SharedMap;
use crate::tree::{FileBytes, Inode, Misfit, Tree};

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
    /// Where more was promised than before, in the order of the log; what the end promises is not among them.
    pub promises: Vec<Promised>,
    /// Numbers of ops that gave a name to a file that was still being written: a run that is cut there has no version.
    pub premature: BTreeSet<u32>,
    /// What is known of paths: those of the start, of the end, and those that a rename or link gave.
    pub shapes: Shapes,
}

/// A moment from which on more is promised than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promised {
    /// How many events had been written down.
    pub at_event: usize,
    /// The number of versions that are older than the one promised.
    pub version: usize,
    /// It was an output, and no mark.
    pub by_output: bool,
}

impl Versions {
    /// The number of versions that are older than the last one promised when so many events had been written down.
    /// Where no later version comes, a promise of the next one is one of the last.
    pub fn promised_at(&self, events: usize) -> usize {
        // Each promises more than those before it.
        let made = self.promises.partition_point(|promise| promise.at_event <= events);
        let last = self.all.len().saturating_sub(1);
        self.promises[..made].last().map_or(0, |promise| promise.version.min(last))
    }

    /// The outputs that promised more than before, by how many events had been written down with them.
    pub fn promising_outputs(&self) -> BTreeSet<usize> {
        let outputs = self.promises.iter().filter(|promise| promise.by_output);
        outputs.map(|promise| promise.at_event).collect()
    }

    /// Forgets what these ops named: the undisturbed run went on writing it.
    pub fn take_out_premature(&mut self, ops: &BTreeSet<u32>) {
        for op in ops {
            let mut at = self.all.partition_point(|version| version.after_op < *op);
            while self.all.get(at).is_some_and(|version| version.after_op == *op) {
                if self.all[at].origin != Origin::Name {
                    at += 1;
                    continue;
                }
                self.all.remove(at);
                self.promised -= usize::from(self.promised >= at);
                let later = self.promises.iter_mut().rev();
                for promise in later.take_while(|promise| promise.version >= at) {
                    promise.version -= 1;
                }
            }
        }
    }
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
    let ahead = match cut {
        None => Ahead::look(before, events, state)?,
        Some(whole) => Ahead {
            changed: whole.changed.clone(),
            shapes: whole.shapes.clone(),
            end: whole.all.last().map(|version| version.image.clone()).unwrap_or_default(),
        },
    };
    let mut finder = Finder::new(before, state, ahead);
    for (position, event) in events.iter().enumerate() {
        let changed = finder.at.apply(event)?;
        finder.keep_up(changed);
        finder.see(position + 1, event, promises);
    }
    if cut.is_none() {
        finder.push(Origin::End, events.len());
        finder.each_file();
        finder.found.promised = finder.found.all.len() - 1;
    }
    Ok(finder.found)
}

/// What must be known of a run before its versions can be told.
struct Ahead {
    changed: BTreeSet<PathBuf>,
    shapes: Shapes,
    end: Image,
}

impl Ahead {
    fn look(before: &Tree, events: &[Event], state: &State) -> Result<Ahead, Misfit> {
        let mut at = Follower::new(before, state);
        let (mut changed, mut shapes) = (BTreeSet::new(), Shapes::default());
        shapes.learn(at.image.files.keys());
        for event in events {
            let touched = at.apply(event)?;
            if matches!(&event.what, What::Op(op) if matches!(op.kind, OpKind::Rename { .. } | OpKind::Link { .. }))
            {
                shapes.learn(touched.iter().filter(|path| at.image.files.contains_key(*path)));
            }
            changed.extend(touched);
        }
        shapes.learn(at.image.files.keys());
        let end = at.image;
        // A file that only stands there for a while is no file that must get a version.
        changed.retain(|path| state.paths.contains(path) || shapes.contains(path));
        Ok(Ahead { changed, shapes, end })
    }
}

struct Finder<'a> {
    state: &'a State,
    at: Follower<'a>,
    found: Versions,
    /// The state files where the whole run ends.
    end: Image,
    /// The state files as they stand, without temp and lock files that happen to be there.
    image: Image,
    /// The last version of each state file alone.
    last: BTreeMap<PathBuf, Content>,
    /// Files of the state that changed since each file was last taken as it stood.
    changed: BTreeSet<PathBuf>,
    /// State files that the run changes, as a set whose copies cost nothing.
    all_changed: SharedMap<PathBuf, ()>,
    /// Among them, those without a new version since the last version of the set.
    stale: SharedMap<PathBuf, ()>,
    /// Files changed since their last version.
    dirty: BTreeSet<Inode>,
    /// Files between `O_TRUNC`, or their creation, and the close that ends it.
    unfinished: BTreeMap<Inode, Begun>,
    /// Versions of files that had got their name before that close, by the op that gave it.
    named_early: BTreeMap<Inode, u32>,
    op: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Begun {
    Truncated,
    Created,
}

impl<'a> Finder<'a> {
    fn new(before: &Tree, state: &'a State, ahead: Ahead) -> Finder<'a> {
        let Ahead { changed, shapes, end } = ahead;
        let at = Follower::new(before, state);
        let all_changed: SharedMap<PathBuf, ()> =
            changed.iter().map(|path| (path.clone(), ())).collect();
        let mut finder = Finder {
            state,
            image: state.without_strangers(&at.image, |path| shapes.contains(path)),
            changed: at.image.files.keys().cloned().collect(),
            at,
            found: Versions { changed, shapes, ..Versions::default() },
            end,
            last: BTreeMap::new(),
            stale: all_changed.clone(),
            all_changed,
            dirty: BTreeSet::new(),
            unfinished: BTreeMap::new(),
            named_early: BTreeMap::new(),
            op: 0,
        };
        finder.push(Origin::Start, 0);
        finder.each_file();
        finder
    }

    /// Takes in what the last event changed.
    fn keep_up(&mut self, changed: BTreeSet<PathBuf>) {
        for path in changed {
            match self.at.image.files.get(&path) {
                None => _ = self.image.files.remove(&path),
                Some(_) if self.is_stranger(&path) => {}
                Some(content) => _ = self.image.files.insert(path.clone(), content.clone()),
            }
            self.changed.insert(path);
        }
    }

    /// A file below a folder that is state, and none of its own: see [`State::without_strangers`].
    fn is_stranger(&self, path: &PathBuf) -> bool {
        !self.state.paths.contains(path) && !self.found.shapes.contains(path)
    }

    fn see(&mut self, position: usize, event: &Event, promises: &Promises) {
        match &event.what {
            What::Op(op) => {
                self.op = op.number;
                self.see_op(position, &op.kind);
            }
            What::Close { file, .. } => {
                if let Some(inode) = self.at.model.inode(*file) {
                    self.unfinished.remove(&inode);
                    self.named_early.remove(&inode);
                    if self.dirty.contains(&inode) {
                        self.file_version(inode, Origin::Close, position);
                    }
                }
            }
            What::Mark(name) => {
                if !self.unfinished.keys().any(|inode| self.at.is_state(*inode)) {
                    self.push(Origin::Mark, position);
                    self.each_file();
                }
                if promises.by_mark(name) {
                    self.promise(self.found.all.len(), position, false);
                }
            }
            What::Output { stream, bytes } => {
                let acknowledges =
                    matches!(stream, Stream::Stdout | Stream::Stderr) && promises.by_line(bytes);
                let visible = self.found.all.len() - 1;
                self.promise(visible + usize::from(acknowledges), position, true);
            }
            _ => {}
        }
    }

    fn see_op(&mut self, position: usize, kind: &OpKind) {
        match kind {
            OpKind::Rename { to, from, exchange, .. } => {
                // What was renamed away is gone for good.
                self.stale.remove(from);
                self.named(to, position);
                if *exchange {
                    self.named(from, position);
                }
            }
            OpKind::Link { to, .. } | OpKind::Symlink { path: to, .. } => self.named(to, position),
            _ => {
                if let Some(inode) = kind.file().and_then(|file| self.at.model.inode(file)) {
                    self.see_file(inode, kind, position);
                }
            }
        }
    }

    /// What an op on an open file makes of it.
    fn see_file(&mut self, inode: Inode, kind: &OpKind, position: usize) {
        let begun = self.unfinished.get(&inode).copied();
        match kind {
            OpKind::Write { append, .. } => {
                self.dirty.insert(inode);
                if !append {
                    self.go_on(inode);
                }
                let whole = *append && begun != Some(Begun::Truncated);
                if whole && self.ends_lines(inode) {
                    self.file_version(inode, Origin::Append, position);
                }
            }
            OpKind::Truncate { by_open, .. } => {
                self.dirty.insert(inode);
                self.go_on(inode);
                if *by_open {
                    self.unfinished.insert(inode, Begun::Truncated);
                }
            }
            // A new file under the state's own name is as unfinished as a truncated one.
            OpKind::Create { .. } => {
                self.dirty.insert(inode);
                self.unfinished.insert(inode, Begun::Created);
            }
            OpKind::Allocate { .. } => _ = self.dirty.insert(inode),
            OpKind::Sync { .. }
                if self.dirty.contains(&inode) && begun != Some(Begun::Truncated) =>
            {
                self.file_version(inode, Origin::Sync, position);
            }
            _ => {}
        }
    }

    /// More of the file is written. If it had got its name before that, what it was named with was no version.
    fn go_on(&mut self, inode: Inode) {
        let Some(op) = self.named_early.remove(&inode) else {
            return;
        };
        self.found.premature.insert(op);
        self.found.take_out_premature(&[op].into());
        for path in self.at.paths_of(inode) {
            if self.found.changed.contains(&path) {
                self.stale.insert(path, ());
            }
        }
    }

    /// A name was given: every state file that is reached by it has a new version.
    fn named(&mut self, path: &Path, position: usize) {
        let seen = &self.state.seen;
        let Some(place) = self.at.model.resolve_path(path, seen) else {
            return;
        };
        let files = self.at.files_below(&place);
        for inode in files {
            if self.is_reached(inode, path) {
                if self.unfinished.contains_key(&inode) {
                    self.named_early.insert(inode, self.op);
                }
                self.file_version(inode, Origin::Name, position);
            }
        }
    }

    /// A state path of the file leads over this name, so that it was given with it; another name of a file that has
    /// one already, such as a hard link as a backup, says nothing of the file.
    fn is_reached(&self, inode: Inode, name: &Path) -> bool {
        let model = &self.at.model;
        let leads = |path: &PathBuf| {
            let place = self.state.place(model, path);
            path.starts_with(name) || place.is_some_and(|place| place.starts_with(name))
        };
        self.at.paths_of(inode).iter().any(leads)
    }

    /// A file of whole lines has versions only where a line ends; any other has one after each append. What it is made
    /// of, its bytes before the append tell, and where it was empty, those at the end of the run.
    fn ends_lines(&self, inode: Inode) -> bool {
        let Some(now) = self.at.model.content(inode) else {
            return false;
        };
        let ends_a_line = |content: &FileBytes| content.last() == Some(b'\n');
        let last = self.at.paths_of(inode).iter().find_map(|path| {
            let told = [self.last.get(path), self.end.files.get(path)];
            told.into_iter().flatten().filter_map(Content::file).find(|file| !file.is_empty())
        });
        ends_a_line(now) || !last.is_none_or(ends_a_line)
    }

    fn file_version(&mut self, inode: Inode, origin: Origin, position: usize) {
        self.dirty.remove(&inode);
        let paths = self.at.paths_of(inode);
        if paths.is_empty() {
            return;
        }
        for path in paths {
            if let Some(content) = self.at.image.files.get(&path).cloned() {
                self.file_stood(path.clone(), content);
            }
            self.stale.remove(&path);
        }
        if self.stale.is_empty() {
            self.push(origin, position);
        }
    }

    fn each_file(&mut self) {
        for path in std::mem::take(&mut self.changed) {
            if let Some(content) = self.at.image.files.get(&path).cloned() {
                self.file_stood(path, content);
            }
        }
    }

    fn file_stood(&mut self, path: PathBuf, content: Content) {
        self.last.insert(path.clone(), content.clone());
        self.found.of_file.entry(path).or_default().insert(content);
    }

    fn push(&mut self, origin: Origin, at_event: usize) {
        self.stale = self.all_changed.clone();
        let image = self.image.clone();
        match self.found.all.last_mut().filter(|last| last.image == image) {
            // The same bytes once more for certain, such as at the end.
            Some(last) if origin == Origin::End && last.origin != Origin::Start => {
                last.origin = Origin::End
            }
            Some(last) if last.origin.is_doubtful() && !origin.is_doubtful() => {
                last.origin = origin
            }
            Some(_) => {}
            None => self.found.all.push(Version { image, origin, after_op: self.op, at_event }),
        }
    }

    fn promise(&mut self, version: usize, at_event: usize, by_output: bool) {
        if version > self.found.promised {
            self.found.promised = version;
            self.found.promises.push(Promised { at_event, version, by_output });
        }
    }
}
