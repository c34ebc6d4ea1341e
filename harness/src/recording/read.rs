//! Reading a recording. Nothing in the file is believed: each frame is held against its sum before it is looked at, and what
//! it says against what can be.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::format::{
    self, DoneLine, EndLine, FIRST_LINE_MAX, FIRST_WORDS, FORMAT_VERSION, HEAD_BYTES, Kind,
    NodeKindLine, NodeLine, OwnEventLine, Place, RunLine, SUM_BYTES, StackLine, Sum, TEXT_MAX,
    WholeLine,
};
use super::{CallSite, Calls, Gap, Header, Recording, Spool, Stack, Trace};
use crate::op::{Data, Event, What};
use crate::subject::End;
use crate::tree::{FileBytes, Node, NodeKind, TooLong, Tree};

/// A file is no recording that this lab can use.
#[derive(Debug, thiserror::Error)]
#[error("the recording {}: {}{what}; {remedy}", path.display(), offset.map(|at| format!("byte {at}: ")).unwrap_or_default())]
pub struct ReadError {
    /// The file.
    pub path: PathBuf,
    /// Where in the file, in bytes.
    pub offset: Option<u64>,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub remedy: &'static str,
}

/// What a recording file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Who was recorded, and how it is to be judged.
    pub header: Header,
    /// The runs: one, and one more over what it left where it began with nothing.
    pub runs: Vec<Recording>,
}

const RECORD_AGAIN: &str = "record again with `crashlab record -o FILE -- CMD`";
const COPY_AGAIN: &str = "it was changed since it was written: copy it again, or record again";
const WAIT_OR_AGAIN: &str = "wait for the recording to end, copy the file again, or record again";
const OTHER_LAB: &str = "use the crashlab that wrote it, or record again";

/// What is wrong with a frame, and what to do.
struct Wrong {
    what: String,
    remedy: &'static str,
}

impl Wrong {
    fn damaged(what: impl Into<String>) -> Wrong {
        Wrong { what: what.into(), remedy: COPY_AGAIN }
    }

    fn unfinished(what: impl Into<String>) -> Wrong {
        Wrong { what: what.into(), remedy: WAIT_OR_AGAIN }
    }
}

impl From<io::Error> for Wrong {
    fn from(error: io::Error) -> Wrong {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Wrong::unfinished(
                "the recording is unfinished: the file ends in the middle of what begins here",
            ),
            _ => Wrong { what: error.to_string(), remedy: "see to it that it can be read" },
        }
    }
}

/// Reads a recording file.
///
/// # Errors
///
/// [`ReadError`]: it cannot be read, is no recording, is of another version, unfinished, or damaged.
pub fn read(path: &Path) -> Result<Recorded, ReadError> {
    let failed = |error: io::Error| ReadError {
        path: path.to_owned(),
        offset: None,
        what: error.to_string(),
        remedy: "give a file that `crashlab record -o` or `check -o` wrote",
    };
    let file = File::open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "this is no regular file")));
    }
    read_from(file, path)
}

/// Reads a recording from a stream; `path` is what errors call it.
///
/// # Errors
///
/// As [`read`].
pub fn read_from(from: impl Read, path: &Path) -> Result<Recorded, ReadError> {
    let mut reader = Reader {
        from: BufReader::new(from),
        at: 0,
        version: FORMAT_VERSION,
        sum: None,
        spool: Spool::default(),
        pieces: BTreeMap::new(),
    };
    let mut at = 0;
    reader.whole(&mut at).map_err(|Wrong { what, remedy }| ReadError {
        path: path.to_owned(),
        offset: Some(at),
        what,
        remedy,
    })
}

struct Reader<R> {
    from: BufReader<R>,
    /// The place of the next byte.
    at: u64,
    /// Of the format.
    version: u32,
    sum: Option<Sum>,
    spool: Spool,
    /// The frames of bytes so far, by the place of their first.
    pieces: BTreeMap<u64, Data>,
}

/// A frame that is as it was written; one of bytes has been put away.
struct Frame {
    kind: Kind,
    text: Vec<u8>,
}

impl Frame {
    fn line<T: DeserializeOwned>(&self) -> Result<T, Wrong> {
        serde_json::from_slice(&self.text).map_err(|error| {
            let tag = self.kind.tag();
            let tag = String::from_utf8_lossy(&tag);
            Wrong::damaged(format!("the frame `{}` is not understood: {error}", tag.trim_end()))
        })
    }
}

