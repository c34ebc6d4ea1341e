//! Disk models: what a file system guarantees of the ops before a power cut, as one table.
//!
//! A model is data. What each of its values means for the parts of a log is in [`legal`](super::legal), and what it says to
//! a reader, with the source, is here beside it.

use std::fmt;
use std::str::FromStr;

/// What a file system guarantees after a power cut.
#[derive(Debug, PartialEq, Eq)]
pub struct DiskModel {
    /// As it is written on the command line and in scenarios.
    pub name: &'static str,
    /// What it stands for.
    pub about: &'static str,
    /// So many bytes of data, at multiples of so many, persist as one. A power of two.
    pub block: u64,
    /// The order in which names, attributes and truncations persist.
    pub order: Order,
    /// When a file that a write made longer is that long on disk.
    pub growth: Growth,
    /// What a new block holds before its data is there.
    pub unwritten: Unwritten,
    /// What a rename over another file waits for.
    pub replace: Replace,
    /// What fsync of a file persists beside the file.
    pub fsync: Fsync,
}

/// The order in which parts persist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Everything in the order of the log.
    Everything,
    /// Names, attributes and truncations in the order of one log.
    Metadata,
    /// Nothing but what is on one name, one size or one block.
    Nothing,
}

/// When a file that a write made longer is that long on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// At its own time, whether the data is there or not: what is missing reads as NULs.
    ByItself,
    /// After the data.
    AfterData,
}

/// What is found in a block that was given to a file and whose data is not on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unwritten {
    /// NULs: the file system knows that it was not written.
    Zeros,
    /// NULs, or what the block held before, as a part of another file.
    ZerosOrOld,
}

/// What a rename over another file waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    /// Nothing.
    Nothing,
    /// The size of the new file.
    Size,
    /// Its data and its size.
    Data,
}

/// What fsync of a file persists beside the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fsync {
    /// All of the log up to the last op on the file: its name as well, and what came before.
    LogUpToIt,
    /// Nothing: names are persisted by fsync of their folder.
    FileAlone,
}

/// The first is the one that is tried where none is named.
pub const MODELS: [DiskModel; 7] = [EXT4, DIOREAD_LOCK, NO_AUTO, XFS, BTRFS, POSIX, ORDERED];

const EXT4: DiskModel = DiskModel {
    name: "ext4",
    about: "ext4 as it is mounted by default",
    block: 4096,
    order: Order::Metadata,
    growth: Growth::ByItself,
    unwritten: Unwritten::Zeros,
    replace: Replace::Size,
    fsync: Fsync::LogUpToIt,
};

const DIOREAD_LOCK: DiskModel = DiskModel {
    name: "ext4-dioread-lock",
    about: "ext4 with the mount option dioread_lock",
    growth: Growth::AfterData,
    replace: Replace::Data,
    ..EXT4
};

const NO_AUTO: DiskModel = DiskModel {
    name: "ext4-noauto",
    about: "ext4 with the mount option noauto_da_alloc",
    replace: Replace::Nothing,
    ..EXT4
};

const XFS: DiskModel = DiskModel {
    name: "xfs",
    about: "XFS",
    growth: Growth::AfterData,
    replace: Replace::Nothing,
    ..EXT4
};

const BTRFS: DiskModel = DiskModel {
    name: "btrfs",
    about: "Btrfs",
    order: Order::Nothing,
    growth: Growth::AfterData,
    replace: Replace::Nothing,
    fsync: Fsync::FileAlone,
    ..EXT4
};

const POSIX: DiskModel = DiskModel {
    name: "posix",
    about: "nothing but what POSIX promises, on a disk with sectors of 512 bytes",
    block: 512,
    order: Order::Nothing,
    growth: Growth::ByItself,
    unwritten: Unwritten::ZerosOrOld,
    replace: Replace::Nothing,
    fsync: Fsync::FileAlone,
};

const ORDERED: DiskModel = DiskModel {
    name: "ordered",
    about: "all ops persist in their order, as after a kill",
    order: Order::Everything,
    ..EXT4
};

/// One rule of a model, for a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// What is so.
    pub text: &'static str,
    /// Where that is from.
    pub source: &'static str,
}

impl DiskModel {
    /// Its rules, in the order of its fields.
    pub fn rules(&self) -> Vec<Rule> {
        match self.order {
            Order::Everything => vec![self.order.rule()],
            _ => vec![
                block_rule(self.block),
                self.order.rule(),
                self.growth.rule(),
                self.unwritten.rule(),
                self.replace.rule(),
                self.fsync.rule(),
            ],
        }
    }

    /// The names of all models, parted by commas.
    pub fn names() -> String {
        MODELS.each_ref().map(|model| model.name).join(", ")
    }
}

impl fmt::Display for DiskModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// There is no disk model of that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is none of {names}", names = DiskModel::names())]
pub struct NoSuchModel(String);

