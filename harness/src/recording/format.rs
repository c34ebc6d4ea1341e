//! What a recording file is made of: a first line, then frames. `docs/recording-format.md` says the same for people.

use serde::{Deserialize, Serialize};

use crate::op::Event;
use crate::op::path;

/// The newest version of the format: it can hold call sites. The lab reads this one and those before.
pub const FORMAT_VERSION: u32 = 2;

/// The first version, which holds no call sites. It is what is written where there are none, for labs that know no other.
pub(super) const WITHOUT_CALLS: u32 = 1;

/// What the first line begins with; a number and a line feed follow.
pub(super) const FIRST_WORDS: &str = "crashlab recording ";

/// The first line, in bytes, is no longer than this.
pub(super) const FIRST_LINE_MAX: u64 = 64;

/// The whole first line of a file of this version.
pub(super) fn first_line(version: u32) -> String {
    format!("{FIRST_WORDS}{version}\n")
}

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// What was recorded, and how: a [`Header`](super::Header). The first frame, and only that.
    Header,
    /// Raw bytes, for the frames after it to point at.
    Bytes,
    /// A run begins.
    Run,
    /// An entry of the tree before the run.
    Before,
    /// An event of the run.
    Event,
    /// A call site of the run, for stacks to point at. From version 2 on.
    Site,
    /// A stack of the run, and the ops that were made with it. From version 2 on.
    Stack,
    /// A gap of the run.
    Gap,
    /// How a program of the run ended.
    End,
    /// An entry of the tree after the run.
    After,
    /// The run is whole.
    Done,
    /// The file is whole. The last frame, and only that.
    Whole,
}

impl Kind {
    const ALL: [Kind; 12] = [
        Kind::Header,
        Kind::Bytes,
        Kind::Run,
        Kind::Before,
        Kind::Event,
        Kind::Site,
        Kind::Stack,
        Kind::Gap,
        Kind::End,
        Kind::After,
        Kind::Done,
        Kind::Whole,
    ];

    /// What the frame begins with.
    pub(super) fn tag(self) -> [u8; 4] {
        *match self {
            Kind::Header => b"head",
            Kind::Bytes => b"byte",
            Kind::Run => b"run ",
            Kind::Before => b"befo",
            Kind::Event => b"evnt",
            Kind::Site => b"site",
            Kind::Stack => b"stck",
            Kind::Gap => b"gap ",
            Kind::End => b"end ",
            Kind::After => b"aftr",
            Kind::Done => b"done",
            Kind::Whole => b"whol",
        }
    }

    /// The kind of frame that begins so in a file of this version.
    pub(super) fn of(tag: [u8; 4], version: u32) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.tag() == tag && kind.since() <= version)
    }

    /// The first version that has such frames.
    fn since(self) -> u32 {
        match self {
            Kind::Site | Kind::Stack => 2,
            _ => 1,
        }
    }
}

/// A tag, and the length of what follows in bytes.
pub(super) const HEAD_BYTES: usize = 12;

/// Text in a frame is no longer than this, in bytes.
pub(super) const TEXT_MAX: u64 = 64 << 20;

/// The head of a frame.
pub(super) fn head(kind: Kind, len: u64) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(&kind.tag());
    head[4..].copy_from_slice(&len.to_le_bytes());
    head
}

/// How many bytes a sum has.
pub(super) const SUM_BYTES: usize = 16;

/// The sum at the end of each frame. It takes in the sum before it, so that the last one is that of the whole file, and each
/// that of the file up to there.
#[derive(Clone)]
pub(super) struct Sum {
    last: [u8; SUM_BYTES],
    hasher: blake3::Hasher,
}

impl std::fmt::Debug for Sum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sum").field("last", &self.last).finish_non_exhaustive()
    }
}

impl Sum {
    /// Before the first frame: of the first line.
    pub(super) fn begin(first_line: &str) -> Sum {
        let mut sum = Sum { last: [0; SUM_BYTES], hasher: blake3::Hasher::new() };
        sum.add(first_line.as_bytes());
        sum.end(&[]);
        sum
    }

    /// Takes in a part of a frame's content.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
    }

    /// The sum of the frame whose content was taken in, and whose head is this.
    pub(super) fn end(&mut self, head: &[u8]) -> [u8; SUM_BYTES] {
        self.hasher.update(head);
        self.hasher.update(&self.last);
        let whole = self.hasher.finalize();
        self.last.copy_from_slice(&whole.as_bytes()[..SUM_BYTES]);
        self.hasher.reset();
        self.last
    }
}

/// A part of the file: the place of its first byte, and how many there are. It lies in one frame of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place(pub(super) u64, pub(super) u64);

/// A run begins.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunLine {
    /// From 1.
    pub(super) run: usize,
}

/// An event, its bytes left out.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventLine<E> {
    pub(super) event: E,
    /// The bytes that it wrote or printed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<Place>,
}

pub(super) type OwnEventLine = EventLine<Event>;

/// A stack, from the call outwards, and the ops that were made with it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StackLine {
    /// The call sites, by their order in the run, from 0.
    pub(super) sites: Vec<usize>,
    /// Which of these is to be told, from 0.
    pub(super) told: Option<usize>,
    pub(super) whole: bool,
    /// The numbers of the ops.
    pub(super) ops: Vec<u32>,
}

/// An entry of a tree.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NodeLine {
    #[serde(with = "path")]
    pub(super) path: std::path::PathBuf,
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// Names of one file have the first of them here, in the order of the paths.
    #[serde(default, with = "path::option", skip_serializing_if = "Option::is_none")]
    pub(super) hard_link: Option<std::path::PathBuf>,
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub(super) xattrs: std::collections::BTreeMap<String, Vec<u8>>,
    pub(super) kind: NodeKindLine,
}

/// What an entry of a tree is.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) enum NodeKindLine {
    File {
        /// In bytes, with the holes.
        size: u64,
        /// Where in the file which bytes of the recording stand; between them are holes.
        parts: Vec<(u64, Place)>,
    },
    Folder,
    Link(#[serde(with = "path")] std::path::PathBuf),
    Fifo,
    Socket,
    Device {
        block: bool,
        number: u64,
    },
}

/// How a program ended.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EndLine {
    pub(super) exit: crate::subject::Exit,
    pub(super) stdout: Option<Place>,
    pub(super) stderr: Option<Place>,
    pub(super) elapsed_ns: u64,
}

/// The run is whole.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DoneLine {
    pub(super) elapsed_ns: u64,
}

/// The file is whole.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WholeLine {
    pub(super) runs: usize,
}
