//! Extended attributes of one file, links not followed.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The names of all attributes; none where the file system has no attributes.
pub(crate) fn list(path: &Path) -> io::Result<Vec<CString>> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let names = match grow(|buffer| {
        // SAFETY: `path` ends in a NUL, and `buffer` is writable for the length that is passed with it.
        unsafe { libc::llistxattr(path.as_ptr(), buffer.as_mut_ptr().cast(), buffer.len()) }
    }) {
        Err(error) if error.raw_os_error() == Some(libc::ENOTSUP) => return Ok(Vec::new()),
        other => other?,
    };
    Ok(names
        .split_inclusive(|&byte| byte == 0)
        .filter_map(|name| CStr::from_bytes_with_nul(name).ok())
        .map(CStr::to_owned)
        .collect())
}

/// The value of one attribute.
pub(crate) fn get(path: &Path, name: &CStr) -> io::Result<Vec<u8>> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    grow(|buffer| {
        // SAFETY: `path` and `name` end in a NUL, and `buffer` is writable for the length that is passed with it.
        unsafe {
            libc::lgetxattr(path.as_ptr(), name.as_ptr(), buffer.as_mut_ptr().cast(), buffer.len())
        }
    })
}

/// Sets one attribute.
pub(crate) fn set(path: &Path, name: &str, value: &[u8]) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let name = CString::new(name)?;
    // SAFETY: `path` and `name` end in a NUL, and `value` is readable for the length that is passed with it.
    let result = unsafe {
        libc::lsetxattr(path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), 0)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Calls with an empty buffer, which gives the length, and then with one that is long enough; both again where it
/// grew in between.
fn grow(call: impl Fn(&mut [u8]) -> isize) -> io::Result<Vec<u8>> {
    loop {
        let Ok(length) = usize::try_from(call(&mut [])) else {
            return Err(io::Error::last_os_error());
        };
        if length == 0 {
            return Ok(Vec::new());
        }
        let mut buffer = vec![0; length];
        match usize::try_from(call(&mut buffer)) {
            Ok(length) => {
                buffer.truncate(length);
                return Ok(buffer);
            }
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.raw_os_error() != Some(libc::ERANGE) {
                    return Err(error);
                }
            }
        }
    }
}
