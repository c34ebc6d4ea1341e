//! A small assembler for seccomp filters that pick calls by number and by the low half of their arguments.

#![allow(unsafe_code)]

use std::mem::offset_of;

use libc::{
    BPF_ABS, BPF_JA, BPF_JEQ, BPF_JGE, BPF_JGT, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W,
    seccomp_data, sock_filter,
};

use crate::sys::arch;

/// Which uses of a call are stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Check {
    /// None.
    Never,
    /// All.
    Always,
    /// Those where the low half of an argument has any of these bits.
    AnyBit {
        /// Which argument, from 0.
        argument: u8,
        /// The bits.
        bits: u32,
    },
    /// Those where the low half of an argument has none of these bits.
    NoBit {
        /// Which argument, from 0.
        argument: u8,
        /// The bits.
        bits: u32,
    },
    /// Those where the low half of an argument is one of these values.
    OneOf {
        /// Which argument, from 0.
        argument: u8,
        /// The values.
        values: &'static [u32],
    },
    /// Those where the low half of an argument is none of these values.
    NoneOf {
        /// Which argument, from 0.
        argument: u8,
        /// The values.
        values: &'static [u32],
    },
    /// The call is not carried out but answered with this error number.
    Refuse(u16),
}

/// The data of a stop for a call of this processor's own table.
pub(crate) const OWN: u16 = 0;
/// The data of a stop for a call of another table, which nobody here decodes.
pub(crate) const FOREIGN: u16 = 1;

const TRACE: u32 = libc::SECCOMP_RET_TRACE;
const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;

fn statement(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

fn jump(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: (BPF_JMP | code | BPF_K) as u16, jt, jf, k }
}

fn load(offset: usize) -> sock_filter {
    statement(BPF_LD | BPF_W | BPF_ABS, offset as u32)
}

fn answer(action: u32) -> sock_filter {
    statement(BPF_RET | BPF_K, action)
}

fn load_argument(argument: u8) -> sock_filter {
    // Both processors are little-endian: the low half comes first.
    load(offset_of!(seccomp_data, args) + 8 * usize::from(argument))
}

fn block(check: &Check) -> Vec<sock_filter> {
    match check {
        Check::Never => vec![answer(ALLOW)],
        Check::Always => vec![answer(TRACE | u32::from(OWN))],
        Check::Refuse(errno) => vec![answer(libc::SECCOMP_RET_ERRNO | u32::from(*errno))],
        Check::AnyBit { argument, bits } => vec![
            load_argument(*argument),
            jump(BPF_JSET, *bits, 0, 1),
            answer(TRACE | u32::from(OWN)),
            answer(ALLOW),
        ],
        Check::NoBit { argument, bits } => vec![
            load_argument(*argument),
            jump(BPF_JSET, *bits, 1, 0),
            answer(TRACE | u32::from(OWN)),
            answer(ALLOW),
        ],
        Check::OneOf { argument, values } => {
            by_value(*argument, values, TRACE | u32::from(OWN), ALLOW)
        }
        Check::NoneOf { argument, values } => {
            by_value(*argument, values, ALLOW, TRACE | u32::from(OWN))
        }
    }
}

/// One action where the argument is one of the values, another where it is not.
fn by_value(argument: u8, values: &[u32], found: u32, else_: u32) -> Vec<sock_filter> {
    let mut code = vec![load_argument(argument)];
    for (index, value) in values.iter().enumerate() {
        // Over the comparisons that are left and the answer for "none of them".
        let to_found = (values.len() - index) as u8;
        code.push(jump(BPF_JEQ, *value, to_found, 0));
    }
    code.push(answer(else_));
    code.push(answer(found));
    code
}

/// Puts a filter together: calls of another table are stopped, the given ones as their check says, all others run.
pub(crate) fn assemble(rules: &[(u32, Check)]) -> Vec<sock_filter> {
    let mut code = vec![
        load(offset_of!(seccomp_data, arch)),
        jump(BPF_JEQ, arch::AUDIT, 1, 0),
        answer(TRACE | u32::from(FOREIGN)),
        load(offset_of!(seccomp_data, nr)),
    ];
    if let Some(first) = arch::FIRST_FOREIGN {
        code.push(jump(BPF_JGE, first, 0, 1));
        code.push(answer(TRACE | u32::from(FOREIGN)));
    }
    let mut rules: Vec<&(u32, Check)> =
        rules.iter().filter(|(_, check)| *check != Check::Never).collect();
    rules.sort_by_key(|(number, _)| *number);
    code.extend(search(&rows(&rules)));
    code
}

/// So many numbers, or rows of them, are compared one after another.
const MOST_IN_LINE: usize = 4;

/// Numbers one after another with the same check.
struct Row<'a> {
    first: u32,
    last: u32,
    check: &'a Check,
}

/// The rows of rules in the order of their numbers.
fn rows<'a>(rules: &[&'a (u32, Check)]) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'a>> = Vec::new();
    for (number, check) in rules {
        match rows.last_mut() {
            Some(row) if row.last + 1 == *number && row.check == check => row.last = *number,
            _ => rows.push(Row { first: *number, last: *number, check }),
        }
    }
    rows
}

