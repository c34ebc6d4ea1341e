//! The sandbox: where a subject runs without touching anything that is not its own.
//!
//! A sandbox has a work folder that the lab can read and write, and, where the machine allows it, a view of the file
//! system in which that folder is at a place that does not depend on the case, `/tmp` and its like are private,
//! everything else is read-only, and there is no network but a loopback of its own. The view is made once, when the
//! sandbox is made, by a process that ends at once; [`Entry::enter`] only joins it. All programs of one sandbox share
//! the view, so that they meet in `/tmp` and on the loopback, and two sandboxes share nothing.
//!
//! Root gets mount and network namespaces alone; others get a user namespace besides, in which they are who they
//! were. Where neither works (see [`Capabilities`]) the sandbox is just the folder, and it is the tracer that refuses
//! writes elsewhere; programs that run untraced ([`Sandbox::command`]) are kept from nothing then.
//!
//! A work folder can lie over another one ([`SandboxOptions::over`]), so that nothing has to be copied.
//!
//! What a sandbox does not do: it does not stop a subject that runs as root and wants out, it does not hide sockets
//! of services that lie in the file system, and a program that only looks sees the whole machine.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};
use nix::sys::inotify::{InitFlags, Inotify};

use crate::sys;
use crate::sys::process::Container;
use crate::trace::Fence;
use crate::tree::{self, SnapshotError, Tree};
use crate::watched::Watched;

mod capabilities;
mod clean;
mod layout;
mod over;
pub(crate) mod probe;
mod stale;
mod view;

pub use capabilities::{Capabilities, Containers, Way, capabilities, containers, overlay};
pub(crate) use clean::remove;
use layout::Layout;
pub use over::Lower;
pub(crate) use view::holds_mounts;
use view::{Failed, View};

/// What a sandbox is made of.
#[derive(Debug, Clone, Default)]
pub struct SandboxOptions {
    /// Where the subject shall see its work folder; only with namespaces. It need not be there, but for a folder above it
    /// other than `/`; [`DEFAULT_SEEN`] where it is not said.
    pub seen_at: Option<PathBuf>,
    /// The folders below `seen_at` that alone are those of the work folder, where it is not the whole: `seen_at` itself stays
    /// as it is. Relative; only with namespaces.
    pub parts: Vec<PathBuf>,
    /// Where below the work folder programs begin. Relative.
    pub current: PathBuf,
    /// Folders below `seen_at` that programs see as they really are, read-only, and that are empty in the work folder.
    /// Relative; only with namespaces.
    pub shown: Vec<PathBuf>,
    /// The folder that the work folder lies over, instead of being empty; only with namespaces, and where
    /// [`overlay`] works. `seen_at` is where it is.
    pub over: Option<Arc<Lower>>,
    /// Files and folders that stay visible (read-only) though they lie below a path that the sandbox hides.
    pub keep_visible: Vec<PathBuf>,
    /// The subject may use the network.
    pub network: bool,
    /// Do without namespaces, also where they work.
    pub plain: bool,
}

/// Where a subject sees its work folder, unless [`SandboxOptions::seen_at`] says otherwise.
pub const DEFAULT_SEEN: &str = "/tmp/crashlab-work";

/// A prepared sandbox with one work folder; dropped, it removes the folder.
#[derive(Debug)]
pub struct Sandbox {
    options: SandboxOptions,
    capabilities: Capabilities,
    /// Before the layout, so that the folders go when nothing is mounted on them any more.
    view: Mutex<Option<Arc<View>>>,
    /// How often it was made anew.
    view_number: AtomicU64,
    layout: Layout,
    seen: PathBuf,
    obeys_modes: AtomicBool,
    /// Made when it is first asked for, and kept: to close one takes longer than a case.
    reads: OnceLock<Option<Arc<Inotify>>>,
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
    pub source: io::Error,
}

impl SandboxError {
    fn new(path: &Path, what: impl Into<String>) -> impl FnOnce(io::Error) -> SandboxError {
        let what = what.into();
        move |source| SandboxError { path: path.to_owned(), what, source }
    }
}

/// What a forked child has to do to be in the sandbox; everything that allocates has been done before.
#[derive(Debug)]
pub struct Entry {
    view: Option<Arc<View>>,
    folder: CString,
    obeys_modes: bool,
}

/// A step in the child failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryError {
    /// Which, in words.
    pub stage: &'static str,
    /// The error number.
    pub errno: i32,
}

impl Sandbox {
    /// Prepares one, with an empty work folder, as good as this machine allows.
    ///
    /// # Errors
    ///
    /// [`SandboxError`] with the path and the step.
    pub fn new(options: &SandboxOptions) -> Result<Sandbox, SandboxError> {
        Self::with(options, capabilities())
    }

