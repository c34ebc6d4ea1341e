//! The forms of the sandbox: by root or not, with namespaces, with an overlay or not. In none of them the user's files
//! change, also where only a recording is made; the same program comes to the same result where it can be run at all.

// A test says with a panic what went wrong; its support need not do better.
#![allow(clippy::unwrap_used)]

mod aftermath;

use std::fs;
use std::process::Command;

use aftermath::{Place, Setting, is_root};

/// A user namespace in which no other namespace can be made, as a container's policy would have it.
const NO_NAMESPACES: &[&str] = &[
    "unshare",
    "--user",
    "--map-root-user",
    "sh",
    "-c",
    "echo 0 > /proc/sys/user/max_user_namespaces && echo 0 > /proc/sys/user/max_mnt_namespaces && exec \"$@\"",
    "sh",
];

/// Files for temporary use on an overlay, as in a container: no other can keep its changes there.
const NO_OVERLAY: &str = "mount -o remount,size=1m /dev/shm && mount -t tmpfs tmpfs /mnt && \
     mkdir /mnt/lower /mnt/upper /mnt/work && chmod 1777 /mnt/upper && \
     mount -t overlay overlay -o lowerdir=/mnt/lower,upperdir=/mnt/upper,workdir=/mnt/work /tmp";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Whole,
    WithoutOverlay,
    WithoutNamespaces,
}

const MODES: [Mode; 3] = [Mode::Whole, Mode::WithoutOverlay, Mode::WithoutNamespaces];

fn setting(mode: Mode, as_nobody: bool) -> Setting {
    let setting = Setting { as_nobody, ..Setting::default() };
    match mode {
        Mode::Whole => setting,
        Mode::WithoutOverlay => Setting { mounts: NO_OVERLAY, ..setting },
        Mode::WithoutNamespaces => Setting { start: NO_NAMESPACES, ..setting },
    }
}

/// Whether a mode can be had here; the reason is printed where not.
fn can(mode: Mode) -> bool {
    let works = match mode {
        Mode::Whole => true,
        Mode::WithoutOverlay => is_root(),
        Mode::WithoutNamespaces => Command::new(NO_NAMESPACES[0])
            .args(&NO_NAMESPACES[1..])
            .arg("true")
            .output()
            .is_ok_and(|output| output.status.success()),
    };
    if !works {
        eprintln!("skipped: {mode:?} cannot be had here");
    }
    works
}

/// Every mode that can be had, by who runs the tests and by an ordinary user.
fn settings() -> impl Iterator<Item = (Mode, bool)> {
    let users = if is_root() { vec![false, true] } else { vec![false] };
    let modes = MODES.into_iter().filter(|mode| can(*mode));
    modes.flat_map(move |mode| users.clone().into_iter().map(move |user| (mode, user)))
}

/// More than what is copied for every case.
fn large(as_nobody: bool) -> Place {
    let place = Place::with(&[
        ("s.json", "5"),
        ("deep/er/s.json", "5"),
        ("removed", "1"),
        ("folder/in/file", "1"),
        ("one", "1"),
    ]);
    fs::create_dir(place.path().join("large")).unwrap();
    fs::write(place.path().join("large/7"), "1").unwrap();
    let file = fs::File::create(place.path().join("large/holes")).unwrap();
    file.set_len(9 << 20).unwrap();
    fs::hard_link(place.path().join("one"), place.path().join("other")).unwrap();
    std::os::unix::fs::symlink("deep/er", place.path().join("link")).unwrap();
    place.given_to(as_nobody)
}

fn small(as_nobody: bool) -> Place {
    Place::with(&[("s.json", "5")]).given_to(as_nobody)
}

const COUNTER: &str = "n=$(cat s.json); printf %s $((n + 1)) > t; mv t s.json";
const IN_PLACE: &str = "n=$(cat s.json); printf %s $((n + 1)) > s.json";

