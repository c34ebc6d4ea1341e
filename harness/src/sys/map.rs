//! A part of a file as memory, to be read only.
//!
//! Memory that maps a file has a trap: where the file is cut short, a read gives SIGBUS. So no file of anybody else is
//! mapped here: only one that the lab made itself, that nobody else has a name of or that it was the first to name,
//! that grows and is never cut or written twice.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::Arc;

use bytes::Bytes;

/// Pages are of this size or a divisor of it on all processors that the lab knows.
const PAGE_MAX: u64 = 1 << 16;

/// A window on a file, which may reach beyond its end.
#[derive(Debug)]
pub(crate) struct Window {
    address: NonNull<u8>,
    len: NonZeroUsize,
    /// Where it begins in the file.
    start: u64,
}

// SAFETY: the memory is only ever read, and it stays mapped at its place until the last owner drops it.
unsafe impl Send for Window {}
// SAFETY: as above; several threads may read at once.
unsafe impl Sync for Window {}

impl Window {
    /// Maps `len` bytes or a little more, from `from` or a little before on.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub(crate) fn open(file: &File, from: u64, len: u64) -> io::Result<Window> {
        let start = from / PAGE_MAX * PAGE_MAX;
        let len = usize::try_from(from - start + len).ok().and_then(NonZeroUsize::new);
        let len = len.ok_or(io::ErrorKind::InvalidInput)?;
        let offset = libc::off_t::try_from(start).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: the kernel chooses the address, so that no other memory is replaced.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len.get(),
                libc::PROT_READ,
                libc::MAP_SHARED | libc::MAP_NORESERVE,
                file.as_raw_fd(),
                offset,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let address = NonNull::new(address.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Window { address, len, start })
    }

    /// The window has this part of the file.
    pub(crate) fn holds(&self, part: &Range<u64>) -> bool {
        self.start <= part.start && part.end <= self.start + self.len.get() as u64
    }

    /// Where in the file these bytes lie, if they lie in this window.
    pub(crate) fn place_of(&self, bytes: &[u8]) -> Option<u64> {
        let before = bytes.as_ptr().addr().checked_sub(self.address.addr().get())?;
        (before + bytes.len() <= self.len.get()).then_some(self.start + before as u64)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: these are the address and length of a mapping that this value alone owns; every slice of it holds it.
        unsafe { libc::munmap(self.address.as_ptr().cast(), self.len.get()) };
    }
}

/// A part of a window that has been written, with the window.
struct Piece {
    window: Arc<Window>,
    offset: usize,
    len: usize,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `piece` has checked that this lies in the window, and its caller that it was written: so the pages are
        // there. They stay as they are, since the file is only added to.
        unsafe {
            std::slice::from_raw_parts(self.window.address.as_ptr().add(self.offset), self.len)
        }
    }
}

/// The bytes of a part of the file that has been written already; `None` where the window does not have it.
pub(crate) fn piece(window: &Arc<Window>, part: Range<u64>) -> Option<Bytes> {
    if !window.holds(&part) {
        return None;
    }
    let offset = usize::try_from(part.start - window.start).ok()?;
    let len = usize::try_from(part.end.checked_sub(part.start)?).ok()?;
    Some(Bytes::from_owner(Piece { window: window.clone(), offset, len }))
}
