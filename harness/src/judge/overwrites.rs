//! Whether a log that leaves out what was written through open descriptors still tells what was overwritten unread.

use std::collections::HashSet;

use super::Tree;
use crate::op::{Event, OpKind, What};
use crate::tree::NodeKind;

/// With an empty file no such log is enough: nothing would tell it from one that was emptied first.
pub fn has_empty_file(start: &Tree) -> bool {
    start.nodes.values().any(|node| matches!(&node.kind, NodeKind::File(data) if data.is_empty()))
}

/// No file that was there at the start and holds something was opened for writing before it was read or emptied: what was
/// written then overwrote nothing that the log does not tell of.
pub fn tells_overwrites(events: &[Event]) -> bool {
    let mut known = HashSet::new();
    for event in events {
        match &event.what {
            What::Read { file, .. } => _ = known.insert(*file),
            What::Op(op) => {
                if let OpKind::Create { file, .. } | OpKind::Truncate { file, by_open: true, .. } =
                    &op.kind
                {
                    known.insert(*file);
                }
            }
            What::Open { file, writable: true, .. } if !known.contains(file) => return false,
            _ => {}
        }
    }
    true
}
