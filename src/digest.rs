//! SHA-256, as the log writes it.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// SHA-256 of `bytes` in lower-case hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a string cannot fail.
        let _ok = write!(hex, "{byte:02x}");
    }
    hex
}
