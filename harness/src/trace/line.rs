//! An event as one line for people.

use std::path::Path;

use crate::op::{Event, FileId, LockAction, LockFamily, Op, OpKind, Stream, What};
use crate::recording::Calls;

/// The longest part of an output that is shown.
const MOST_OUTPUT: usize = 60;

/// One readable line, its columns aligned: number, program and thread, call, and what it did.
///
/// ```text
///    3  0/4711    renameat2        state.json.tmp -> state.json
/// ```
pub fn describe(event: &Event) -> String {
    let who = format!("{}/{}", event.actor.program, event.actor.tid);
    let (number, call, text) = match &event.what {
        What::Op(op) => (op.number.to_string(), op.call.as_str(), operation(op)),
        other => {
            let (word, text) = rest(other);
            (String::new(), word, text)
        }
    };
    format!("{number:>5}  {who:<10}  {call:<16}  {text}").trim_end().to_owned()
}

/// The same, and for an op the call site, where it is known.
///
/// ```text
///    3  0/4711    renameat2        state.json.tmp -> state.json  at save.c:41 in save_state (save+0x1234)
/// ```
pub fn describe_call(event: &Event, calls: &Calls) -> String {
    match event.op().and_then(|op| calls.site(op.number)) {
        Some(site) => format!("{}  {site}", describe(event)),
        None => describe(event),
    }
}

fn rest(what: &What) -> (&str, String) {
    match what {
        What::Op(_) => ("", String::new()),
        What::Failed { call, path, errno } => {
            let reason = nix::Error::from_raw(*errno);
            let path = path.as_deref().map(name).unwrap_or_default();
            (call, format!("{path}  = {reason:?} ({})", reason.desc()))
        }
        What::Mark(name) => ("-- mark", name.clone()),
        What::Output { stream, bytes } => {
            let word = match stream {
                Stream::Stdout => "stdout",
                Stream::Stderr => "stderr",
            };
            (word, quoted(bytes))
        }
        What::Open { path, readable, writable, .. } => {
            let how = match (readable, writable) {
                (true, true) => "read and write",
                (false, true) => "write",
                _ => "read",
            };
            ("open", format!("{}  {how}", name(path)))
        }
        What::Read { path, .. } => ("read", name(path)),
        What::Close { path, .. } => ("close", format!("{}  last for writing", name(path))),
        What::Spawned { child } => ("spawned", child.to_string()),
        What::Executed { path } => ("executed", path.display().to_string()),
        What::Ended { status } => ("ended", status.clone()),
    }
}

/// What an op does, without who and by which call: `s.tmp -> s`.
pub(super) fn short(op: &Op) -> String {
    match &op.kind {
        OpKind::Create { path: Some(path), .. } => name(path),
        OpKind::Write { path, data, .. } => format!("{}  {} bytes", name(path), data.len()),
        OpKind::Lock { path, action, .. } => {
            let action = match action {
                LockAction::Shared => "shared",
                LockAction::Exclusive => "exclusive",
                LockAction::Unlock => "release",
            };
            format!("{}  {action}", name(path))
        }
        _ => operation(op),
    }
}

fn operation(op: &Op) -> String {
    match &op.kind {
        OpKind::Write { path, .. }
        | OpKind::Truncate { path, .. }
        | OpKind::Allocate { path, .. }
        | OpKind::Sync { path, .. }
        | OpKind::SyncRange { path, .. } => format!("{}{}", name(path), content(&op.kind)),
        OpKind::Chmod { path, .. }
        | OpKind::Chown { path, .. }
        | OpKind::Xattr { path, .. }
        | OpKind::Utimens { path }
        | OpKind::Lock { path, .. } => format!("{}{}", name(path), attribute(&op.kind)),
        OpKind::SyncFolder { path } => name(path),
        OpKind::SyncAll => String::new(),
        kind => names(kind),
    }
}

/// What a call did to a file's bytes.
fn content(kind: &OpKind) -> String {
    match kind {
        OpKind::Write { offset, data, append, .. } => {
            let append = if *append { ", append" } else { "" };
            format!("  {} bytes at {offset}{append}", data.len())
        }
        OpKind::Truncate { size, by_open, .. } => {
            format!("  to {size} bytes{}", if *by_open { ", by open" } else { "" })
        }
        OpKind::Allocate { mode, offset, len, .. } => {
            format!("  {len} bytes at {offset}, mode {mode:#x}")
        }
        OpKind::Sync { data_only: true, .. } => "  data only".into(),
        OpKind::SyncRange { .. } => "  a range, promises nothing".into(),
        _ => String::new(),
    }
}

/// What a call did to what surrounds the bytes.
fn attribute(kind: &OpKind) -> String {
    match kind {
        OpKind::Chmod { mode, .. } => format!("  mode {mode:04o}"),
        OpKind::Chown { uid, gid, .. } => format!("  owner {uid}:{gid}"),
        OpKind::Xattr { name, value, .. } => match value {
            Some(value) => format!("  {name} = {}", quoted(value)),
            None => format!("  {name} removed"),
        },
        OpKind::Lock { family, action, .. } => format!("  {}", lock(*family, *action)),
        _ => String::new(),
    }
}

/// What a call did to names.
fn names(kind: &OpKind) -> String {
    let unnamed = |file: &FileId| format!("(no name, file {})", file.0);
    match kind {
        OpKind::Create { file, path, mode, owner: (uid, gid) } => {
            let path = path.as_deref().map_or_else(|| unnamed(file), name);
            format!("{path}  create, mode {mode:04o}, owner {uid}:{gid}")
        }
        OpKind::Rename { from, to, exchange, no_replace } => {
            let arrow = if *exchange { "<->" } else { "->" };
            let flag = if *no_replace { "  unless it exists" } else { "" };
            format!("{} {arrow} {}{flag}", name(from), name(to))
        }
        OpKind::Link { file, from, to } => {
            let from = from.as_deref().map_or_else(|| unnamed(file), name);
            format!("{from} -> {}", name(to))
        }
        OpKind::Symlink { target, path, .. } => format!("{} -> {}", name(path), target.display()),
        OpKind::Mkdir { path, mode, .. } => format!("{}  mode {mode:04o}", name(path)),
        OpKind::Mknod { path, mode, .. } => {
            let (kind, mode) = (mode & libc::S_IFMT, mode & 0o7777);
            format!("{}  type {kind:#o}, mode {mode:04o}", name(path))
        }
        OpKind::Unlink { path } | OpKind::Rmdir { path } => name(path),
        _ => String::new(),
    }
}

fn lock(family: LockFamily, action: LockAction) -> String {
    let family = match family {
        LockFamily::Flock => "flock",
        LockFamily::Posix => "of the process",
        LockFamily::OpenFile => "of the open file",
    };
    let action = match action {
        LockAction::Shared => "shared",
        LockAction::Exclusive => "exclusive",
        LockAction::Unlock => "released",
    };
    format!("{action}, {family}")
}

/// A path; the watched folder itself is `.`.
fn name(path: &Path) -> String {
    if path.as_os_str().is_empty() { ".".into() } else { path.display().to_string() }
}

fn quoted(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(MOST_OUTPUT)];
    let more = if shown.len() < bytes.len() {
        format!("... ({} bytes)", bytes.len())
    } else {
        String::new()
    };
    format!("\"{}\"{more}", shown.escape_ascii())
}