impl FromStr for &'static DiskModel {
    type Err = NoSuchModel;

    fn from_str(name: &str) -> Result<Self, NoSuchModel> {
        let found = MODELS.iter().find(|model| model.name == name);
        found.ok_or_else(|| NoSuchModel(name.to_owned()))
    }
}

fn block_rule(block: u64) -> Rule {
    match block {
        512 => Rule {
            text: "data persists sector by sector, 512 bytes at a time",
            source: "Pillai et al., All File Systems Are Not Created Equal, OSDI 2014, section 3",
        },
        _ => Rule {
            text: "data that is overwritten in place persists at any time, 4,096 bytes at a time",
            source: "Linux, Documentation/filesystems/vfs.rst, on writeback: by pages of the page cache",
        },
    }
}

impl Order {
    fn rule(self) -> Rule {
        match self {
            Order::Everything => Rule {
                text: "everything persists in the order in which it was done",
                source: "by definition; `kill` derives the same states",
            },
            Order::Metadata => Rule {
                text: "names, attributes and truncations persist in the order in which they were done",
                source: "Linux, Documentation/filesystems/journalling.rst and xfs/xfs-delayed-logging-design.rst: \
                         transactions are replayed in the order of the log",
            },
            Order::Nothing => Rule {
                text: "changes of different files and names persist in any order; a rename is whole or not there",
                source: "POSIX.1-2017, rename(): atomic; no order is promised. Linux, fs/btrfs/tree-log.c: an fsync \
                         writes one file ahead of the transaction",
            },
        }
    }
}

impl Growth {
    fn rule(self) -> Rule {
        match self {
            Growth::ByItself => Rule {
                text: "a file that was written beyond its end can be long before its data is there: NULs",
                source: "Linux, fs/ext4/inode.c, mpage_map_and_submit_extent: i_disksize is set when the blocks are \
                         allocated, and unwritten ones read as zeros",
            },
            Growth::AfterData => Rule {
                text: "a file is long on disk only after its data is there, at a time of its own",
                source: "Linux, fs/xfs/xfs_aops.c, xfs_end_ioend, and fs/btrfs/inode.c, btrfs_finish_one_ordered: the size \
                         is set when the data has been written; admin-guide/ext4.rst, data=ordered",
            },
        }
    }
}

impl Unwritten {
    fn rule(self) -> Rule {
        match self {
            Unwritten::Zeros => Rule {
                text: "a block whose data is not there yet never shows what it held before",
                source: "Linux, fs/ext4/inode.c, ext4_map_blocks: new blocks are marked unwritten, or the commit waits for \
                         their data; xfs and btrfs: the size or the extent is there only after the data",
            },
            Unwritten::ZerosOrOld => Rule {
                text: "a block whose data is not there yet reads as NULs, or as what it held before",
                source: "Pillai et al., OSDI 2014, section 3: an append that is long before its data holds NULs or garbage; \
                         admin-guide/ext4.rst, data=writeback",
            },
        }
    }
}

impl Replace {
    fn rule(self) -> Rule {
        match self {
            Replace::Nothing => Rule {
                text: "a rename over another file can be there before anything of the new file: empty",
                source: "admin-guide/ext4.rst, noauto_da_alloc; no such rule in fs/xfs; observed on btrfs, Linux 6.18",
            },
            Replace::Size => Rule {
                text: "a rename over another file starts to write the new one, and is not there before its length",
                source: "Linux, fs/ext4/namei.c, ext4_rename, and inode.c, ext4_alloc_da_blocks: the write is begun and not \
                         waited for; ext4_map_blocks: nor by the commit, of blocks marked unwritten (observed, Linux 6.18)",
            },
            Replace::Data => Rule {
                text: "a rename over another file is not there before the data of the new one, as far as its blocks are new",
                source: "Linux, fs/ext4/inode.c, ext4_map_blocks: a commit waits for new blocks that are not marked unwritten; \
                         ext4_alloc_da_blocks: nothing is begun where no block is new (observed, Linux 6.18)",
            },
        }
    }
}

impl Fsync {
    fn rule(self) -> Rule {
        match self {
            Fsync::LogUpToIt => Rule {
                text: "fsync of a file also persists its name, and all names that changed before the last change of the file",
                source: "Linux, fs/ext4/fsync.c, ext4_fsync_journal, and fs/xfs/xfs_file.c, xfs_fsync_flush_log: the log is \
                         written up to the last transaction of the file",
            },
            Fsync::FileAlone => Rule {
                text: "fsync of a file persists the file; its name is persisted by fsync of its folder",
                source: "POSIX.1-2017, fsync(); fsync(2), Notes",
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_model_is_found_by_its_name_and_says_where_its_rules_are_from() {
        for model in &MODELS {
            assert_eq!(model.name.parse(), Ok(model));
            assert!(model.block.is_power_of_two());
            assert!(model.rules().iter().all(|rule| !rule.source.is_empty()));
        }
        let error = "ext5".parse::<&DiskModel>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`ext5` is none of ext4, ext4-dioread-lock, ext4-noauto, xfs, btrfs, posix, ordered"
        );
    }
}
