//! What differs between processors: call numbers that only some have, the audit name, and the register of an argument.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::*;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the tracer knows the system calls of x86-64 and aarch64 only");

/// The number of a call that this processor does not have.
#[cfg(target_arch = "aarch64")]
const ABSENT: i64 = -1;
