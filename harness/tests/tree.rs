//! Trees on the disk and in memory, and what people see of their differences.
#![allow(
    clippy::unwrap_used,
    reason = "tests may, and what helps them is no test by itself to the lint"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crashlab::op::{Actor, Data, Event, FileId, Op, OpKind, What};
use crashlab::sandbox::{Sandbox, SandboxOptions};
use crashlab::tree::{Model, Node, NodeKind, Tree, difference, read, write_out};
use proptest::prelude::*;

/// What has a file for itself.
mod tree {
    mod content;
    mod program;
    mod programs;
}

fn me() -> (u32, u32) {
    (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw())
}

fn node(kind: NodeKind, mode: u32) -> Node {
    let (uid, gid) = me();
    Node { kind, mode, uid, gid, hard_link: None, xattrs: BTreeMap::new() }
}

fn file(bytes: impl AsRef<[u8]>) -> Node {
    node(NodeKind::File(bytes.as_ref().into()), 0o644)
}

fn folder() -> Node {
    node(NodeKind::Folder, 0o755)
}

fn link(target: &str) -> Node {
    node(NodeKind::Link(target.into()), 0o777)
}

fn tree<const N: usize>(nodes: [(&str, Node); N]) -> Tree {
    let mut tree = Tree::default();
    tree.nodes.insert(PathBuf::new(), folder());
    tree.nodes.extend(nodes.map(|(path, node)| (PathBuf::from(path), node)));
    tree
}

/// A folder that goes away also when modes in it forbid that to its owner.
struct Scratch(Option<tempfile::TempDir>);

impl Scratch {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        fs::create_dir(scratch.path().join("tree")).unwrap();
        Scratch(Some(scratch))
    }

    fn path(&self) -> PathBuf {
        self.0.as_ref().unwrap().path().join("tree")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fn open(folder: &Path) {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
            for entry in fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_dir() {
                    open(&entry.path());
                }
            }
        }
        let folder = self.0.take().unwrap();
        open(folder.path());
        folder.close().unwrap();
    }
}

fn round_trip(tree: &Tree) -> Tree {
    let scratch = Scratch::new();
    write_out(tree, &scratch.path()).unwrap();
    read(&scratch.path()).unwrap()
}

/// Whether the temporary folder's file system has `user.` attributes.
fn attributes_work() -> bool {
    let mut wanted = file("");
    wanted.xattrs.insert("user.probe".into(), b"1".to_vec());
    let scratch = Scratch::new();
    write_out(&tree([("probe", wanted)]), &scratch.path()).is_ok()
}

/// Gives each group of hard links the number that the tree's order asks for.
fn renumbered(tree: Tree) -> Tree {
    Tree::from_identities(tree.nodes.into_iter().enumerate().map(|(position, (path, node))| {
        let identity = node.hard_link.clone().ok_or(position);
        (path, node, identity)
    }))
}

#[test]
fn everything_that_a_folder_can_hold_survives_a_round_trip() {
    let mut first = file(b"\0\xff shared");
    first.hard_link = Some("any".into());
    let mut closed = folder();
    closed.mode = 0o555;
    let mut set_id = file("#!/bin/sh\n");
    set_id.mode = 0o4751;
    let mut annotated = file("x");
    let mut annotated_folder = folder();
    if attributes_work() {
        annotated.mode = 0o400;
        annotated.xattrs.insert("user.origin".into(), vec![0, 255, 10]);
        annotated.xattrs.insert("user.empty".into(), Vec::new());
        annotated_folder.xattrs.insert("user.note".into(), b"kept".to_vec());
        annotated_folder.mode = 0o500;
    } else {
        println!("skipped: no `user.` attributes on this file system");
    }
    let wanted = renumbered(tree([
        ("closed", closed),
        ("closed/deep", folder()),
        ("closed/first", first.clone()),
        ("second", first),
        ("pipe", node(NodeKind::Fifo, 0o620)),
        ("socket", node(NodeKind::Socket, 0o755)),
        ("to nowhere", link("../../missing")),
        ("set-id", set_id),
        ("annotated", annotated),
        ("annotated folder", annotated_folder),
        ("sealed", node(NodeKind::File(b"secret"[..].into()), 0o400)),
    ]));
    let found = round_trip(&wanted);
    assert_eq!(difference(&wanted, &found), []);
    assert_eq!(found, wanted);
    assert_eq!(found.hash(), wanted.hash());
}

