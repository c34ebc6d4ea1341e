//! What a subject may not do to processes that are none of its own, and may do to those that are.

use crashlab::subject::Exit;

use crate::support::{assert_success, log, nothing, subject, undisturbed};

#[test]
fn signals_to_outsiders_are_refused_and_said_so() {
    let (trace, _) = undisturbed(subject("kills_outside", &[]), nothing);
    assert_success(&trace);
    let gaps: Vec<&str> = trace.gaps.iter().map(|gap| gap.what.as_str()).collect();
    let refused = |what: &str| format!("{what} outside the run was refused");
    assert_eq!(
        gaps,
        [
            refused("kill of a process"),
            refused("kill of a process group"),
            "kill of every process, also outside the run, was refused".into(),
            refused("tkill of a process"),
            refused("tgkill of a process"),
            refused("rt_sigqueueinfo of a process"),
            refused("rt_tgsigqueueinfo of a process"),
            refused("pidfd_send_signal of a process"),
            refused("process_vm_writev of a process"),
            refused("ptrace of a process"),
        ]
    );
}

#[test]
fn signals_within_the_run_arrive() {
    let (trace, sandbox) = undisturbed(subject("kills_own", &[]), nothing);
    let stderr = String::from_utf8_lossy(&trace.ends[0].stderr);
    assert_eq!(trace.ends[0].exit, Exit::Signal(9), "{stderr}{}", log(&trace));
    assert!(trace.gaps.is_empty(), "{}", log(&trace));
    assert!(sandbox.work().join("handled").exists());
}

#[test]
fn a_new_root_is_a_gap() {
    let (trace, _) = undisturbed(subject("chroot", &[]), nothing);
    if trace.ends[0].exit == Exit::Code(77) {
        eprintln!("skipped: nobody may change its root here");
        return;
    }
    assert_success(&trace);
    assert!(trace.gaps.iter().any(|gap| gap.what.starts_with("chroot: ")), "{}", log(&trace));
}
