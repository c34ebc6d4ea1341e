//! What a sandbox keeps apart, in each of its forms.
//!
//! The tests named `inside_*` are not tests of their own: others start this very binary inside a sandbox to run one
//! of them there, so that nothing has to be installed. Started otherwise they do nothing.
#![allow(
    clippy::unwrap_used,
    reason = "tests may, and what helps them is no test by itself to the lint"
)]

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crashlab::cli::doctor::Found;
use crashlab::sandbox::{Capabilities, DEFAULT_SEEN, Sandbox, SandboxOptions, Way, capabilities};
use crashlab::tree::{NodeKind, read};

/// Long enough for any of these programs on any machine.
const LIMIT: Duration = Duration::from_secs(60);
/// Set where this binary was started by itself.
const INSIDE: &str = "CRASHLAB_TEST_INSIDE";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a shell command, which must succeed, and gives its output.
fn sh(sandbox: &Sandbox, script: &str) -> String {
    let output = sandbox.command(&["sh", "-c", script], LIMIT).unwrap();
    assert!(
        output.status.success(),
        "`{script}`: {}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout).trim_end().to_owned()
}

/// Runs a shell command, which must fail, and gives what it said.
fn sh_fails(sandbox: &Sandbox, script: &str) -> String {
    let output = sandbox.command(&["sh", "-c", script], LIMIT).unwrap();
    assert!(!output.status.success(), "`{script}` succeeded: {}", text(&output.stdout));
    text(&output.stderr)
}

/// Runs one of the `inside_*` tests of this binary in the sandbox.
fn inside(sandbox: &Sandbox, name: &str) -> Output {
    let me = std::env::current_exe().unwrap();
    let argv = [
        "env".into(),
        format!("{INSIDE}=1"),
        me.to_str().unwrap().to_owned(),
        "--exact".into(),
        name.to_owned(),
        "--nocapture".into(),
    ];
    let output = sandbox.command(&argv, LIMIT).unwrap();
    assert!(output.status.success(), "{name}: {}{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).contains("1 passed"), "{name}: {}", text(&output.stdout));
    output
}

fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Options under which this binary can be found in the sandbox, also where it lies below `/tmp`.
fn options() -> SandboxOptions {
    let here = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    SandboxOptions { keep_visible: vec![here], ..SandboxOptions::default() }
}

/// What this machine can do, or `None` (and a word about it) where sandboxes are folders alone.
fn with_namespaces() -> Option<&'static Capabilities> {
    let found = capabilities();
    if found.way == Way::Plain {
        println!("skipped: no namespaces here: {}", found.why.join("; "));
        return None;
    }
    Some(found)
}

/// A folder of the machine's that everybody may write to, and that no sandbox hides but the ones below `/tmp`.
fn elsewhere() -> tempfile::TempDir {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))
        .or_else(|_| tempfile::tempdir_in("/var/tmp"));
    let folder = folder.unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

/// The promises of a sandbox with a view of its own.
fn assert_keeps_apart(capabilities: &Capabilities) {
    let elsewhere = elsewhere();
    let elsewhere = elsewhere.path();
    let mut options = options();
    options.keep_visible.push(elsewhere.to_owned());
    let sandbox = Sandbox::with(&options, capabilities).unwrap();

    assert_eq!(sandbox.seen(), Path::new(DEFAULT_SEEN));
    assert_eq!(sh(&sandbox, "pwd"), DEFAULT_SEEN);
    sh(&sandbox, "echo kept > file && mkdir folder");
    assert_eq!(fs::read_to_string(sandbox.work().join("file")).unwrap(), "kept\n");
    assert_eq!(sh(&sandbox, &format!("cat {DEFAULT_SEEN}/file")), "kept");

    let said = sh_fails(&sandbox, &format!("echo > {}/file", elsewhere.display()));
    assert!(said.contains("Read-only file system"), "{said}");
    let said = sh_fails(&sandbox, "mkdir /crashlab-test");
    assert!(said.contains("Read-only file system") || said.contains("Permission denied"), "{said}");
    assert!(fs::read_dir(elsewhere).unwrap().next().is_none());

    let outside = tempfile::NamedTempFile::new_in("/tmp").unwrap();
    sh_fails(&sandbox, &format!("ls {}", outside.path().display()));
    sh(&sandbox, "echo private > /tmp/crashlab-test-file");
    assert_eq!(sh(&sandbox, "cat /tmp/crashlab-test-file"), "private");
    assert!(!Path::new("/tmp/crashlab-test-file").exists());

    assert_eq!(sh(&sandbox, "id -u"), nix::unistd::geteuid().to_string());
    assert_eq!(
        fs::metadata(sandbox.work().join("file")).unwrap().uid(),
        nix::unistd::geteuid().as_raw()
    );
    sh(&sandbox, "test -r /proc/self/status && echo > /dev/null");
    inside(&sandbox, "inside_a_terminal_can_be_opened");
    inside(&sandbox, "inside_the_loopback_works");
    if capabilities.network {
        inside(&sandbox, "inside_there_is_no_other_network");
        assert_eq!(sandbox.shortcomings(), Vec::<String>::new());
    }
}

