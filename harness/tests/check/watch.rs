//! Programs that write into more folders than the one in which they run.

use std::fs;

use super::{Folder, row};

/// A folder `app`, in which programs begin, and `data` beside it; `{data}` stands for its absolute path.
fn two_folders(line: &str) -> (Folder, String) {
    let folder = Folder::with(&[("app/s", "5"), ("data/d", "1"), ("other/o", "1")]);
    let line = line.replace("{data}", &folder.path().join("data").to_string_lossy());
    (folder, line)
}

const BOTH: &str = "n=$(cat s); echo $((n + 1)) > t; mv t s; n=$(cat ../data/d); \
                    echo $((n + 1)) > {data}/d";

fn tried(said: &str) -> bool {
    let tried = !said.contains("that takes namespaces");
    if !tried {
        eprintln!("skipped: several folders can be shown in their places only with namespaces");
    }
    tried
}

#[test]
fn what_changes_in_a_watched_folder_is_state() {
    let (folder, line) = two_folders(BOTH);
    let (code, said) = folder.check_in("app", &["--watch", "../data"], &line);
    if !tried(&said) {
        return;
    }
    assert_eq!(code, 1, "{said}");
    assert_eq!(row(&said, "app/s"), "old 3, new 3", "{said}");
    assert_eq!(row(&said, "data/d"), "old 4, new 1, torn 1", "{said}");
    assert!(said.contains("state, each judged by itself: app/s, data/d"), "{said}");
    assert!(said.contains("paths are told from"), "{said}");
    assert!(said.contains("crashlab check --watch ../data --faults kill --case kill@4"), "{said}");
    // The user's files are as they were.
    for (path, text) in [("app/s", "5"), ("data/d", "1")] {
        assert_eq!(fs::read_to_string(folder.path().join(path)).unwrap(), text);
    }
    // Without it that folder is not to be written.
    let (code, said) = folder.check_in("app", &[], &line);
    assert!(code == 2 && said.contains("fails without any fault"), "{said}");
}

#[test]
fn state_may_lie_in_a_watched_folder() {
    let (folder, line) = two_folders(BOTH);
    let absolute = folder.path().join("data/d");
    for state in ["../data/d", absolute.to_str().unwrap()] {
        let options = ["--watch", "../data", "--state", state];
        let (code, said) = folder.check_in("app", &options, &line);
        if !tried(&said) {
            return;
        }
        assert_eq!((code, row(&said, "")), (1, "old 4, new 1, torn 1"), "{said}");
        assert!(said.contains("changed as well"), "{said}");
    }
    let (code, said) = folder.check_in("app", &["--state", "../data/d"], &line);
    assert!(code == 2 && said.contains("name that one by --watch"), "{said}");
}

#[test]
fn a_folder_around_the_current_one_and_one_in_it() {
    let (folder, line) = two_folders("echo 6 > ../data/t; mv ../data/t s");
    let (code, said) = folder.check_in("app", &["--watch", "..", "--state", "s"], &line);
    assert_eq!((code, row(&said, "")), (0, "old 3, new 1"), "{said}");
    let (code, said) = folder.check_in("app", &["--watch", "."], "echo 6 > t; mv t s");
    assert_eq!((code, row(&said, " s ")), (0, "old 3, new 1"), "{said}");
}

/// Each watched folder is a mount of its own, which the two of a user need not be.
#[test]
fn a_rename_from_one_watched_folder_to_another_is_said() {
    let (folder, line) = two_folders("echo 6 > t; mv t {data}/d");
    let (code, said) =
        folder.check_in("app", &["--watch", "../data", "--state", "../data/d"], &line);
    if !tried(&said) {
        return;
    }
    assert_eq!(code, 1, "copied, where it could not be moved:\n{said}");
    assert!(said.replace("\n    ", "").contains("was refused with EXDEV"), "{said}");
    let (code, said) = folder.check_in("app", &["--watch", "..", "--state", "../data/d"], &line);
    assert_eq!((code, row(&said, "")), (0, "old 3, new 1"), "{said}");
}

#[test]
fn a_folder_that_cannot_be_watched_says_why() {
    let (folder, _) = two_folders("");
    for (watch, why) in [
        ("../nowhere", "--watch ../nowhere: No such file"),
        ("s", "--watch s: it is no folder"),
        ("/", "the whole file system cannot be copied"),
    ] {
        let (code, said) = folder.check_in("app", &["--watch", watch], "true");
        assert!(code == 2 && said.contains(why), "{said}");
    }
}

#[test]
fn a_scenario_with_watched_folders() {
    let (folder, line) = two_folders("echo 6 > {data}/t; mv {data}/t {data}/d; echo 6 > s");
    let init = ["init", "-o", "mine.toml", "--watch", "../data", "--", "sh", "-c", &line];
    let (code, said) = folder.crashlab_in("app", &init);
    if !tried(&said) {
        return;
    }
    assert_eq!(code, 0, "{said}");
    let (code, said) = folder.crashlab_in("app", &["run", "mine.toml"]);
    assert_eq!((code, row(&said, "mine")), (1, "old 4, new 1, torn 1"), "{said}");
    assert!(said.contains("when the power failed"), "{said}");
    let file = folder.path().join("app/mine.toml");
    let text = fs::read_to_string(&file).unwrap();
    let kills = text.replace("[[fault]]\nkind = \"power\"\nmodel = [\"ext4\"]\n", "");
    assert_ne!(kills, text);
    let told = |state: &str| {
        let other = kills.replace("state = [\"s\"]", &format!("state = [\"{state}\"]"));
        assert_ne!(other, kills);
        fs::write(&file, other).unwrap();
        folder.crashlab_in("app", &["run", "mine.toml"])
    };
    let (code, said) = told("../data/d");
    assert_eq!((code, row(&said, "mine")), (0, "old 3, new 3"), "{said}");
    let (code, said) = told("../other/o");
    assert!(code == 2 && said.contains("does not lie in the work folder, nor in"), "{said}");
    fs::write(&file, text.replace("\nfolder = ", "\n# folder = ")).unwrap();
    let (code, said) = folder.crashlab_in("app", &["run", "mine.toml"]);
    assert!(code == 2 && said.contains("`folder` as well"), "{said}");
}
