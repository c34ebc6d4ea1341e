//! Contents and maps that share what they have in common, against plain ones.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crashlab::shared::SharedMap;
use crashlab::tree::{FileBytes, compare_bytes, compare_contents};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Resize(usize),
    Clear(usize, usize),
    Collapse(usize, usize),
    Insert(usize, usize),
}

fn place() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 0usize..20_000, 2 => (0usize..20).prop_map(|block| block * 4096), 1 => 0usize..70_000]
}

fn change() -> impl Strategy<Value = Change> {
    let bytes = prop_oneof![
        proptest::collection::vec(0u8..3, 0..40),
        (any::<u8>(), 0usize..10_000).prop_map(|(byte, len)| vec![byte; len]),
        (0usize..9000).prop_map(|len| (0..len).map(|at| (at / 7) as u8).collect()),
    ];
    prop_oneof![
        4 => (place(), bytes).prop_map(|(at, bytes)| Change::Write { at, bytes }),
        1 => place().prop_map(Change::Resize),
        2 => (place(), place()).prop_map(|(start, len)| Change::Clear(start, start + len)),
        1 => (place(), 0usize..9000).prop_map(|(start, len)| Change::Collapse(start, start + len)),
        1 => (place(), 0usize..9000).prop_map(|(at, len)| Change::Insert(at, len)),
    ]
}