#[test]
fn inside_the_loopback_works() {
    if !is_inside() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    client.write_all(b"ping").unwrap();
    drop(client);
    let mut heard = String::new();
    server.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "ping");
}

#[test]
fn inside_there_is_no_other_network() {
    if !is_inside() {
        return;
    }
    let devices = fs::read_to_string("/proc/self/net/dev").unwrap();
    let names: Vec<&str> =
        devices.lines().skip(2).filter_map(|line| line.split(':').next()).map(str::trim).collect();
    assert!(names.contains(&"lo"), "{devices}");
    // An address that is reserved for documentation; with a network the answer would be another one.
    let error = TcpStream::connect("192.0.2.1:9").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NetworkUnreachable);
}

#[test]
fn inside_a_terminal_can_be_opened() {
    if !is_inside() {
        return;
    }
    let pair = nix::pty::openpty(None, None).unwrap();
    let (mut master, mut slave) = (fs::File::from(pair.master), fs::File::from(pair.slave));
    slave.write_all(b"out").unwrap();
    let mut heard = [0; 3];
    master.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"out");
}

#[test]
fn what_the_machine_allows_is_used() {
    // Asked one by one, in another way: without this, tests that skip would hide that sandboxes stopped working.
    let checks = crashlab::cli::doctor::report();
    let works =
        |name: &str| checks.iter().any(|check| check.name == name && check.found == Found::Ok);
    let found = capabilities();
    if works("user namespaces") && works("mount namespaces") {
        assert_ne!(found.way, Way::Plain, "{found:?}");
        assert_eq!(found.network, works("network namespaces"), "{found:?}");
    } else {
        println!("skipped: not all namespaces work here: {checks:?}");
    }
}

#[test]
fn a_sandbox_keeps_apart() {
    if let Some(found) = with_namespaces() {
        assert_keeps_apart(found);
    }
}

#[test]
fn without_recursive_sealing_a_sandbox_keeps_apart_too() {
    if let Some(found) = with_namespaces() {
        assert_keeps_apart(&Capabilities { recursive_read_only: false, ..found.clone() });
    }
}

#[test]
fn in_a_user_namespace_a_sandbox_keeps_apart_too() {
    if let Some(found) = with_namespaces() {
        let used = Capabilities { way: Way::UserNamespace, ..found.clone() };
        if let Err(error) = Sandbox::with(&options(), &used) {
            println!("skipped: no user namespaces: {error}");
            return;
        }
        assert_keeps_apart(&used);
        assert_keeps_apart(&Capabilities { recursive_read_only: false, ..used });
    }
}

#[test]
fn without_network_namespaces_the_rest_is_kept_apart_and_it_is_said() {
    if let Some(found) = with_namespaces() {
        let used = Capabilities { network: false, why: vec!["because".into()], ..found.clone() };
        assert_keeps_apart(&used);
        let said = Sandbox::with(&SandboxOptions::default(), &used).unwrap().shortcomings();
        assert_eq!(said, ["no network namespace (because): the network is shared"]);
    }
}

#[test]
fn all_of_it_holds_for_an_ordinary_user() {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: all tests run as an ordinary user already");
        return;
    }
    let me = std::env::current_exe().unwrap();
    let mut again = Command::new(&me);
    again.arg("--test-threads=2").current_dir("/").uid(65534).gid(65534);
    match again.output() {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            println!("skipped: an ordinary user cannot reach {}", me.display());
        }
        other => {
            let output = other.unwrap();
            assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
        }
    }
}

