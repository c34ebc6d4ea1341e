//! Which calls are the same in every run that has made no others before.

use crate::sys::arch;
use crate::sys::ptrace::Entry;

/// A path that a call looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Path {
    /// The folder's descriptor, or `AT_FDCWD`.
    pub(super) folder: i32,
    /// Where it is in memory.
    pub(super) address: u64,
    /// Through a link at its end too.
    pub(super) follow: bool,
    /// That it is empty means the descriptor itself.
    pub(super) may_be_empty: bool,
    /// It is looked at from outside: neither its bytes nor the names in it are told.
    pub(super) from_outside: bool,
}

/// What a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// It does the same in every run, and what it leaves a process is left to its copies too.
    Same,
    /// The same, where the path leads past what is watched.
    Looks(Path),
    /// It tells the program who it is: a copy would be somebody else.
    AsksWho,
    /// Anything else.
    Other,
}

const READ_ONLY: i32 = libc::O_ACCMODE
    | libc::O_CREAT
    | libc::O_TRUNC
    | libc::O_APPEND
    | libc::O_PATH
    | libc::O_TMPFILE & !libc::O_DIRECTORY;

/// What `fcntl` does with a descriptor alone.
const DESCRIPTOR_COMMANDS: [i32; 5] =
    [libc::F_GETFD, libc::F_SETFD, libc::F_GETFL, libc::F_DUPFD, libc::F_DUPFD_CLOEXEC];

/// What copies do not get as it is, or not at all.
const ADVICE_ON_FORK: [i32; 4] =
    [libc::MADV_DONTFORK, libc::MADV_DOFORK, libc::MADV_WIPEONFORK, libc::MADV_KEEPONFORK];

const HARMLESS_PRCTLS: [i32; 4] =
    [libc::PR_SET_NAME, libc::PR_GET_NAME, libc::PR_CAPBSET_READ, libc::PR_SET_VMA];