impl<R: Read> Reader<R> {
    /// Reads all; `at` is where what is being read begins.
    fn whole(&mut self, at: &mut u64) -> Result<Recorded, Wrong> {
        self.first_line()?;
        *at = self.at;
        let header: Header = match self.frame()? {
            frame if frame.kind == Kind::Header => frame.line()?,
            frame => return Err(out_of_place(frame.kind)),
        };
        if let Some(disk) = header.unknown_disk() {
            let what = format!("this crashlab knows no disk `{disk}`");
            return Err(Wrong { what, remedy: OTHER_LAB });
        }
        let mut runs = Vec::new();
        loop {
            *at = self.at;
            let frame = self.frame()?;
            match frame.kind {
                Kind::Bytes => {}
                Kind::Run => {
                    let line: RunLine = frame.line()?;
                    if line.run != runs.len() + 1 {
                        return Err(Wrong::damaged(format!(
                            "the run {} is out of place",
                            line.run
                        )));
                    }
                    runs.push(self.run(at)?);
                }
                Kind::Whole => {
                    let line: WholeLine = frame.line()?;
                    if line.runs != runs.len() || runs.is_empty() {
                        let what = format!("there are {} runs, and not {}", runs.len(), line.runs);
                        return Err(Wrong::damaged(what));
                    }
                    *at = self.at;
                    return match self.from.fill_buf()?.is_empty() {
                        true => Ok(Recorded { header, runs }),
                        false => Err(Wrong::damaged("there is more after the recording's end")),
                    };
                }
                kind => return Err(out_of_place(kind)),
            }
        }
    }

