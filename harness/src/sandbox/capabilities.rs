//! What this machine allows, found out by trying.

use std::sync::OnceLock;

use super::{Sandbox, SandboxOptions, view::Step};
use crate::sys::namespace;

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