/// The answer for the number that is loaded. By halves, since the kernel runs a filter for every number that there is when it
/// is installed, and then for every call; and short, since it compiles it each time.
fn search(rows: &[Row<'_>]) -> Vec<sock_filter> {
    let mut code = Vec::new();
    if rows.len() > MOST_IN_LINE {
        let (low, high) = rows.split_at(rows.len() / 2);
        let low = search(low);
        code.push(jump(BPF_JGE, high[0].first, 0, 1));
        code.push(statement(BPF_JMP | BPF_JA, low.len() as u32));
        code.extend(low);
        code.extend(search(high));
        return code;
    }
    for row in rows {
        let block = block(row.check);
        let over = block.len() as u8;
        if row.first == row.last {
            code.push(jump(BPF_JEQ, row.first, 0, over));
        } else {
            code.push(jump(BPF_JGE, row.first, 0, over + 1));
            code.push(jump(BPF_JGT, row.last, over, 0));
        }
        code.extend(block);
    }
    code.push(answer(ALLOW));
    code
}

/// Puts the filter on the calling thread, for good. Only system calls: made for a forked child.
///
/// # Errors
///
/// The error number.
pub(crate) fn install(filter: &[sock_filter]) -> Result<(), i32> {
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the program points to a live filter of the stated length, which the kernel copies and does not write.
    let answer = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program)
    };
    if answer == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a filter the way the kernel would, for the few instructions that are used here.
    fn evaluate(filter: &[sock_filter], number: u32, architecture: u32, args: [u64; 6]) -> u32 {
        let (mut at, mut value) = (0, 0u32);
        loop {
            let step = filter[at];
            at += 1;
            let code = u32::from(step.code);
            let take = |yes: bool| usize::from(if yes { step.jt } else { step.jf });
            match code & 0x07 {
                BPF_LD => {
                    value = match step.k as usize {
                        0 => number,
                        4 => architecture,
                        offset => args[(offset - 16) / 8] as u32,
                    }
                }
                BPF_RET => return step.k,
                BPF_JMP => match code & 0xf0 {
                    BPF_JA => at += step.k as usize,
                    BPF_JEQ => at += take(value == step.k),
                    BPF_JSET => at += take(value & step.k != 0),
                    BPF_JGE => at += take(value >= step.k),
                    BPF_JGT => at += take(value > step.k),
                    other => panic!("jump {other:#x}"),
                },
                other => panic!("instruction {other:#x}"),
            }
        }
    }

    fn rules() -> Vec<(u32, Check)> {
        vec![
            (1, Check::Always),
            (2, Check::AnyBit { argument: 1, bits: 0o1103 }),
            (9, Check::NoBit { argument: 1, bits: 0x20 }),
            (16, Check::NoneOf { argument: 1, values: &[7, 8, 9] }),
            (72, Check::OneOf { argument: 1, values: &[5, 6] }),
            (3, Check::Never),
            (425, Check::Refuse(38)),
            (17, Check::Always),
            (18, Check::Always),
            (20, Check::Always),
            (1000, Check::Always),
        ]
    }

    fn ask(number: u32, second: u64) -> u32 {
        evaluate(&assemble(&rules()), number, arch::AUDIT, [0, second, 0, 0, 0, 0])
    }

    #[test]
    fn picks_calls_by_number_and_argument() {
        assert_eq!(ask(0, 0), ALLOW);
        let stopped = |number: &u32| ask(*number, 0) != ALLOW;
        assert_eq!(
            (0..1100).filter(stopped).collect::<Vec<_>>(),
            [1, 9, 16, 17, 18, 20, 425, 1000]
        );
        assert_eq!(ask(2, 0o2_000_000), ALLOW, "an open for reading");
        assert_eq!(ask(2, 0o101), TRACE, "an open that creates");
        assert_eq!(ask(3, 0), ALLOW);
        assert_eq!(ask(9, 0x22), ALLOW, "a mapping of no file");
        assert_eq!(ask(9, 0x2), TRACE, "a mapping of a file");
        assert_eq!(ask(425, 0), libc::SECCOMP_RET_ERRNO | 38);
        for value in 0..12 {
            let listed = (7..=9).contains(&value);
            assert_eq!(ask(16, value), if listed { ALLOW } else { TRACE }, "value {value}");
            let listed = (5..=6).contains(&value);
            assert_eq!(ask(72, value), if listed { TRACE } else { ALLOW }, "value {value}");
        }
        assert_eq!(
            ask(72, 0xffff_ffff_0000_0005),
            TRACE,
            "the kernel looks at the low half of a command"
        );
    }

    #[test]
    fn stops_calls_of_another_table() {
        let filter = assemble(&rules());
        assert_eq!(evaluate(&filter, 0, 0x4000_0003, [0; 6]), TRACE | u32::from(FOREIGN));
        if let Some(first) = arch::FIRST_FOREIGN {
            assert_eq!(
                evaluate(&filter, first + 1, arch::AUDIT, [0; 6]),
                TRACE | u32::from(FOREIGN)
            );
        }
    }
}
