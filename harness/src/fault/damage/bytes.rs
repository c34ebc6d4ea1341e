//! Damages of bytes, whatever they mean.

use std::ops::Range;

/// The unit in which disks write and lose data, whole or not at all: a sector. File systems write 4096 bytes together as
/// a rule, but a state file is seldom that long, and a device that loses its power in between tears at sectors.
pub const BLOCK_BYTES: usize = 512;

/// White space at the end does not count, so that what is left is never the same JSON value.
pub(super) fn halved(bytes: &[u8]) -> Result<Vec<u8>, String> {
    not_empty(bytes)?;
    Ok(bytes[..bytes.trim_ascii_end().len() / 2].to_vec())
}

pub(super) fn empty(bytes: &[u8]) -> Result<Vec<u8>, String> {
    not_empty(bytes)?;
    Ok(Vec::new())
}

pub(super) fn cut_to(length: usize, bytes: &[u8]) -> Result<Vec<u8>, String> {
    match bytes.get(..length) {
        Some(start) if length < bytes.len() => Ok(start.to_vec()),
        _ => Err(format!("the file has {} bytes, so it cannot be cut to {length}", bytes.len())),
    }
}

/// Bits are counted from the lowest of the first byte.
pub(super) fn with_bit_flipped(bit: usize, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut flipped = bytes.to_vec();
    let byte = flipped
        .get_mut(bit / 8)
        .ok_or_else(|| format!("the file has {} bits, so there is no bit {bit}", bits(bytes)))?;
    *byte ^= 1 << (bit % 8);
    Ok(flipped)
}

pub(super) fn bits(bytes: &[u8]) -> usize {
    bytes.len().saturating_mul(8)
}

pub(super) fn with_block_zeroed(block: usize, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let count = several_blocks(bytes)?;
    if block >= count {
        return Err(format!(
            "the file has {count} blocks of {BLOCK_BYTES} bytes, so there is no block {block}"
        ));
    }
    if !can_be_zeroed(block, bytes) {
        return Err(format!("block {block} is all NULs already"));
    }
    let mut zeroed = bytes.to_vec();
    zeroed[span(block, bytes)].fill(0);
    Ok(zeroed)
}

/// The numbers of the blocks that hold anything but NULs.
pub(super) fn blocks(bytes: &[u8]) -> Result<impl Iterator<Item = usize> + '_, String> {
    Ok((0..several_blocks(bytes)?).filter(|block| can_be_zeroed(*block, bytes)))
}

fn can_be_zeroed(block: usize, bytes: &[u8]) -> bool {
    bytes[span(block, bytes)].iter().any(|byte| *byte != 0)
}

/// The last block can be shorter.
fn span(block: usize, bytes: &[u8]) -> Range<usize> {
    let start = block * BLOCK_BYTES;
    start..bytes.len().min(start + BLOCK_BYTES)
}

/// How many blocks there are, where what is done to one of them is not done to the whole file.
fn several_blocks(bytes: &[u8]) -> Result<usize, String> {
    match bytes.len().div_ceil(BLOCK_BYTES) {
        0 | 1 => Err(format!("the file is not longer than one block of {BLOCK_BYTES} bytes")),
        several => Ok(several),
    }
}

/// A last block that is shorter was filled up with NULs on the disk; the file stays as long as it was.
pub(super) fn with_blocks_swapped(bytes: &[u8]) -> Result<Vec<u8>, String> {
    several_blocks(bytes)?;
    let (first, second) = (&bytes[span(0, bytes)], &bytes[span(1, bytes)]);
    let mut swapped = second.to_vec();
    swapped.resize(BLOCK_BYTES, 0);
    swapped.extend(&first[..second.len()]);
    swapped.extend(&bytes[span(1, bytes).end..]);
    Ok(swapped)
}

pub(super) fn with_tail_twice(bytes: &[u8]) -> Result<Vec<u8>, String> {
    not_empty(bytes)?;
    Ok([bytes, &bytes[bytes.len() / 2..]].concat())
}

pub(super) fn nul_filled(bytes: &[u8]) -> Result<Vec<u8>, String> {
    not_empty(bytes)?;
    Ok(vec![0; bytes.len()])
}

pub(super) fn with_crlf(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut damaged = Vec::with_capacity(bytes.len());
    for (at, byte) in bytes.iter().enumerate() {
        if *byte == b'\n' && (at == 0 || bytes[at - 1] != b'\r') {
            damaged.push(b'\r');
        }
        damaged.push(*byte);
    }
    if damaged.len() == bytes.len() {
        return Err("the file has no line feed without a carriage return".into());
    }
    Ok(damaged)
}

pub(super) fn with_byte_order_mark(bytes: &[u8]) -> Result<Vec<u8>, String> {
    const MARK: &[u8] = "\u{feff}".as_bytes();
    if bytes.starts_with(MARK) {
        return Err("the file has a byte order mark already".into());
    }
    Ok([MARK, bytes].concat())
}

/// Another letter in the place of one in the middle: in UTF-8 its byte begins a character that needs two bytes more.
pub(super) fn with_latin_letter(bytes: &[u8]) -> Result<Vec<u8>, String> {
    const LETTER: u8 = 0xe9;
    if std::str::from_utf8(bytes).is_err() {
        return Err("the file is not UTF-8 as it is".into());
    }
    let middle = bytes.len() / 2;
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic();
    let later = bytes[middle..].iter().position(is_letter).map(|at| middle + at);
    let place = later.or_else(|| bytes[..middle].iter().rposition(is_letter));
    let mut damaged = bytes.to_vec();
    damaged[place.ok_or("the file has no letter from a to z")?] = LETTER;
    Ok(damaged)
}

fn not_empty(bytes: &[u8]) -> Result<(), String> {
    if bytes.is_empty() { Err("the file is empty already".into()) } else { Ok(()) }
}
