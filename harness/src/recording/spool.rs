//! The spool of a run: its bytes go to a file while it goes on, so that memory does not grow with them.
//!
//! Where the run is kept, that file is the recording, and everything else goes there as well. Else it is a file without a
//! name, which is made when more came than may stay in memory, and goes when nobody looks at its bytes any more.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use serde::Serialize;

use super::format::{self, EventLine, HEAD_BYTES, Kind, Place, Sum};
use crate::op::{Data, Event};
use crate::sys::map::{self, Window};

/// Shorter bytes cost less in memory than a place in a file does, in bytes.
const SMALL_MAX: usize = 256;
/// So many bytes of longer ones stay in memory before a file is made: most runs need none.
const IN_MEMORY_MAX: usize = 1 << 20;
/// So much is written at a time.
const BUFFER: usize = 64 << 10;
/// A window is at least so long, in bytes of address space.
const WINDOW: u64 = 64 << 20;

/// Takes in what a run does. Clones are one spool.
#[derive(Debug, Clone)]
pub struct Spool(Rc<RefCell<Inner>>);

#[derive(Debug)]
struct Inner {
    out: Option<Out>,
    /// What longer bytes may still stay in memory.
    room: usize,
    failure: Option<io::Error>,
}

/// The end of the file.
#[derive(Debug)]
pub(super) struct Out {
    file: File,
    /// What was handed to the file, in bytes.
    written: u64,
    buffer: Vec<u8>,
    /// Frames are made for a file that is kept; else bytes stand there as they are.
    sum: Option<Sum>,
    windows: Vec<Arc<Window>>,
}

impl Default for Spool {
    fn default() -> Self {
        Spool::with(None)
    }
}

impl Spool {
    /// One whose file is kept.
    pub(super) fn with(out: Option<Out>) -> Spool {
        Spool(Rc::new(RefCell::new(Inner { out, room: IN_MEMORY_MAX, failure: None })))
    }

    /// Takes in an event; its bytes are where they can stay.
    pub fn event(&self, event: &mut Event) {
        self.0.borrow_mut().trying(|inner| inner.event(event));
    }

    /// Bytes that come in parts and may be many.
    pub(crate) fn collect(&self, read: impl FnOnce(&mut dyn FnMut(&[u8]))) -> Data {
        self.0.borrow_mut().trying(|inner| inner.collect(read)).unwrap_or_default()
    }

    /// Bytes at hand, kept where they can stay.
    pub(super) fn keep(&self, mut data: Data) -> io::Result<Data> {
        self.0.borrow_mut().settle(&mut data)?;
        Ok(data)
    }

    /// Why the bytes of the run cannot be kept, if so.
    pub(crate) fn failure(&self) -> Option<String> {
        self.0.borrow().failure.as_ref().map(|error| error.to_string())
    }

