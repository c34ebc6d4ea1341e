//! What of a process's memory can be executed: `/proc/PID/maps`.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::sys::ptrace::Tid;

/// Which file a mapping is of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct FileKey {
    device: Vec<u8>,
    /// 0 where it is no file's.
    pub(super) inode: u64,
    path: PathBuf,
}

/// A part of the memory that can be executed.
#[derive(Debug)]
pub(super) struct Mapping {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Where in the file it begins, in bytes.
    pub(super) offset: u64,
    pub(super) key: FileKey,
}

const DELETED: &[u8] = b" (deleted)";

impl Mapping {
    pub(super) fn holds(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    pub(super) fn is_file(&self) -> bool {
        self.key.inode != 0
    }

    /// The path as the kernel tells it, also of a file that was deleted.
    pub(super) fn path(&self) -> PathBuf {
        let bytes = self.key.path.as_os_str().as_bytes();
        let bytes = bytes.strip_suffix(DELETED).filter(|_| self.is_file()).unwrap_or(bytes);
        match bytes {
            b"" => PathBuf::from("[memory]"),
            bytes => Path::new(std::ffi::OsStr::from_bytes(bytes)).to_owned(),
        }
    }

    /// The kernel's own code in every process.
    pub(super) fn is_vdso(&self) -> bool {
        self.key.path.as_os_str() == "[vdso]"
    }
}

/// The lines of the parts that can be executed, as they stand there; `None` where the process is gone.
pub(super) fn executable_lines(tid: Tid) -> Option<Vec<u8>> {
    let text = std::fs::read(format!("/proc/{tid}/maps")).ok()?;
    let is_executable = |line: &&[u8]| {
        line.split(|byte| *byte == b' ')
            .nth(1)
            .is_some_and(|permissions| permissions.contains(&b'x'))
    };
    let lines = text.split_inclusive(|byte| *byte == b'\n').filter(is_executable);
    Some(lines.flatten().copied().collect())
}

/// What these lines say.
pub(super) fn parse(lines: &[u8]) -> Vec<Mapping> {
    lines.split(|byte| *byte == b'\n').filter_map(mapping).collect()
}

/// `START-END PERMISSIONS OFFSET DEVICE INODE     PATH`.
fn mapping(line: &[u8]) -> Option<Mapping> {
    let mut fields = line.splitn(6, |byte| *byte == b' ');
    let mut field = || fields.next();
    let range = std::str::from_utf8(field()?).ok()?;
    let (start, end) = range.split_once('-')?;
    let _permissions = field()?;
    let offset = std::str::from_utf8(field()?).ok()?;
    let device = field()?.to_vec();
    let inode = std::str::from_utf8(field()?).ok()?.parse().ok()?;
    let path = field().unwrap_or_default().trim_ascii_start();
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    Some(Mapping {
        start: number(start)?,
        end: number(end)?,
        offset: number(offset)?,
        key: FileKey { device, inode, path: OsString::from_vec(unescaped(path)).into() },
    })
}

/// The kernel writes a line feed in a path as `\012`, and nothing else otherwise than it is.
fn unescaped(path: &[u8]) -> Vec<u8> {
    const LINE_FEED: &[u8] = b"\\012";
    let mut rest = path;
    let mut plain = Vec::with_capacity(path.len());
    while let Some((first, others)) = rest.split_first() {
        match rest.strip_prefix(LINE_FEED) {
            Some(others) => {
                plain.push(b'\n');
                rest = others;
            }
            None => {
                plain.push(*first);
                rest = others;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read() {
        let text = b"7f0a1000-7f0a3000 r-xp 00001000 fd:00 1311 /a folder/lib\\012x.so (deleted)\n\
            7ffd0000-7ffd2000 r-xp 00000000 00:00 0                          [vdso]\n\
            400000-401000 r-xp 00000000 00:00 0 \n";
        let mappings = parse(text);
        assert_eq!(mappings.len(), 3);
        let [file, vdso, memory] = &mappings[..] else { panic!("three lines") };
        assert_eq!((file.start, file.end, file.offset), (0x7f0a1000, 0x7f0a3000, 0x1000));
        assert_eq!(file.path(), Path::new("/a folder/lib\nx.so"));
        assert!(file.is_file() && file.holds(0x7f0a2fff) && !file.holds(0x7f0a3000));
        assert!(vdso.is_vdso() && !vdso.is_file());
        assert_eq!(memory.path(), Path::new("[memory]"));
    }
}