#[test]
fn what_is_reached_by_relative_paths_comes_to_the_same_in_every_mode() {
    for (mode, as_nobody) in settings() {
        let setting = setting(mode, as_nobody);
        let options =
            ["check", "--faults", "kill", "--state", "s.json", "--confirm", "1", "--", "sh", "-c"];
        let mut places = vec![small(as_nobody)];
        // Who runs it matters to namespaces alone, and copies of it take their time.
        if !as_nobody || mode == Mode::Whole {
            places.push(large(as_nobody));
        }
        for place in places {
            let before = place.listing();
            let ran = setting.run(&place, &[&options[..], &[COUNTER]].concat());
            ran.must_say(0, &["old 3, new 1", "confirmed 1 of 1"]);
            assert_eq!(place.listing(), before, "{mode:?}, as nobody: {as_nobody}");
        }
        let place = small(as_nobody);
        let before = place.listing();
        let ran = setting.run(&place, &[&options[..], &[IN_PLACE]].concat());
        ran.must_say(1, &["old 1, new 1, torn 1", "torn between ", "kill@1"]);
        assert_eq!(place.listing(), before, "{mode:?}, as nobody: {as_nobody}");
    }
}

#[test]
fn a_recording_leaves_the_files_alone_in_every_mode() {
    for (mode, as_nobody) in settings() {
        let place = small(false);
        let scenario = "title = 'One'\nproves = 'Nothing'\n[subject]\ncommand = ['sh', '-c', 'echo 6 > s.json; rm gone']\nfiles = 'files'\nstate = ['s.json']\n[[fault]]\nkind = 'kill'\n";
        fs::create_dir(place.path().join("files")).unwrap();
        fs::write(place.path().join("files/s.json"), "5").unwrap();
        fs::write(place.path().join("files/gone"), "5").unwrap();
        fs::write(place.path().join("one.toml"), scenario).unwrap();
        let place = place.given_to(as_nobody);
        let before = place.listing();
        let ran = setting(mode, as_nobody).run(&place, &["record", "one.toml"]);
        ran.must_say(0, &["s.json to 0 bytes, by open", "unlinkat gone"]);
        assert_eq!(place.listing(), before, "{mode:?}, as nobody: {as_nobody}");
    }
}

#[test]
fn an_absolute_path_is_that_of_the_copy_or_it_is_refused() {
    for (mode, as_nobody) in settings() {
        let place = small(as_nobody);
        let before = place.listing();
        let file = place.path().join("s.json");
        let file = file.to_str().unwrap();
        let setting = setting(mode, as_nobody);
        for line in [
            format!("echo 6 > {file}"),
            format!("echo 6 > t; mv t {file}"),
            format!("rm -f {file}"),
        ] {
            let ran = setting.run(
                &place,
                &["check", "--faults", "kill", "--state", "s.json", "--", "sh", "-c", &line],
            );
            match mode {
                Mode::WithoutNamespaces => {
                    let why = format!("the program reaches {file} by an absolute path");
                    let remedies = ["relative to the folder", "{dir}", "crashlab doctor"];
                    ran.must_say(3, &[&[why.as_str()], &remedies[..]].concat());
                }
                _ => assert!(ran.code <= 1, "{}", ran.said),
            }
            assert_eq!(place.listing(), before, "{mode:?}, as nobody: {as_nobody}: {line}");
        }
    }
}

#[test]
fn a_folder_named_by_a_placeholder_is_that_of_the_copy_in_every_mode() {
    for (mode, as_nobody) in settings() {
        let place = small(as_nobody);
        let before = place.listing();
        let line = "n=$(cat $0/s.json); printf %s $((n + 1)) > $0/t; mv $0/t $0/s.json";
        let arguments =
            ["check", "--faults", "kill", "--state", "s.json", "--", "sh", "-c", line, "{dir}"];
        setting(mode, as_nobody).run(&place, &arguments).must_say(0, &["old 3, new 1"]);
        assert_eq!(place.listing(), before, "{mode:?}, as nobody: {as_nobody}");
    }
}

