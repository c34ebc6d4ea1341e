//! Which frame of a stack a reader wants to see: the first that is code of the program's own.

use std::path::Path;
use std::sync::Arc;

use crate::recording::CallSite;

/// Where the sources of run times lie that are linked into programs: Rust's library, Go's, and what headers of the system
/// hold for C++.
const RUN_TIME_FOLDERS: &[&str] =
    &["/rustc/", "/usr/local/go/src/", "/usr/lib/go", "/usr/include/"];
/// The same where a run time is built from a tool chain's sources.
const RUN_TIME_FOLDER_PARTS: &[&str] = &["/lib/rustlib/src/rust/library/", "/toolchain/src/"];

/// Where nothing but the names of functions tells: what those of run times begin with.
const RUN_TIME_NAMES: &[&str] = &[
    "std::",
    "core::",
    "alloc::",
    "rustix::",
    "libc::",
    "syscall.",
    "internal/",
    "runtime.",
    "os.",
    "io.",
    "bufio.",
];

/// Functions of the C library by which files are changed, in programs that hold their C library themselves. Names that begin
/// with an underscore are the library's own as well.
const C_FUNCTIONS: &[&str] = &[
    "chmod",
    "chown",
    "close",
    "copy_file_range",
    "creat",
    "creat64",
    "dprintf",
    "fallocate",
    "fallocate64",
    "fchmod",
    "fchmodat",
    "fchown",
    "fchownat",
    "fclose",
    "fcntl",
    "fcntl64",
    "fdatasync",
    "fflush",
    "fflush_unlocked",
    "flock",
    "fopen",
    "fopen64",
    "fprintf",
    "fputc",
    "fputs",
    "freopen",
    "fseek",
    "fsetxattr",
    "fsync",
    "ftruncate",
    "ftruncate64",
    "futimens",
    "fwrite",
    "new_do_write",
    "lchown",
    "link",
    "linkat",
    "lockf",
    "mkdir",
    "mkdirat",
    "mkostemp",
    "mkstemp",
    "mkstemp64",
    "mmap",
    "msync",
    "open",
    "open64",
    "openat",
    "openat64",
    "posix_fallocate",
    "posix_fallocate64",
    "printf",
    "putc",
    "puts",
    "pwrite",
    "pwrite64",
    "pwritev",
    "pwritev2",
    "remove",
    "rename",
    "renameat",
    "renameat2",
    "rmdir",
    "sendfile",
    "setxattr",
    "splice",
    "symlink",
    "symlinkat",
    "sync",
    "sync_file_range",
    "syncfs",
    "syscall",
    "syscall_cp",
    "truncate",
    "truncate64",
    "unlink",
    "unlinkat",
    "utimensat",
    "vdprintf",
    "vfprintf",
    "write",
    "writev",
    "xstat",
];

/// The place of the frame that is to be told: the first of the program's own, and not of a run time that is linked into it; the
/// first in the program, if there is no other; else the call itself. `is_own` says of each whether its module is the
/// program's.
///
/// Where the call itself lies in the program, its C library is linked into it; that is seldom built with line numbers, so
/// that a frame with a line is told rather than one without.
pub(super) fn told(sites: &[Arc<CallSite>], is_own: &[bool]) -> Option<usize> {
    let own = |place: &usize| is_own.get(*place).copied().unwrap_or(false);
    let all = || (0..sites.len()).filter(own);
    let of_program = || all().filter(|place| !is_run_time(&sites[*place]));
    let holds_library = own(&0) && sites[0].line.is_none();
    let with_line = of_program().find(|place| holds_library && sites[*place].line.is_some());
    with_line
        .or_else(|| of_program().next())
        .or_else(|| all().next())
        .or((!sites.is_empty()).then_some(0))
}

fn is_run_time(site: &CallSite) -> bool {
    if let Some(file) = site.file.as_deref().filter(|_| site.line.is_some()) {
        return is_run_time_source(file);
    }
    let Some(function) = &site.function else { return false };
    // `<std::fs::File as std::io::Write>::write` and `<&mut W as core::fmt::Write>::write_str`.
    let plain = function.trim_start_matches(['<', '&', '*']).trim_start_matches("mut ");
    RUN_TIME_NAMES.iter().any(|name| plain.starts_with(name))
        || function.starts_with('_')
        || C_FUNCTIONS.contains(&function.as_str())
}

fn is_run_time_source(file: &Path) -> bool {
    let text = file.to_string_lossy();
    RUN_TIME_FOLDERS.iter().any(|folder| text.starts_with(folder))
        || RUN_TIME_FOLDER_PARTS.iter().any(|part| text.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::backtrace::symbols::nowhere;

    fn site(function: &str, file: Option<&str>) -> Arc<CallSite> {
        Arc::new(CallSite {
            function: (!function.is_empty()).then(|| function.to_owned()),
            file: file.map(Into::into),
            line: file.map(|_| 1),
            ..nowhere(1)
        })
    }

    #[test]
    fn the_first_frame_of_the_programs_own_code_is_told() {
        let library = site("write", None);
        let own = site("save", Some("/home/u/save.c"));
        let std = site("write_all", Some("/rustc/0123/library/std/src/io/mod.rs"));
        assert_eq!(told(&[library.clone(), own.clone()], &[false, true]), Some(1));
        assert_eq!(told(&[library.clone(), std.clone(), own], &[false, true, true]), Some(2));
        let header = site("open", Some("/usr/include/c++/12/fstream"));
        let own = site("save", Some("/home/u/save.cpp"));
        assert_eq!(told(&[library.clone(), header, own], &[false, true, true]), Some(2));
        assert_eq!(told(&[library.clone(), std], &[false, true]), Some(1), "nothing better");
        assert_eq!(told(&[library], &[false]), Some(0));
        assert_eq!(told(&[], &[]), None);
    }

    #[test]
    fn without_lines_the_names_of_functions_tell() {
        let tell = |names: &[&str]| {
            let sites: Vec<_> = names.iter().map(|name| site(name, None)).collect();
            told(&sites, &vec![true; names.len()])
        };
        assert_eq!(tell(&["__libc_write", "_IO_new_file_write", "fclose", "save"]), Some(3));
        assert_eq!(
            tell(&["write", "<std::fs::File as std::io::Write>::write", "job::save"]),
            Some(2)
        );
        assert_eq!(tell(&["", "", ""]), Some(0), "a stripped program");
        let inner = ["write", "some_part_of_the_library", "fclose"].map(|name| site(name, None));
        let sites = [&inner[..], &[site("save", Some("/home/u/save.c"))]].concat();
        assert_eq!(told(&sites, &[true; 4]), Some(3), "a line, where there is one");
    }
}