#[test]
fn a_plain_sandbox_is_its_folder() {
    let forced = Sandbox::new(&SandboxOptions { plain: true, ..options() }).unwrap();
    let unable = Capabilities {
        way: Way::Plain,
        network: false,
        recursive_read_only: false,
        why: vec!["cannot make a mount namespace: Operation not permitted".into()],
    };
    let fallen_back = Sandbox::with(&options(), &unable).unwrap();
    for sandbox in [&forced, &fallen_back] {
        assert_eq!(sandbox.seen(), sandbox.work());
        assert_eq!(sh(sandbox, "pwd -P"), sandbox.work().to_str().unwrap());
        sh(sandbox, "echo kept > file");
        assert_eq!(fs::read_to_string(sandbox.work().join("file")).unwrap(), "kept\n");
    }
    assert!(forced.shortcomings()[0].contains("as asked for"), "{:?}", forced.shortcomings());
    assert!(
        fallen_back.shortcomings()[0].contains("Operation not permitted"),
        "{:?}",
        fallen_back.shortcomings()
    );
}

#[test]
fn folders_below_tmp_stay_visible_where_asked_for() {
    let Some(_) = with_namespaces() else { return };
    let project = tempfile::tempdir_in("/tmp").unwrap();
    let hidden = tempfile::tempdir_in("/tmp").unwrap();
    fs::create_dir(project.path().join("deep")).unwrap();
    fs::write(project.path().join("deep/file"), "seen\n").unwrap();
    let by_link = hidden.path().join("link");
    std::os::unix::fs::symlink(project.path(), &by_link).unwrap();

    for keep_visible in
        [vec![project.path().to_owned()], vec![by_link.clone(), project.path().join("deep")]]
    {
        let sandbox =
            Sandbox::new(&SandboxOptions { keep_visible, ..SandboxOptions::default() }).unwrap();
        assert_eq!(sh(&sandbox, &format!("cat {}/deep/file", project.path().display())), "seen");
        let said = sh_fails(&sandbox, &format!("echo > {}/deep/file", project.path().display()));
        assert!(said.contains("Read-only file system"), "{said}");
    }
    let sandbox = Sandbox::new(&SandboxOptions {
        keep_visible: vec![by_link.clone()],
        ..SandboxOptions::default()
    });
    assert_eq!(sh(&sandbox.unwrap(), &format!("cat {}/deep/file", by_link.display())), "seen");
    assert_eq!(fs::read_to_string(project.path().join("deep/file")).unwrap(), "seen\n");
}

#[test]
fn the_work_folder_is_seen_where_asked_for() {
    let Some(_) = with_namespaces() else { return };
    let at = |path: &Path| SandboxOptions {
        seen_at: Some(path.to_owned()),
        ..SandboxOptions::default()
    };
    let existing = elsewhere();
    fs::write(existing.path().join("theirs"), "").unwrap();
    for place in [
        existing.path(),
        Path::new("/tmp/crashlab-test/made/up"),
        Path::new("/dev/shm/crashlab-test"),
    ] {
        let sandbox = Sandbox::new(&at(place)).unwrap();
        assert_eq!(sandbox.seen(), place);
        assert_eq!(sh(&sandbox, "pwd && ls && echo kept > file"), place.to_str().unwrap());
        assert!(sandbox.work().join("file").exists());
    }
    assert!(!existing.path().join("file").exists());

    // Inside a folder that stays visible.
    let project = tempfile::tempdir_in("/tmp").unwrap();
    fs::create_dir(project.path().join("data")).unwrap();
    fs::write(project.path().join("program"), "").unwrap();
    let mut both = at(&project.path().join("data"));
    both.keep_visible.push(project.path().to_owned());
    let sandbox = Sandbox::new(&both).unwrap();
    assert_eq!(sh(&sandbox, "ls .. && echo kept > file"), "data\nprogram");
    assert!(sandbox.work().join("file").exists());
    assert!(!project.path().join("data/file").exists());
}

#[test]
fn what_lies_in_tmp_itself_can_stay_visible() {
    let Some(_) = with_namespaces() else { return };
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    fs::write(folder.path().join("deep"), "deep").unwrap();
    let file = tempfile::NamedTempFile::new_in("/tmp").unwrap();
    fs::write(file.path(), "a script").unwrap();
    let options = SandboxOptions { keep_visible: vec!["/tmp".into()], ..SandboxOptions::default() };
    let sandbox = Sandbox::new(&options).unwrap();
    sandbox.reset().unwrap();
    let script = file.path().display();
    let deep = folder.path().join("deep");
    assert_eq!(sh(&sandbox, &format!("cat {script} {}", deep.display())), "a scriptdeep");
    assert_eq!(sh(&sandbox, &format!("echo > {script} || echo read-only")), "read-only");
    assert_eq!(sh(&sandbox, "echo mine > /tmp/mine; cat /tmp/mine"), "mine");
    assert!(!Path::new("/tmp/mine").exists());
    assert_eq!(fs::read(file.path()).unwrap(), b"a script");
}

