//! What is in a file: bytes that copies share, with holes where nothing was ever written.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::{self, Debug, Formatter};
use std::hash::{Hash as StdHash, Hasher};

use self::blocks::{BLOCK_BYTES, Blocks};
use crate::digest::{Digest, Encoder, Hash, Kind};
use crate::op::Data;

mod blocks;

/// The bytes of a regular file.
///
/// A copy costs nothing, and a change as much as what it touches: blocks of 4 KiB that a change leaves alone are the
/// same ones in both. A hole takes no room, however long. Two are equal where a program would read the same from them,
/// be it from a hole or from zeros that were written.
#[derive(Clone, Default)]
pub struct FileBytes {
    len: u64,
    blocks: Blocks,
}

/// A file cannot be longer, in bytes: offsets are signed.
const LEN_MAX: u64 = i64::MAX.cast_unsigned();
/// What is longer than this, in bytes, is not handed out in one piece.
const WHOLE_MAX: u64 = super::BYTES_MAX;

/// Longer than a file can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("longer than a file can be")]
pub struct TooLong;

impl FileBytes {
    /// So many zeros, which take no room.
    ///
    /// # Errors
    ///
    /// [`TooLong`].
    pub fn hole(len: u64) -> Result<FileBytes, TooLong> {
        let mut hole = FileBytes::default();
        hole.resize(len)?;
        Ok(hole)
    }

    /// The length in bytes, holes with them.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// It has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// It has no byte but zeros.
    pub fn is_zeros(&self) -> bool {
        self.blocks.digest().is_none()
    }

    /// Puts bytes at an offset, which may lie behind the end. Blocks that they fill are shared with `data`, not copied.
    ///
    /// # Errors
    ///
    /// [`TooLong`].
    pub fn write(&mut self, offset: u64, data: &Data) -> Result<(), TooLong> {
        if data.is_empty() {
            return Ok(());
        }
        let end = offset.checked_add(data.len() as u64).ok_or(TooLong)?;
        if end > self.len {
            self.resize(end)?;
        }
        self.blocks.write(offset, data);
        Ok(())
    }

    /// Cuts it to a length, or makes it longer by a hole.
    ///
    /// # Errors
    ///
    /// [`TooLong`].
    pub fn resize(&mut self, len: u64) -> Result<(), TooLong> {
        if len > LEN_MAX {
            return Err(TooLong);
        }
        if len < self.len {
            self.blocks.clear(len, u64::MAX);
        }
        self.blocks.fit(len);
        self.len = len;
        Ok(())
    }

    /// Makes a range a hole, as far as the end; the length stays.
    pub fn clear(&mut self, start: u64, end: u64) {
        self.blocks.clear(start, end.min(self.len));
    }

    /// Takes a range out: what is behind it moves up.
    ///
    /// # Panics
    ///
    /// Where the range goes beyond the end.
    pub fn collapse(&mut self, start: u64, end: u64) {
        assert!(start <= end && end <= self.len, "the range lies in the file");
        let before = self.clone();
        self.blocks.clear(start, u64::MAX);
        // Shorter than before: it fits.
        _ = self.resize(self.len - (end - start));
        for (at, piece) in before.pieces_from(end) {
            _ = self.write(start + (at - end), &piece);
        }
    }

    /// Puts a hole in at an offset: what is there and behind it moves down.
    ///
    /// # Errors
    ///
    /// [`TooLong`].
    ///
    /// # Panics
    ///
    /// Where the offset is beyond the end.
    pub fn insert(&mut self, offset: u64, len: u64) -> Result<(), TooLong> {
        assert!(offset <= self.len, "the offset lies in the file");
        let longer = self.len.checked_add(len).ok_or(TooLong)?;
        let before = self.clone();
        self.resize(longer)?;
        self.blocks.clear(offset, u64::MAX);
        for (at, piece) in before.pieces_from(offset) {
            self.write(at + len, &piece)?;
        }
        Ok(())
    }

    /// What was written, in pieces, with their offsets; between them there are zeros.
    pub fn pieces(&self) -> impl Iterator<Item = (u64, Data)> {
        self.pieces_from(0)
    }

