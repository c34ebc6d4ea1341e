//! Files that are mapped shared and writable: their bytes change without a call, so they are compared at every stop.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};

use crate::op::{FileId, OpKind};

/// Files up to this size are compared.
const LARGEST: u64 = 16 << 20;
/// A changed page is one write: the kernel writes no smaller part of a mapping back.
const PAGE: usize = 4096;
/// After so many comparisons it is checked whether the mapping is still there.
const CHECK_EVERY: u32 = 64;

/// The mapped files.
#[derive(Debug, Default)]
pub(super) struct Mappings {
    files: Vec<Mapped>,
    compared: u32,
}

#[derive(Debug)]
struct Mapped {
    file: FileId,
    handle: File,
    content: Vec<u8>,
    /// The process that mapped it last.
    pid: i32,
}

/// A change that was found: who has the mapping, which file, where, the new bytes.
#[derive(Debug)]
pub(super) struct Change {
    /// The process that has the mapping.
    pub(super) pid: i32,
    /// The file.
    pub(super) file: FileId,
    /// Where, in bytes.
    pub(super) offset: u64,
    /// The new bytes.
    pub(super) bytes: Vec<u8>,
}

/// How far a file is compared, up to a place in it.
fn compared(end: u64) -> usize {
    end.min(LARGEST) as usize
}

fn content(handle: &File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; compared(handle.metadata()?.size())];
    handle.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// The parts of `new` that differ from `old`, at most one in a page.
fn differences(old: &[u8], new: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut found = Vec::new();
    for (index, page) in new.chunks(PAGE).enumerate() {
        let start = index * PAGE;
        let before = |at: usize| old.get(start + at).copied().unwrap_or(0);
        if old.get(start..start + page.len()) == Some(page) {
            continue;
        }
        let differs = |at: &usize| before(*at) != page[*at];
        let first = (0..page.len()).find(differs);
        let last = (0..page.len()).rev().find(differs);
        if let (Some(first), Some(last)) = (first, last) {
            found.push(((start + first) as u64, page[first..=last].to_vec()));
        }
    }
    found
}

impl Mappings {
    /// Whether there is none, which costs nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// A process has mapped the file behind its descriptor.
    ///
    /// # Errors
    ///
    /// Why the file cannot be watched, in words for a gap.
    pub(super) fn add(&mut self, pid: i32, fd: i32, file: FileId) -> Result<(), String> {
        let unreadable = |error| format!("mapped, but the lab cannot read it: {error}");
        let handle = File::open(format!("/proc/{pid}/fd/{fd}")).map_err(unreadable)?;
        if handle.metadata().map_err(unreadable)?.size() > LARGEST {
            return Err(format!("mapped, but larger than {LARGEST} bytes"));
        }
        let content = content(&handle).map_err(unreadable)?;
        self.files.retain(|mapped| mapped.file != file);
        self.files.push(Mapped { file, handle, content, pid });
        Ok(())
    }

    /// What changed in memory since the last comparison.
    pub(super) fn changes(&mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        for mapped in &mut self.files {
            let Ok(new) = content(&mapped.handle) else {
                continue;
            };
            for (offset, bytes) in differences(&mapped.content, &new) {
                changes.push(Change { pid: mapped.pid, file: mapped.file, offset, bytes });
            }
            mapped.content = new;
        }
        changes
    }

    /// An op changed a file: that is no change by memory.
    pub(super) fn note(&mut self, kind: &OpKind) {
        let (OpKind::Write { file, .. }
        | OpKind::Truncate { file, .. }
        | OpKind::Allocate { file, .. }) = kind
        else {
            return;
        };
        let Some(mapped) = self.files.iter_mut().find(|mapped| mapped.file == *file) else {
            return;
        };
        match kind {
            OpKind::Write { offset, data, .. } => {
                let start = compared(*offset);
                let end = compared(offset.saturating_add(data.len() as u64));
                mapped.content.resize(mapped.content.len().max(end), 0);
                mapped.content[start..end].copy_from_slice(&data[..end - start]);
            }
            OpKind::Truncate { size, .. } => mapped.content.resize(compared(*size), 0),
            _ => mapped.content = content(&mapped.handle).unwrap_or_default(),
        }
    }

