//! x86-64.
#![allow(unsafe_code)]

/// `AUDIT_ARCH_X86_64`: what seccomp calls this processor.
pub(crate) const AUDIT: u32 = 0xc000_003e;

/// Numbers from here on belong to the x32 interface, which is another table under the same audit name.
pub(crate) const FIRST_FOREIGN: Option<u32> = Some(0x4000_0000);

pub(crate) const OPEN: i64 = libc::SYS_open;
pub(crate) const CREAT: i64 = libc::SYS_creat;
pub(crate) const ACCESS: i64 = libc::SYS_access;
pub(crate) const RENAME: i64 = libc::SYS_rename;
pub(crate) const RENAMEAT: i64 = libc::SYS_renameat;
pub(crate) const LINK: i64 = libc::SYS_link;
pub(crate) const SYMLINK: i64 = libc::SYS_symlink;
pub(crate) const UNLINK: i64 = libc::SYS_unlink;
pub(crate) const MKDIR: i64 = libc::SYS_mkdir;
pub(crate) const RMDIR: i64 = libc::SYS_rmdir;
pub(crate) const MKNOD: i64 = libc::SYS_mknod;
pub(crate) const CHMOD: i64 = libc::SYS_chmod;
pub(crate) const CHOWN: i64 = libc::SYS_chown;
pub(crate) const LCHOWN: i64 = libc::SYS_lchown;
pub(crate) const UTIME: i64 = libc::SYS_utime;
pub(crate) const UTIMES: i64 = libc::SYS_utimes;
pub(crate) const FUTIMESAT: i64 = libc::SYS_futimesat;
pub(crate) const DUP2: i64 = libc::SYS_dup2;
pub(crate) const STAT: i64 = libc::SYS_stat;
pub(crate) const LSTAT: i64 = libc::SYS_lstat;
pub(crate) const NEWFSTATAT: i64 = libc::SYS_newfstatat;
pub(crate) const READLINK: i64 = libc::SYS_readlink;
pub(crate) const GETDENTS: i64 = libc::SYS_getdents;
pub(crate) const VFORK: i64 = libc::SYS_vfork;
pub(crate) const POLL: i64 = libc::SYS_poll;
pub(crate) const EPOLL_WAIT: i64 = libc::SYS_epoll_wait;
pub(crate) const ARCH_PRCTL: i64 = libc::SYS_arch_prctl;
pub(crate) const GETPGRP: i64 = libc::SYS_getpgrp;
pub(crate) const TIME: i64 = libc::SYS_time;

/// The number of the call at whose entry a thread stands is a register like others.
pub(crate) const CALL_NUMBER_NOTE: Option<usize> = None;

/// How many registers unwinding knows, by their DWARF numbers; after the last of them comes nothing that a frame restores.
pub(crate) const UNWIND_REGISTERS: usize = 17;
/// The DWARF number of the stack pointer.
pub(crate) const STACK_POINTER: usize = 7;
/// The DWARF number of the frame pointer.
pub(crate) const FRAME_POINTER: usize = 6;
/// How many bytes a frame that the frame pointer points at has: the caller's frame pointer, and the return address.
pub(crate) const FRAME_BYTES: u64 = 16;

/// The program counter, and the registers by their DWARF numbers.
pub(crate) fn unwind_registers(
    registers: &libc::user_regs_struct,
) -> (u64, [u64; UNWIND_REGISTERS]) {
    let r = registers;
    let by_number = [
        r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11, r.r12,
        r.r13, r.r14, r.r15, r.rip,
    ];
    (r.rip, by_number)
}

/// The address that a return address stands for.
pub(crate) fn plain_address(address: u64) -> u64 {
    address
}

/// Makes the call at whose entry the thread stands none, with this result.
pub(crate) fn answer(registers: &mut libc::user_regs_struct, result: i64) {
    registers.orig_rax = u64::MAX;
    registers.rax = result.cast_unsigned();
}

/// Sets the `index`th argument (from 0) of the call at whose entry the thread stands.
pub(crate) fn set_argument(registers: &mut libc::user_regs_struct, index: usize, value: u64) {
    let slot = match index {
        0 => &mut registers.rdi,
        1 => &mut registers.rsi,
        2 => &mut registers.rdx,
        3 => &mut registers.r10,
        4 => &mut registers.r8,
        _ => &mut registers.r9,
    };
    *slot = value;
}

/// At the exit of a call, makes the thread enter it again when it goes on; of its arguments only the result's register can
/// have changed, which is none here.
pub(crate) fn enter_again(registers: &mut libc::user_regs_struct, number: u64, _first: u64) {
    // `syscall` has two bytes.
    registers.rip -= 2;
    registers.rax = number;
}

/// At the entry of a call a tracer sees the registers as they are.
pub(crate) const ENTRY_IS_PLAIN: bool = true;

/// Where the thread stands after one call, makes it enter another when it goes on.
pub(crate) fn enter(registers: &mut libc::user_regs_struct, number: i64, args: &[u64]) {
    for (index, value) in args.iter().enumerate() {
        set_argument(registers, index, *value);
    }
    // `syscall` has two bytes. That it stands after another call is over and done: there is nothing to enter once more.
    registers.rip -= 2;
    registers.rax = number.cast_unsigned();
    registers.orig_rax = u64::MAX;
}

/// The arguments of `clone` for a process that goes on as its maker does.
pub(crate) fn clone_arguments(flags: u64, child_tid: u64) -> [u64; 5] {
    [flags, 0, 0, child_tid, 0]
}

/// Makes a system call and nothing else: the answer is a negative error number where it failed, and `errno` stays as it is.
///
/// # Safety
///
/// As for the call itself.
pub(crate) unsafe fn call(number: i64, args: [usize; 5]) -> i64 {
    let answer: i64;
    // SAFETY: the kernel changes the answer's register and these two; what else the call touches is the caller's word.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number => answer,
            in("rdi") args[0],
            in("rsi") args[1],
            in("rdx") args[2],
            in("r10") args[3],
            in("r8") args[4],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    answer
}