    /// What was written, as [`pieces`](Self::pieces), but those that lie side by side joined to runs of about so many
    /// bytes.
    pub fn runs(&self, bytes: usize) -> impl Iterator<Item = (u64, Data)> {
        let mut pieces = self.pieces().peekable();
        std::iter::from_fn(move || {
            let (start, first) = pieces.next()?;
            let mut end = start + first.len() as u64;
            let mut joined = Vec::new();
            while ((end - start) as usize) < bytes
                && let Some((_, next)) = pieces.next_if(|(at, _)| *at == end)
            {
                if joined.is_empty() {
                    joined.extend_from_slice(&first);
                }
                joined.extend_from_slice(&next);
                end += next.len() as u64;
            }
            Some((start, if joined.is_empty() { first } else { joined.into() }))
        })
    }

    fn pieces_from(&self, offset: u64) -> impl Iterator<Item = (u64, Data)> {
        self.blocks.starting_at(offset / BLOCK_BYTES).filter_map(move |(number, data)| {
            let start = number * BLOCK_BYTES;
            let skipped = offset.saturating_sub(start);
            let is_left = skipped < data.len() as u64;
            is_left.then(|| (start + skipped, data.slice(skipped as usize..)))
        })
    }

    /// So many bytes from an offset on; fewer where it ends before.
    pub fn read(&self, offset: u64, len: usize) -> Vec<u8> {
        let end = offset.saturating_add(len as u64).min(self.len);
        let mut bytes = vec![0; end.saturating_sub(offset) as usize];
        for (at, piece) in self.pieces_from(offset).take_while(|(at, _)| *at < end) {
            let from = (at - offset) as usize;
            let until = bytes.len().min(from + piece.len());
            bytes[from..until].copy_from_slice(&piece[..until - from]);
        }
        bytes
    }

    /// All of it in one piece; `None` where it is longer than [`BYTES_MAX`](super::BYTES_MAX), as a hole can be.
    pub fn whole(&self) -> Option<Cow<'_, [u8]>> {
        if let Some(only) = self.blocks.only().filter(|only| only.len() as u64 == self.len) {
            return Some(Cow::Borrowed(only));
        }
        let is_short = self.len <= WHOLE_MAX;
        is_short.then(|| Cow::Owned(self.read(0, self.len as usize)))
    }

    /// The last byte.
    pub fn last(&self) -> Option<u8> {
        self.read(self.len.checked_sub(1)?, 1).last().copied()
    }

    /// Where the first byte lies that only one of them has, or that both have as another one.
    pub fn first_difference(&self, other: &FileBytes) -> Option<u64> {
        let shorter = self.len.min(other.len);
        let different = self.blocks.first_difference(&other.blocks);
        let in_both = different.filter(|offset| *offset < shorter);
        in_both.or((self.len != other.len).then_some(shorter))
    }

    /// The same bytes, with each block that `other` has at the same place shared with it. Other blocks are copied out
    /// of what they were read with.
    pub fn sharing(&self, other: &FileBytes) -> FileBytes {
        FileBytes { len: self.len, blocks: self.blocks.sharing(&other.blocks) }
    }

    /// A digest of the length and of all bytes.
    pub fn digest(&self) -> Hash {
        let mut encoder = Encoder::new(Kind::File);
        self.feed(&mut encoder);
        encoder.finish()
    }
}

impl Digest for FileBytes {
    fn feed(&self, into: &mut Encoder) {
        // How the blocks are arranged follows from the length, so that equal bytes have equal digests.
        into.number(self.len);
        into.digest(self.blocks.digest());
    }
}

impl PartialEq for FileBytes {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len
            && (self.blocks.is_same(&other.blocks) || self.blocks.digest() == other.blocks.digest())
    }
}

impl Eq for FileBytes {}

impl StdHash for FileBytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.len.hash(state);
        self.blocks.digest().hash(state);
    }
}

/// By their bytes.
impl Ord for FileBytes {
    fn cmp(&self, other: &Self) -> Ordering {
        match self.first_difference(other) {
            None => Ordering::Equal,
            Some(offset) => self.read(offset, 1).cmp(&other.read(offset, 1)),
        }
    }
}

impl PartialOrd for FileBytes {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Debug for FileBytes {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "FileBytes({} bytes)", self.len)
    }
}

impl From<Data> for FileBytes {
    fn from(data: Data) -> Self {
        let mut content = FileBytes::default();
        // What is in memory is not longer than a file can be.
        _ = content.write(0, &data);
        content
    }
}

impl From<Vec<u8>> for FileBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Data::from(bytes).into()
    }
}

impl From<&[u8]> for FileBytes {
    fn from(bytes: &[u8]) -> Self {
        Data::from(bytes).into()
    }
}