#[test]
fn without_namespaces_what_is_read_by_an_absolute_path_must_be_what_the_copy_holds() {
    if !can(Mode::WithoutNamespaces) {
        return;
    }
    let setting = setting(Mode::WithoutNamespaces, false);
    let place = small(false);
    let script = place.path().join("save.sh");
    fs::write(&script, COUNTER).unwrap();
    let script = script.to_str().unwrap();
    // The script itself is no state.
    let arguments = ["check", "--faults", "kill", "--state", "s.json", "--", "sh", script];
    setting.run(&place, &arguments).must_say(0, &["old 3, new 1", "no namespaces"]);
    // What the run has changed is not what the user's file holds.
    let file = place.path().join("s.json");
    let line = format!("echo 6 > s.json; cat {}", file.display());
    let ran = setting
        .run(&place, &["check", "--faults", "kill", "--state", "s.json", "--", "sh", "-c", &line]);
    ran.must_say(3, &["by an absolute path"]);
}

#[test]
fn without_namespaces_the_rest_of_the_machine_is_kept_from_programs_too() {
    if !can(Mode::WithoutNamespaces) {
        return;
    }
    let (place, elsewhere) = (small(false), small(false));
    let before = elsewhere.listing();
    let other = elsewhere.path();
    let other = other.display();
    let line = format!(
        "echo x > {other}/new; echo x > {other}/s.json; rm {other}/s.json; mv {other}/s.json {other}/t; \
         mkdir {other}/made; ln {other}/s.json linked; chmod 600 {other}/s.json; touch {other}/s.json; {COUNTER}"
    );
    let setting = setting(Mode::WithoutNamespaces, false);
    let ran = setting
        .run(&place, &["check", "--faults", "kill", "--state", "s.json", "--", "sh", "-c", &line]);
    ran.must_say(0, &["old 3, new 1", "not seen: what a write to", "which is read-only here"]);
    assert_eq!(elsewhere.listing(), before);
}

#[test]
fn doctor_says_which_form_is_used() {
    for (mode, as_nobody) in settings() {
        let place = small(as_nobody);
        let said = setting(mode, as_nobody).run(&place, &["doctor"]).said;
        let line = |name: &str| {
            let named = |line: &&str| line.split_whitespace().nth(1) == Some(name);
            said.lines().find(named).unwrap_or_else(|| panic!("{said}")).to_owned()
        };
        let (sandbox, overlay) = (line("sandbox"), line("overlay"));
        match mode {
            Mode::Whole => {
                assert!(
                    sandbox.contains("ok ") && overlay.contains("large folders are laid over"),
                    "{said}"
                );
                let by_user = as_nobody || !is_root();
                assert_eq!(sandbox.contains("a user namespace"), by_user, "{said}");
            }
            Mode::WithoutOverlay => {
                assert!(sandbox.contains("ok ") && overlay.starts_with("limited"), "{said}");
                assert!(said.contains("a part is copied and the rest is read-only"), "{said}");
            }
            Mode::WithoutNamespaces => {
                assert!(
                    sandbox.starts_with("limited") && sandbox.contains("relative paths, or {dir}"),
                    "{said}"
                );
                assert!(overlay.starts_with("limited") && overlay.contains("namespaces"), "{said}");
            }
        }
    }
}

