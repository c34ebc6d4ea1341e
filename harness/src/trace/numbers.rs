//! Numbers of processes: the lab's, and those that programs know who live in a process namespace of their own.
//!
//! Everywhere in the tracer a number is the lab's, as ptrace and the lab's `/proc` have it; what a program passes to a call
//! or writes into a path is its own, and is only compared here.

use std::path::PathBuf;

use crate::sys::ptrace::Tid;

fn namespace(who: &str) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{who}/ns/pid")).ok()
}

/// The thread lives in a process namespace that is not the lab's.
pub(super) fn are_own(tid: Tid) -> bool {
    let its = namespace(&tid.to_string());
    its.is_some() && its != namespace("self")
}

/// Both live in the same process namespace.
pub(super) fn are_shared(tid: Tid, other: Tid) -> bool {
    let its = namespace(&tid.to_string());
    its.is_some() && its == namespace(&other.to_string())
}

/// Whether a thread calls itself, or its process, by this number.
pub(super) fn names_itself(tid: Tid, number: i32) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let own = text.lines().filter_map(|line| {
        let numbers = line.strip_prefix("NStgid:").or_else(|| line.strip_prefix("NSpid:"))?;
        // From the lab's to that of the innermost namespace.
        numbers.split_ascii_whitespace().next_back()?.parse::<i32>().ok()
    });
    own.into_iter().any(|own| own == number)
}
