//! Digests: 32 bytes that stand for a value. Equal values have equal digests, and no two others are known, nor likely to
//! be ever found, that have the same: they are BLAKE3 hashes of an encoding that no two values share.

use std::path::{Path, PathBuf};

/// A digest.
pub type Hash = [u8; 32];

/// A value that has a digest.
pub trait Digest {
    /// Feeds all that makes the value what it is.
    fn feed(&self, into: &mut Encoder);
}

/// What an [`Encoder`] begins with, so that digests of different things never meet.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// A block of a file.
    Block,
    /// Several blocks of a file.
    Blocks,
    /// A file.
    File,
    /// A key with its value.
    Item,
    /// An item with those on both sides of it.
    Branch,
    /// A tree.
    Tree,
}

/// Feeds values to a hash so that no two sequences of values give the same bytes: all that varies in length is
/// led by its length, and all that varies in kind by a tag.
#[derive(Debug)]
pub struct Encoder(blake3::Hasher);

impl Encoder {
    pub(crate) fn new(kind: Kind) -> Encoder {
        let mut encoder = Encoder(blake3::Hasher::new());
        encoder.0.update(&[kind as u8]);
        encoder
    }

    /// A number.
    pub fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    /// Some bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    /// A digest, or that there is none.
    pub fn digest(&mut self, digest: Option<&Hash>) {
        self.0.update(&[u8::from(digest.is_some())]);
        if let Some(digest) = digest {
            self.0.update(digest);
        }
    }

    /// A path, by components, since paths that differ in doubled slashes alone are equal.
    pub fn path(&mut self, path: &Path) {
        let mut components = Vec::with_capacity(path.as_os_str().len() + 1);
        for component in path.components() {
            components.extend_from_slice(component.as_os_str().as_encoded_bytes());
            // No path has it.
            components.push(0);
        }
        self.bytes(&components);
    }

    pub(crate) fn finish(self) -> Hash {
        *self.0.finalize().as_bytes()
    }
}

impl Digest for PathBuf {
    fn feed(&self, into: &mut Encoder) {
        into.path(self);
    }
}

impl Digest for () {
    fn feed(&self, _into: &mut Encoder) {}
}

/// A number by which keys are put into a random order that is the same in every run.
pub(crate) fn scatter(key: &impl std::hash::Hash) -> u64 {
    let mut scattering = Scattering(0xcbf2_9ce4_8422_2325);
    key.hash(&mut scattering);
    std::hash::Hasher::finish(&scattering)
}

/// FNV-1a, with a last mixing (that of SplitMix64), since the high bits of short keys are alike.
struct Scattering(u64);

impl std::hash::Hasher for Scattering {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