fn apply(change: &Change, content: &mut FileBytes, plain: &mut Vec<u8>) {
    match change {
        Change::Write { at, bytes } => {
            content.write(*at as u64, &bytes.clone().into()).unwrap();
            if !bytes.is_empty() {
                plain.resize(plain.len().max(at + bytes.len()), 0);
                plain[*at..at + bytes.len()].copy_from_slice(bytes);
            }
        }
        Change::Resize(len) => {
            content.resize(*len as u64).unwrap();
            plain.resize(*len, 0);
        }
        Change::Clear(start, end) => {
            content.clear(*start as u64, *end as u64);
            let end = (*end).min(plain.len());
            plain[(*start).min(end)..end].fill(0);
        }
        Change::Collapse(start, end) if *end <= plain.len() => {
            content.collapse(*start as u64, *end as u64);
            plain.drain(*start..*end);
        }
        Change::Insert(at, len) if *at <= plain.len() => {
            content.insert(*at as u64, *len as u64).unwrap();
            plain.splice(*at..*at, std::iter::repeat_n(0, *len));
        }
        Change::Collapse(..) | Change::Insert(..) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn contents_are_what_their_bytes_are(
        changes in proptest::collection::vec(change(), 1..12),
        (offset, len) in (place(), 0usize..9000),
    ) {
        let (mut content, mut plain) = (FileBytes::default(), Vec::new());
        let mut moments = Vec::new();
        for change in &changes {
            // What was hashed before a change must not stand after it.
            std::hint::black_box(content.digest());
            apply(change, &mut content, &mut plain);
            moments.push((content.clone(), plain.clone()));
        }
        // Earlier ones too, after all that was done to copies of them.
        for (content, plain) in &moments {
            prop_assert_eq!(content.len(), plain.len() as u64);
            prop_assert!(*content.whole().unwrap() == plain[..]);
            let (from, until) = (offset.min(plain.len()), (offset + len).min(plain.len()));
            prop_assert!(content.read(offset as u64, len) == plain[from..until]);
            prop_assert_eq!(content.last(), plain.last().copied());
            prop_assert_eq!(content.is_zeros(), plain.iter().all(|byte| *byte == 0));
            let written = FileBytes::from(plain.clone());
            prop_assert!(*content == written && content.digest() == written.digest());
            let mut pieces = vec![0; plain.len()];
            for (at, piece) in content.pieces() {
                pieces[at as usize..at as usize + piece.len()].copy_from_slice(&piece);
            }
            prop_assert!(pieces == *plain);
            let joined: Vec<u8> = content.runs(len).flat_map(|(_, run)| run.to_vec()).collect();
            let parted: Vec<u8> = content.pieces().flat_map(|(_, it)| it.to_vec()).collect();
            prop_assert!(joined == parted && content.runs(usize::MAX).count() <= content.pieces().count());
            prop_assert!(content.runs(0).eq(content.pieces()));
        }
        for [(one, one_plain), (other, other_plain)] in moments.iter().zip(&moments[1..]).map(|(a, b)| [a, b]) {
            let alike = one_plain.iter().zip(other_plain).take_while(|(a, b)| a == b).count();
            let different = (one_plain != other_plain).then_some(alike as u64);
            prop_assert_eq!(one.first_difference(other), different);
            prop_assert_eq!(one == other, one_plain == other_plain);
            prop_assert_eq!(one.digest() == other.digest(), one_plain == other_plain);
            prop_assert_eq!(one.cmp(other), one_plain.cmp(other_plain));
            let shared = one.sharing(other);
            prop_assert!(shared == *one && *shared.whole().unwrap() == one_plain[..]);
        }
        if let [(one, one_plain), (other, other_plain), ..] = &moments[..] {
            prop_assert_eq!(compare_contents(one, other), compare_bytes(one_plain, other_plain));
        }
    }
}

/// What both have is one in memory, however often it was read.
#[test]
fn equal_blocks_are_shared() {
    let bytes: Vec<u8> = (0..100_000u32).map(|at| (at / 4096) as u8).collect();
    let known = FileBytes::from(bytes.clone());
    let mut changed = bytes;
    changed[50_000] ^= 1;
    changed.push(1);
    let read = FileBytes::from(changed);
    let at = |content: &FileBytes| -> Vec<*const u8> {
        content.pieces().map(|(_, piece)| piece.as_ptr()).collect()
    };
    let (known_at, shared_at) = (at(&known), at(&read.sharing(&known)));
    let differing: Vec<usize> =
        (0..known_at.len()).filter(|block| known_at[*block] != shared_at[*block]).collect();
    assert_eq!(differing, [50_000 / 4096, 100_000 / 4096]);
}

/// A block that was written whole is what was written, and no copy of it.
#[test]
fn whole_blocks_are_not_copied() {
    let data = crashlab::op::Data::from(vec![7; 3 * 4096]);
    let mut content = FileBytes::default();
    content.write(1000, &data).unwrap();
    let pieces: Vec<_> = content.pieces().collect();
    assert_eq!(pieces[1].1.as_ptr(), data[3096..].as_ptr());
    assert_eq!(pieces[2].1.as_ptr(), data[3096 + 4096..].as_ptr());
}

#[test]
fn what_is_longer_than_memory_can_be_compared() {
    let huge = 1 << 40;
    let mut one = FileBytes::hole(huge).unwrap();
    let mut other = one.clone();
    assert_eq!(one, other);
    one.write(huge - 5, &b"text"[..].into()).unwrap();
    other.write(huge - 5, &b"test"[..].into()).unwrap();
    assert_eq!(one.first_difference(&other), Some(huge - 3));
    assert!(one > other && one.whole().is_none());
    assert_eq!(
        compare_contents(&one, &other).lines().next().unwrap(),
        "1099511627776 bytes as before, different from byte 1099511627773 on"
    );
}

#[derive(Debug, Clone)]
enum MapChange {
    Insert(u8, u8),
    Remove(u8),
    Update(u8, u8),
    UpdateAll(u8),
    Keep(u8),
}

fn map_change() -> impl Strategy<Value = MapChange> {
    let key = || 0u8..40;
    prop_oneof![
        4 => (key(), any::<u8>()).prop_map(|(key, value)| MapChange::Insert(key, value)),
        2 => key().prop_map(MapChange::Remove),
        2 => (key(), any::<u8>()).prop_map(|(key, value)| MapChange::Update(key, value)),
        1 => key().prop_map(MapChange::UpdateAll),
        1 => (1u8..5).prop_map(MapChange::Keep),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn a_map_is_a_map(changes in proptest::collection::vec(map_change(), 1..60), from in 0u8..40) {
        // A path as key and a content as value, so that it has a digest.
        let key = |number: u8| PathBuf::from(format!("{number:02}"));
        let value = |number: u8| crashlab::judge::Content::Bytes(vec![number].into());
        let (mut map, mut plain) = (SharedMap::new(), BTreeMap::new());
        let mut moments = Vec::new();
        for change in changes {
            // What was hashed before a change must not stand after it.
            std::hint::black_box(map.digest());
            match change {
                MapChange::Insert(at, it) => {
                    let known = plain.insert(key(at), value(it)).is_some();
                    prop_assert_eq!(map.insert(key(at), value(it)), known);
                }
                MapChange::Remove(at) => {
                    prop_assert_eq!(map.remove(&key(at)), plain.remove(&key(at)).is_some());
                }
                MapChange::Update(at, it) => {
                    let done = map.update(&key(at), |old| *old = value(it)).is_some();
                    let known = plain.get_mut(&key(at)).map(|old| *old = value(it)).is_some();
                    prop_assert_eq!(done, known);
                }
                MapChange::UpdateAll(it) => {
                    map.update_all(|path, old| {
                        if *path > key(it) {
                            *old = value(it);
                        }
                    });
                    plain.iter_mut().filter(|(path, _)| **path > key(it)).for_each(|(_, old)| *old = value(it));
                }
                MapChange::Keep(nth) => {
                    let is_kept = |path: &PathBuf| !path.to_str().unwrap().parse::<u8>().unwrap().is_multiple_of(nth);
                    map.retain(|path, _| is_kept(path));
                    plain.retain(|path, _| is_kept(path));
                }
            }
            moments.push((map.clone(), plain.clone()));
        }
        for (map, plain) in &moments {
            prop_assert!(map.iter().eq(plain) && map.len() == plain.len());
            prop_assert_eq!(map.is_empty(), plain.is_empty());
            prop_assert!(map.starting_at(&key(from)).eq(plain.range(key(from)..)));
            prop_assert_eq!(map.get(&key(from)), plain.get(&key(from)));
            // The way to it makes no difference.
            let again: SharedMap<_, _> = plain.clone().into_iter().rev().collect();
            prop_assert!(again == *map && again.digest() == map.digest());
        }
        for ((one, one_plain), (other, other_plain)) in moments.iter().zip(&moments[1..]) {
            prop_assert_eq!(one == other, one_plain == other_plain);
        }
    }
}
