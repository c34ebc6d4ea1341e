//! The blocks of a file, below a tree whose form follows from the length of the file alone.
//!
//! A leaf holds one block, at most [`BLOCK_BYTES`] of it: what is missing at its end is zeros. A fork holds
//! [`WIDTH`] trees of equal height, some of them missing: those are holes. A change replaces the nodes between the root
//! and the blocks that it touches, and no others; each node keeps a digest of what is below it, in which blocks of zeros
//! and holes are the same.

use std::sync::{Arc, OnceLock};

use crate::digest::{Encoder, Hash, Kind};
use crate::op::Data;

/// Bytes in a block.
pub(super) const BLOCK_BYTES: u64 = 4096;
/// Trees below a fork, and how many bits of a block's number tell which.
const WIDTH: usize = 1 << WIDTH_BITS;
const WIDTH_BITS: u32 = 4;

/// The blocks of a file.
#[derive(Clone, Default)]
pub(super) struct Blocks {
    root: Child,
    /// Forks between the root and a block.
    height: u32,
}

/// Nothing is a hole.
type Child = Option<Arc<Node>>;

struct Node {
    body: Body,
    digest: OnceLock<Option<Hash>>,
}

#[derive(Clone)]
enum Body {
    Block(Data),
    Fork([Child; WIDTH]),
}

impl Clone for Node {
    /// For a change: what is below it will be something else.
    fn clone(&self) -> Self {
        Node { body: self.body.clone(), digest: OnceLock::new() }
    }
}

impl Node {
    fn block(data: Data) -> Child {
        let body = Body::Block(data);
        Some(Arc::new(Node { body, digest: OnceLock::new() }))
    }

    /// Nothing where there is nothing below.
    fn fork(children: [Child; WIDTH]) -> Child {
        let is_hole = children.iter().all(Option::is_none);
        let body = Body::Fork(children);
        (!is_hole).then(|| Arc::new(Node { body, digest: OnceLock::new() }))
    }

    fn digest(&self) -> Option<&Hash> {
        self.digest.get_or_init(|| self.make_digest()).as_ref()
    }

    /// `None` where all is zeros.
    fn make_digest(&self) -> Option<Hash> {
        match &self.body {
            Body::Block(data) => {
                let until = data.iter().rposition(|byte| *byte != 0)? + 1;
                let mut encoder = Encoder::new(Kind::Block);
                encoder.bytes(&data[..until]);
                Some(encoder.finish())
            }
            Body::Fork(children) => {
                let digests = children.each_ref().map(digest_of);
                if digests.iter().all(Option::is_none) {
                    return None;
                }
                let mut encoder = Encoder::new(Kind::Blocks);
                digests.into_iter().for_each(|digest| encoder.digest(digest));
                Some(encoder.finish())
            }
        }
    }
}

fn digest_of(child: &Child) -> Option<&Hash> {
    child.as_ref().and_then(|node| node.digest())
}

/// The blocks below a fork of this height, or below one of its children where the height is one less.
fn blocks_below(height: u32) -> u64 {
    // Higher ones are never needed: no file has so many blocks.
    1 << (WIDTH_BITS * height).min(63)
}

fn slot(number: u64, height: u32) -> usize {
    (number >> (WIDTH_BITS * (height - 1))) as usize % WIDTH
}

impl Blocks {
    /// Grows or shrinks the tree to the form that a file of this length has. What is cut off must be holes.
    pub(super) fn fit(&mut self, len: u64) {
        let mut height = 0;
        while blocks_below(height) < len.div_ceil(BLOCK_BYTES) {
            height += 1;
        }
        self.root = self.at_height(height);
        self.height = height;
    }

    /// The root of a tree of another height; a lower one holds only what comes first.
    fn at_height(&self, wanted: u32) -> Child {
        let (mut root, mut height) = (self.root.clone(), self.height);
        while height > wanted {
            root = child(&root, 0);
            height -= 1;
        }
        while height < wanted {
            let mut children = <[Child; WIDTH]>::default();
            children[0] = root;
            root = Node::fork(children);
            height += 1;
        }
        root
    }

    /// Puts bytes where the tree has room for them.
    pub(super) fn write(&mut self, offset: u64, data: &Data) {
        let mut done = 0;
        while done < data.len() {
            let at = offset + done as u64;
            let within = (at % BLOCK_BYTES) as usize;
            let len = (BLOCK_BYTES as usize - within).min(data.len() - done);
            let piece = data.slice(done..done + len);
            put(&mut self.root, self.height, at / BLOCK_BYTES, within, piece);
            done += len;
        }
    }

    /// Makes a range zeros, and whole blocks in it holes.
    pub(super) fn clear(&mut self, start: u64, end: u64) {
        if start < end {
            clear(&mut self.root, self.height, 0, start, end);
        }
    }

    /// Blocks that are no holes, from this number on, with their numbers.
    pub(super) fn starting_at(&self, first: u64) -> Iter<'_> {
        let open = self.root.as_deref().map(|root| (root, self.height, 0)).into_iter().collect();
        Iter { open, first }
    }

    /// The only block that such a file can have.
    pub(super) fn only(&self) -> Option<&Data> {
        match &self.root.as_deref()?.body {
            Body::Block(data) => Some(data),
            Body::Fork(_) => None,
        }
    }

    pub(super) fn digest(&self) -> Option<&Hash> {
        digest_of(&self.root)
    }

    /// Both are the same copy, which is quickly told; others can be equal as well.
    pub(super) fn is_same(&self, other: &Blocks) -> bool {
        self.height == other.height && is_same(&self.root, &other.root)
    }

    /// The offset of the first byte that differs, zeros taken for what either lacks.
    pub(super) fn first_difference(&self, other: &Blocks) -> Option<u64> {
        let height = self.height.max(other.height);
        first_difference(&self.at_height(height), &other.at_height(height), height, 0)
    }

    /// The same with equal blocks and whole parts taken from `other`.
    pub(super) fn sharing(&self, other: &Blocks) -> Blocks {
        let root = sharing(&self.root, &other.at_height(self.height));
        Blocks { root, height: self.height }
    }
}

