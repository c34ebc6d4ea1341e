//! An event as one line for people.

use std::path::Path;

use crate::op::{Event, LockAction, LockFamily, Op, OpKind, Stream, What};

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

fn operation(op: &Op) -> String {
    match &op.kind {
        OpKind::Create { file, path, mode, owner } => {
            let path = path.as_deref().map_or_else(|| format!("(no name, file {})", file.0), name);
            format!("{path}  create, mode {mode:04o}, owner {}:{}", owner.0, owner.1)
        }
        OpKind::Write { path, offset, data, append, .. } => {
            let append = if *append { ", append" } else { "" };
            format!("{}  {} bytes at {offset}{append}", name(path), data.len())
        }
        OpKind::Truncate { path, size, by_open, .. } => {
            format!("{}  to {size} bytes{}", name(path), if *by_open { ", by open" } else { "" })
        }
        OpKind::Allocate { path, mode, offset, len, .. } => {
            format!("{}  {len} bytes at {offset}, mode {mode:#x}", name(path))
        }
        OpKind::Rename { from, to, exchange, no_replace } => {
            let arrow = if *exchange { "<->" } else { "->" };
            let flag = if *no_replace { "  unless it exists" } else { "" };
            format!("{} {arrow} {}{flag}", name(from), name(to))
        }
        OpKind::Link { file, from, to } => {
            let from = from.as_deref().map_or_else(|| format!("(no name, file {})", file.0), name);
            format!("{from} -> {}", name(to))
        }
        OpKind::Symlink { target, path, .. } => format!("{} -> {}", name(path), target.display()),
        OpKind::Unlink { path }
        | OpKind::Rmdir { path }
        | OpKind::SyncFolder { path }
        | OpKind::Utimens { path } => name(path),
        OpKind::Mkdir { path, mode, .. } => format!("{}  mode {mode:04o}", name(path)),
        OpKind::Mknod { path, mode, .. } => {
            format!("{}  type {:#o}, mode {:04o}", name(path), mode & 0o170_000, mode & 0o7777)
        }
        OpKind::Chmod { path, mode, .. } => format!("{}  mode {mode:04o}", name(path)),
        OpKind::Chown { path, uid, gid, .. } => format!("{}  owner {uid}:{gid}", name(path)),
        OpKind::Xattr { path, name: attribute, value, .. } => match value {
            Some(value) => format!("{}  {attribute} = {}", name(path), quoted(value)),
            None => format!("{}  {attribute} removed", name(path)),
        },
        OpKind::Sync { path, data_only, .. } => {
            format!("{}{}", name(path), if *data_only { "  data only" } else { "" })
        }
        OpKind::SyncAll => String::new(),
        OpKind::SyncRange { path, .. } => format!("{}  a range, promises nothing", name(path)),
        OpKind::Lock { path, family, action, .. } => {
            format!("{}  {}", name(path), lock(*family, *action))
        }
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