/// What sort of call this is.
pub(super) fn sort(entry: &Entry) -> Sort {
    let Ok(number) = i64::try_from(entry.number) else { return Sort::Other };
    let args = entry.args;
    let int = |index: usize| args[index] as i32;
    let same_if = |harmless: bool| if harmless { Sort::Same } else { Sort::Other };
    let at = |folder: i32, address: u64, follow: bool| Path {
        folder,
        address,
        follow,
        may_be_empty: false,
        from_outside: true,
    };
    let here = |address: u64, follow: bool| at(libc::AT_FDCWD, address, follow);
    let with_flags = |flags: i32| Path {
        may_be_empty: flags & libc::AT_EMPTY_PATH != 0,
        ..at(int(0), args[1], flags & libc::AT_SYMLINK_NOFOLLOW == 0)
    };
    let opens = |path: Path, flags: i32| match flags & READ_ONLY {
        0 => {
            Sort::Looks(Path { follow: flags & libc::O_NOFOLLOW == 0, from_outside: false, ..path })
        }
        _ => Sort::Other,
    };
    match number {
        arch::OPEN => opens(here(args[0], true), int(1)),
        libc::SYS_openat => opens(at(int(0), args[1], true), int(2)),
        arch::ACCESS | arch::STAT | libc::SYS_chdir | libc::SYS_statfs => {
            Sort::Looks(here(args[0], true))
        }
        libc::SYS_getxattr | libc::SYS_listxattr => Sort::Looks(here(args[0], true)),
        arch::LSTAT | arch::READLINK => Sort::Looks(here(args[0], false)),
        libc::SYS_readlinkat => Sort::Looks(at(int(0), args[1], false)),
        libc::SYS_faccessat => Sort::Looks(at(int(0), args[1], true)),
        libc::SYS_faccessat2 | arch::NEWFSTATAT => Sort::Looks(with_flags(int(3))),
        libc::SYS_statx => Sort::Looks(with_flags(int(2))),
        // It becomes another program, or stays what it is.
        libc::SYS_execve => Sort::Looks(here(args[0], true)),
        libc::SYS_getpid | arch::GETPGRP | libc::SYS_getpgid | libc::SYS_getsid => Sort::AsksWho,
        libc::SYS_mmap => {
            let shared = int(3) & libc::MAP_TYPE != libc::MAP_PRIVATE;
            let anonymous = int(3) & libc::MAP_ANONYMOUS != 0;
            same_if(!shared || !anonymous && int(2) & libc::PROT_WRITE == 0)
        }
        libc::SYS_madvise => same_if(!ADVICE_ON_FORK.contains(&int(2))),
        libc::SYS_fcntl => same_if(DESCRIPTOR_COMMANDS.contains(&int(1))),
        libc::SYS_prctl => same_if(HARMLESS_PRCTLS.contains(&int(0))),
        libc::SYS_prlimit64 => same_if(int(0) == 0),
        libc::SYS_ioctl => same_if([libc::TCGETS, libc::TIOCGWINSZ, libc::FIOCLEX].contains(&args[1])),
        libc::SYS_futex => same_if(int(1) & libc::FUTEX_CMD_MASK == libc::FUTEX_WAKE),
        // What others write there is another thing each time.
        libc::SYS_read | libc::SYS_readv => same_if(!(1..=2).contains(&int(0))),
        arch::POLL => same_if(args[2] == 0),
        arch::GETDENTS
        | arch::ARCH_PRCTL
        | arch::TIME
        | libc::SYS_pread64
        | libc::SYS_fstat
        | libc::SYS_lseek
        | libc::SYS_getdents64
        | libc::SYS_close
        | libc::SYS_dup
        | libc::SYS_dup3
        | libc::SYS_brk
        | libc::SYS_munmap
        | libc::SYS_mprotect
        | libc::SYS_mremap
        | libc::SYS_rt_sigaction
        | libc::SYS_rt_sigprocmask
        | libc::SYS_sigaltstack
        | libc::SYS_set_tid_address
        | libc::SYS_set_robust_list
        | libc::SYS_rseq
        | libc::SYS_getrandom
        | libc::SYS_uname
        | libc::SYS_sysinfo
        | libc::SYS_getcwd
        | libc::SYS_umask
        | libc::SYS_getuid
        | libc::SYS_geteuid
        | libc::SYS_getgid
        | libc::SYS_getegid
        | libc::SYS_getresuid
        | libc::SYS_getresgid
        | libc::SYS_getgroups
        // The same for copies, which have the same parent.
        | libc::SYS_getppid
        // Nobody is signalled by it, and nobody asks whether it lives: see `ForkServer`.
        | libc::SYS_gettid
        | libc::SYS_sched_getaffinity
        | libc::SYS_sched_yield
        | libc::SYS_membarrier
        | libc::SYS_clock_gettime
        | libc::SYS_clock_getres
        | libc::SYS_gettimeofday => Sort::Same,
        _ => Sort::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(number: i64, args: [u64; 6]) -> Sort {
        sort(&Entry { data: 0, number: number.cast_unsigned(), args })
    }

    #[test]
    fn what_changes_something_or_is_shared_is_no_same_call() {
        let cwd = libc::AT_FDCWD as u64;
        let open = |flags: i32| of(libc::SYS_openat, [cwd, 1, flags as u64, 0, 0, 0]);
        assert!(matches!(open(libc::O_RDONLY | libc::O_CLOEXEC), Sort::Looks(_)));
        assert!(matches!(open(libc::O_RDONLY | libc::O_DIRECTORY), Sort::Looks(_)));
        for flags in [libc::O_WRONLY, libc::O_RDWR, libc::O_CREAT, libc::O_TRUNC, libc::O_TMPFILE] {
            assert_eq!(open(flags), Sort::Other, "{flags:o}");
        }
        let map = |protection: i32, flags: i32| {
            of(libc::SYS_mmap, [0, 1, protection as u64, flags as u64, 3, 0])
        };
        let both = libc::PROT_READ | libc::PROT_WRITE;
        assert_eq!(map(both, libc::MAP_PRIVATE), Sort::Same);
        assert_eq!(map(libc::PROT_READ, libc::MAP_SHARED), Sort::Same);
        assert_eq!(map(both, libc::MAP_SHARED), Sort::Other);
        assert_eq!(map(both, libc::MAP_SHARED_VALIDATE), Sort::Other);
        assert_eq!(map(libc::PROT_READ, libc::MAP_SHARED | libc::MAP_ANONYMOUS), Sort::Other);
        for number in [
            libc::SYS_write,
            libc::SYS_clone,
            libc::SYS_kill,
            libc::SYS_exit_group,
            libc::SYS_pipe2,
            libc::SYS_setitimer,
            libc::SYS_socket,
            libc::SYS_wait4,
        ] {
            assert_eq!(of(number, [0; 6]), Sort::Other, "{number}");
        }
        assert_eq!(of(libc::SYS_getpid, [0; 6]), Sort::AsksWho);
        assert_eq!(of(libc::SYS_read, [1, 0, 0, 0, 0, 0]), Sort::Other);
        assert_eq!(of(libc::SYS_read, [3, 0, 0, 0, 0, 0]), Sort::Same);
    }
}
