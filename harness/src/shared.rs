//! A sorted map whose copies share what they have in common: a copy costs nothing, and a change costs as much as the
//! logarithm of its size, in time and in memory. So there can be a map for every moment of a long run.
//!
//! It is a treap: sorted by key, and a heap by a number that each key has. So its form is given by its keys alone,
//! whichever way it came about, and a digest that each branch keeps of all below it tells whether two maps are equal.
//! Every change makes new digests on the way from the root to the key, and no others.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt::{self, Debug, Formatter};
use std::hash::{Hash as StdHash, Hasher};
use std::ops::Index;
use std::sync::{Arc, OnceLock};

use crate::digest::{Digest, Encoder, Hash, Kind, scatter};

/// A sorted map whose copies share what they have in common.
pub struct SharedMap<K, V> {
    root: Link<K, V>,
}

type Link<K, V> = Option<Arc<Branch<K, V>>>;

struct Branch<K, V> {
    item: Arc<Item<K, V>>,
    left: Link<K, V>,
    right: Link<K, V>,
    /// Items in it.
    count: usize,
    digest: OnceLock<Hash>,
}

struct Item<K, V> {
    key: K,
    value: V,
    /// Its place in the heap.
    rank: u64,
    digest: OnceLock<Hash>,
}

impl<K, V> Branch<K, V> {
    fn new(item: Arc<Item<K, V>>, left: Link<K, V>, right: Link<K, V>) -> Branch<K, V> {
        let count = 1 + count(&left) + count(&right);
        Branch { item, left, right, count, digest: OnceLock::new() }
    }

    /// After a change below it.
    fn renew(&mut self) {
        self.count = 1 + count(&self.left) + count(&self.right);
        self.digest = OnceLock::new();
    }
}

impl<K, V> Clone for Branch<K, V> {
    fn clone(&self) -> Self {
        Branch::new(self.item.clone(), self.left.clone(), self.right.clone())
    }
}

fn count<K, V>(link: &Link<K, V>) -> usize {
    link.as_ref().map_or(0, |branch| branch.count)
}

impl<K: Ord, V> Item<K, V> {
    /// It stands above the other.
    fn outranks(&self, other: &Item<K, V>) -> bool {
        (self.rank, &self.key) > (other.rank, &other.key)
    }
}

impl<K, V> SharedMap<K, V> {
    /// An empty one.
    pub const fn new() -> Self {
        SharedMap { root: None }
    }

    /// How many keys it has.
    pub fn len(&self) -> usize {
        count(&self.root)
    }

    /// It has no key.
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// Keys with their values, sorted.
    pub fn iter(&self) -> Iter<'_, K, V> {
        let mut iter = Iter { open: Vec::new() };
        iter.down(&self.root);
        iter
    }

    /// The keys, sorted.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// The values, sorted by their keys.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// Both are the same copy, which is quickly told; others can be equal as well.
    fn is_same(&self, other: &Self) -> bool {
        match (&self.root, &other.root) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl<K: Ord, V> SharedMap<K, V> {
    fn item<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&Item<K, V>>
    where
        K: Borrow<Q>,
    {
        let mut link = &self.root;
        while let Some(branch) = link {
            link = match key.cmp(branch.item.key.borrow()) {
                Ordering::Less => &branch.left,
                Ordering::Greater => &branch.right,
                Ordering::Equal => return Some(&branch.item),
            };
        }
        None
    }

    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.item(key).map(|item| &item.value)
    }

    /// It has this key.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.item(key).is_some()
    }

    /// Keys that are not less than this one, with their values, sorted.
    pub fn starting_at<Q: Ord + ?Sized>(&self, key: &Q) -> Iter<'_, K, V>
    where
        K: Borrow<Q>,
    {
        let mut iter = Iter { open: Vec::new() };
        let mut link = &self.root;
        while let Some(branch) = link {
            if branch.item.key.borrow() < key {
                link = &branch.right;
            } else {
                iter.open.push(branch);
                link = &branch.left;
            }
        }
        iter
    }

    /// Takes a key out; tells whether it was there.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        let is_there = self.contains_key(key);
        if is_there {
            cut(&mut self.root, key);
        }
        is_there
    }

    /// Keeps those of which this is true.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &V) -> bool) {
        let before = self.clone();
        for (key, _) in before.iter().filter(|(key, value)| !keep(key, value)) {
            self.remove(key);
        }
    }
}