    fn first_line(&mut self) -> Result<(), Wrong> {
        let mut line = Vec::new();
        (&mut self.from).take(FIRST_LINE_MAX).read_until(b'\n', &mut line)?;
        self.at = line.len() as u64;
        let no_recording =
            || Wrong { what: "this is no recording of crashlab".into(), remedy: RECORD_AGAIN };
        let text = std::str::from_utf8(&line).map_err(|_| no_recording())?;
        let known = (1..=FORMAT_VERSION).find(|version| text == format::first_line(*version));
        if let Some(version) = known {
            self.version = version;
            self.sum = Some(Sum::begin(text));
            return Ok(());
        }
        let is_cut = |version| format::first_line(version).starts_with(text);
        if !text.is_empty() && (1..=FORMAT_VERSION).any(is_cut) {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let version = text.strip_prefix(FIRST_WORDS).and_then(|rest| rest.strip_suffix('\n'));
        match version.filter(|version| version.bytes().all(|byte| byte.is_ascii_digit())) {
            None | Some("") => Err(no_recording()),
            Some(version) => Err(Wrong {
                what: format!(
                    "its format is of version {version}, and this crashlab reads the versions up to {FORMAT_VERSION}"
                ),
                remedy: OTHER_LAB,
            }),
        }
    }

    fn frame(&mut self) -> Result<Frame, Wrong> {
        if self.from.fill_buf()?.is_empty() {
            return Err(Wrong::unfinished("the recording is unfinished: the file ends here"));
        }
        let head: [u8; HEAD_BYTES] = self.array()?;
        let [a, b, c, d, len @ ..] = head;
        let kind = match Kind::of([a, b, c, d], self.version) {
            Some(kind) => kind,
            None if head == [0; HEAD_BYTES] => {
                return Err(Wrong::unfinished(
                    "the recording is unfinished: what begins here was never written to its end",
                ));
            }
            None => return Err(Wrong::damaged("no frame begins here")),
        };
        let len = u64::from_le_bytes(len);
        let content = self.at;
        let (text, data) = match kind {
            Kind::Bytes => (Vec::new(), Some(self.bytes(len)?)),
            _ => (self.text(len)?, None),
        };
        let sum = self.sum.as_mut().map(|sum| sum.end(&head));
        if sum != Some(self.array::<SUM_BYTES>()?) {
            return Err(Wrong::damaged(
                "the frame that begins here is not as it was written: its checksum is another",
            ));
        }
        self.pieces.extend(data.map(|data| (content, data)));
        Ok(Frame { kind, text })
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Wrong> {
        let mut bytes = [0; N];
        self.from.read_exact(&mut bytes)?;
        self.at += N as u64;
        Ok(bytes)
    }

    /// Text of a frame. No more memory is taken than there are bytes in the file.
    fn text(&mut self, len: u64) -> Result<Vec<u8>, Wrong> {
        if len > TEXT_MAX {
            return Err(Wrong::damaged(format!("a frame of {len} bytes of text is none of ours")));
        }
        let mut text = Vec::new();
        self.pass(len, |bytes| text.extend_from_slice(bytes))?;
        Ok(text)
    }

    fn bytes(&mut self, len: u64) -> Result<Data, Wrong> {
        const AT_ONCE: u64 = 64 << 10;
        if len <= AT_ONCE {
            let mut bytes = Vec::new();
            self.pass(len, |part| bytes.extend_from_slice(part))?;
            let kept = self.spool.keep(bytes.into());
            return kept.map_err(|error| no_room(&error.to_string()));
        }
        let spool = self.spool.clone();
        let mut passed = Ok(());
        let data = spool.collect(|push| passed = self.pass(len, push));
        passed?;
        match spool.failure() {
            Some(error) => Err(no_room(&error)),
            None => Ok(data),
        }
    }

    /// Hands on so many bytes, and takes them into the sum.
    fn pass(&mut self, len: u64, mut to: impl FnMut(&[u8])) -> Result<(), Wrong> {
        let mut left = len;
        while left > 0 {
            let there = self.from.fill_buf()?;
            let count = there.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            if count == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            if let Some(sum) = &mut self.sum {
                sum.add(&there[..count]);
            }
            to(&there[..count]);
            self.from.consume(count);
            self.at += count as u64;
            left -= count as u64;
        }
        Ok(())
    }

    /// The bytes at a place that came before.
    fn piece(&self, Place(at, len): Place) -> Result<Data, Wrong> {
        let found = self.pieces.range(..=at).next_back().and_then(|(start, data)| {
            let from = usize::try_from(at - start).ok()?;
            let to = from.checked_add(usize::try_from(len).ok()?)?;
            (to <= data.len()).then(|| data.slice(from..to))
        });
        found.ok_or_else(|| {
            Wrong::damaged(format!("there is no piece of {len} bytes at byte {at} before this"))
        })
    }

    /// A run, from after its first frame up to its last.
    fn run(&mut self, at: &mut u64) -> Result<Recording, Wrong> {
        let mut run = Run::default();
        let mut phase = 0;
        loop {
            *at = self.at;
            let frame = self.frame()?;
            let order = match frame.kind {
                Kind::Bytes => continue,
                Kind::Before => 0,
                Kind::Event => 1,
                Kind::Site => 2,
                Kind::Stack => 3,
                Kind::Gap => 4,
                Kind::End => 5,
                Kind::After => 6,
                Kind::Done => 7,
                kind => return Err(out_of_place(kind)),
            };
            if order < phase {
                return Err(out_of_place(frame.kind));
            }
            phase = order;
            match frame.kind {
                Kind::Before => run.before.push(self.node(frame.line()?)?),
                Kind::After => run.after.push(self.node(frame.line()?)?),
                Kind::Event => run.event(self.event(frame.line()?)?)?,
                Kind::Site => run.sites.push(Arc::new(frame.line::<CallSite>()?)),
                Kind::Stack => run.stack(frame.line()?)?,
                Kind::Gap => run.gaps.push(frame.line::<Gap>()?),
                Kind::End => run.ends.push(self.end(frame.line()?)?),
                _ => return run.done(frame.line()?),
            }
        }
    }

    fn event(&self, line: OwnEventLine) -> Result<Event, Wrong> {
        let OwnEventLine { mut event, bytes } = line;
        match (event.what.data_mut(), bytes) {
            (Some(data), Some(place)) => *data = self.piece(place)?,
            (None, Some(_)) => return Err(Wrong::damaged("this event has no bytes")),
            (_, None) => {}
        }
        Ok(event)
    }

    fn end(&self, line: EndLine) -> Result<End, Wrong> {
        let part = |place: Option<Place>| -> Result<Vec<u8>, Wrong> {
            Ok(place.map(|place| self.piece(place)).transpose()?.unwrap_or_default().into())
        };
        let elapsed = Duration::from_nanos(line.elapsed_ns);
        Ok(End { exit: line.exit, stdout: part(line.stdout)?, stderr: part(line.stderr)?, elapsed })
    }

    fn node(&self, line: NodeLine) -> Result<Entry, Wrong> {
        let kind = match line.kind {
            NodeKindLine::File { size, parts } => NodeKind::File(self.content(size, &parts)?),
            NodeKindLine::Folder => NodeKind::Folder,
            NodeKindLine::Link(target) => NodeKind::Link(target),
            NodeKindLine::Fifo => NodeKind::Fifo,
            NodeKindLine::Socket => NodeKind::Socket,
            NodeKindLine::Device { block, number } => NodeKind::Device { block, number },
        };
        let NodeLine { path, mode, uid, gid, hard_link: first, xattrs, .. } = line;
        Ok((path, Node { kind, mode, uid, gid, hard_link: None, xattrs }, first))
    }

    fn content(&self, size: u64, parts: &[(u64, Place)]) -> Result<FileBytes, Wrong> {
        let too_long = |error: TooLong| Wrong::damaged(format!("a file is {error}"));
        let mut bytes = FileBytes::hole(size).map_err(too_long)?;
        for (at, place) in parts {
            bytes.write(*at, &self.piece(*place)?).map_err(too_long)?;
        }
        match bytes.len() == size {
            true => Ok(bytes),
            false => Err(Wrong::damaged("a part of a file lies behind its end")),
        }
    }
}

fn no_room(error: &str) -> Wrong {
    Wrong {
        what: format!("its bytes cannot be put into a file in /var/tmp: {error}"),
        remedy: "make room there",
    }
}

fn out_of_place(kind: Kind) -> Wrong {
    let tag = kind.tag();
    let tag = String::from_utf8_lossy(&tag);
    Wrong::damaged(format!("the frame `{}` is out of place", tag.trim_end()))
}

/// An entry, with the first of the names of its file where it has several.
type Entry = (PathBuf, Node, Option<PathBuf>);

/// A run as far as it has been read.
#[derive(Default)]
struct Run {
    before: Vec<Entry>,
    events: Vec<Event>,
    ops: u32,
    sites: Vec<Arc<CallSite>>,
    calls: Calls,
    gaps: Vec<Gap>,
    ends: Vec<End>,
    after: Vec<Entry>,
}

impl Run {
    fn event(&mut self, event: Event) -> Result<(), Wrong> {
        if let What::Op(op) = &event.what {
            self.ops += 1;
            if op.number != self.ops {
                return Err(Wrong::damaged(format!("op {} is out of place", op.number)));
            }
        }
        self.events.push(event);
        Ok(())
    }

    fn stack(&mut self, line: StackLine) -> Result<(), Wrong> {
        let StackLine { sites, told, whole, ops } = line;
        let site = |place: &usize| self.sites.get(*place).cloned();
        let sites: Option<Vec<_>> = sites.iter().map(site).collect();
        let sites = sites.ok_or_else(|| Wrong::damaged("a stack has a call site that is none"))?;
        if told.is_some_and(|told| told >= sites.len()) {
            return Err(Wrong::damaged("a stack tells a call site that it does not have"));
        }
        let is_free = |op: &u32| (1..=self.ops).contains(op) && self.calls.stack(*op).is_none();
        if !ops.iter().all(is_free) {
            return Err(Wrong::damaged("a stack is of an op that is not there, or has another"));
        }
        self.calls.add(Stack { sites, told, whole }, ops);
        Ok(())
    }

    fn done(self, line: DoneLine) -> Result<Recording, Wrong> {
        let Run { before, events, calls, gaps, ends, after, .. } = self;
        if ends.is_empty() {
            return Err(Wrong::damaged("nothing tells how the run ended"));
        }
        let elapsed = Duration::from_nanos(line.elapsed_ns);
        let trace = Trace { events, ends, gaps, calls, elapsed };
        Ok(Recording { before: tree(before)?, trace, after: tree(after)? })
    }
}

fn tree(entries: Vec<Entry>) -> Result<Tree, Wrong> {
    let count = entries.len();
    let identified = entries
        .into_iter()
        .enumerate()
        .map(|(position, (path, node, first))| (path, node, first.ok_or(position)));
    let tree = Tree::from_identities(identified);
    let is_folder = |path: &Path| tree.get(path).is_some_and(|node| node.kind == NodeKind::Folder);
    let fits = |path: &Path| match path.parent() {
        None => is_folder(path),
        Some(parent) => {
            is_folder(parent) && path.components().all(|part| matches!(part, Component::Normal(_)))
        }
    };
    let misfit = tree.nodes.keys().find(|path| !fits(path)).cloned();
    match misfit {
        Some(path) => Err(Wrong::damaged(format!("a tree has no place for {}", path.display()))),
        None if tree.nodes.len() != count => Err(Wrong::damaged("a tree has an entry twice")),
        None => Ok(tree),
    }
}
