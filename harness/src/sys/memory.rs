//! Reading the memory of another process.

use std::io::IoSliceMut;

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

const PAGE: u64 = 4096;
/// So much is read at a time.
const LARGEST_PIECE: usize = 1 << 20;

/// Reads up to `len` bytes; fewer where the memory ends, none where there is no memory.
pub(crate) fn read(tid: i32, address: u64, len: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    read_more(tid, address, len, &mut bytes);
    bytes
}

/// Appends up to `len` bytes; tells whether they were all there. A program may name any length: no more is taken from
/// the lab's own memory than there is to read.
fn read_more(tid: i32, address: u64, len: usize, bytes: &mut Vec<u8>) -> bool {
    let (start, mut done) = (bytes.len(), 0);
    while done < len {
        let piece = (len - done).min(LARGEST_PIECE);
        bytes.resize(start + done + piece, 0);
        let remote = RemoteIoVec { base: (address as usize).wrapping_add(done), len: piece };
        let local = &mut [IoSliceMut::new(&mut bytes[start + done..])];
        match process_vm_readv(Pid::from_raw(tid), local, &[remote]) {
            Ok(0) | Err(_) => break,
            Ok(count) => done += count,
        }
    }
    bytes.truncate(start + done);
    done == len
}

/// Reads exactly `N` bytes.
pub(crate) fn read_array<const N: usize>(tid: i32, address: u64) -> Option<[u8; N]> {
    read(tid, address, N).try_into().ok()
}

/// Reads a native 64-bit number.
pub(crate) fn read_u64(tid: i32, address: u64) -> Option<u64> {
    read_array(tid, address).map(u64::from_ne_bytes)
}

/// Reads up to the next NUL, at most `limit` bytes; `None` where there is no memory or no NUL.
pub(crate) fn read_string(tid: i32, address: u64, limit: usize) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    if address == 0 {
        return None;
    }
    while text.len() < limit {
        let at = address + text.len() as u64;
        let to_page_end = (PAGE - at % PAGE) as usize;
        let chunk = read(tid, at, to_page_end.min(limit - text.len()).min(256));
        if chunk.is_empty() {
            return None;
        }
        if let Some(end) = chunk.iter().position(|byte| *byte == 0) {
            text.extend_from_slice(&chunk[..end]);
            return Some(text);
        }
        text.extend_from_slice(&chunk);
    }
    None
}

/// Reads the pieces that a vector of pairs (address, length) names, one after another, together up to `limit` bytes.
pub(crate) fn read_vector(tid: i32, vector: &[(u64, u64)], limit: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (address, len) in vector {
        let len = usize::try_from(*len).unwrap_or(usize::MAX).min(limit - bytes.len());
        if !read_more(tid, *address, len, &mut bytes) {
            break;
        }
    }
    bytes
}

/// As [`read_vector`], handed on in parts, so that little is in memory at a time.
pub(crate) fn pass_vector(tid: i32, vector: &[(u64, u64)], limit: u64, to: &mut dyn FnMut(&[u8])) {
    let mut left = limit;
    let mut part = Vec::new();
    for (address, len) in vector {
        let (mut at, mut wanted) = (*address, (*len).min(left));
        while wanted > 0 {
            part.clear();
            let all = read_more(tid, at, wanted.min(LARGEST_PIECE as u64) as usize, &mut part);
            to(&part);
            let done = part.len() as u64;
            (at, wanted, left) = (at.wrapping_add(done), wanted - done, left - done);
            if !all {
                return;
            }
        }
    }
}

/// Reads an array of `struct iovec`.
pub(crate) fn read_iovecs(tid: i32, address: u64, count: u64) -> Vec<(u64, u64)> {
    const MOST: u64 = 1024; // UIO_MAXIOV
    let bytes = read(tid, address, (count.min(MOST) * 16) as usize);
    let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_ne_bytes);
    bytes.chunks_exact(16).map(|pair| (number(&pair[..8]), number(&pair[8..]))).collect()
}

/// The memory of a thread that stands, of which many small parts are read: each page is asked for once.
#[derive(Debug)]
pub(crate) struct Memory {
    tid: i32,
    pages: std::collections::HashMap<u64, Vec<u8>>,
}

impl Memory {
    /// The memory of this thread, while it stands.
    pub(crate) fn of(tid: i32) -> Memory {
        Memory { tid, pages: std::collections::HashMap::new() }
    }

    /// Reads a native 64-bit number.
    pub(crate) fn read(&mut self, address: u64) -> Option<u64> {
        let start = address / PAGE * PAGE;
        let at = (address - start) as usize;
        let tid = self.tid;
        let page = self.pages.entry(start).or_insert_with(|| read(tid, start, PAGE as usize));
        match page.get(at..at + 8) {
            Some(bytes) => bytes.try_into().ok().map(u64::from_ne_bytes),
            // On two pages, or where there is no memory.
            None => read_u64(tid, address),
        }
    }
}
