//! `crashlab doctor`: what this machine can do, and what to do about what is missing.

use std::fmt::Write;
use std::io;
use std::path::PathBuf;

use nix::sched::CloneFlags;
use serde::Serialize;

use super::{Code, DoctorArgs, Output};
use crate::sandbox::{self, Containers, Way, probe};
use crate::sys::seccomp_probe;

/// What a check found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// It is there.
    Ok,
    /// It is not there, and the lab cannot run.
    Missing,
    /// It is not there, and the lab runs with less.
    Limited,
    /// It is not there, and only those miss it whose scenarios name it.
    Absent,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// What was found.
    pub found: Found,
    /// More about it.
    pub detail: String,
    /// What to do about it, where there is something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Check {
    fn ok(name: &'static str, detail: impl Into<String>) -> Check {
        Check { name, found: Found::Ok, detail: detail.into(), remedy: None }
    }

    fn tried(
        name: &'static str,
        tried: io::Result<String>,
        otherwise: Found,
        remedy: &str,
    ) -> Check {
        match tried {
            Ok(detail) => Check::ok(name, detail),
            Err(error) => Check {
                name,
                found: otherwise,
                detail: error.to_string(),
                remedy: Some(remedy.into()),
            },
        }
    }
}

/// Looks at everything and prints it.
pub(super) fn run(args: &DoctorArgs, out: &mut Output<'_>) -> Code {
    let checks = report();
    out.print(&if args.json { as_json(&checks) } else { as_text(&checks) });
    if is_usable(&checks) { Code::Held } else { Code::NotMeasured }
}

/// Looks at everything. Takes some milliseconds; nothing of it is left.
pub fn report() -> Vec<Check> {
    let mut checks = vec![architecture(), kernel(), tracing(), filters()];
    checks.extend(namespaces());
    checks.extend([containers(), overlay(), sandboxes(), work_folders(), processors()]);
    checks.extend(["python3", "node", "sqlite3", "git", "strace"].map(program));
    checks
}

/// Whether the lab can run here at all.
pub fn is_usable(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.found != Found::Missing)
}

/// For people: a line for each check, and one more for what to do.
pub fn as_text(checks: &[Check]) -> String {
    let width = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for check in checks {
        let found = match check.found {
            Found::Ok => "ok",
            Found::Missing => "MISSING",
            Found::Limited => "limited",
            Found::Absent => "absent",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{}",
            format!("{found:<8} {:width$}  {}", check.name, check.detail).trim_end()
        );
        if let Some(remedy) = &check.remedy {
            let _ = writeln!(text, "{:8} {:width$}  -> {remedy}", "", "");
        }
    }
    text.push_str(if is_usable(checks) {
        "crashlab can run here.\n"
    } else {
        "crashlab cannot run here.\n"
    });
    text
}

/// For programs: whether the lab can run, and the checks.
pub fn as_json(checks: &[Check]) -> String {
    let value = serde_json::json!({ "usable": is_usable(checks), "checks": checks });
    format!("{value:#}\n")
}

fn architecture() -> Check {
    let name = std::env::consts::ARCH;
    let found = if matches!(name, "x86_64" | "aarch64") { Found::Ok } else { Found::Missing };
    let remedy = (found != Found::Ok).then(|| "run it on x86-64 or aarch64".into());
    Check { name: "architecture", found, detail: name.into(), remedy }
}

fn kernel() -> Check {
    /// The first with `PTRACE_GET_SYSCALL_INFO`.
    const OLDEST: (u32, u32) = (5, 3);
    let release = match nix::sys::utsname::uname() {
        Ok(names) => names.release().to_string_lossy().into_owned(),
        Err(error) => error.desc().into(),
    };
    let mut numbers =
        release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let found = if version >= OLDEST { Found::Ok } else { Found::Missing };
    let remedy =
        (found != Found::Ok).then(|| format!("run it on Linux {}.{} or newer", OLDEST.0, OLDEST.1));
    Check { name: "kernel", found, detail: release, remedy }
}

fn tracing() -> Check {
    let remedy = "in a container: start it with --cap-add SYS_PTRACE; else set kernel.yama.ptrace_scope to 1 or 0";
    Check::tried(
        "ptrace",
        probe::tracing().map(|()| "a child was traced".into()),
        Found::Missing,
        remedy,
    )
}

fn filters() -> Check {
    let tried =
        seccomp_probe::tracing_is_available().map(|()| "filters can call the tracer".into());
    let remedy =
        "a kernel with CONFIG_SECCOMP_FILTER is needed, and a container must not forbid seccomp(2)";
    Check::tried("seccomp", tried.map_err(io::Error::from), Found::Missing, remedy)
}

