//! Damages that have no place: a file can have each of them once.

use super::{Original, Remains, bytes, edit};

/// A damage that has no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "`what` says it")]
pub enum Whole {
    Truncated,
    Empty,
    NotAnObject,
    UnknownField,
    MissingQueue,
    QueueIsAString,
    AnswersIsAList,
    DuplicatedTail,
    NulFilled,
    SwappedBlocks,
    OlderVersion,
    Crlf,
    ByteOrderMark,
    NotUtf8,
    Directory,
    Unreadable,
    DanglingLink,
    Socket,
    Fifo,
}

impl Whole {
    /// All of them.
    pub const ALL: [Whole; 19] = [
        Whole::Truncated,
        Whole::Empty,
        Whole::NotAnObject,
        Whole::UnknownField,
        Whole::MissingQueue,
        Whole::QueueIsAString,
        Whole::AnswersIsAList,
        Whole::DuplicatedTail,
        Whole::NulFilled,
        Whole::SwappedBlocks,
        Whole::OlderVersion,
        Whole::Crlf,
        Whole::ByteOrderMark,
        Whole::NotUtf8,
        Whole::Directory,
        Whole::Unreadable,
        Whole::DanglingLink,
        Whole::Socket,
        Whole::Fifo,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Whole::Truncated => "truncated",
            Whole::Empty => "empty",
            Whole::NotAnObject => "not-an-object",
            Whole::UnknownField => "unknown-field",
            Whole::MissingQueue => "missing-queue",
            Whole::QueueIsAString => "queue-is-a-string",
            Whole::AnswersIsAList => "answers-is-a-list",
            Whole::DuplicatedTail => "duplicated-tail",
            Whole::NulFilled => "nul-filled",
            Whole::SwappedBlocks => "swapped-blocks",
            Whole::OlderVersion => "older-version",
            Whole::Crlf => "crlf",
            Whole::ByteOrderMark => "byte-order-mark",
            Whole::NotUtf8 => "not-utf8",
            Whole::Directory => "directory",
            Whole::Unreadable => "unreadable",
            Whole::DanglingLink => "dangling-link",
            Whole::Socket => "socket",
            Whole::Fifo => "fifo",
        }
    }

    /// What it does, as a phrase.
    pub fn what(self) -> &'static str {
        match self {
            Whole::Truncated => "cut at half, as by a write that was not finished",
            Whole::Empty => "cut to no bytes at all",
            Whole::NotAnObject => "the JSON object put into a list",
            Whole::UnknownField => "one more field at the end of the JSON object",
            Whole::MissingQueue => "the field `queue` taken out",
            Whole::QueueIsAString => "a string as the value of `queue`",
            Whole::AnswersIsAList => "an empty list as the value of `answers`",
            Whole::DuplicatedTail => "its second half twice, as of a longer file that was not cut",
            Whole::NulFilled => "all NULs, as when a power cut came before its data",
            Whole::SwappedBlocks => "its first two blocks (512 bytes) in each other's place",
            Whole::OlderVersion => "as it was before the run, as from a backup",
            Whole::Crlf => "a carriage return before each line feed",
            Whole::ByteOrderMark => "the bytes EF BB BF in front, as some editors put them",
            Whole::NotUtf8 => "a letter in the middle as Latin-1 has it, which is no UTF-8",
            Whole::Directory => "a folder in its place",
            Whole::Unreadable => "mode 000, and no right to override modes, also for root",
            Whole::DanglingLink => "a link in its place that leads nowhere",
            Whole::Socket => "a socket in its place",
            Whole::Fifo => "a named pipe in its place",
        }
    }

    pub(super) fn apply(self, file: Original<'_>) -> Result<Remains, String> {
        let bytes = file.bytes;
        Ok(Remains::Bytes(match self {
            Whole::Truncated => bytes::halved(bytes)?,
            Whole::Empty => bytes::empty(bytes)?,
            Whole::NotAnObject => edit::not_an_object(bytes)?,
            Whole::UnknownField => edit::unknown_field(bytes)?,
            Whole::MissingQueue => edit::without_field(bytes, "queue")?,
            Whole::QueueIsAString => {
                edit::with_field(bytes, "queue", ("a string", b"\"not a list\""))?
            }
            Whole::AnswersIsAList => edit::with_field(bytes, "answers", ("a list", b"[]"))?,
            Whole::DuplicatedTail => bytes::with_tail_twice(bytes)?,
            Whole::NulFilled => bytes::nul_filled(bytes)?,
            Whole::SwappedBlocks => bytes::with_blocks_swapped(bytes)?,
            Whole::OlderVersion => file.later.map(|_| bytes.to_vec()).ok_or(NO_LATER)?,
            Whole::Crlf => bytes::with_crlf(bytes)?,
            Whole::ByteOrderMark => bytes::with_byte_order_mark(bytes)?,
            Whole::NotUtf8 => bytes::with_latin_letter(bytes)?,
            Whole::Directory => return Ok(Remains::Folder),
            Whole::Unreadable => return Ok(Remains::Unreadable),
            Whole::DanglingLink => return Ok(Remains::DanglingLink),
            Whole::Socket => return Ok(Remains::Socket),
            Whole::Fifo => return Ok(Remains::Fifo),
        }))
    }
}

const NO_LATER: &str = "no other version is known: only the run of a scenario makes one";