#[test]
fn the_folder_itself_has_a_mode_too() {
    let mut wanted = tree([("a", file("1"))]);
    wanted.nodes.update(Path::new(""), |top| top.mode = 0o511).unwrap();
    assert_eq!(round_trip(&wanted), wanted);
}

#[test]
fn owners_are_kept_or_refused() {
    let mut foreign = file("theirs");
    (foreign.uid, foreign.gid, foreign.mode) = (12, 34, 0o4755);
    let wanted = tree([("a", foreign)]);
    let scratch = Scratch::new();
    match write_out(&wanted, &scratch.path()) {
        Ok(()) => assert_eq!(read(&scratch.path()).unwrap(), wanted),
        Err(error) => {
            assert_eq!(error.source.raw_os_error(), Some(libc::EPERM));
            assert!(error.to_string().contains("set the owner of"), "{error}");
            assert!(error.path.ends_with("a"));
        }
    }
}

#[test]
fn devices_are_kept_or_refused() {
    let null = NodeKind::Device { block: false, number: nix::sys::stat::makedev(1, 3) };
    let wanted = tree([("null", node(null, 0o600))]);
    let scratch = Scratch::new();
    match write_out(&wanted, &scratch.path()) {
        Ok(()) => assert_eq!(read(&scratch.path()).unwrap(), wanted),
        Err(error) => assert_eq!(error.source.raw_os_error(), Some(libc::EPERM), "{error}"),
    }
}

/// Where the file system tells of holes, which the usual ones do.
#[test]
fn holes_stay_holes() {
    let scratch = Scratch::new();
    let sparse = scratch.path().join("sparse");
    let huge = 1 << 40;
    let file = fs::File::create(&sparse).unwrap();
    file.write_all_at(b"in the middle", huge / 2).unwrap();
    file.set_len(huge).unwrap();
    let found = read(&scratch.path()).unwrap();
    let NodeKind::File(content) = &found.get(Path::new("sparse")).unwrap().kind else {
        panic!("no file: {found:?}");
    };
    assert_eq!((content.len(), content.whole()), (huge, None));
    assert_eq!(content.read(huge / 2 - 1, 4), b"\0in ");
    let written: usize = content.pieces().map(|(_, piece)| piece.len()).sum();
    assert!(written < 1 << 20, "{written} bytes were read");

    let other = Scratch::new();
    write_out(&found, &other.path()).unwrap();
    let written = fs::metadata(other.path().join("sparse")).unwrap();
    assert!(written.len() == huge && written.blocks() * 512 < 1 << 20, "{written:?}");
    assert_eq!(read(&other.path()).unwrap(), found);
    let text = shown(&tree([("sparse", node(NodeKind::File(content.clone()), 0o644))]), &found);
    assert!(!text.contains("byte"), "{text}");
}

/// What reads the same is the same, be it a hole or zeros that were written.
#[test]
fn zeros_are_as_good_as_a_hole() {
    let scratch = Scratch::new();
    let at = |name: &str| scratch.path().join(name);
    fs::write(at("a"), [0; 100_000]).unwrap();
    fs::File::create(at("b")).unwrap().set_len(100_000).unwrap();
    let found = read(&scratch.path()).unwrap();
    let content = |name: &str| found.get(Path::new(name)).unwrap().kind.clone();
    assert_eq!(content("a"), content("b"));
    assert_eq!(content("a"), NodeKind::File([0; 100_000][..].into()));
}

/// What no file can be is an error in the model.
#[test]
fn what_is_too_long_is_refused() {
    let (file_id, path) = (FileId(0), PathBuf::from("a"));
    let grown = |kind| {
        let mut model = Model::new(&tree([("a", file("text"))]));
        let op = Op { number: 1, call: "call".into(), kind };
        let actor = Actor { program: 0, pid: 1, tid: 1 };
        model.apply(&Event { actor, what: What::Op(op) }).map(|()| model.tree())
    };
    let allocate = |mode| OpKind::Allocate {
        file: file_id,
        path: path.clone(),
        mode,
        offset: 2,
        len: i64::MAX.cast_unsigned(),
    };
    let longest = i64::MAX.cast_unsigned();
    let truncate =
        |size| OpKind::Truncate { file: file_id, path: path.clone(), size, by_open: false };
    for kind in [
        truncate(longest + 1),
        OpKind::Write {
            file: file_id,
            path: path.clone(),
            offset: longest,
            data: Data::from(b"x".to_vec()),
            append: false,
        },
        allocate(0),
        allocate(libc::FALLOC_FL_INSERT_RANGE),
    ] {
        let misfit = grown(kind).unwrap_err();
        assert_eq!(misfit.what, "longer than a file can be");
    }
    assert_ne!(grown(truncate(longest)).unwrap(), grown(truncate(longest - 1)).unwrap());
    let punched = grown(allocate(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE)).unwrap();
    assert_eq!(punched, tree([("a", file("te\0\0"))]));
}