fn namespaces() -> [Check; 3] {
    let remedy = "in a container: start it with --security-opt seccomp=unconfined; else set \
        kernel.apparmor_restrict_unprivileged_userns to 0, and user.max_user_namespaces to more than 0";
    [
        ("user namespaces", CloneFlags::CLONE_NEWUSER),
        ("mount namespaces", CloneFlags::CLONE_NEWNS),
        ("network namespaces", CloneFlags::CLONE_NEWNET),
    ]
    .map(|(name, wanted)| {
        Check::tried(
            name,
            probe::namespaces(wanted).map(|()| String::new()),
            Found::Limited,
            remedy,
        )
    })
}

fn containers() -> Check {
    const NAME: &str = "process namespaces";
    match sandbox::containers() {
        Ok(Containers { proc_is_shared: None }) => Check::ok(NAME, "races can be in containers"),
        Ok(Containers { proc_is_shared: Some(why) }) => Check {
            name: NAME,
            found: Found::Limited,
            detail: format!("races in containers see the machine's /proc ({why})"),
            remedy: Some(
                "in a container: start it with --security-opt systempaths=unconfined".into(),
            ),
        },
        Err(why) => Check {
            name: NAME,
            found: Found::Limited,
            detail: format!("no races in containers: {why}"),
            remedy: Some(
                "see the namespaces above, and set user.max_pid_namespaces to more than 0".into(),
            ),
        },
    }
}

fn overlay() -> Check {
    let remedy =
        "nothing needs to be done: of a large folder, a part is copied and the rest is read-only";
    let tried = sandbox::overlay().clone().map_err(io::Error::other);
    Check::tried(
        "overlay",
        tried.map(|()| "large folders are laid over".into()),
        Found::Limited,
        remedy,
    )
}

fn sandboxes() -> Check {
    let capabilities = sandbox::capabilities();
    let why = |otherwise: &str| Check {
        name: "sandbox",
        found: Found::Limited,
        detail: format!("{otherwise} ({})", capabilities.why.join("; ")),
        remedy: Some("see the namespaces above".into()),
    };
    match capabilities.way {
        Way::Plain => {
            why("copies of folders, at other paths: programs must use relative paths, or {dir}")
        }
        _ if !capabilities.network => why("the network is shared"),
        Way::Root => Check::ok("sandbox", "namespaces of root"),
        Way::UserNamespace => Check::ok("sandbox", "a user namespace"),
    }
}

fn work_folders() -> Check {
    let (folder, why_not_memory) = probe::work_folders();
    let detail = format!("in {}", folder.display());
    match why_not_memory {
        None => Check::ok("work folders", detail),
        Some(why) => Check {
            name: "work folders",
            found: Found::Limited,
            detail: format!("{detail}, since {why}"),
            remedy: Some("a tmpfs of 256 MiB or more at /dev/shm, mounted exec, is faster (Linux 6.6 or newer)".into()),
        },
    }
}

fn processors() -> Check {
    match std::thread::available_parallelism() {
        Ok(number) => Check::ok("processors", number.to_string()),
        Err(error) => Check::ok("processors", error.to_string()),
    }
}

fn program(name: &'static str) -> Check {
    match find(name) {
        Some(path) => Check::ok(name, path.display().to_string()),
        None => Check { name, found: Found::Absent, detail: "not in PATH".into(), remedy: None },
    }
}

fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| {
        file.is_file() && nix::unistd::access(file, nix::unistd::AccessFlags::X_OK).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Vec<Check> {
        let remedy = Some("do this".into());
        vec![
            Check::ok("kernel", "6.18"),
            Check::ok("user namespaces", ""),
            Check {
                name: "ptrace",
                found: Found::Missing,
                detail: "not permitted".into(),
                remedy: remedy.clone(),
            },
            Check {
                name: "overlay",
                found: Found::Limited,
                detail: "no such device".into(),
                remedy,
            },
            Check {
                name: "node",
                found: Found::Absent,
                detail: "not in PATH".into(),
                remedy: None,
            },
        ]
    }

    #[test]
    fn people_see_a_line_for_each_check() {
        insta::assert_snapshot!(as_text(&some()));
    }

    #[test]
    fn programs_see_the_same() {
        insta::assert_snapshot!(as_json(&some()));
    }

    #[test]
    fn only_what_is_missing_stops_the_lab() {
        let mut checks = some();
        assert!(!is_usable(&checks));
        checks.retain(|check| check.found != Found::Missing);
        assert!(is_usable(&checks));
    }

    #[test]
    fn this_machine_is_looked_at() {
        let checks = report();
        let names: std::collections::BTreeSet<&str> =
            checks.iter().map(|check| check.name).collect();
        assert_eq!(names.len(), checks.len());
        for check in &checks {
            let helped =
                check.found == Found::Ok || check.found == Found::Absent || check.remedy.is_some();
            assert!(helped, "{check:?}");
        }
        let sandbox = checks.iter().find(|check| check.name == "sandbox").unwrap();
        let whole = sandbox::capabilities().way != Way::Plain && sandbox::capabilities().network;
        assert_eq!(sandbox.found == Found::Ok, whole);
        print!("{}", as_text(&checks));
    }
}
