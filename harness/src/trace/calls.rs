//! The system calls that the tracer decodes, and which uses of each are worth a stop.

use std::sync::OnceLock;

use crate::sys::arch;
use crate::sys::seccomp::{self, Check};
use crate::trace::Detail;

macro_rules! calls {
    ($($name:ident = $number:expr, $text:literal;)*) => {
        /// A system call that the tracer knows.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(super) enum Call { $($name),* }

        impl Call {
            const ALL: &'static [Call] = &[$(Call::$name),*];

            /// Its number; negative where this processor does not have it.
            pub(super) fn number(self) -> i64 {
                match self { $(Call::$name => $number),* }
            }

            /// Its name.
            pub(super) fn name(self) -> &'static str {
                match self { $(Call::$name => $text),* }
            }
        }
    };
}

calls! {
    Open = arch::OPEN, "open";
    Creat = arch::CREAT, "creat";
    Openat = libc::SYS_openat, "openat";
    Openat2 = libc::SYS_openat2, "openat2";
    OpenByHandleAt = libc::SYS_open_by_handle_at, "open_by_handle_at";
    Access = arch::ACCESS, "access";
    Faccessat = libc::SYS_faccessat, "faccessat";
    Faccessat2 = libc::SYS_faccessat2, "faccessat2";
    Read = libc::SYS_read, "read";
    Readv = libc::SYS_readv, "readv";
    Pread64 = libc::SYS_pread64, "pread64";
    Preadv = libc::SYS_preadv, "preadv";
    Preadv2 = libc::SYS_preadv2, "preadv2";
    Write = libc::SYS_write, "write";
    Writev = libc::SYS_writev, "writev";
    Pwrite64 = libc::SYS_pwrite64, "pwrite64";
    Pwritev = libc::SYS_pwritev, "pwritev";
    Pwritev2 = libc::SYS_pwritev2, "pwritev2";
    CopyFileRange = libc::SYS_copy_file_range, "copy_file_range";
    Sendfile = libc::SYS_sendfile, "sendfile";
    Splice = libc::SYS_splice, "splice";
    Ioctl = libc::SYS_ioctl, "ioctl";
    Truncate = libc::SYS_truncate, "truncate";
    Ftruncate = libc::SYS_ftruncate, "ftruncate";
    Fallocate = libc::SYS_fallocate, "fallocate";
    Rename = arch::RENAME, "rename";
    Renameat = arch::RENAMEAT, "renameat";
    Renameat2 = libc::SYS_renameat2, "renameat2";
    Link = arch::LINK, "link";
    Linkat = libc::SYS_linkat, "linkat";
    Symlink = arch::SYMLINK, "symlink";
    Symlinkat = libc::SYS_symlinkat, "symlinkat";
    Unlink = arch::UNLINK, "unlink";
    Unlinkat = libc::SYS_unlinkat, "unlinkat";
    Mkdir = arch::MKDIR, "mkdir";
    Mkdirat = libc::SYS_mkdirat, "mkdirat";
    Rmdir = arch::RMDIR, "rmdir";
    Mknod = arch::MKNOD, "mknod";
    Mknodat = libc::SYS_mknodat, "mknodat";
    Bind = libc::SYS_bind, "bind";
    Chmod = arch::CHMOD, "chmod";
    Fchmod = libc::SYS_fchmod, "fchmod";
    Fchmodat = libc::SYS_fchmodat, "fchmodat";
    Fchmodat2 = 452, "fchmodat2";
    Chown = arch::CHOWN, "chown";
    Lchown = arch::LCHOWN, "lchown";
    Fchown = libc::SYS_fchown, "fchown";
    Fchownat = libc::SYS_fchownat, "fchownat";
    Utime = arch::UTIME, "utime";
    Utimes = arch::UTIMES, "utimes";
    Futimesat = arch::FUTIMESAT, "futimesat";
    Utimensat = libc::SYS_utimensat, "utimensat";
    Setxattr = libc::SYS_setxattr, "setxattr";
    Lsetxattr = libc::SYS_lsetxattr, "lsetxattr";
    Fsetxattr = libc::SYS_fsetxattr, "fsetxattr";
    Removexattr = libc::SYS_removexattr, "removexattr";
    Lremovexattr = libc::SYS_lremovexattr, "lremovexattr";
    Fremovexattr = libc::SYS_fremovexattr, "fremovexattr";
    Setxattrat = 463, "setxattrat";
    Removexattrat = 466, "removexattrat";
    FileSetattr = 469, "file_setattr";
    Fsync = libc::SYS_fsync, "fsync";
    Fdatasync = libc::SYS_fdatasync, "fdatasync";
    Sync = libc::SYS_sync, "sync";
    Syncfs = libc::SYS_syncfs, "syncfs";
    SyncFileRange = libc::SYS_sync_file_range, "sync_file_range";
    Msync = libc::SYS_msync, "msync";
    Mmap = libc::SYS_mmap, "mmap";
    Flock = libc::SYS_flock, "flock";
    Fcntl = libc::SYS_fcntl, "fcntl";
    Close = libc::SYS_close, "close";
    Dup2 = arch::DUP2, "dup2";
    Dup3 = libc::SYS_dup3, "dup3";
    CloseRange = libc::SYS_close_range, "close_range";
    Clone = libc::SYS_clone, "clone";
    Clone3 = libc::SYS_clone3, "clone3";
    ExitGroup = libc::SYS_exit_group, "exit_group";
    Execve = libc::SYS_execve, "execve";
    Execveat = libc::SYS_execveat, "execveat";
    Stat = arch::STAT, "stat";
    Lstat = arch::LSTAT, "lstat";
    Fstat = libc::SYS_fstat, "fstat";
    Newfstatat = arch::NEWFSTATAT, "newfstatat";
    Statx = libc::SYS_statx, "statx";
    Getxattr = libc::SYS_getxattr, "getxattr";
    Lgetxattr = libc::SYS_lgetxattr, "lgetxattr";
    Fgetxattr = libc::SYS_fgetxattr, "fgetxattr";
    Getxattrat = 464, "getxattrat";
    Listxattr = libc::SYS_listxattr, "listxattr";
    Llistxattr = libc::SYS_llistxattr, "llistxattr";
    Flistxattr = libc::SYS_flistxattr, "flistxattr";
    Listxattrat = 465, "listxattrat";
    Readlink = arch::READLINK, "readlink";
    Readlinkat = libc::SYS_readlinkat, "readlinkat";
    Getdents = arch::GETDENTS, "getdents";
    Getdents64 = libc::SYS_getdents64, "getdents64";
    Lseek = libc::SYS_lseek, "lseek";
    Chdir = libc::SYS_chdir, "chdir";
    Nanosleep = libc::SYS_nanosleep, "nanosleep";
    ClockNanosleep = libc::SYS_clock_nanosleep, "clock_nanosleep";
    Kill = libc::SYS_kill, "kill";
    Tkill = libc::SYS_tkill, "tkill";
    Tgkill = libc::SYS_tgkill, "tgkill";
    RtSigqueueinfo = libc::SYS_rt_sigqueueinfo, "rt_sigqueueinfo";
    RtTgsigqueueinfo = libc::SYS_rt_tgsigqueueinfo, "rt_tgsigqueueinfo";
    PidfdSendSignal = libc::SYS_pidfd_send_signal, "pidfd_send_signal";
    Ptrace = libc::SYS_ptrace, "ptrace";
    ProcessVmWritev = libc::SYS_process_vm_writev, "process_vm_writev";
    Chroot = libc::SYS_chroot, "chroot";
    PivotRoot = libc::SYS_pivot_root, "pivot_root";
    Prctl = libc::SYS_prctl, "prctl";
    IoUringSetup = libc::SYS_io_uring_setup, "io_uring_setup";
    IoSetup = libc::SYS_io_setup, "io_setup";
}