#[test]
fn names_that_share_an_inode_share_their_bytes_and_the_first_of_them() {
    let scratch = Scratch::new();
    let at = |name: &str| scratch.path().join(name);
    fs::write(at("b"), "one").unwrap();
    fs::hard_link(at("b"), at("d")).unwrap();
    fs::write(at("c"), "two").unwrap();
    fs::create_dir(at("a")).unwrap();
    // One of the two names of this file lies outside.
    fs::write(at("lone"), "three").unwrap();
    fs::hard_link(at("lone"), scratch.path().with_file_name("outside")).unwrap();
    let found = read(&scratch.path()).unwrap();
    let first = |name: &str| found.get(Path::new(name)).unwrap().hard_link.as_deref();
    let b = Some(Path::new("b"));
    assert_eq!((first("b"), first("d")), (b, b));
    assert_eq!((first("c"), first("lone"), first("a")), (None, None, None));
    let data = |name: &str| match &found.get(Path::new(name)).unwrap().kind {
        NodeKind::File(content) => content.pieces().next().unwrap().1.as_ptr(),
        other => panic!("{other:?}"),
    };
    assert_eq!(data("b"), data("d"));
}

#[test]
fn groups_of_names_stay_apart() {
    let (mut one, mut two) = (file("1"), file("2"));
    (one.hard_link, two.hard_link) = (Some("a".into()), Some("b".into()));
    let wanted = tree([("a", one.clone()), ("b", two.clone()), ("c", one), ("d", two)]);
    let scratch = Scratch::new();
    write_out(&wanted, &scratch.path()).unwrap();
    let inode = |name: &str| fs::metadata(scratch.path().join(name)).unwrap().ino();
    assert_eq!(inode("a"), inode("c"));
    assert_eq!(inode("b"), inode("d"));
    assert_ne!(inode("a"), inode("b"));
}

/// Deeper than a path reaches, and than the stack of a small thread.
#[test]
fn depth_is_no_limit() {
    let mut wanted = tree([("last", link("nowhere"))]);
    let mut path = PathBuf::new();
    for level in 0..3000 {
        path.push("d");
        let mode = if level % 1000 == 500 { 0o000 } else { 0o755 };
        wanted.nodes.insert(path.clone(), node(NodeKind::Folder, mode));
    }
    wanted.nodes.insert(path.join("file"), file("at the bottom"));
    let mut shared = node(NodeKind::File(b"of two names"[..].into()), 0o000);
    shared.hard_link = Some("any".into());
    wanted.nodes.insert(path.join("shared"), shared.clone());
    wanted.nodes.insert("shared".into(), shared);
    let wanted = renumbered(wanted);
    let options = SandboxOptions { plain: true, ..SandboxOptions::default() };
    let sandbox = Sandbox::new(&options).unwrap();
    std::thread::scope(|scope| {
        let small = std::thread::Builder::new().stack_size(256 << 10);
        let round_trip = || {
            sandbox.fill(&wanted).unwrap();
            // Twice, since the modes that were in the way must be as they were.
            for _ in 0..2 {
                let found = sandbox.snapshot().unwrap();
                assert!(found == wanted, "{:?}", difference(&wanted, &found).first());
            }
        };
        small.spawn_scoped(scope, round_trip).unwrap().join().unwrap();
    });
}

#[test]
fn what_cannot_be_read_is_named() {
    let scratch = Scratch::new();
    let error = read(&scratch.path().join("missing")).unwrap_err();
    assert!(error.path.ends_with("missing"));
    fs::write(scratch.path().join("plain"), "").unwrap();
    let error = read(&scratch.path().join("plain")).unwrap_err();
    assert_eq!(error.source.kind(), std::io::ErrorKind::NotADirectory);
    let sealed = scratch.path().join("sealed");
    fs::write(&sealed, "").unwrap();
    fs::set_permissions(&sealed, fs::Permissions::from_mode(0o000)).unwrap();
    if me().0 == 0 {
        println!("skipped: root can read everything");
    } else {
        let error = read(&scratch.path()).unwrap_err();
        assert_eq!(
            (error.path, error.source.kind()),
            (sealed, std::io::ErrorKind::PermissionDenied)
        );
    }
}

