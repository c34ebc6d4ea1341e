//! SHA-256, as the log writes it.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// SHA-256 of `bytes` in lower-case hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    sha256_of_parts(&[bytes])
}

/// SHA-256 of the parts, one behind the other, in lower-case hexadecimal.
pub fn sha256_of_parts(parts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    parts.iter().for_each(|part| hasher.update(part));
    let mut hex = String::with_capacity(64);
    for byte in hasher.finalize() {
        // Writing to a string cannot fail.
        let _ok = write!(hex, "{byte:02x}");
    }
    hex
}