    /// As [`new`](Self::new), but makes use of what is said here alone, whatever the machine could do.
    ///
    /// # Errors
    ///
    /// [`SandboxError`] with the path and the step.
    pub fn with(
        options: &SandboxOptions,
        capabilities: &Capabilities,
    ) -> Result<Sandbox, SandboxError> {
        let mut used = capabilities.clone();
        if options.plain {
            used.way = Way::Plain;
        }
        Self::build(options, used).map_err(|(_, error)| error)
    }

    fn build(
        options: &SandboxOptions,
        used: Capabilities,
    ) -> Result<Sandbox, (Option<view::Step>, SandboxError)> {
        let layout = Layout::new(options, used.way != Way::Plain).map_err(|error| (None, error))?;
        let view = make_view(options, &used, &layout)?;
        let seen = layout.seen.clone();
        Ok(Sandbox {
            options: options.clone(),
            capabilities: used,
            view: Mutex::new(view),
            view_number: AtomicU64::new(0),
            layout,
            seen,
            obeys_modes: AtomicBool::new(false),
            reads: OnceLock::new(),
        })
    }

    /// The work folder as the lab sees it; where it lies over another, what was changed.
    pub fn work(&self) -> &Path {
        &self.layout.work
    }

    /// The work folder as the subject sees it.
    pub fn seen(&self) -> &Path {
        &self.seen
    }

    /// The folder in which programs begin, as they see it.
    pub fn current(&self) -> PathBuf {
        match self.options.current.as_os_str().is_empty() {
            true => self.seen.clone(),
            false => self.seen.join(&self.options.current),
        }
    }

    /// What is watched: the work folder, or those parts of it that programs see at their places.
    pub fn watched(&self) -> Watched {
        Watched {
            base: self.seen.clone(),
            parts: self.layout.parts.clone(),
            current: self.options.current.clone(),
        }
    }

    /// What this sandbox does not keep apart, a sentence each, for the report; none where everything is in place.
    pub fn shortcomings(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.capabilities.way == Way::Plain {
            let why = if self.options.plain {
                "as asked for".into()
            } else {
                self.capabilities.why.join("; ")
            };
            found.push(format!(
                "no namespaces ({why}): programs run in a copy of their folder at another path, /tmp and the network are shared"
            ));
        } else if !self.capabilities.network && !self.options.network {
            found.push(format!(
                "no network namespace ({}): the network is shared",
                self.capabilities.why.join("; ")
            ));
        }
        found
    }

    /// What the tracer has to do where there are no namespaces.
    pub(crate) fn fence(&self) -> Option<Fence> {
        let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        (self.capabilities.way == Way::Plain).then(|| Fence {
            original: self.options.seen_at.as_deref().map(canonical),
            copy: self.layout.work.clone(),
            open: layout::PRIVATE.iter().map(Path::new).map(canonical).collect(),
        })
    }

    /// A watch for the reads of its files; `None` where the kernel gives none, where the files that programs see are not those
    /// that the lab sees, and where the tracer has to see every read itself.
    pub(crate) fn reads(&self) -> Option<Arc<Inotify>> {
        if self.capabilities.way == Way::Plain || self.options.over.is_some() {
            return None;
        }
        let flags = InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK;
        self.reads.get_or_init(|| Inotify::init(flags).ok().map(Arc::new)).clone()
    }

    /// A program that is in it now is in it in the next run as well, at the same place: see also
    /// [`view_number`](Self::view_number).
    pub(crate) fn is_the_same_in_each_run(&self) -> bool {
        self.capabilities.way != Way::Plain && self.options.over.is_none()
    }

    /// Changes when those who enter come into other namespaces than those before them.
    pub(crate) fn view_number(&self) -> u64 {
        self.view_number.load(Ordering::Relaxed)
    }

    /// What programs are put into of which each is to be process 1 of a namespace of its own.
    ///
    /// # Errors
    ///
    /// Why that cannot be had, a phrase.
    pub(crate) fn container(&self) -> Result<Container, String> {
        if self.capabilities.way == Way::Plain {
            return Err(self.shortcomings().join("; "));
        }
        let Containers { proc_is_shared } = containers().as_ref().map_err(String::clone)?;
        Ok(Container { own_proc: proc_is_shared.is_none() })
    }

    /// What the child between fork and exec has to do.
    pub fn entry(&self) -> Entry {
        // `Layout` has refused names with a NUL, which no path of the kernel has.
        let folder = CString::new(self.current().into_os_string().into_vec()).unwrap_or_default();
        let obeys_modes = self.obeys_modes.load(Ordering::Relaxed);
        Entry { view: self.view().clone(), folder, obeys_modes }
    }

    /// While `run` runs, programs enter without the capabilities by which root reads and writes what a mode forbids.
    pub fn obeying_modes<T>(&self, run: impl FnOnce() -> T) -> T {
        self.obeys_modes.store(true, Ordering::Relaxed);
        let result = run();
        self.obeys_modes.store(false, Ordering::Relaxed);
        result
    }