#[test]
fn impossible_places_are_refused_with_the_reason() {
    let Some(_) = with_namespaces() else { return };
    let refused = |seen: &str, visible: &[&str]| {
        let options = SandboxOptions {
            seen_at: Some(seen.into()),
            keep_visible: visible.iter().map(PathBuf::from).collect(),
            ..SandboxOptions::default()
        };
        Sandbox::new(&options).unwrap_err().to_string()
    };
    assert!(
        refused("/crashlab/nowhere", &[])
            .contains("cannot prepare the sandbox at /crashlab/nowhere")
    );
    assert!(refused("/crashlab/nowhere", &[]).contains("there is no such folder"));
    assert!(refused("/tmp/../etc", &[]).contains("`..`"));
    assert!(refused("/", &[]).contains("temporary files"));
    assert!(refused("/tmp", &[]).contains("temporary files"));
    assert!(refused("/tmp/work", &["/tmp/crashlab/missing"]).contains("/tmp/crashlab/missing"));
    let project = tempfile::tempdir_in("/tmp").unwrap();
    let deep = project.path().join("deep");
    fs::create_dir(&deep).unwrap();
    let project = project.path().to_str().unwrap();
    assert!(refused(project, &[deep.to_str().unwrap()]).contains("stay visible"));
}

#[test]
fn programs_of_one_sandbox_share_it_and_others_do_not() {
    let Some(found) = with_namespaces() else {
        return;
    };
    let (one, other) = (Sandbox::new(&options()).unwrap(), Sandbox::new(&options()).unwrap());
    sh(&one, "echo 1 > /tmp/shared && echo 1 > shared");
    assert_eq!(sh(&one, "cat /tmp/shared shared"), "1\n1");
    sh_fails(&other, "cat /tmp/shared");
    sh_fails(&other, "cat shared");
    let network = |sandbox: &Sandbox| sh(sandbox, "readlink /proc/self/ns/net");
    assert_eq!(network(&one), network(&one));
    if found.network {
        assert_ne!(network(&one), network(&other));
    }
}

#[test]
fn the_network_is_the_machines_where_asked_for() {
    let Some(_) = with_namespaces() else { return };
    let sandbox = Sandbox::new(&SandboxOptions { network: true, ..options() }).unwrap();
    let ours = fs::read_link("/proc/self/ns/net").unwrap();
    assert_eq!(sh(&sandbox, "readlink /proc/self/ns/net"), ours.to_str().unwrap());
    assert_eq!(sandbox.shortcomings(), Vec::<String>::new());
}

#[test]
fn a_reset_sandbox_is_as_new() {
    let Some(found) = with_namespaces() else {
        return;
    };
    let project = tempfile::tempdir_in("/tmp").unwrap();
    fs::write(project.path().join("file"), "seen\n").unwrap();
    let mut options = options();
    options.keep_visible.push(project.path().to_owned());
    let sandbox = Sandbox::new(&options).unwrap();
    let network = |sandbox: &Sandbox| sh(sandbox, "readlink /proc/self/ns/net");
    let empty = read(sandbox.work()).unwrap();
    let first = network(&sandbox);

    sh(
        &sandbox,
        "mkdir -p a/b /tmp/c/d && echo > a/b/f && echo > /tmp/c/d/f && chmod 000 a/b /tmp/c/d && chmod 700 .",
    );
    sandbox.reset().unwrap();
    assert_eq!(read(sandbox.work()).unwrap(), empty);
    assert_eq!(sh(&sandbox, "ls -A && ls -A /tmp/c 2> /dev/null || echo gone"), "gone");
    assert_eq!(
        sh(&sandbox, &format!("cat {}/file && pwd", project.path().display())),
        format!("seen\n{DEFAULT_SEEN}")
    );
    // No socket was opened, so it is still the same network.
    assert_eq!(network(&sandbox), first);

    if found.network {
        // Leaves a connection that only waits for its time to be over.
        inside(&sandbox, "inside_the_loopback_works");
        sandbox.reset().unwrap();
        assert_ne!(network(&sandbox), first);
        inside(&sandbox, "inside_the_loopback_works");
    }
}

