//! Writing a recording, while what it tells of goes on.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::format::{
    DoneLine, EndLine, FORMAT_VERSION, Kind, NodeKindLine, NodeLine, Place, RunLine, StackLine,
    WITHOUT_CALLS, WholeLine,
};
use super::spool::{Out, Spool};
use super::{Calls, Header, Trace};
use crate::op::Data;
use crate::tree::{Node, NodeKind, Tree};

/// Files are written in parts of about so many bytes.
const PART: usize = 1 << 20;

/// A recording could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the recording {}: {source}", path.display())]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// The kernel's answer.
    pub source: io::Error,
}

/// A recording that is being written. Dropped before its end, since something failed, it is made whole where it holds a whole
/// run and nothing after that, and else removed.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    spool: Spool,
    /// Contents of files that it holds already, by their hash.
    known: HashMap<[u8; 32], Place>,
    /// The file can hold call sites.
    holds_calls: bool,
    runs: usize,
    /// A run has begun and not ended.
    in_run: bool,
    is_whole: bool,
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if self.is_whole || (self.runs > 0 && !self.in_run && self.end_file().is_ok()) {
            return;
        }
        // What failed is told; a file that stays is refused as unfinished.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Recorder {
    /// Begins a recording in a new file, which only its owner may read. Call sites are left out.
    ///
    /// # Errors
    ///
    /// [`WriteError`], also where there is a file of this name.
    pub fn create(path: &Path) -> Result<Recorder, WriteError> {
        Recorder::begun(path, false)
    }

    /// As [`create`](Self::create), with call sites, where runs have them.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create).
    pub fn create_with_calls(path: &Path) -> Result<Recorder, WriteError> {
        Recorder::begun(path, true)
    }

    fn begun(path: &Path, holds_calls: bool) -> Result<Recorder, WriteError> {
        let made =
            OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path);
        let file = made.map_err(|source| {
            let source = match source.kind() {
                io::ErrorKind::AlreadyExists => io::Error::new(
                    source.kind(),
                    "there is one already, which is left alone; give another name",
                ),
                _ => source,
            };
            WriteError { path: path.to_owned(), source }
        })?;
        let version = if holds_calls { FORMAT_VERSION } else { WITHOUT_CALLS };
        let spool = Spool::with(Some(Out::kept(file, version)));
        Ok(Recorder {
            path: path.to_owned(),
            spool,
            known: HashMap::new(),
            holds_calls,
            runs: 0,
            in_run: false,
            is_whole: false,
        })
    }

    /// Writes what comes first.
    ///
    /// # Errors
    ///
    /// [`WriteError`].
    pub fn header(&mut self, header: &Header) -> Result<(), WriteError> {
        self.written(|_, out| out.line(Kind::Header, header))
    }

    /// Begins a run over this tree; its events go into the spool as they come.
    ///
    /// # Errors
    ///
    /// [`WriteError`].
    pub fn begin(&mut self, before: &Tree) -> Result<Spool, WriteError> {
        let run = self.runs + 1;
        self.in_run = true;
        self.written(|known, out| {
            out.line(Kind::Run, &RunLine { run })?;
            tree(out, known, Kind::Before, before)?;
            out.flush()
        })?;
        Ok(self.spool.clone())
    }

    /// Ends the run.
    ///
    /// # Errors
    ///
    /// [`WriteError`], also for what failed while the run went on.
    pub fn end(&mut self, trace: &Trace, after: &Tree) -> Result<(), WriteError> {
        let holds_calls = self.holds_calls;
        self.written(|known, out| {
            if holds_calls {
                calls(out, &trace.calls)?;
            }
            for gap in &trace.gaps {
                out.line(Kind::Gap, gap)?;
            }
            for end in &trace.ends {
                let mut part = |bytes: &[u8]| match bytes.is_empty() {
                    true => Ok(None),
                    false => out.bytes(bytes).map(Some),
                };
                let line = EndLine {
                    exit: end.exit,
                    stdout: part(&end.stdout)?,
                    stderr: part(&end.stderr)?,
                    elapsed_ns: nanoseconds(end.elapsed),
                };
                out.line(Kind::End, &line)?;
            }
            tree(out, known, Kind::After, after)?;
            out.line(Kind::Done, &DoneLine { elapsed_ns: nanoseconds(trace.elapsed) })?;
            out.flush()
        })?;
        self.runs += 1;
        self.in_run = false;
        Ok(())
    }

    /// Ends the recording, and sees that the disk has it.
    ///
    /// # Errors
    ///
    /// [`WriteError`].
    pub fn finish(mut self) -> Result<(), WriteError> {
        self.end_file()
    }

    fn end_file(&mut self) -> Result<(), WriteError> {
        let runs = self.runs;
        self.written(|_, out| {
            out.line(Kind::Whole, &WholeLine { runs })?;
            out.sync()
        })?;
        self.is_whole = true;
        Ok(())
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn written(
        &mut self,
        work: impl FnOnce(&mut HashMap<[u8; 32], Place>, &mut Out) -> io::Result<()>,
    ) -> Result<(), WriteError> {
        let known = &mut self.known;
        let done = self.spool.with_out(|out| work(known, out));
        done.map_err(|source| WriteError { path: self.path.clone(), source })
    }
}