    /// The file that is mapped at an address.
    pub(super) fn file_at(&self, tid: i32, address: u64) -> Option<FileId> {
        let line = maps(tid)?.into_iter().find(|line| (line.start..line.end).contains(&address))?;
        self.files
            .iter()
            .find(|mapped| inode_of(&mapped.handle) == Some(line.inode))
            .map(|mapped| mapped.file)
    }

    /// After a process ended or became another program, and now and then: forgets what none of these has mapped any more.
    pub(super) fn prune(&mut self, now: bool, living: impl Iterator<Item = i32>) {
        self.compared += 1;
        if self.files.is_empty() || !(now || self.compared.is_multiple_of(CHECK_EVERY)) {
            return;
        }
        let lines: Vec<(i32, u64)> = living
            .filter_map(|pid| Some((pid, maps(pid)?)))
            .flat_map(|(pid, lines)| lines.into_iter().map(move |line| (pid, line.inode)))
            .collect();
        self.files.retain_mut(|mapped| {
            let inode = inode_of(&mapped.handle);
            let holder = lines.iter().find(|(_, found)| Some(*found) == inode);
            if let Some((pid, _)) = holder {
                mapped.pid = *pid;
            }
            holder.is_some()
        });
    }
}

fn inode_of(handle: &File) -> Option<u64> {
    handle.metadata().ok().map(|metadata| metadata.ino())
}

struct Line {
    start: u64,
    end: u64,
    inode: u64,
}

/// `/proc/TID/maps`. Device numbers are left out: on some file systems they are not those of `stat`.
fn maps(tid: i32) -> Option<Vec<Line>> {
    let text = std::fs::read_to_string(format!("/proc/{tid}/maps")).ok()?;
    Some(text.lines().filter_map(line).collect())
}

fn line(text: &str) -> Option<Line> {
    let mut fields = text.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let inode = fields.nth(3)?.parse().ok()?;
    Some(Line {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        inode,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It can grow after it was mapped, also by a hole that no memory holds.
    #[test]
    fn no_more_is_kept_than_is_compared() {
        let handle = tempfile::tempfile().unwrap();
        handle.set_len(3).unwrap();
        let file = FileId(0);
        let mapped = Mapped { file, content: content(&handle).unwrap(), handle, pid: 1 };
        let mut mappings = Mappings { files: vec![mapped], compared: 0 };
        let write = |offset| OpKind::Write {
            file,
            path: "a".into(),
            offset,
            data: b"text".as_slice().into(),
            append: false,
        };
        mappings.note(&write(2));
        assert_eq!(mappings.files[0].content, b"\0\0text");
        for kind in [
            write(LARGEST - 2),
            write(1 << 50),
            OpKind::Truncate { file, path: "a".into(), size: 1 << 50, by_open: false },
        ] {
            mappings.note(&kind);
            assert_eq!(mappings.files[0].content.len() as u64, LARGEST);
        }
        assert!(mappings.files[0].content.ends_with(b"\0\0te"));
    }

    #[test]
    fn differences_are_cut_at_pages() {
        let old = vec![0; 3 * PAGE];
        let mut new = old.clone();
        new[10] = 1;
        new[20] = 2;
        new[PAGE - 1] = 3;
        new[2 * PAGE] = 4;
        let found = differences(&old, &new);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].0, found[0].1.len()), (10, PAGE - 10));
        assert_eq!((found[1].0, found[1].1.as_slice()), (2 * PAGE as u64, [4].as_slice()));
        assert!(differences(&new, &new).is_empty());
    }
}
