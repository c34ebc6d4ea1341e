//! The log beside the checkpoint: append-only JSON Lines, so that a person who comes later need not ask what happened.
//!
//! It is a record, not state: no session reads it to decide what to do, and losing or damaging it never harms the queue. Each line is one
//! `write` to a descriptor in append mode, synced.

use std::cell::RefCell;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::clock::{Clock, rfc3339};
use crate::files::{self, Links};

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When, in UTC.
    #[serde(serialize_with = "write_time")]
    pub time: Timestamp,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Event {
    /// A session begins to work a question; written before the model is called.
    Start(Start),
    /// What it is about to save, written before that: a kill right after the save must not cost the log what was saved. Whether it was
    /// saved, [`settle`](crate::history::settle) tells.
    Decision(End),
    /// It ended: after the checkpoint was saved, or after something failed and nothing was.
    End(End),
    /// What a person decided and is about to be saved, written before that, as a session's decision is.
    Resolving(Resolution),
    /// A person decided a pending question, and it was saved.
    Resolve(Resolution),
    /// No further session is to start.
    Stop {
        /// Who said so.
        by: Option<String>,
        /// Why.
        reason: Option<String>,
    },
    /// Sessions may start again.
    Resume {
        /// Who said so.
        by: Option<String>,
        /// Why.
        reason: Option<String>,
    },
}

/// The start of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// What `sessions_run` will be if it succeeds.
    pub session: u64,
    /// Its process.
    pub pid: u32,
    /// The number of its claim, where the store lets several sessions work at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<u64>,
    /// The question that it works on.
    pub question: String,
    /// SHA-256 of the checkpoint; `None` where there was no file.
    pub before: Option<String>,
}

/// The end of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// As in its start.
    pub session: u64,
    /// As in its start.
    pub pid: u32,
    /// As in its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<u64>,
    /// As in its start.
    pub question: String,
    /// SHA-256 of the checkpoint that its decision was applied to; where none was, as in its start.
    pub before: Option<String>,
    /// SHA-256 of the checkpoint that it saved; `None` where it failed.
    pub after: Option<String>,
    /// What came out.
    pub choice: Ending,
    /// Why the question was flagged, or why the session failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The sections that the answer cites, as they were.
    pub cited: Vec<Cited>,
    /// Tokens of the request.
    pub tokens_in: u64,
    /// Tokens of the reply.
    pub tokens_out: u64,
    /// From start to end.
    pub ms: u64,
}

/// A person's decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolution {
    /// The question.
    pub question: String,
    /// What the person decided.
    pub note: String,
    /// Who.
    pub by: String,
    /// SHA-256 of the checkpoint before.
    pub before: String,
    /// SHA-256 of the checkpoint after.
    pub after: String,
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// The question was answered.
    Answer,
    /// The question was handed to a person.
    Flag,
    /// Nothing was recorded.
    Failed,
}

/// A section that an answer cites.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cited {
    /// Its label.
    pub section: String,
    /// Its SHA-256 at that time; `None` where the corpus had no such section.
    pub sha256: Option<String>,
}

fn write_time<S: serde::Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rfc3339(*time))
}

/// What could not be done with the log.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot {step} the log: {source}", path.display())]
pub struct LogError {
    /// The log.
    pub path: PathBuf,
    /// What was tried.
    pub step: &'static str,
    /// The kernel's answer.
    pub source: std::io::Error,
}

/// The log of one checkpoint.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    checkpoint: PathBuf,
    clock: Clock,
    failures: RefCell<Vec<LogError>>,
}

impl Log {
    /// The log `<name>.log.jsonl` beside the checkpoint file `target`, whose links are resolved.
    pub fn beside(target: &Path, clock: Clock) -> Self {
        Log {
            path: files::beside(target, ".log.jsonl"),
            checkpoint: target.to_owned(),
            clock,
            failures: RefCell::default(),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line. A failure is kept for [`take_failures`](Self::take_failures): the log must never stop the queue.
    pub fn record(&self, event: Event) {
        let entry = Entry { time: self.clock.now(), event };
        if let Err(source) = self.append(&entry) {
            self.failures.borrow_mut().push(LogError {
                path: self.path.clone(),
                step: "write to",
                source,
            });
        }
    }

    /// What could not be written since the last call.
    pub fn take_failures(&self) -> Vec<LogError> {
        self.failures.take()
    }

    fn append(&self, entry: &Entry) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let is_new = !self.path.exists();
        let mut options = File::options();
        options.read(true).append(true).create(true).mode(self.mode());
        let mut file = files::open(&mut options, &self.path, Links::Follow)?;
        if is_new {
            files::share_owner(&file, &self.checkpoint);
        }
        if ends_torn(&mut file)? {
            line.insert(0, b'\n');
        }
        let written = file.write(&line)?;
        if written < line.len() {
            return Err(std::io::Error::new(
                std::io::ErrorKind::WriteZero,
                format!("{written} of {} bytes were written", line.len()),
            ));
        }
        file.sync_data()?;
        if is_new { files::sync_folder_of(&self.path) } else { Ok(()) }
    }

    /// A new log is as private as its checkpoint: it holds the same questions.
    fn mode(&self) -> u32 {
        std::fs::metadata(&self.checkpoint).map_or(0o666, |metadata| metadata.mode() & 0o666)
    }

    /// Reads it all. No file is an empty history.
    ///
    /// # Errors
    ///
    /// [`LogError`] where there is something that cannot be read.
    pub fn read(&self) -> Result<ReadLog, LogError> {
        match files::read(&self.path) {
            Ok(bytes) => Ok(ReadLog::parse(&bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(ReadLog::default()),
            Err(source) => Err(LogError { path: self.path.clone(), step: "read", source }),
        }
    }
}

/// What a log says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadLog {
    /// Its entries, in the order of the file.
    pub entries: Vec<Entry>,
    /// Bytes of a last line that was never finished, and is dropped.
    pub torn_bytes: usize,
    /// Lines, from 1, that are no entries, and are skipped.
    pub bad_lines: Vec<usize>,
}

impl ReadLog {
    /// Reads the bytes of a log; everything that can be read is kept.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut log = ReadLog::default();
        for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            if line.trim_ascii().is_empty() {
                continue;
            }
            match serde_json::from_slice(line) {
                Ok(entry) => log.entries.push(entry),
                // Only the last line can lack its line feed.
                Err(_) if !line.ends_with(b"\n") => log.torn_bytes = line.len(),
                Err(_) => log.bad_lines.push(index + 1),
            }
        }
        log
    }

