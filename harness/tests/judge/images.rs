//! Images: which bytes are state, how a tree is given others, and which paths are alike.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crashlab::judge::{Content, Follower, Image, Shapes, State, shape};
use crashlab::op::OpKind;
use crashlab::tree::{Node, NodeKind, Tree};

use super::build::{Log, changed, linked, state, tree};

fn bytes(text: &str) -> Content {
    Content::Bytes(text.as_bytes().to_vec().into())
}

fn image(files: &[(&str, Content)]) -> Image {
    Image { files: files.iter().map(|(path, it)| (path.into(), it.clone())).collect() }
}

fn node<'t>(tree: &'t Tree, path: &str) -> &'t Node {
    &tree.nodes[Path::new(path)]
}

#[test]
fn a_file_that_is_given_other_bytes_stays_the_same_file() {
    let state = state(&["s.json"]);
    let before =
        changed(tree(&[("s.json", "a"), ("else", "x")]), "s.json", |node| node.mode = 0o600);
    let after = state.put(&image(&[("s.json", bytes("b"))]), &before, &Tree::default());
    let kind = NodeKind::File(b"b".to_vec().into());
    assert_eq!(after, changed(before.clone(), "s.json", |node| node.kind = kind));
    let absent = state.put(&image(&[("s.json", Content::Absent)]), &before, &before);
    assert_eq!(absent, tree(&[("else", "x")]));
    assert_eq!(state.put(&Image::default(), &before, &before), absent);
    let special = image(&[("s.json", Content::Special)]);
    assert_eq!(state.put(&special, &before, &before), before, "that cannot be made");
}

#[test]
fn a_file_that_is_not_there_takes_after_the_one_that_it_will_be() {
    let state = state(&["d/s"]);
    let wanted = image(&[("d/s", bytes("b"))]);
    let like = changed(tree(&[("d/s", "else")]), "d/s", |node| node.mode = 0o600);
    let like = changed(like, "d", |node| node.mode = 0o700);
    let after = state.put(&wanted, &tree(&[]), &like);
    assert_eq!((node(&after, "d").mode, node(&after, "d/s").mode), (0o700, 0o600));
    assert_eq!(state.image(&after), wanted);
    // Where there is no such file, it belongs to whom its folder belongs to.
    let folder = changed(tree(&[("d/x", "")]), "d", |node| (node.uid, node.gid) = (7, 8));
    let after = state.put(&wanted, &folder, &folder);
    let new = node(&after, "d/s");
    assert_eq!((new.mode, new.uid, new.gid), (0o644, 7, 8));
}

#[test]
fn a_link_to_the_state_stays_a_link() {
    let before = linked(tree(&[("real", "a")]), "s.json", "real");
    let after = state(&["s.json"]).put(&image(&[("s.json", bytes("b"))]), &before, &before);
    assert_eq!(after, linked(tree(&[("real", "b")]), "s.json", "real"));
}

#[test]
fn a_link_below_a_folder_that_is_state_is_state() {
    let state = state(&["d"]);
    let before = linked(tree(&[("d/a", "1"), ("d/b", "2")]), "d/now", "a");
    let turned = linked(before.clone(), "d/now", "b");
    assert_eq!(state.image(&before).files[Path::new("d/now")], Content::Link("a".into()));
    assert_eq!(state.put(&state.image(&turned), &before, &before), turned);
    // A file in its place takes nothing after it.
    let mut files = state.image(&before).files;
    files.insert("d/now".into(), bytes("3"));
    let after = state.put(&Image { files }, &before, &before);
    assert_eq!(after, tree(&[("d/a", "1"), ("d/b", "2"), ("d/now", "3")]));
}

#[test]
fn all_names_of_one_file_get_its_bytes_and_no_other_file_does() {
    let same = |node: &mut Node| node.hard_link = Some("s.bak".into());
    let before = tree(&[("other", "a"), ("s.json", "a"), ("s.bak", "a")]);
    let before = changed(changed(before, "s.json", same), "s.bak", same);
    let after = state(&["s.json"]).put(&image(&[("s.json", bytes("b"))]), &before, &before);
    let expected = tree(&[("other", "a"), ("s.json", "b"), ("s.bak", "b")]);
    assert_eq!(after, changed(changed(expected, "s.json", same), "s.bak", same));
}

#[test]
fn a_path_that_leads_out_of_the_folder_is_not_watched() {
    let inside = linked(tree(&[("real", "a")]), "s.json", "real");
    let outside = linked(tree(&[]), "s.json", "/elsewhere/s.json");
    let state = State { seen: "/work".into(), ..state(&["t", "s.json"]) };
    assert_eq!(state.unwatched(&inside), None);
    assert_eq!(state.unwatched(&outside), Some(Path::new("s.json")));
}

#[test]
fn what_each_event_changes_is_told() {
    let state = state(&["s.json", "u"]);
    let before = tree(&[("s.json", "aa"), ("u", "1"), ("other", "x")]);
    let mut at = Follower::new(&before, &state);
    let mut changes = |log: Log| -> Vec<BTreeSet<PathBuf>> {
        log.events.iter().map(|event| at.apply(event).expect("it fits")).collect()
    };
    let one = |path: &str| BTreeSet::from([PathBuf::from(path)]);
    let none = BTreeSet::new;
    assert_eq!(changes(Log::default().write("s.json", 0, "b")), [one("s.json")]);
    assert_eq!(changes(Log::default().write("s.json", 0, "b").sync("s.json")), [none(), none()]);
    assert_eq!(changes(Log::default().op(OpKind::Unlink { path: "u".into() })), [one("u")]);
    assert_eq!(changes(Log::default().op(OpKind::Unlink { path: "other".into() })), [none()]);
    assert_eq!(at.image, image(&[("s.json", bytes("ba")), ("u", Content::Absent)]));
}

#[test]
fn nothing_is_no_file_at_all() {
    assert!(image(&[("s.json", Content::Absent), ("u", Content::Absent)]).is_nothing());
    assert!(!image(&[("s.json", Content::Absent), ("u", bytes(""))]).is_nothing());
}

#[test]
fn paths_are_alike_but_for_their_numbers() {
    assert_eq!(shape(Path::new("d/s.4711.tmp2")), "d/s.#.tmp#");
    let mut shapes = Shapes::default();
    shapes.learn([PathBuf::from("s.4711.tmp")].iter());
    assert!(shapes.contains(Path::new("s.5.tmp")));
    assert!(!shapes.contains(Path::new("s.x.tmp")) && !shapes.contains(Path::new("s..tmp")));
}