    fn view(&self) -> MutexGuard<'_, Option<Arc<View>>> {
        self.view.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Makes the sandbox as new, see [`reset`](Self::reset), and puts the tree into the work folder.
    ///
    /// # Errors
    ///
    /// [`SnapshotError`] with the path that could not be removed or written.
    pub fn fill(&self, tree: &Tree) -> Result<(), SnapshotError> {
        let failed = |error: SandboxError| SnapshotError {
            what: "reset the sandbox at",
            source: io::Error::new(
                error.source.kind(),
                format!("{}: {}", error.what, error.source),
            ),
            path: error.path,
        };
        let Some(lower) = &self.options.over else {
            self.reset().map_err(failed)?;
            return tree::write_out(tree, self.work());
        };
        // What is mounted must not be changed from below: it is filled first, and mounted then.
        *self.view() = None;
        self.layout.empty().map_err(failed)?;
        lower.write(tree, self.work())?;
        self.renew_view().map_err(failed)
    }

    /// What is in the work folder now.
    ///
    /// # Errors
    ///
    /// [`SnapshotError`] with the path that could not be read.
    pub fn snapshot(&self) -> Result<Tree, SnapshotError> {
        match &self.options.over {
            Some(lower) => lower.read(self.work()),
            None => tree::read_own(self.work()),
        }
    }

    /// The files (all that is no folder) of the work folder that trees hold, relative to it, where these are not all.
    pub(crate) fn files(&self) -> Option<Vec<PathBuf>> {
        self.options.over.as_ref().map(|_| over::files(self.work()))
    }

    /// Makes it as new for the next case, which is much cheaper than a new one: empties all of its folders, and
    /// takes a new view if a program used the network of this one. No program may still run in it.
    ///
    /// # Errors
    ///
    /// [`SandboxError`] with the path and the step.
    pub fn reset(&self) -> Result<(), SandboxError> {
        if self.options.over.is_some() {
            *self.view() = None;
            self.layout.empty()?;
            return self.renew_view();
        }
        self.layout.empty()?;
        // Ports may be in use for a while after their program has ended.
        if self.view().as_ref().is_some_and(|view| view.has_sockets()) {
            self.renew_view()?;
        }
        Ok(())
    }

    fn renew_view(&self) -> Result<(), SandboxError> {
        let view = make_view(&self.options, &self.capabilities, &self.layout);
        *self.view() = view.map_err(|(_, error)| error)?;
        self.view_number.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Runs a program in the sandbox, untraced, in the environment of the lab, until it ends or its time is over; its
    /// process group goes with it.
    ///
    /// # Errors
    ///
    /// Where it cannot be started or cannot enter, and [`io::ErrorKind::TimedOut`].
    pub fn command<S: AsRef<OsStr>>(&self, argv: &[S], limit: Duration) -> io::Result<Output> {
        let [program, arguments @ ..] = argv else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no program was named"));
        };
        let entry = self.entry();
        let enter = move || entry.enter().map_err(|error| Errno::from_raw(error.errno));
        sys::confined::output(Command::new(program).args(arguments), enter, limit)
    }
}

fn make_view(
    options: &SandboxOptions,
    used: &Capabilities,
    layout: &Layout,
) -> Result<Option<Arc<View>>, (Option<view::Step>, SandboxError)> {
    if used.way == Way::Plain {
        return Ok(None);
    }
    let own_network = used.network && !options.network;
    match View::make(layout, used, own_network) {
        Ok(view) => Ok(Some(Arc::new(view))),
        Err(Failed { step, what, path, source }) => {
            let path = path.unwrap_or_else(|| layout.work.clone());
            Err((step, SandboxError { path, what, source }))
        }
    }
}

impl Entry {
    /// Enters the sandbox and makes the work folder the current one. Called in a forked child: only system calls.
    ///
    /// # Errors
    ///
    /// [`EntryError`] with the step and the error number.
    pub fn enter(&self) -> Result<(), EntryError> {
        let at = |stage| move |errno: Errno| EntryError { stage, errno: errno as i32 };
        if let Some(view) = &self.view {
            let join = |namespace: &Option<File>, flag| match namespace {
                Some(file) => setns(file, flag),
                None => Ok(()),
            };
            // The user namespace first: it gives the right to join the others.
            join(&view.user, CloneFlags::CLONE_NEWUSER).map_err(at("join the user namespace"))?;
            join(&view.network, CloneFlags::CLONE_NEWNET)
                .map_err(at("join the network namespace"))?;
            setns(&view.mount, CloneFlags::CLONE_NEWNS).map_err(at("join the mount namespace"))?;
        }
        nix::unistd::chdir(self.folder.as_c_str()).map_err(at("go to the work folder"))?;
        if self.obeys_modes {
            sys::capability::drop_overrides().map_err(at("give up the right to override modes"))?;
        }
        Ok(())
    }
}

impl std::fmt::Display for EntryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot {}: {}", self.stage, io::Error::from_raw_os_error(self.errno))
    }
}

impl std::error::Error for EntryError {}
