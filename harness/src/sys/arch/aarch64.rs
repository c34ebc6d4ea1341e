//! aarch64: the generic call table, without the older forms.
#![allow(unsafe_code)]

use super::ABSENT;

/// `AUDIT_ARCH_AARCH64`: what seccomp calls this processor.
pub(crate) const AUDIT: u32 = 0xc000_00b7;

/// No second table under the same audit name.
pub(crate) const FIRST_FOREIGN: Option<u32> = None;

pub(crate) const OPEN: i64 = ABSENT;
pub(crate) const CREAT: i64 = ABSENT;
pub(crate) const ACCESS: i64 = ABSENT;
pub(crate) const RENAME: i64 = ABSENT;
pub(crate) const RENAMEAT: i64 = libc::SYS_renameat;
pub(crate) const LINK: i64 = ABSENT;
pub(crate) const SYMLINK: i64 = ABSENT;
pub(crate) const UNLINK: i64 = ABSENT;
pub(crate) const MKDIR: i64 = ABSENT;
pub(crate) const RMDIR: i64 = ABSENT;
pub(crate) const MKNOD: i64 = ABSENT;
pub(crate) const CHMOD: i64 = ABSENT;
pub(crate) const CHOWN: i64 = ABSENT;
pub(crate) const LCHOWN: i64 = ABSENT;
pub(crate) const UTIME: i64 = ABSENT;
pub(crate) const UTIMES: i64 = ABSENT;
pub(crate) const FUTIMESAT: i64 = ABSENT;
pub(crate) const DUP2: i64 = ABSENT;
pub(crate) const STAT: i64 = ABSENT;
pub(crate) const LSTAT: i64 = ABSENT;
pub(crate) const NEWFSTATAT: i64 = libc::SYS_newfstatat;
pub(crate) const READLINK: i64 = ABSENT;
pub(crate) const GETDENTS: i64 = ABSENT;
pub(crate) const VFORK: i64 = ABSENT;
pub(crate) const POLL: i64 = ABSENT;
pub(crate) const EPOLL_WAIT: i64 = ABSENT;
pub(crate) const ARCH_PRCTL: i64 = ABSENT;
pub(crate) const GETPGRP: i64 = ABSENT;
pub(crate) const TIME: i64 = ABSENT;

/// The number of the call at whose entry a thread stands is a register set of its own: `NT_ARM_SYSTEM_CALL`.
pub(crate) const CALL_NUMBER_NOTE: Option<usize> = Some(0x404);

/// How many registers unwinding knows, by their DWARF numbers.
pub(crate) const UNWIND_REGISTERS: usize = 32;
/// The DWARF number of the stack pointer.
pub(crate) const STACK_POINTER: usize = 31;
/// The DWARF number of the frame pointer.
pub(crate) const FRAME_POINTER: usize = 29;
/// How many bytes a frame record has: the caller's frame pointer, and the return address.
pub(crate) const FRAME_BYTES: u64 = 16;

/// The program counter, and the registers by their DWARF numbers.
pub(crate) fn unwind_registers(
    registers: &libc::user_regs_struct,
) -> (u64, [u64; UNWIND_REGISTERS]) {
    let mut by_number = [0; UNWIND_REGISTERS];
    by_number[..31].copy_from_slice(&registers.regs);
    by_number[STACK_POINTER] = registers.sp;
    (registers.pc, by_number)
}

/// The address that a return address stands for: its upper bits can hold a signature (pointer authentication), which programs
/// leave out of the 48 bits that they have for addresses.
pub(crate) fn plain_address(address: u64) -> u64 {
    address & ((1 << 48) - 1)
}

/// The result of the call at whose entry the thread stands, once its number is that of none.
pub(crate) fn answer(registers: &mut libc::user_regs_struct, result: i64) {
    registers.regs[0] = result.cast_unsigned();
}

/// Sets the `index`th argument (from 0) of the call at whose entry the thread stands.
pub(crate) fn set_argument(registers: &mut libc::user_regs_struct, index: usize, value: u64) {
    registers.regs[index] = value;
}

/// At the exit of a call, makes the thread enter it again when it goes on; the result has taken the place of its first
/// argument.
pub(crate) fn enter_again(registers: &mut libc::user_regs_struct, _number: u64, first: u64) {
    // `svc` has four bytes; the number is still in its register.
    registers.pc -= 4;
    registers.regs[0] = first;
}

/// At the entry of a call a tracer sees in x7 that it is the entry, and not what is in x7.
pub(crate) const ENTRY_IS_PLAIN: bool = false;

/// Where the thread stands after one call, makes it enter another when it goes on.
pub(crate) fn enter(registers: &mut libc::user_regs_struct, number: i64, args: &[u64]) {
    for (index, value) in args.iter().enumerate() {
        set_argument(registers, index, *value);
    }
    // `svc` has four bytes.
    registers.pc -= 4;
    registers.regs[8] = number.cast_unsigned();
}

/// The arguments of `clone` for a process that goes on as its maker does.
pub(crate) fn clone_arguments(flags: u64, child_tid: u64) -> [u64; 5] {
    [flags, 0, 0, 0, child_tid]
}

/// Makes a system call and nothing else: the answer is a negative error number where it failed, and `errno` stays as it is.
///
/// # Safety
///
/// As for the call itself.
pub(crate) unsafe fn call(number: i64, args: [usize; 5]) -> i64 {
    let answer: i64;
    // SAFETY: the kernel changes the answer's register alone; what else the call touches is the caller's word.
    unsafe {
        std::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") args[0] => answer,
            in("x1") args[1],
            in("x2") args[2],
            in("x3") args[3],
            in("x4") args[4],
            options(nostack),
        );
    }
    answer
}