fn is_same(a: &Child, b: &Child) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        _ => false,
    }
}

/// What is in a slot of a fork; a hole has holes.
fn child(fork: &Child, slot: usize) -> Child {
    match fork.as_deref().map(|node| &node.body) {
        Some(Body::Fork(children)) => children[slot].clone(),
        _ => None,
    }
}

/// The bytes of a leaf.
fn data_of(leaf: &Child) -> Option<&Data> {
    match &leaf.as_deref()?.body {
        Body::Block(data) => Some(data),
        Body::Fork(_) => None,
    }
}

fn put(at: &mut Child, height: u32, number: u64, within: usize, piece: Data) {
    if height == 0 {
        *at = Node::block(overlaid(data_of(at), within, piece));
        return;
    }
    let node = at.get_or_insert_with(|| {
        let body = Body::Fork(Default::default());
        Arc::new(Node { body, digest: OnceLock::new() })
    });
    let node = Arc::make_mut(node);
    node.digest = OnceLock::new();
    if let Body::Fork(children) = &mut node.body {
        put(&mut children[slot(number, height)], height - 1, number, within, piece);
    }
}

/// A block with a piece over it.
fn overlaid(block: Option<&Data>, within: usize, piece: Data) -> Data {
    let old = block.map_or(&[][..], |data| data);
    if within == 0 && piece.len() >= old.len() {
        return piece;
    }
    let end = within + piece.len();
    let mut bytes = vec![0; old.len().max(end)];
    bytes[..old.len()].copy_from_slice(old);
    bytes[within..end].copy_from_slice(&piece);
    bytes.into()
}

/// `base` is the number of the first block below.
fn clear(at: &mut Child, height: u32, base: u64, start: u64, end: u64) {
    let from = base * BLOCK_BYTES;
    let until = from.saturating_add(blocks_below(height).saturating_mul(BLOCK_BYTES));
    if at.is_none() || end <= from || until <= start {
        return;
    }
    if start <= from && until <= end {
        *at = None;
        return;
    }
    let Some(node) = at.as_mut().map(Arc::make_mut) else {
        return;
    };
    node.digest = OnceLock::new();
    let is_hole = match &mut node.body {
        Body::Block(data) => {
            let start = start.saturating_sub(from) as usize;
            *data = blanked(data, start, (end - from) as usize);
            data.is_empty()
        }
        Body::Fork(children) => {
            for (slot, child) in (0..).zip(&mut *children) {
                clear(child, height - 1, base + slot * blocks_below(height - 1), start, end);
            }
            children.iter().all(Option::is_none)
        }
    };
    if is_hole {
        *at = None;
    }
}

/// A block with zeros in a range.
fn blanked(block: &Data, start: usize, end: usize) -> Data {
    if end >= block.len() {
        return block.slice(..start.min(block.len()));
    }
    let mut bytes = block.to_vec();
    bytes[start..end].fill(0);
    bytes.into()
}

fn first_difference(a: &Child, b: &Child, height: u32, base: u64) -> Option<u64> {
    if is_same(a, b) || digest_of(a) == digest_of(b) {
        return None;
    }
    if height > 0 {
        return (0..WIDTH).find_map(|slot| {
            let base = base + slot as u64 * blocks_below(height - 1);
            first_difference(&child(a, slot), &child(b, slot), height - 1, base)
        });
    }
    let bytes = |leaf| data_of(leaf).map_or(&[][..], |data| data);
    let (a, b) = (bytes(a), bytes(b));
    let at = |bytes: &[u8], place: usize| bytes.get(place).copied().unwrap_or(0);
    let place = (0..a.len().max(b.len())).find(|place| at(a, *place) != at(b, *place))?;
    Some(base * BLOCK_BYTES + place as u64)
}

fn sharing(own: &Child, other: &Child) -> Child {
    let Some(node) = own else {
        return None;
    };
    if is_same(own, other) || node.digest() == digest_of(other) {
        return other.clone().or_else(|| own.clone());
    }
    match &node.body {
        Body::Block(data) => {
            let body = Body::Block(data.to_vec().into());
            Some(Arc::new(Node { body, digest: node.digest.clone() }))
        }
        Body::Fork(children) => {
            let mut slots = 0..;
            let shared = children.each_ref().map(|own| {
                let slot = slots.next().unwrap_or_default();
                sharing(own, &child(other, slot))
            });
            Node::fork(shared)
        }
    }
}

/// Blocks with their numbers.
pub(super) struct Iter<'a> {
    /// Nodes that are still to come with their heights and first blocks, the next one last.
    open: Vec<(&'a Node, u32, u64)>,
    first: u64,
}

impl Iterator for Iter<'_> {
    type Item = (u64, Data);

    fn next(&mut self) -> Option<Self::Item> {
        while let Some((node, height, base)) = self.open.pop() {
            match &node.body {
                Body::Block(data) => return Some((base, data.clone())),
                Body::Fork(children) => {
                    let below = blocks_below(height - 1);
                    for (slot, child) in children.iter().enumerate().rev() {
                        let base = base + slot as u64 * below;
                        if let Some(child) = child.as_deref()
                            && base.saturating_add(below) > self.first
                        {
                            self.open.push((child, height - 1, base));
                        }
                    }
                }
            }
        }
        None
    }
}
