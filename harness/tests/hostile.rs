//! Subjects that mean no good, or that do what nobody expects, through the command: each ends in an error or a result that
//! a person understands, and nothing of it is left. (A command that does not exist, fails, or changes nothing: see
//! `check.rs`. What the tracer makes of each by itself: see `trace/`.)

// A test says with a panic what went wrong; its support need not do better.
#![allow(clippy::unwrap_used)]

mod aftermath;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::process::Command;

use aftermath::{NOBODY, Place, Ran, Setting, compiled, is_root};

const COUNTER: &str = "n=$(cat s.json); printf %s $((n + 1)) > t; mv t s.json";

fn place() -> Place {
    Place::with(&[("s.json", "5")])
}

/// `check` of a shell's line; the user's file must stay as it is.
fn check(options: &[&str], line: &str) -> Ran {
    let place = place();
    let ran = place.check(options, &["sh", "-c", line]);
    assert_eq!(fs::read_to_string(place.path().join("s.json")).unwrap(), "5");
    ran
}

fn python(options: &[&str], program: &str) -> Ran {
    place().check(options, &["python3", "-c", program])
}

#[test]
fn one_that_never_ends() {
    let ran = check(&["--time-limit", "1"], "echo 1 > s.json; sleep 1000");
    ran.must_say(
        2,
        &["time limit reached after", "s (`--time-limit`, in a scenario `time-limit`)"],
    );
}

#[test]
fn one_that_ignores_signals() {
    let line = "trap '' TERM INT HUP QUIT; echo 1 > s.json; while :; do :; done";
    check(&["--time-limit", "1"], line).must_say(2, &["time limit reached after"]);
}

#[test]
fn one_that_forks_without_end() {
    let ran = check(&[], "f() { f | f & }; f; echo 6 > s.json; sleep 1000");
    let why = "not seen: more than 256 processes at a time: the run was ended";
    ran.must_say(2, &["fails without any fault: killed by the lab", why]);
}

#[test]
fn one_that_becomes_a_daemon() {
    let program = "
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open('t', 'w').write('6')
        os.rename('t', 's.json')
        open('there', 'w')
        time.sleep(1000)
    os._exit(0)
while not os.path.exists('there'):
    time.sleep(0.001)
os.unlink('there')
";
    python(&["--state", "s.json", "--confirm", "0"], program).must_say(0, &["no fault found"]);
}

/// The daemon has the lock as well, and would keep it.
#[test]
fn one_whose_lock_is_held_by_what_it_left_running() {
    let line = format!("exec 9> lock; flock -n 9 || exit 7; setsid sleep 1000 & {COUNTER}");
    let ran = check(&["--state", "s.json", "--confirm", "100"], &line);
    ran.must_say(0, &["no fault found", "by real kills"]);
    assert!(!ran.said.contains("a real kill at"), "{}", ran.said);
}

#[test]
fn one_that_writes_elsewhere_and_does_without_it() {
    let elsewhere = place();
    let line = format!("echo x > {}/new; {COUNTER}", elsewhere.path().display());
    let ran = check(&["--state", "s.json"], &line);
    let refused = "not seen: what a write to";
    ran.must_say(0, &["no fault found", refused, "does, which is read-only here"]);
    assert!(!elsewhere.path().join("new").exists());
}

#[test]
fn one_that_deletes_its_own_folder() {
    let ran = check(&[], "d=$PWD; cd /; rm -rf \"$d\"; echo 6 > \"$d/s.json\"");
    ran.must_say(1, &["torn", "s.json"]);
    let gone = place();
    let program = "import os, shutil; shutil.rmtree(os.getcwd()); open('s.json', 'w')";
    let ran = gone.check(&[], &["python3", "-c", program]);
    ran.must_say(2, &["fails without any fault: exit code 1", "Error"]);
    assert!(gone.path().join("s.json").exists());
}

#[test]
fn one_that_reads_standard_input_finds_its_end() {
    let line = "read x; cat > t; echo \"got $x\" >> t; mv t s.json";
    check(&["--state", "s.json"], line).must_say(0, &["no fault found"]);
}

#[test]
fn one_of_several_threads() {
    let program = "
import os, threading
def work(number):
    for turn in range(3):
        open(f't{number}', 'w').write('6')
        os.rename(f't{number}', 's.json')
threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
";
    let ran = python(&["--state", "s.json", "--confirm", "0", "--time-limit", "100"], program);
    ran.must_say(0, &["no fault found in 19 cases"]);
}