#[test]
fn a_large_folder_is_laid_over_or_shown_read_only() {
    for (mode, as_nobody) in settings().filter(|(mode, _)| *mode != Mode::WithoutNamespaces) {
        let place = large(as_nobody);
        let before = place.listing();
        let line = format!("echo 2 > large/7; {COUNTER}");
        let options = [
            "check",
            "--faults",
            "kill",
            "--state",
            "s.json",
            "--confirm",
            "0",
            "--",
            "sh",
            "-c",
            &line,
        ];
        let ran = setting(mode, as_nobody).run(&place, &options);
        match mode {
            Mode::WithoutOverlay => ran.must_say(
                0,
                &["old 3, new 1", "large is large: the program sees it as it is, read-only"],
            ),
            _ => ran.must_say(0, &["old 5, new 1", "looked at for leftovers only: large/7"]),
        };
        let refused = ran.said.contains("what a write to large/7 does, which is read-only here");
        assert_eq!(refused, mode == Mode::WithoutOverlay, "{}", ran.said);
        assert_eq!(place.listing(), before, "{mode:?}, as nobody: {as_nobody}");
    }
}

/// What an overlay does otherwise than a folder must not show: the same programs in a copy.
#[test]
fn programs_in_a_large_folder_find_what_they_would_find_in_a_copy() {
    let lines = [
        // Modes and owners of what is there.
        "chmod 600 s.json; chmod 700 folder; touch folder/in/file; echo 6 >> s.json",
        // A file and a folder that are there go, and come back.
        "rm removed; rm -r folder; mkdir folder; echo 2 > folder/new; echo 2 > removed",
        // A folder that is there is renamed, and so is what is below it.
        "mv folder moved; echo 2 > moved/in/file; mv moved/in moved/inner; mv moved folder",
        "mv folder moved; mkdir folder; mv moved folder/deeper",
        // One file of two names stays one.
        "echo 2 > one; cat other > t; rm one",
        // A state behind a link.
        "n=$(cat link/s.json); printf %s $((n + 1)) > link/t; mv link/t link/s.json",
        "ln -sfn folder/in new; echo 3 > new/file; mv -T new link",
        "cp s.json t; mv t s.json; truncate -s 9 removed; ln -f removed again",
    ];
    if !can(Mode::WithoutOverlay) {
        return;
    }
    for as_nobody in [false, true] {
        let place = large(as_nobody);
        let before = place.listing();
        // A user namespace differs in owners and rights: the first lines are about those.
        for line in lines.iter().take(if as_nobody { 3 } else { lines.len() }) {
            let arguments = ["check", "--faults", "kill", "--confirm", "1", "--", "sh", "-c", line];
            let [over, copy] = [Mode::Whole, Mode::WithoutOverlay].map(|mode| {
                let ran = setting(mode, as_nobody).run(&place, &arguments);
                assert_eq!(place.listing(), before, "{mode:?}: {line}");
                ran
            });
            assert!(copy.said.contains("large is large"), "{}", copy.said);
            assert!(!over.said.contains("is large"), "{}", over.said);
            assert_eq!(over.code, copy.code, "{}{}", over.said, copy.said);
            assert!(over.code <= 1, "{}", over.said);
            assert_eq!(verdicts(&over.said), verdicts(&copy.said), "{}{}", over.said, copy.said);
            assert!(!over.said.contains("a real kill at"), "{}", over.said);
        }
    }
}

/// The rows with verdicts, and how many cases there are.
fn verdicts(said: &str) -> Vec<&str> {
    let told = |line: &&str| line.contains(" kill ") || line.contains(" cases");
    let untimed = |line| str::split(line, " (").next().unwrap_or(line);
    said.lines().filter(told).map(untimed).collect()
}

/// A recovery that changes more of the folder than the run did, and only after a kill.
#[test]
fn what_only_a_recovery_changes_is_looked_at_from_the_start() {
    let place = large(false);
    let before = place.listing();
    let line = "cat s.json > /dev/null; printf 6 > t; mv t s.json";
    let recover =
        "[ ! -e t ] || { rm t; echo mended >> large/7; mv folder f; mv f folder; }; cat s.json";
    let options = ["--state", "s.json", "--recover", recover];
    let ran = place.check(&options, &["sh", "-c", line]);
    ran.must_say(0, &["no fault found in 4 cases", "confirmed 4 of 4"]);
    assert_eq!(place.listing(), before);
}