fn nanoseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Every call site once, and then the stacks.
fn calls(out: &mut Out, calls: &Calls) -> io::Result<()> {
    let stacks = calls.by_stack();
    let mut places = HashMap::new();
    for site in stacks.iter().flat_map(|(stack, _)| &stack.sites) {
        let next = places.len();
        if let Entry::Vacant(free) = places.entry(site.as_ref()) {
            free.insert(next);
            out.line(Kind::Site, site.as_ref())?;
        }
    }
    for (stack, ops) in stacks {
        let place = |site: &std::sync::Arc<super::CallSite>| places.get(site.as_ref()).copied();
        let sites = stack.sites.iter().filter_map(place).collect();
        let line = StackLine { sites, told: stack.told, whole: stack.whole, ops };
        out.line(Kind::Stack, &line)?;
    }
    Ok(())
}

/// Every entry, in the order of the paths.
fn tree(
    out: &mut Out,
    known: &mut HashMap<[u8; 32], Place>,
    kind: Kind,
    tree: &Tree,
) -> io::Result<()> {
    for (path, node) in &tree.nodes {
        let line = node_line(out, known, path, node)?;
        out.line(kind, &line)?;
    }
    Ok(())
}

fn node_line(
    out: &mut Out,
    known: &mut HashMap<[u8; 32], Place>,
    path: &Path,
    node: &Node,
) -> io::Result<NodeLine> {
    let kind = match &node.kind {
        NodeKind::File(bytes) => {
            let part = |(at, part): (u64, Data)| Ok((at, content(out, known, &part)?));
            let parts = bytes.runs(PART).map(part).collect::<io::Result<_>>()?;
            NodeKindLine::File { size: bytes.len(), parts }
        }
        NodeKind::Folder => NodeKindLine::Folder,
        NodeKind::Link(target) => NodeKindLine::Link(target.clone()),
        NodeKind::Fifo => NodeKindLine::Fifo,
        NodeKind::Socket => NodeKindLine::Socket,
        NodeKind::Device { block, number } => {
            NodeKindLine::Device { block: *block, number: *number }
        }
    };
    Ok(NodeLine {
        path: path.to_owned(),
        mode: node.mode,
        uid: node.uid,
        gid: node.gid,
        hard_link: node.hard_link.clone(),
        xattrs: node.xattrs.clone(),
        kind,
    })
}

/// Where bytes stand that a file holds; equal ones stand there once.
fn content(out: &mut Out, known: &mut HashMap<[u8; 32], Place>, bytes: &[u8]) -> io::Result<Place> {
    if let Some(place) = out.place_of(bytes) {
        return Ok(place);
    }
    let hash = *blake3::hash(bytes).as_bytes();
    let place = match known.get(&hash) {
        Some(place) => *place,
        None => {
            let place = out.bytes(bytes)?;
            known.insert(hash, place);
            place
        }
    };
    Ok(place)
}