#[test]
fn nothing_is_written_outside_of_the_folder() {
    let outside = tempfile::tempdir().unwrap();
    let through = tree([("way", link(outside.path().to_str().unwrap())), ("way/file", file("x"))]);
    let above = tree([("..", folder()), ("../file", file("x"))]);
    let absolute = outside.path().join("file");
    let absolute = tree([(absolute.to_str().unwrap(), file("x"))]);
    let orphan = tree([("no/folder", file("x"))]);
    for bad in [through, above, absolute, orphan] {
        let scratch = Scratch::new();
        let error = write_out(&bad, &scratch.path()).unwrap_err();
        assert_eq!(error.source.kind(), std::io::ErrorKind::InvalidInput, "{error}");
        assert!(!scratch.path().with_file_name("file").exists());
    }
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn an_existing_file_is_not_overwritten() {
    let scratch = Scratch::new();
    fs::write(scratch.path().join("a"), "mine").unwrap();
    let error = write_out(&tree([("a", file("theirs"))]), &scratch.path()).unwrap_err();
    assert_eq!(error.source.kind(), std::io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read(scratch.path().join("a")).unwrap(), b"mine");
}

#[test]
fn links_are_followed_inside_the_tree_alone() {
    let it = tree([
        ("data", folder()),
        ("data/state", file("here")),
        ("data/up", link("../current")),
        ("current", link("data/state")),
        ("via", link("data")),
        ("round", link("round")),
        ("out", link("../elsewhere")),
        ("over", link("data/../../etc/passwd")),
        ("far", link("/etc/passwd")),
        ("near", link("/work/here/via/up")),
        ("beside", link("/work/hereby/data/state")),
        ("dangling", link("gone")),
        ("through", link("data/state/more")),
    ]);
    let model = Model::new(&it);
    let seen = Path::new("/work/here");
    let at = |path: &str| {
        model.resolve(Path::new(path), seen)?;
        model.resolve_path(Path::new(path), seen)
    };
    for path in
        ["data/state", "current", "via/state", "via/up", "data/up", "near", "./via/../current"]
    {
        assert_eq!(at(path), Some("data/state".into()), "{path}");
    }
    assert_eq!(at(""), Some("".into()));
    for path in [
        "round",
        "out",
        "over",
        "far",
        "beside",
        "dangling",
        "gone",
        "through",
        "..",
        "data/state/..",
    ] {
        assert_eq!(at(path), None, "{path}");
    }
    let place = model.resolve_path(Path::new("dangling"), seen);
    assert_eq!(place, Some("gone".into()), "there need not be anything");
}

#[test]
fn every_part_of_a_node_counts_for_the_hash() {
    let plain = tree([("a", file("1")), ("b", file("1"))]);
    let mut others = Vec::new();
    let mut change = |edit: &dyn Fn(&mut Node)| {
        let mut other = plain.clone();
        other.nodes.update(Path::new("a"), edit).unwrap();
        others.push(other);
    };
    change(&|node| node.mode = 0o600);
    change(&|node| node.uid += 1);
    change(&|node| node.gid += 1);
    change(&|node| node.hard_link = Some("a".into()));
    change(&|node| node.hard_link = Some("b".into()));
    change(&|node| drop(node.xattrs.insert("user.a".into(), b"b".to_vec())));
    change(&|node| drop(node.xattrs.insert("user.ab".into(), b"".to_vec())));
    change(&|node| node.kind = NodeKind::File(b"2"[..].into()));
    change(&|node| node.kind = NodeKind::File(b""[..].into()));
    change(&|node| node.kind = NodeKind::Link("1".into()));
    change(&|node| node.kind = NodeKind::Link("/1".into()));
    change(&|node| node.kind = NodeKind::Folder);
    change(&|node| node.kind = NodeKind::Fifo);
    change(&|node| node.kind = NodeKind::Socket);
    change(&|node| node.kind = NodeKind::Device { block: true, number: 1 });
    change(&|node| node.kind = NodeKind::Device { block: false, number: 1 });
    others.push(tree([("a", file("1"))]));
    others.push(tree([("a", file("1")), ("c", file("1"))]));
    others.push(tree([("a", folder()), ("a/b", file("1")), ("b", file("1"))]));
    others.push(Tree::default());
    others.push(plain.clone());
    let hashes: BTreeSet<[u8; 32]> = others.iter().map(Tree::hash).collect();
    assert_eq!(hashes.len(), others.len());
    assert_eq!(plain.clone().hash(), plain.hash());
}

fn shown(a: &Tree, b: &Tree) -> String {
    difference(a, b).iter().map(|difference| format!("{difference}\n")).collect()
}

#[test]
fn differences_of_metadata_are_one_line_each() {
    let mut linked = file("x");
    linked.hard_link = Some("first".into());
    let mut marked = file("x");
    marked.xattrs.insert("user.gone".into(), b"old".to_vec());
    marked.xattrs.insert("user.changed".into(), b"old".to_vec());
    let mut remarked = marked.clone();
    remarked.xattrs.remove("user.gone");
    remarked.xattrs.insert("user.changed".into(), [b'n'; 50].to_vec());
    let mut sealed = file("x");
    (sealed.mode, sealed.uid, sealed.gid) = (0o600, 12, 34);
    let mut given = sealed.clone();
    (given.mode, given.uid, given.gid) = (0o4755, 56, 78);
    let before = tree([
        ("a", linked.clone()),
        ("b", linked.clone()),
        ("current", link("one")),
        ("gone\u{1b}[2J\n", folder()),
        ("kind", file("12345")),
        ("marked", marked),
        ("mode", sealed),
    ]);
    let mut top = folder();
    top.mode = 0o700;
    let mut after = tree([
        ("a", file("x")),
        ("b", file("x")),
        ("current", link("two")),
        (
            "kind",
            node(NodeKind::Device { block: true, number: nix::sys::stat::makedev(8, 1) }, 0o644),
        ),
        ("marked", remarked),
        ("mode", given),
        ("new", file("x")),
    ]);
    after.nodes.insert(PathBuf::new(), top);
    insta::assert_snapshot!(shown(&before, &after));
}

/// Random trees, which anyone may write out.
fn trees() -> impl Strategy<Value = Tree> {
    let name = prop_oneof![
        Just("a"),
        Just("b"),
        Just("c"),
        Just("with blank"),
        Just("\u{fc}\n"),
        Just("-x")
    ];
    let path = proptest::collection::vec(name, 1..4);
    let kind = prop_oneof![
        4 => proptest::collection::vec(any::<u8>(), 0..64).prop_map(|bytes| NodeKind::File(bytes.into())),
        3 => Just(NodeKind::Folder),
        1 => Just(NodeKind::Fifo),
        1 => Just(NodeKind::Socket),
        2 => prop_oneof![Just("a"), Just("/x"), Just("../../b/c"), Just("\n")].prop_map(|to| NodeKind::Link(to.into())),
    ];
    // The last number joins files to groups: few values, so that some meet.
    let entry = (path, kind, 0u32..0o10000, 0u32..6);
    proptest::collection::vec(entry, 0..14).prop_map(planted)
}

/// Puts the entries that fit into a tree, one after another.
fn planted(entries: Vec<(Vec<&'static str>, NodeKind, u32, u32)>) -> Tree {
    let mut nodes: BTreeMap<PathBuf, (Node, Result<u32, PathBuf>)> = BTreeMap::new();
    nodes.insert(PathBuf::new(), (folder(), Err(PathBuf::new())));
    let mut groups: BTreeMap<u32, Node> = BTreeMap::new();
    for (path, kind, mode, group) in entries {
        let path: PathBuf = path.iter().collect();
        let parent = path.parent().unwrap();
        if nodes.contains_key(&path)
            || nodes.get(parent).is_none_or(|(node, _)| node.kind != NodeKind::Folder)
        {
            continue;
        }
        let new = match kind {
            NodeKind::Link(_) => node(kind, 0o777),
            // The owner must be able to look into it again.
            NodeKind::Folder => node(kind, mode | 0o500),
            _ => node(kind, mode | 0o400),
        };
        if new.kind == NodeKind::Folder || group > 2 {
            nodes.insert(path.clone(), (new, Err(path)));
        } else {
            let shared = groups.entry(group).or_insert(new).clone();
            nodes.insert(path, (shared, Ok(group)));
        }
    }
    Tree::from_identities(nodes.into_iter().map(|(path, (node, identity))| (path, node, identity)))
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(tree in trees()) {
        let found = round_trip(&tree);
        prop_assert_eq!(difference(&tree, &found), []);
        prop_assert_eq!(&found, &tree);
        prop_assert_eq!(found.hash(), tree.hash());
    }

    #[test]
    fn differences_and_hashes_agree_with_equality(a in trees(), b in trees()) {
        prop_assert_eq!(difference(&a, &b).is_empty(), a == b);
        prop_assert_eq!(a.hash() == b.hash(), a == b);
        prop_assert_eq!(difference(&a, &a), []);
    }
}
