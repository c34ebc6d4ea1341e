//! What `fallocate(2)` does to the bytes of a file, by its mode.

use super::TOO_LONG;
use crate::tree::FileBytes;

const KEEP_SIZE: i32 = 0x01;
const PUNCH_HOLE: i32 = 0x02;
const COLLAPSE_RANGE: i32 = 0x08;
const ZERO_RANGE: i32 = 0x10;
const INSERT_RANGE: i32 = 0x20;

/// Changes the content as a call of this mode did. Space that is only set aside reads as zeros: it is a hole here.
pub(crate) fn allocate(
    content: &mut FileBytes,
    mode: i32,
    offset: u64,
    len: u64,
) -> Result<(), &'static str> {
    // A hole may reach beyond all ends.
    let end = offset.saturating_add(len);
    if mode & COLLAPSE_RANGE != 0 {
        if end >= content.len() {
            return Err("the collapsed range reaches the end of the file");
        }
        content.collapse(offset, end);
        return Ok(());
    }
    if mode & INSERT_RANGE != 0 {
        if offset >= content.len() {
            return Err("the inserted range begins at the end of the file");
        }
        return content.insert(offset, len).map_err(|_| TOO_LONG);
    }
    if mode & KEEP_SIZE == 0 && content.len() < end {
        content.resize(end).map_err(|_| TOO_LONG)?;
    }
    if mode & (PUNCH_HOLE | ZERO_RANGE) != 0 {
        content.clear(offset, end);
    }
    Ok(())
}