#[test]
fn trees_go_in_and_come_out() {
    let sandbox = Sandbox::new(&SandboxOptions { plain: true, ..options() }).unwrap();
    sh(
        &sandbox,
        "mkdir sealed && echo 1 > sealed/file && ln -s sealed/file link && chmod 500 sealed",
    );
    let tree = sandbox.snapshot().unwrap();
    assert_eq!(tree.get(Path::new("sealed/file")).unwrap().kind, NodeKind::File(b"1\n"[..].into()));
    sh(&sandbox, "chmod 700 sealed && echo 2 > sealed/file && echo > other && chmod 000 sealed");
    sandbox.fill(&tree).unwrap();
    assert_eq!(sandbox.snapshot().unwrap(), tree);
}

#[test]
fn a_filled_folder_is_the_one_that_the_subject_sees() {
    let sandbox = Sandbox::new(&options()).unwrap();
    sh(&sandbox, "echo 1 > file");
    let tree = sandbox.snapshot().unwrap();
    sh(&sandbox, "rm file && chmod 700 .");
    if with_namespaces().is_some() {
        sh(&sandbox, "echo > /tmp/from-before");
    }
    sandbox.fill(&tree).unwrap();
    sh_fails(&sandbox, "ls /tmp/from-before");
    assert_eq!(sh(&sandbox, "cat file"), "1");
    assert_eq!(sandbox.snapshot().unwrap(), tree);
}

#[test]
fn modes_can_be_made_to_hold_for_root_too() {
    let sandbox = Sandbox::new(&options()).unwrap();
    let file = sandbox.work().join("secret");
    fs::write(&file, "x").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    let said = sandbox.obeying_modes(|| sh_fails(&sandbox, "cat secret"));
    assert!(said.contains("Permission denied"), "{said}");
    let said = sandbox.obeying_modes(|| sh_fails(&sandbox, "echo y > secret"));
    assert!(said.contains("ermission denied"), "{said}");
    // It is root's right again as soon as that is over; others never had it.
    if nix::unistd::geteuid().is_root() {
        assert_eq!(sh(&sandbox, "cat secret"), "x");
    } else {
        sh_fails(&sandbox, "cat secret");
    }
}

#[test]
fn nothing_is_left() {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let sandbox = Sandbox::new(&options()).unwrap();
    sh(
        &sandbox,
        "mkdir -p a/b && echo > a/b/f && chmod 000 a/b/f && chmod 000 a/b && chmod 500 a && chmod 000 .",
    );
    let base = sandbox.work().parent().unwrap().to_owned();
    assert!(base.exists());
    drop(sandbox);
    assert!(!base.exists(), "{}", base.display());
    assert_eq!(fs::read_to_string("/proc/self/mountinfo").unwrap(), mounts);
    assert!(!Path::new(DEFAULT_SEEN).exists());
}

#[test]
fn a_program_that_does_not_end_is_ended_with_its_children() {
    let sandbox = Sandbox::new(&options()).unwrap();
    let script = "sleep 1000 & echo $! > child; wait";
    let error = sandbox.command(&["sh", "-c", script], Duration::from_secs(1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    let child = fs::read_to_string(sandbox.work().join("child")).unwrap();
    // A kill takes effect a little later; the dead are there until whoever adopted them has reaped them.
    let is_alive = || {
        let state = fs::read_to_string(format!("/proc/{}/stat", child.trim()));
        state.is_ok_and(|state| !state.contains(") Z") && !state.contains(") X"))
    };
    let deadline = Instant::now() + LIMIT;
    while is_alive() {
        assert!(Instant::now() < deadline, "process {} lives on", child.trim());
        std::thread::yield_now();
    }
}

#[test]
fn what_cannot_start_or_enter_is_an_error() {
    let sandbox =
        Sandbox::new(&SandboxOptions { plain: true, ..SandboxOptions::default() }).unwrap();
    assert_eq!(
        sandbox.command(&["/crashlab/no-program"], LIMIT).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    assert_eq!(sandbox.command::<&str>(&[], LIMIT).unwrap_err().kind(), ErrorKind::InvalidInput);
    fs::remove_dir(sandbox.work()).unwrap();
    let error = sandbox.entry().enter().unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot go to the work folder: No such file or directory (os error 2)"
    );
}

#[test]
fn sandboxes_can_be_used_from_several_threads_at_once() {
    std::thread::scope(|scope| {
        for number in 0..4 {
            scope.spawn(move || {
                for _ in 0..5 {
                    let sandbox = Sandbox::new(&options()).unwrap();
                    assert_eq!(
                        sh(&sandbox, &format!("echo {number} > file && cat file")),
                        number.to_string()
                    );
                }
            });
        }
    });
}