/// The bits of `open` with which it can change something.
pub(super) const OPEN_WRITES: u32 =
    (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC) as u32;

/// `ioctl` requests that change no file and that programs make often.
const HARMLESS_IOCTLS: &[u32] = &[
    libc::TCGETS as u32,
    libc::TCSETS as u32,
    libc::TCSETSW as u32,
    libc::TCSETSF as u32,
    libc::TIOCGWINSZ as u32,
    libc::TIOCGPGRP as u32,
    libc::TIOCSPGRP as u32,
    libc::FIONREAD as u32,
    libc::FIONBIO as u32,
    libc::FIOCLEX as u32,
    libc::FIONCLEX as u32,
    0x802c_542a, // TCGETS2, which newer C libraries use for isatty
];

/// Taking and letting go, and then asking for the locks that others have.
const LOCK_COMMANDS_AND_QUESTIONS: &[u32] = &[
    libc::F_SETLK as u32,
    libc::F_SETLKW as u32,
    libc::F_OFD_SETLK as u32,
    libc::F_OFD_SETLKW as u32,
    libc::F_GETLK as u32,
    libc::F_OFD_GETLK as u32,
];

const LOCK_COMMANDS: &[u32] = LOCK_COMMANDS_AND_QUESTIONS.split_at(4).0;

/// The signal that only asks whether there is somebody.
const PROBE: &[u32] = &[0];

/// Where the size, or what is written, tells where to go.
const SEEKS_BY_SIZE: &[u32] =
    &[libc::SEEK_END as u32, libc::SEEK_DATA as u32, libc::SEEK_HOLE as u32];

const ATTACHING: &[u32] = &[libc::PTRACE_ATTACH, libc::PTRACE_SEIZE];

impl Call {
    /// The call with this number.
    pub(super) fn from_number(number: u64) -> Option<Call> {
        let number = i64::try_from(number).ok()?;
        Call::ALL.iter().copied().find(|call| call.number() == number)
    }