impl<K: Ord + StdHash, V> SharedMap<K, V> {
    /// Gives a key this value; tells whether it had another.
    pub fn insert(&mut self, key: K, value: V) -> bool {
        let rank = scatter(&key);
        put(&mut self.root, Arc::new(Item { key, value, rank, digest: OnceLock::new() }))
    }
}

impl<K: Ord + Clone, V: Clone> SharedMap<K, V> {
    /// Changes the value of a key, if it is there, and gives what the change gives.
    pub fn update<Q: Ord + ?Sized, T>(
        &mut self,
        key: &Q,
        change: impl FnOnce(&mut V) -> T,
    ) -> Option<T>
    where
        K: Borrow<Q>,
    {
        if !self.contains_key(key) {
            return None;
        }
        let mut link = &mut self.root;
        while let Some(branch) = link {
            let branch = Arc::make_mut(branch);
            branch.digest = OnceLock::new();
            link = match key.cmp(branch.item.key.borrow()) {
                Ordering::Less => &mut branch.left,
                Ordering::Greater => &mut branch.right,
                Ordering::Equal => {
                    let item = Arc::make_mut(&mut branch.item);
                    item.digest = OnceLock::new();
                    return Some(change(&mut item.value));
                }
            };
        }
        None
    }
}

impl<K: Clone, V: Clone> SharedMap<K, V> {
    /// Changes every value.
    pub fn update_all(&mut self, mut change: impl FnMut(&K, &mut V)) {
        let mut open = vec![&mut self.root];
        while let Some(link) = open.pop() {
            let Some(branch) = link.as_mut().map(Arc::make_mut) else {
                continue;
            };
            branch.digest = OnceLock::new();
            let item = Arc::make_mut(&mut branch.item);
            item.digest = OnceLock::new();
            change(&item.key, &mut item.value);
            open.extend([&mut branch.left, &mut branch.right]);
        }
    }
}

impl<K: Clone, V: Clone> Clone for Item<K, V> {
    fn clone(&self) -> Self {
        Item {
            key: self.key.clone(),
            value: self.value.clone(),
            rank: self.rank,
            digest: OnceLock::new(),
        }
    }
}

fn put<K: Ord, V>(link: &mut Link<K, V>, item: Arc<Item<K, V>>) -> bool {
    match link {
        Some(branch) if !item.outranks(&branch.item) => {
            let branch = Arc::make_mut(branch);
            let replaced = match item.key.cmp(&branch.item.key) {
                Ordering::Less => put(&mut branch.left, item),
                Ordering::Greater => put(&mut branch.right, item),
                Ordering::Equal => {
                    branch.item = item;
                    true
                }
            };
            branch.renew();
            replaced
        }
        // What ranks lower than this one lies below it, so that its key is not among them.
        lower => {
            let (left, right) = split(lower.take(), &item.key);
            *lower = Some(Arc::new(Branch::new(item, left, right)));
            false
        }
    }
}

/// What is less than a key that is not among them, and what is greater.
fn split<K: Ord, V>(link: Link<K, V>, key: &K) -> (Link<K, V>, Link<K, V>) {
    let Some(mut whole) = link else {
        return (None, None);
    };
    let branch = Arc::make_mut(&mut whole);
    if branch.item.key < *key {
        let (less, greater) = split(branch.right.take(), key);
        branch.right = less;
        branch.renew();
        (Some(whole), greater)
    } else {
        let (less, greater) = split(branch.left.take(), key);
        branch.left = greater;
        branch.renew();
        (less, Some(whole))
    }
}

/// Takes out a key that is there.
fn cut<K: Ord + Borrow<Q>, V, Q: Ord + ?Sized>(link: &mut Link<K, V>, key: &Q) {
    let Some(found) = link else {
        return;
    };
    let branch = Arc::make_mut(found);
    match key.cmp(branch.item.key.borrow()) {
        Ordering::Less => cut(&mut branch.left, key),
        Ordering::Greater => cut(&mut branch.right, key),
        Ordering::Equal => {
            *link = joined(branch.left.take(), branch.right.take());
            return;
        }
    }
    branch.renew();
}