#[test]
fn one_that_changes_its_user() {
    if !is_root() {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let program = format!(
        "import os
os.chmod('.', 0o777); os.setgid({NOBODY}); os.setuid({NOBODY})
open('t', 'w').write('6'); os.rename('t', 's.json')"
    );
    let ran = python(&["--state", "s.json"], &program);
    ran.must_say(0, &["old 4, new 1", "owner 0:0 became 65534:65534"]);
}

#[test]
fn one_that_is_set_uid() {
    let place = place();
    let program = place.path().join("program");
    if !compiled("basic.c", &program, &[]) {
        return;
    }
    if !is_root() {
        eprintln!("skipped: only root can make a program of another user's");
        return;
    }
    let chown = Command::new("chown").arg(NOBODY.to_string()).arg(&program).status();
    assert!(chown.unwrap().success());
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    let ran = place.check(&[], &["./program"]);
    ran.must_say(ran.code, &["not seen: the set-uid or set-gid bit of", "program was ignored"]);
    assert!(ran.code <= 1, "{}", ran.said);
}

#[test]
fn one_that_is_linked_statically() {
    let place = place();
    if compiled("basic.c", &place.path().join("program"), &["-static"]) {
        let ran = place.check(&[], &["./program"]);
        ran.must_say(ran.code, &["state, each judged by itself:"]);
        assert!(ran.code <= 1, "{}", ran.said);
    }
}

#[test]
fn one_of_another_architecture() {
    let place = place();
    if !compiled("foreign.c", &place.path().join("program"), &[]) {
        return;
    }
    let line = format!("./program || exit 77; {COUNTER}");
    let ran = place.check(&["--state", "s.json"], &["sh", "-c", &line]);
    if ran.said.contains("exit code 77") {
        eprintln!("skipped: no calls of another architecture here");
        return;
    }
    ran.must_say(0, &["not seen: a call of another processor's table, which is not decoded"]);
}

#[test]
fn one_that_writes_without_end() {
    let ran = check(&["--time-limit", "100"], "dd if=/dev/zero of=s.json bs=1M");
    ran.must_say(2, &["fails without any fault", "the lab lets no file grow beyond 1024 MiB"]);
}

#[test]
fn one_whose_file_grows_too_large() {
    for line in ["truncate -s 100G s.json", "fallocate -l 3G s.json"] {
        let ran = check(&[], line);
        ran.must_say(2, &["fails without any fault", "the lab lets no file grow beyond 1024 MiB"]);
    }
}

#[test]
fn one_that_fills_the_disk() {
    if !is_root() {
        eprintln!("skipped: only root can mount a small disk");
        return;
    }
    let place = place();
    let small = Setting { mounts: "mount -o remount,size=400m /dev/shm", ..Setting::default() };
    // Not in the work folder, so that it does not fill the log.
    let line = format!("cat /dev/zero > /tmp/filled; {COUNTER}");
    let ran = small.run(&place, &["check", "--faults", "kill", "--", "sh", "-c", &line]);
    ran.must_say(2, &["killed by the lab", "the disk of the sandbox was filled"]);
}

#[test]
fn a_state_that_is_none() {
    let place = place();
    let listener = UnixListener::bind(place.path().join("socket")).unwrap();
    fs::create_dir(place.path().join("folder")).unwrap();
    nix::unistd::mkfifo(&place.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for state in ["missing", "socket", "folder", "pipe"] {
        let ran = place.check(&["--state", state], &["sh", "-c", COUNTER]);
        let why = format!("never changes its state ({state})");
        ran.must_say(2, &[&why, "it changes: s.json"]);
    }
    drop(listener);
}

#[test]
fn a_state_that_becomes_a_file_is_one() {
    let place = place();
    drop(UnixListener::bind(place.path().join("socket")).unwrap());
    fs::create_dir(place.path().join("folder")).unwrap();
    nix::unistd::mkfifo(&place.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for state in ["socket", "pipe"] {
        let line = format!("rm -f {state}; echo 6 > t; mv t {state}");
        let ran = place.check(&["--state", state], &["sh", "-c", &line]);
        ran.must_say(1, &["torn between ", "kill@1"]);
    }
    let line = "mkdir -p folder; echo 6 > folder/t; mv folder/t folder/a";
    place.check(&["--state", "folder"], &["sh", "-c", line]).must_say(0, &["old 3, new 1"]);
}

/// What these tests would see if something were left.
#[test]
#[should_panic(expected = "left:")]
fn what_is_left_would_be_seen() {
    if !is_root() {
        panic!("left: skipped, only root has folders for temporary files of its own");
    }
    const LEAVES: &[&str] = &["sh", "-c", "touch /tmp/something; exec \"$@\"", "sh"];
    Setting { start: LEAVES, ..Setting::default() }.run(&place(), &["doctor"]);
}