    /// What a reader must know about its state; `None` if it is whole.
    pub fn complaint(&self) -> Option<String> {
        let mut parts = Vec::new();
        if self.torn_bytes > 0 {
            parts
                .push(format!("its last line is torn ({} bytes) and was dropped", self.torn_bytes));
        }
        if !self.bad_lines.is_empty() {
            const NAMED_MAX: usize = 5;
            let lines: Vec<_> =
                self.bad_lines.iter().take(NAMED_MAX).map(ToString::to_string).collect();
            let more = match self.bad_lines.len() - lines.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let (noun, verb) =
                if self.bad_lines.len() == 1 { ("line", "was") } else { ("lines", "were") };
            parts.push(format!(
                "{noun} {}{more} cannot be read and {verb} skipped",
                lines.join(", ")
            ));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

fn ends_torn(file: &mut File) -> std::io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stop(by: &str) -> Event {
        Event::Stop { by: Some(by.to_owned()), reason: None }
    }

    fn log_in(folder: &tempfile::TempDir) -> Log {
        let moment = "2026-03-01T12:00:00Z".parse().unwrap();
        Log::beside(&folder.path().join("state.json"), Clock::Fixed(moment))
    }

    #[test]
    fn entries_come_back_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let log = log_in(&folder);
        log.record(stop("ann"));
        log.record(stop("bob"));
        assert!(log.take_failures().is_empty());
        let text = std::fs::read_to_string(log.path()).unwrap();
        assert_eq!(
            text.lines().next().unwrap(),
            r#"{"time":"2026-03-01T12:00:00.000Z","event":"stop","by":"ann","reason":null}"#
        );
        let read = log.read().unwrap();
        assert_eq!(read.entries.len(), 2);
        assert_eq!(read.entries[1].event, stop("bob"));
        assert_eq!(read.complaint(), None);
    }

    #[test]
    fn every_cut_of_the_last_line_keeps_all_before_it_and_the_next_line_starts_anew() {
        let folder = tempfile::tempdir().unwrap();
        let log = log_in(&folder);
        log.record(stop("ann"));
        let first_line = std::fs::read(log.path()).unwrap().len();
        log.record(stop("bob"));
        let whole = std::fs::read(log.path()).unwrap();
        for cut in first_line + 1..whole.len() - 1 {
            std::fs::write(log.path(), &whole[..cut]).unwrap();
            let read = log.read().unwrap();
            assert_eq!(read.entries.len(), 1, "cut at {cut}");
            assert_eq!(read.torn_bytes, cut - first_line, "cut at {cut}");
            assert!(read.complaint().unwrap().contains("torn"));

            log.record(stop("cid"));
            let read = log.read().unwrap();
            let events: Vec<_> = read.entries.into_iter().map(|entry| entry.event).collect();
            assert_eq!(events, [stop("ann"), stop("cid")], "cut at {cut}");
            assert_eq!(read.bad_lines, [2], "cut at {cut}");
        }
        // Only the line feed is missing: the entry is whole.
        std::fs::write(log.path(), &whole[..whole.len() - 1]).unwrap();
        log.record(stop("cid"));
        assert_eq!(log.read().unwrap().entries.len(), 3);
        assert_eq!(log.read().unwrap().complaint(), None);
    }

    #[test]
    fn rubbish_in_the_middle_is_skipped_and_said() {
        let read = ReadLog::parse(b"{\"time\":\"2026-03-01T12:00:00Z\",\"event\":\"resume\",\"by\":null,\"reason\":null}\n\xff\xfe\n{}\n");
        assert_eq!(read.entries.len(), 1);
        assert_eq!(read.bad_lines, [2, 3]);
        assert_eq!(read.complaint().unwrap(), "lines 2, 3 cannot be read and were skipped");
        let long = ReadLog::parse(&b"x\n".repeat(100));
        assert_eq!(
            long.complaint().unwrap(),
            "lines 1, 2, 3, 4, 5 and 95 more cannot be read and were skipped"
        );
    }

    #[test]
    fn a_log_that_cannot_be_written_is_told_and_does_not_panic() {
        let folder = tempfile::tempdir().unwrap();
        let log = log_in(&folder);
        std::fs::create_dir(log.path()).unwrap();
        log.record(stop("ann"));
        let failures = log.take_failures();
        assert_eq!(failures.len(), 1);
        assert!(failures[0].to_string().contains("state.json.log.jsonl"));
        assert!(log.take_failures().is_empty());
    }

    #[test]
    fn a_new_log_is_as_private_as_its_checkpoint() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let checkpoint = folder.path().join("state.json");
        std::fs::write(&checkpoint, "").unwrap();
        std::fs::set_permissions(&checkpoint, std::fs::Permissions::from_mode(0o600)).unwrap();
        let log = log_in(&folder);
        log.record(stop("ann"));
        let mode = std::fs::metadata(log.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