/// Both together; all keys of the first are less than those of the second.
fn joined<K: Ord, V>(less: Link<K, V>, greater: Link<K, V>) -> Link<K, V> {
    match (less, greater) {
        (None, link) | (link, None) => link,
        (Some(mut less), Some(mut greater)) => {
            if less.item.outranks(&greater.item) {
                let branch = Arc::make_mut(&mut less);
                branch.right = joined(branch.right.take(), Some(greater));
                branch.renew();
                Some(less)
            } else {
                let branch = Arc::make_mut(&mut greater);
                branch.left = joined(Some(less), branch.left.take());
                branch.renew();
                Some(greater)
            }
        }
    }
}

impl<K: Digest, V: Digest> SharedMap<K, V> {
    /// A digest of all keys and values; `None` of an empty map.
    pub fn digest(&self) -> Option<&Hash> {
        digest_of(&self.root)
    }
}

fn digest_of<K: Digest, V: Digest>(link: &Link<K, V>) -> Option<&Hash> {
    let branch = link.as_ref()?;
    if let Some(known) = branch.digest.get() {
        return Some(known);
    }
    let (left, right) = (digest_of(&branch.left), digest_of(&branch.right));
    let item = branch.item.digest.get_or_init(|| {
        let mut encoder = Encoder::new(Kind::Item);
        branch.item.key.feed(&mut encoder);
        branch.item.value.feed(&mut encoder);
        encoder.finish()
    });
    Some(branch.digest.get_or_init(|| {
        let mut encoder = Encoder::new(Kind::Branch);
        [Some(item), left, right].into_iter().for_each(|digest| encoder.digest(digest));
        encoder.finish()
    }))
}

impl<K: Digest, V: Digest> PartialEq for SharedMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && (self.is_same(other) || self.digest() == other.digest())
    }
}

impl<K: Digest, V: Digest> Eq for SharedMap<K, V> {}

impl<K: Digest, V: Digest> StdHash for SharedMap<K, V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest().hash(state);
    }
}

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        SharedMap::new()
    }
}

impl<K, V> Clone for SharedMap<K, V> {
    fn clone(&self) -> Self {
        SharedMap { root: self.root.clone() }
    }
}

impl<K: Debug, V: Debug> Debug for SharedMap<K, V> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Ord + Borrow<Q>, V, Q: Ord + ?Sized> Index<&Q> for SharedMap<K, V> {
    type Output = V;

    /// # Panics
    ///
    /// Where there is no such key.
    #[allow(clippy::expect_used, reason = "as with every other map")]
    fn index(&self, key: &Q) -> &V {
        self.get(key).expect("the key is in the map")
    }
}

impl<K: Ord + StdHash, V> Extend<(K, V)> for SharedMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, items: I) {
        for (key, value) in items {
            self.insert(key, value);
        }
    }
}

impl<K: Ord + StdHash, V> FromIterator<(K, V)> for SharedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(items: I) -> Self {
        let mut map = SharedMap::new();
        map.extend(items);
        map
    }
}

impl<K: Ord + StdHash, V, const N: usize> From<[(K, V); N]> for SharedMap<K, V> {
    fn from(items: [(K, V); N]) -> Self {
        items.into_iter().collect()
    }
}

impl<'a, K, V> IntoIterator for &'a SharedMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Iter<'a, K, V> {
        self.iter()
    }
}

impl<K: Clone, V: Clone> IntoIterator for SharedMap<K, V> {
    type Item = (K, V);
    type IntoIter = std::vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        let items = self.iter().map(|(key, value)| (key.clone(), value.clone()));
        items.collect::<Vec<_>>().into_iter()
    }
}

/// Keys with their values, sorted.
pub struct Iter<'a, K, V> {
    /// Branches whose item is still to come, the next one last.
    open: Vec<&'a Branch<K, V>>,
}

impl<'a, K, V> Iter<'a, K, V> {
    fn down(&mut self, mut link: &'a Link<K, V>) {
        while let Some(branch) = link {
            self.open.push(branch);
            link = &branch.left;
        }
    }
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        let branch = self.open.pop()?;
        self.down(&branch.right);
        Some((&branch.item.key, &branch.item.value))
    }
}

impl<K, V> Debug for Iter<'_, K, V> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").finish_non_exhaustive()
    }
}
