//! Files with holes, from and to the disk.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};

use nix::errno::Errno;
use nix::unistd::{Whence, lseek};

use super::super::{BYTES_MAX, FileBytes};
use crate::op::Data;

/// Bytes that are read at a time.
const PIECE_BYTES: u64 = 1 << 20;
/// As many bytes are written at a time, where there are so many side by side.
const WRITTEN_BYTES: usize = 1 << 18;

/// Reads what is written in a file, and notes its length. `room` is how many bytes may be read, and what was read is
/// taken off it; a hole is not read.
pub(super) fn read(file: &File, metadata: &Metadata, room: &mut u64) -> io::Result<FileBytes> {
    let len = metadata.len();
    let mut content = FileBytes::hole(len).map_err(io::Error::other)?;
    let has_holes = metadata.blocks().saturating_mul(512) < len;
    let mut next = if has_holes { next_data(file, 0)? } else { Some((0, len)) };
    while let Some((mut at, end)) = next {
        while at < end {
            let piece = read_piece(file, at, (end - at).min(PIECE_BYTES) as usize)?;
            if piece.is_empty() {
                return Ok(content); // It became shorter meanwhile.
            }
            let read = piece.len() as u64;
            *room = room.checked_sub(read).ok_or_else(too_large)?;
            content.write(at, &Data::from(piece)).map_err(io::Error::other)?;
            at += read;
        }
        next = if at < len { next_data(file, at)? } else { None };
    }
    Ok(content)
}

fn too_large() -> io::Error {
    let what = format!("with it, the files here hold more than {BYTES_MAX} bytes");
    io::Error::new(ErrorKind::FileTooLarge, what)
}

/// The next range that is no hole.
fn next_data(file: &File, from: u64) -> io::Result<Option<(u64, u64)>> {
    let offset = i64::try_from(from).map_err(io::Error::other)?;
    let start = match lseek(file, offset, Whence::SeekData) {
        Ok(start) => start,
        Err(Errno::ENXIO) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    let end = lseek(file, start, Whence::SeekHole)?;
    Ok(Some((start.cast_unsigned(), end.cast_unsigned())))
}

fn read_piece(file: &File, offset: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    let mut done = 0;
    while done < len {
        match file.read_at(&mut bytes[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(done);
    Ok(bytes)
}

/// Writes what is no hole into an empty file, and gives it its length.
pub(super) fn write(file: &File, content: &FileBytes) -> io::Result<()> {
    let mut end = 0;
    for (start, run) in content.runs(WRITTEN_BYTES) {
        file.write_all_at(&run, start)?;
        end = start + run.len() as u64;
    }
    if end < content.len() { file.set_len(content.len()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn more_than_there_is_room_for_is_refused() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[1; 5000]).unwrap();
        file.set_len(1 << 30).unwrap();
        let metadata = file.metadata().unwrap();
        let mut room = 1 << 16;
        assert_eq!(read(&file, &metadata, &mut room).unwrap().len(), 1 << 30);
        assert!(room <= (1 << 16) - 5000, "what is no hole counts");
        let error = read(&file, &metadata, &mut 4999).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
    }
}
