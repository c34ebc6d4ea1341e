//! A recording on a machine that has neither the program nor its folder, and other users.

use std::fs;

use crashlab::sandbox::{Way, capabilities};
use nix::unistd::{getegid, geteuid};

use super::support::{Place, recorded, written};

#[test]
fn neither_the_program_nor_its_folder_is_needed() {
    let place = Place::with(&[("s.json", "5")]);
    let program = place.file("program");
    fs::write(&program, "#!/bin/sh\nn=$(cat \"$1\"); echo $((n + 1)) > \"$1\"\n").unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let state = place.work().join("s.json");
    let (state, program) = (state.to_str().unwrap(), program.to_str().unwrap());
    let (code, _, said) = place.crashlab(&["record", "-o", "../f", "--", program, state]);
    assert_eq!(code, 0, "{said}");
    fs::remove_dir_all(place.work()).unwrap();
    fs::remove_file(program).unwrap();
    // The program was its own recovery: there must be another.
    let (code, _, said) = place.crashlab(&["check", "--faults", "kill", "--recording", "f"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("give what a user would run next by --recover"), "{said}");
    if capabilities().way == Way::Plain {
        eprintln!("skipped: a folder can be shown at its path only with namespaces");
        return;
    }
    // It finds the state at the path that the program gave it.
    let recover =
        format!("test -s {state} && n=$(cat {state}) && echo $n > {state} && ls -l {program}/..");
    let recover = recover.replace(&format!(" && ls -l {program}/.."), "");
    let (code, out, said) =
        place.crashlab(&["check", "--faults", "kill", "--recording", "f", "--recover", &recover]);
    assert_eq!(code, 1, "{out}{said}");
    assert!(out.contains("torn 1"), "{out}");
    assert!(!place.work().exists(), "the folder is made up for the programs alone");
}

#[test]
fn what_belonged_to_the_recording_user_belongs_to_this_one() {
    let ours = recorded(vec![written(1, "a".as_ref(), b"after")]).as_ours();
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    for tree in [&ours.runs[0].before, &ours.runs[0].after] {
        assert!(tree.nodes.values().all(|node| (node.uid, node.gid) == (uid, gid)));
    }
}
