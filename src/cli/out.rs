//! Standard output and standard error: nothing of the user's texts is obeyed by the terminal, and a closed pipe is no failure.

use std::io::{self, Write};

use serde::Serialize;

use crate::words::{visible, visible_json};

/// Standard output, a line at a time. The first failure is kept; a reader who has gone away is none, and the work goes on without it.
#[derive(Debug)]
pub(super) struct Out {
    closed: bool,
    failure: Option<io::Error>,
}

impl Out {
    pub(super) fn new() -> Self {
        Out { closed: false, failure: None }
    }

    /// Writes one line, with control characters escaped.
    pub(super) fn line(&mut self, text: &str) {
        self.write_line(&visible(text));
    }

    /// Writes one JSON document on a line of its own, likewise.
    pub(super) fn json(&mut self, value: &impl Serialize) {
        match serde_json::to_string(value) {
            Ok(text) => self.write_line(&visible_json(&text)),
            Err(error) => self.failure = Some(error.into()),
        }
    }

    fn write_line(&mut self, text: &str) {
        self.put(format!("{text}\n").as_bytes());
    }

    fn put(&mut self, bytes: &[u8]) {
        if self.closed || self.failure.is_some() {
            return;
        }
        let mut stdout = io::stdout().lock();
        match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.closed = true,
            Err(error) => self.failure = Some(error),
        }
    }

    /// Whether everything was written, or had no reader.
    pub(super) fn finish(self) -> io::Result<()> {
        self.failure.map_or(Ok(()), Err)
    }
}

/// For what the command itself is the author of: nothing is escaped. Never fails, a failure is kept as any other.
impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.put(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes to standard error, where a failure cannot be told to anyone. Line feeds are kept.
pub(super) fn say(text: &str) {
    let mut stderr = io::stderr().lock();
    for line in text.split('\n') {
        let _written = writeln!(stderr, "{}", visible(line));
    }
}
