//! The one writer that all printed results go through.

use std::io::{self, Write};

/// Standard output, or what stands for it in a test.
///
/// A reader that has gone away (`crashlab list | head`) is no error: what comes later is thrown away. Any other failure is
/// kept and told by [`finish`](Self::finish), so that commands need not look at every line they print.
pub struct Output<'w> {
    writer: Box<dyn Write + 'w>,
    failure: Option<io::Error>,
    closed: bool,
}

impl std::fmt::Debug for Output<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output")
            .field("failure", &self.failure)
            .field("closed", &self.closed)
            .finish_non_exhaustive()
    }
}

impl<'w> Output<'w> {
    /// Prints to the writer; it should be buffered.
    pub fn new(writer: impl Write + 'w) -> Self {
        Output { writer: Box::new(writer), failure: None, closed: false }
    }

    /// Prints the text as it is.
    pub fn print(&mut self, text: &str) {
        if !self.closed {
            let written = self.writer.write_all(text.as_bytes());
            self.note(written);
        }
    }

    /// Prints the text and a line feed.
    pub fn line(&mut self, text: &str) {
        self.print(text);
        self.print("\n");
    }

    /// Hands on what is buffered, so that somebody who watches sees it.
    pub fn flush(&mut self) {
        if !self.closed {
            let flushed = self.writer.flush();
            self.note(flushed);
        }
    }

    /// Hands on what is buffered, and tells whether all could be printed.
    ///
    /// # Errors
    ///
    /// The first failure, unless it was that nobody reads any more.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush();
        self.failure.map_or(Ok(()), Err)
    }

    fn note(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.closed = true;
            if error.kind() != io::ErrorKind::BrokenPipe {
                self.failure = Some(error);
            }
        }
    }
}

impl Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.closed {
            let written = self.writer.write_all(bytes);
            self.note(written);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Output::flush(self);
        Ok(())
    }
}

/// Prints a complaint to standard error. Where nobody listens there, nothing can be done.
pub(crate) fn complain(text: &str) {
    let text = text.trim_end();
    let label = if text.starts_with("error: ") { "" } else { "error: " };
    let _nobody_listens = writeln!(io::stderr(), "{label}{text}");
}
