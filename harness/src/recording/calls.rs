//! Call sites: from where in a program its ops were made.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::op::path;

/// So many frames of a stack are kept at most, counted from the call.
pub const FRAMES_MAX: usize = 64;

/// A place in code: the call itself, or where a function of the stack was called.
///
/// `Display` is what reports print: `at save.c:41 in save_state (save+0x1234)`, and without line numbers
/// `at save_state+0x17 (save+0x1234)`, and without symbols `at save+0x1234`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallSite {
    /// The executable or library, at the path at which the program had it; `[vdso]` and the like for what is in no file.
    #[serde(with = "path")]
    pub module: PathBuf,
    /// The address in the module, as its own tables count them: `addr2line -e MODULE ADDRESS` takes it. For a caller it is the
    /// last byte of its call instruction.
    pub address: u64,
    /// The build id of the module, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
    /// The function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Where only the symbol table tells of it: how many bytes the address lies behind the function's beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function_offset: Option<u64>,
    /// The source file, as the debugging information names it.
    #[serde(default, with = "path::option", skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The folder in which the compiler ran: reports leave it out of the file's path.
    #[serde(default, with = "path::option", skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// The line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The function stands inlined in the one of the next frame, at the same address.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inlined: bool,
}

impl CallSite {
    /// A site of which nothing is known but its address in a module.
    pub(crate) fn at(module: impl Into<PathBuf>, address: u64) -> CallSite {
        CallSite {
            module: module.into(),
            address,
            build_id: None,
            function: None,
            function_offset: None,
            file: None,
            folder: None,
            line: None,
            inlined: false,
        }
    }

    /// The source file from the folder in which the compiler ran.
    fn shown_file(&self) -> Option<&Path> {
        let file = self.file.as_deref()?;
        Some(self.folder.as_ref().and_then(|folder| file.strip_prefix(folder).ok()).unwrap_or(file))
    }
}

impl fmt::Display for CallSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let module = self.module.file_name().unwrap_or(self.module.as_os_str());
        let place = format!("{}+{:#x}", module.display(), self.address);
        f.write_str("at ")?;
        match (self.shown_file(), self.line, &self.function) {
            (Some(file), Some(line), Some(function)) => {
                write!(f, "{}:{line} in {function} ({place})", file.display())
            }
            (Some(file), Some(line), None) => write!(f, "{}:{line} ({place})", file.display()),
            (_, _, Some(function)) => match self.function_offset {
                Some(offset) => write!(f, "{function}+{offset:#x} ({place})"),
                None => write!(f, "{function} ({place})"),
            },
            (_, _, None) => f.write_str(&place),
        }
    }
}

/// The stack of a thread at an op, from the call outwards.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Stack {
    /// At most [`FRAMES_MAX`] frames, and the functions that are inlined in them.
    pub sites: Vec<Arc<CallSite>>,
    /// Which of them is to be told: the first that lies in the program's own code rather than in a library of the system.
    pub told: Option<usize>,
    /// The stack was followed to its outermost frame.
    pub whole: bool,
}

impl Stack {
    /// The call site that is to be told.
    pub fn site(&self) -> Option<&CallSite> {
        self.told.and_then(|told| self.sites.get(told)).map(Arc::as_ref)
    }
}

/// From where the ops of a run were made, as far as it is known; empty where nobody asked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Calls {
    stacks: Vec<Arc<Stack>>,
    /// The place of its stack, by the number of an op.
    of_op: BTreeMap<u32, usize>,
}

impl Calls {
    /// Nothing is known.
    pub fn is_empty(&self) -> bool {
        self.of_op.is_empty()
    }

    /// The stack at the op of this number.
    pub fn stack(&self, op: u32) -> Option<&Arc<Stack>> {
        self.of_op.get(&op).and_then(|place| self.stacks.get(*place))
    }

    /// The call site of this op that is to be told.
    pub fn site(&self, op: u32) -> Option<&CallSite> {
        self.stack(op).and_then(|stack| stack.site())
    }

    /// Takes in a stack, and the numbers of the ops that were made with it.
    pub fn add(&mut self, stack: Stack, ops: impl IntoIterator<Item = u32>) {
        let place = self.stacks.len();
        self.stacks.push(Arc::new(stack));
        self.of_op.extend(ops.into_iter().map(|op| (op, place)));
    }

    /// The stacks, each with its ops.
    pub(super) fn by_stack(&self) -> Vec<(&Stack, Vec<u32>)> {
        let mut all: Vec<(&Stack, Vec<u32>)> =
            self.stacks.iter().map(|stack| (stack.as_ref(), Vec::new())).collect();
        for (op, place) in &self.of_op {
            all[*place].1.push(*op);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_site_is_told_as_far_as_it_is_known() {
        let mut site = CallSite::at("/opt/bin/save", 0x1234);
        assert_eq!(site.to_string(), "at save+0x1234");
        site.function = Some("save_state".into());
        site.function_offset = Some(0x17);
        assert_eq!(site.to_string(), "at save_state+0x17 (save+0x1234)");
        site.file = Some("/home/u/job/src/save.c".into());
        site.line = Some(41);
        assert_eq!(site.to_string(), "at /home/u/job/src/save.c:41 in save_state (save+0x1234)");
        site.folder = Some("/home/u/job".into());
        assert_eq!(site.to_string(), "at src/save.c:41 in save_state (save+0x1234)");
        site.function = None;
        assert_eq!(site.to_string(), "at src/save.c:41 (save+0x1234)");
    }
}
