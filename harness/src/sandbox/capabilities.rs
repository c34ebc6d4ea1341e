//! What this machine allows, found out by trying.

use std::sync::OnceLock;

use std::path::Path;
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;

use super::{Lower, Sandbox, SandboxOptions, layout, view::Step};
use crate::sys::namespace;
use crate::sys::process::{self, Container};

/// How a sandbox gets its view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Namespaces made by root.
    Root,
    /// Namespaces inside a user namespace.
    UserNamespace,
    /// None: the sandbox is a folder alone.
    Plain,
}

/// What the sandboxes of this machine can be made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// How they get their view.
    pub way: Way,
    /// They have a network of their own.
    pub network: bool,
    /// All mounts can be made read-only by one call (Linux 5.12).
    pub recursive_read_only: bool,
    /// Why something better was not taken, a phrase each.
    pub why: Vec<String>,
}

/// What this machine allows. Tried once, then remembered.
pub fn capabilities() -> &'static Capabilities {
    static FOUND: OnceLock<Capabilities> = OnceLock::new();
    FOUND.get_or_init(|| {
        let root = nix::unistd::geteuid().is_root();
        let mut why = Vec::new();
        if root && let Some(found) = probe(Way::Root, &mut why) {
            return found;
        }
        probe(Way::UserNamespace, &mut why).unwrap_or(Capabilities {
            way: Way::Plain,
            network: false,
            recursive_read_only: false,
            why,
        })
    })
}

/// Tries one way, with less and less; adds what failed to the reasons.
fn probe(way: Way, why: &mut Vec<String>) -> Option<Capabilities> {
    let mut tried = Capabilities { way, network: true, recursive_read_only: true, why: Vec::new() };
    loop {
        match Sandbox::build(&SandboxOptions::default(), tried.clone()) {
            Ok(sandbox) => {
                let entry = sandbox.entry();
                match namespace::make(|| {
                    entry.enter().map_err(|error| (1, nix::errno::Errno::from_raw(error.errno)))
                }) {
                    Ok(Ok(_)) => {
                        tried.why = std::mem::take(why);
                        return Some(tried);
                    }
                    Ok(Err((_, errno))) => {
                        why.push(format!("cannot enter the namespaces: {}", errno.desc()));
                    }
                    Err(error) => why.push(format!("cannot fork: {error}")),
                }
                return None;
            }
            Err((step, error)) => {
                why.push(format!("cannot {}: {}", error.what, error.source));
                match step {
                    Some(Step::Network | Step::Loopback) if tried.network => tried.network = false,
                    Some(Step::Seal) if tried.recursive_read_only => {
                        tried.recursive_read_only = false
                    }
                    _ => return None,
                }
            }
        }
    }
}

/// Whether a work folder can lie over a large one, or why not. Tried once, then remembered.
///
/// # Errors
///
/// A phrase with what failed.
pub fn overlay() -> &'static Result<(), String> {
    static FOUND: OnceLock<Result<(), String>> = OnceLock::new();
    FOUND.get_or_init(|| match capabilities() {
        Capabilities { way: Way::Plain, .. } => Err("it takes namespaces".to_owned()),
        _ => lay_over().map_err(|error| error.to_string()),
    })
}

/// What the containers of this machine are made of: see [`containers`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Containers {
    /// Why programs in them do not see a `/proc` of their own but the machine's; a phrase, where that is so.
    pub proc_is_shared: Option<String>,
}

/// Whether each program of a run can have a process namespace of its own, in which it is process 1; or why not. Tried once,
/// then remembered.
///
/// # Errors
///
/// A phrase with what failed.
pub fn containers() -> &'static Result<Containers, String> {
    static FOUND: OnceLock<Result<Containers, String>> = OnceLock::new();
    FOUND.get_or_init(|| match capabilities() {
        Capabilities { way: Way::Plain, why, .. } => {
            Err(format!("no namespaces ({})", why.join("; ")))
        }
        _ => {
            let tried = |own_proc| contain(Container { own_proc });
            let why_shared = match tried(true) {
                Ok(()) => return Ok(Containers { proc_is_shared: None }),
                Err(error) => error.to_string(),
            };
            match tried(false) {
                Ok(()) => Ok(Containers { proc_is_shared: Some(why_shared) }),
                Err(error) => Err(format!("no process namespaces ({error})")),
            }
        }
    })
}

fn contain(container: Container) -> std::io::Result<()> {
    let sandbox = Sandbox::new(&SandboxOptions::default()).map_err(|error| {
        std::io::Error::other(format!("cannot {}: {}", error.what, error.source))
    })?;
    let entry = sandbox.entry();
    let tried = namespace::make(|| {
        entry.enter().map_err(|error| (1, Errno::from_raw(error.errno)))?;
        process::try_container(container).map_err(|errno| (1, errno))
    })?;
    tried.map(drop).map_err(|(_, errno)| errno.into())
}

/// Changes, removes and makes a file in a folder that lies over another.
fn lay_over() -> std::io::Result<()> {
    let large = tempfile::tempdir_in(layout::home())?;
    std::fs::write(large.path().join("changed"), "1")?;
    std::fs::write(large.path().join("removed"), "1")?;
    let lower = Arc::new(Lower::new(large.path(), &[]));
    let seen_at = Some(large.path().to_owned());
    let sandbox =
        Sandbox::new(&SandboxOptions { seen_at, over: Some(lower), ..Default::default() })
            .map_err(|error| {
                std::io::Error::other(format!("cannot {}: {}", error.what, error.source))
            })?;
    let entry = sandbox.entry();
    let made = OFlag::O_WRONLY | OFlag::O_CREAT;
    let tried = namespace::make(|| {
        let failed = |errno: Errno| (1, errno);
        entry.enter().map_err(|error| (1, Errno::from_raw(error.errno)))?;
        for (name, flags) in [(c"changed", OFlag::O_WRONLY | OFlag::O_TRUNC), (c"made", made)] {
            nix::fcntl::open(name, flags, Mode::S_IRUSR).map_err(failed)?;
        }
        nix::unistd::unlink(c"removed").map_err(failed)
    })?;
    tried.map_err(|(_, errno)| errno)?;
    let tree = sandbox.snapshot().map_err(|error| error.source)?;
    let is_there = |name: &str| tree.get(Path::new(name)).is_some();
    match is_there("changed") && is_there("made") && !is_there("removed") {
        true => Ok(()),
        false => Err(std::io::Error::other("a layer over a folder does not show what was changed")),
    }
}