    /// The end of a file that is kept.
    pub(super) fn with_out<T>(
        &self,
        work: impl FnOnce(&mut Out) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut inner = self.0.borrow_mut();
        match (inner.failure.take(), &mut inner.out) {
            (Some(error), _) => Err(error),
            (None, Some(out)) => work(out),
            (None, None) => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl Inner {
    fn trying<T>(&mut self, work: impl FnOnce(&mut Inner) -> io::Result<T>) -> Option<T> {
        if self.failure.is_some() {
            return None;
        }
        work(self).map_err(|error| self.failure = Some(error)).ok()
    }

    fn event(&mut self, event: &mut Event) -> io::Result<()> {
        let place = match event.what.data_mut() {
            Some(data) if !data.is_empty() => self.settle(data)?,
            _ => None,
        };
        let Some(out) = self.out.as_mut().filter(|out| out.is_kept()) else {
            return Ok(());
        };
        // The bytes themselves stand at their place.
        let data = event.what.data_mut().map(std::mem::take);
        let told = out.line(Kind::Event, &EventLine { event: &*event, bytes: place });
        if let (Some(slot), Some(data)) = (event.what.data_mut(), data) {
            *slot = data;
        }
        // Whatever becomes of the lab, so far the file tells what happened.
        told.and_then(|()| out.flush())
    }

    /// Lets the bytes stay in memory or brings them into the file; where in the file they are.
    fn settle(&mut self, data: &mut Data) -> io::Result<Option<Place>> {
        if let Some(place) = self.out.as_ref().and_then(|out| out.place_of(data)) {
            return Ok(Some(place));
        }
        let stays = data.len() <= SMALL_MAX || data.len() <= self.room;
        if stays && !self.out.as_ref().is_some_and(Out::is_kept) {
            self.room -= if data.len() > SMALL_MAX { data.len() } else { 0 };
            return Ok(None);
        }
        let out = self.out()?;
        let place = out.bytes(data)?;
        if stays {
            self.room -= if data.len() > SMALL_MAX { data.len() } else { 0 };
        } else {
            *data = out.at(place)?;
        }
        Ok(Some(place))
    }

    fn collect(&mut self, read: impl FnOnce(&mut dyn FnMut(&[u8]))) -> io::Result<Data> {
        let out = self.out()?;
        let begun = out.begin()?;
        let mut failure = None;
        read(&mut |bytes| {
            if failure.is_none() {
                failure = out.push(bytes).err();
            }
        });
        if let Some(error) = failure {
            return Err(error);
        }
        let place = out.end(Kind::Bytes, begun)?;
        if place.1 == 0 {
            return Ok(Data::default());
        }
        out.at(place)
    }

    fn out(&mut self) -> io::Result<&mut Out> {
        if self.out.is_none() {
            self.out = Some(Out::new(without_name()?, None));
        }
        self.out.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Out {
    /// The end of an empty file.
    fn new(file: File, sum: Option<Sum>) -> Out {
        Out { file, written: 0, buffer: Vec::new(), sum, windows: Vec::new() }
    }

    /// Begins a recording of this version in an empty file that nobody else writes or cuts.
    pub(super) fn kept(file: File, version: u32) -> Out {
        let first = format::first_line(version);
        let mut out = Out::new(file, Some(Sum::begin(&first)));
        out.buffer.extend_from_slice(first.as_bytes());
        out
    }

    fn is_kept(&self) -> bool {
        self.sum.is_some()
    }

    /// The place of the next byte.
    fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// A frame with text.
    pub(super) fn line(&mut self, kind: Kind, line: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_vec(line)?;
        self.frame(kind, &text).map(drop)
    }

    /// A frame of bytes.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> io::Result<Place> {
        self.frame(Kind::Bytes, bytes)
    }

    fn frame(&mut self, kind: Kind, content: &[u8]) -> io::Result<Place> {
        let begun = self.begin()?;
        self.push(content)?;
        self.end(kind, begun)
    }

    /// Leaves room for the head of a frame; the place of its content.
    fn begin(&mut self) -> io::Result<u64> {
        if self.is_kept() {
            self.put(&[0; HEAD_BYTES])?;
        }
        Ok(self.position())
    }

    fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(sum) = &mut self.sum {
            sum.add(bytes);
        }
        self.put(bytes)
    }

    /// Ends a frame: its head can only be written now.
    fn end(&mut self, kind: Kind, begun: u64) -> io::Result<Place> {
        let len = self.position() - begun;
        if let Some(sum) = &mut self.sum {
            let head = format::head(kind, len);
            let sum = sum.end(&head);
            let at = begun - HEAD_BYTES as u64;
            match at.checked_sub(self.written).and_then(|at| usize::try_from(at).ok()) {
                Some(at) => self.buffer[at..at + HEAD_BYTES].copy_from_slice(&head),
                None => self.file.write_all_at(&head, at)?,
            }
            self.put(&sum)?;
        }
        Ok(Place(begun, len))
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.buffer.len() + bytes.len() > BUFFER {
            self.flush()?;
        }
        if bytes.len() > BUFFER {
            self.file.write_all(bytes)?;
            self.written += bytes.len() as u64;
        } else {
            self.buffer.extend_from_slice(bytes);
        }
        Ok(())
    }

    /// Hands on what is buffered.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Sees that the disk has it all.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.flush()?;
        self.file.sync_all()
    }

    /// Where these bytes lie, if they are a part of the file already.
    pub(super) fn place_of(&self, bytes: &[u8]) -> Option<Place> {
        let mut windows = self.windows.iter().rev();
        let at = windows.find_map(|window| window.place_of(bytes))?;
        Some(Place(at, bytes.len() as u64))
    }

    /// The bytes at a place that was written.
    fn at(&mut self, Place(at, len): Place) -> io::Result<Data> {
        self.flush()?;
        let part = at..at + len;
        if !self.windows.last().is_some_and(|window| window.holds(&part)) {
            self.windows.push(Arc::new(Window::open(&self.file, at, len.max(WINDOW))?));
        }
        let piece = self.windows.last().and_then(|window| map::piece(window, part));
        piece.map(Data::from).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }
}

/// A file that nobody else can reach, on a disk where there is one.
fn without_name() -> io::Result<File> {
    let folders = [PathBuf::from("/var/tmp"), std::env::temp_dir()];
    let made = |folder: &Path| tempfile::tempfile_in(folder);
    let on_disk = folders.iter().filter(|folder| !is_in_memory(folder));
    let mut last = None;
    for folder in on_disk.chain(&folders) {
        match made(folder) {
            Ok(file) => return Ok(file),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
}

fn is_in_memory(folder: &Path) -> bool {
    nix::sys::statfs::statfs(folder)
        .is_ok_and(|found| found.filesystem_type() == nix::sys::statfs::TMPFS_MAGIC)
}