    /// It changes contents through a descriptor, or nothing but what descriptors stand for: what it does to a file no
    /// later call undoes, and its beginning was seen when the file was opened.
    fn is_by_descriptor(self) -> bool {
        matches!(
            self,
            Call::Write
                | Call::Writev
                | Call::Pwrite64
                | Call::Pwritev
                | Call::Pwritev2
                | Call::Fsync
                | Call::Fdatasync
                | Call::Sync
                | Call::Syncfs
                | Call::SyncFileRange
                | Call::Msync
                | Call::Flock
                | Call::Fcntl
                | Call::Close
                | Call::Dup2
                | Call::Dup3
                | Call::CloseRange
        )
    }

    /// It takes a lock or can let one go.
    pub(super) fn can_change_locks(self) -> bool {
        matches!(
            self,
            Call::Flock | Call::Fcntl | Call::Close | Call::Dup2 | Call::Dup3 | Call::CloseRange
        )
    }

    /// It only looks, or waits: of interest where programs are held before each step.
    pub(super) fn is_look(self) -> bool {
        matches!(
            self,
            Call::Stat
                | Call::Lstat
                | Call::Fstat
                | Call::Newfstatat
                | Call::Statx
                | Call::Getxattr
                | Call::Lgetxattr
                | Call::Fgetxattr
                | Call::Getxattrat
                | Call::Listxattr
                | Call::Llistxattr
                | Call::Flistxattr
                | Call::Listxattrat
                | Call::Readlink
                | Call::Readlinkat
                | Call::Getdents
                | Call::Getdents64
                | Call::Lseek
                | Call::Chdir
                | Call::Nanosleep
                | Call::ClockNanosleep
        )
    }

    /// Which uses of it are stopped.
    fn check(self, reads: bool) -> Check {
        let with_reads = |yes: Check, no: Check| if reads { yes } else { no };
        match self {
            Call::Open => {
                with_reads(Check::Always, Check::AnyBit { argument: 1, bits: OPEN_WRITES })
            }
            Call::Openat => {
                with_reads(Check::Always, Check::AnyBit { argument: 2, bits: OPEN_WRITES })
            }
            Call::Read | Call::Readv | Call::Pread64 | Call::Preadv | Call::Preadv2 => {
                with_reads(Check::Always, Check::Never)
            }
            Call::Mmap => with_reads(
                Check::NoBit { argument: 3, bits: libc::MAP_ANONYMOUS as u32 },
                Check::AnyBit { argument: 3, bits: libc::MAP_SHARED as u32 },
            ),
            Call::Ioctl => Check::NoneOf { argument: 1, values: HARMLESS_IOCTLS },
            Call::Fcntl => Check::OneOf { argument: 1, values: LOCK_COMMANDS },
            Call::Prctl => Check::OneOf { argument: 0, values: &[libc::PR_SET_DUMPABLE as u32] },
            Call::Kill | Call::Tkill | Call::RtSigqueueinfo | Call::PidfdSendSignal => {
                Check::NoneOf { argument: 1, values: PROBE }
            }
            Call::Tgkill | Call::RtTgsigqueueinfo => Check::NoneOf { argument: 2, values: PROBE },
            Call::Lseek => Check::OneOf { argument: 2, values: SEEKS_BY_SIZE },
            Call::Ptrace => Check::OneOf { argument: 0, values: ATTACHING },
            Call::Clone => Check::AnyBit { argument: 0, bits: libc::CLONE_UNTRACED as u32 },
            // Both hand work to the kernel that no later call shows; run times fall back to plain calls.
            Call::IoUringSetup | Call::IoSetup => Check::Refuse(libc::ENOSYS as u16),
            _ => Check::Always,
        }
    }
}

/// The rules for the filter: each call that this processor has, with its check.
fn rules(detail: Detail, reads_are_told: bool) -> Vec<(u32, Check)> {
    let check = |call: &Call| match (detail, call) {
        (Detail::Overwrites, call) if call.is_by_descriptor() => Check::Never,
        // What is read is seen when it is read.
        (Detail::Overwrites, Call::Open | Call::Openat) => call.check(false),
        // Who asks whether another process lives learns something of the order.
        (Detail::Steps, Call::Kill) => Check::Always,
        (Detail::Steps, Call::Fcntl) => {
            Check::OneOf { argument: 1, values: LOCK_COMMANDS_AND_QUESTIONS }
        }
        (Detail::Steps, call) => call.check(true),
        (_, call) if call.is_look() => Check::Never,
        _ => call.check(detail != Detail::Changes && !reads_are_told),
    };
    let numbered = |call: &Call| Some((u32::try_from(call.number()).ok()?, check(call)));
    Call::ALL.iter().filter_map(numbered).collect()
}

/// The filter for a program; `reads_are_told` by something else, and need no stops.
pub(super) fn filter(detail: Detail, reads_are_told: bool) -> &'static [libc::sock_filter] {
    static FILTERS: [OnceLock<Vec<libc::sock_filter>>; 5] = [const { OnceLock::new() }; 5];
    let which = match (detail, reads_are_told) {
        (Detail::Changes, _) => 0,
        (Detail::Reads, _) => 1,
        (Detail::Overwrites, false) => 2,
        (Detail::Overwrites, true) => 3,
        (Detail::Steps, _) => 4,
    };
    let told = which == 3;
    FILTERS[which].get_or_init(|| seccomp::assemble(&rules(detail, told)))
}
