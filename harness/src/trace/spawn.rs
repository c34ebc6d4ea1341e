//! Starting the programs of a run, each up to its first instruction.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use nix::fcntl::OFlag;
use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::op::Stream;
use crate::sandbox::Sandbox;
use crate::subject::Program;
use crate::sys::forked::Forked;
use crate::sys::process::{self, Container, Launch};
use crate::sys::ptrace::{self, News, Stopped, Why};
use crate::sys::pty;
use crate::trace::TraceError;
use crate::trace::names::Inode;
use crate::trace::resolve::inode;

/// Where a program without a slash is looked up if the environment has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A program that stands before its first instruction.
#[derive(Debug)]
pub(super) struct Started {
    /// Where it stands.
    pub(super) stop: Stopped,
    /// Stands for its process.
    pub(super) pidfd: OwnedFd,
    /// The lab's ends of standard output and error.
    pub(super) outputs: [OwnedFd; 2],
    /// The program's ends of them.
    pub(super) ends: [(Inode, Stream); 2],
    /// Keep them open: that a program has closed its outputs is no news for whoever collects them.
    pub(super) kept: [OwnedFd; 2],
}

fn spawn_error(program: &Program, stage: &str, source: io::Error) -> TraceError {
    let name =
        program.argv.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    TraceError::Spawn { program: name, stage: stage.into(), source }
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(io::Error::from)
}

/// The paths at which the program may be.
fn candidates(program: &Program) -> io::Result<Vec<CString>> {
    let Some(name) = program.argv.first().filter(|name| !name.is_empty()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "there is no program to start"));
    };
    if name.as_bytes().contains(&b'/') {
        return Ok(vec![c_string(name)?]);
    }
    let path =
        program.env.iter().find(|(key, _)| key == "PATH").map(|(_, value)| value.as_os_str());
    std::env::split_paths(path.unwrap_or(OsStr::new(DEFAULT_PATH)))
        .map(|folder| c_string(folder.join(name).as_os_str()))
        .collect()
}

fn environment(program: &Program) -> io::Result<Vec<CString>> {
    let entry = |(key, value): &(std::ffi::OsString, std::ffi::OsString)| {
        let mut text = key.clone().into_vec();
        text.push(b'=');
        text.extend_from_slice(value.as_bytes());
        CString::new(text).map_err(io::Error::from)
    };
    program.env.iter().map(entry).collect()
}

/// A file in memory, so that input of any size needs nobody to feed it.
fn stdin(bytes: &[u8]) -> io::Result<OwnedFd> {
    if bytes.is_empty() {
        return Ok(std::fs::File::open("/dev/null")?.into());
    }
    let mut file = std::fs::File::from(memfd_create("stdin", MFdFlags::MFD_CLOEXEC)?);
    io::Write::write_all(&mut file, bytes)?;
    io::Seek::rewind(&mut file)?;
    Ok(file.into())
}

/// Starts a program and leaves it in the stop of its exec; in a container of its own where one is given.
///
/// # Errors
///
/// [`TraceError`]; then nothing of it is left.
pub(super) fn start(
    program: &Program,
    sandbox: &Sandbox,
    filter: &[libc::sock_filter],
    container: Option<Container>,
) -> Result<Started, TraceError> {
    let failed = |stage: &'static str| move |source| spawn_error(program, stage, source);
    let candidates = candidates(program).map_err(failed("find it"))?;
    let argv: io::Result<Vec<CString>> =
        program.argv.iter().map(|argument| c_string(argument)).collect();
    let argv = argv.map_err(failed("pass its arguments"))?;
    let env = environment(program).map_err(failed("pass its environment"))?;
    let folder = c_string(sandbox.current().as_os_str()).map_err(failed("name the work folder"))?;
    let input = stdin(&program.stdin).map_err(failed("prepare standard input"))?;
    let pipe = || nix::unistd::pipe2(OFlag::O_CLOEXEC).map_err(io::Error::from);
    let (stdout, its_stdout) = if program.pipe { pipe() } else { pty::open() }
        .map_err(failed("prepare standard output"))?;
    let (stderr, its_stderr) = pipe().map_err(failed("prepare standard error"))?;
    let end =
        |fd: &OwnedFd| nix::sys::stat::fstat(fd).map(|stat| inode(&stat)).map_err(io::Error::from);
    let ends = [
        (end(&its_stdout).map_err(failed("prepare standard output"))?, Stream::Stdout),
        (end(&its_stderr).map_err(failed("prepare standard error"))?, Stream::Stderr),
    ];
    let launch = Launch {
        candidates: &candidates,
        argv: &argv,
        env: &env,
        stdio: [input.as_raw_fd(), its_stdout.as_raw_fd(), its_stderr.as_raw_fd()],
        entry: &sandbox.entry(),
        folder: &folder,
        filter,
        container,
    };
    let _forked = Forked::new();
    let child = process::start(&launch).map_err(failed("fork"))?;
    let (stop, pidfd) = bring_to_exec(program, child)?;
    Ok(Started { stop, pidfd, outputs: [stdout, stderr], ends, kept: [its_stdout, its_stderr] })
}

/// Traces the child and lets it run up to its exec.
fn bring_to_exec(
    program: &Program,
    mut child: process::Child<'_>,
) -> Result<(Stopped, OwnedFd), TraceError> {
    let pid = child.pid;
    if let Err(source) = ptrace::seize(pid).and_then(|()| child.release()) {
        return Err(TraceError::Unavailable { what: "trace a child process".into(), source });
    }
    let unavailable =
        |what: &'static str| move |source| TraceError::Unavailable { what: what.into(), source };
    loop {
        match ptrace::wait(child.pid, true).map_err(unavailable("wait for a child process"))? {
            News::Stop(stop, Why::Exec(_)) => {
                let pidfd = process::pidfd(child.pid).map_err(unavailable("hold a child process"));
                child.is_apart();
                return match pidfd {
                    Ok(pidfd) => Ok((stop, pidfd)),
                    Err(error) => {
                        end(stop.tid());
                        Err(error)
                    }
                };
            }
            News::Stop(stop, Why::Made(first)) => {
                let maker = stop.tid();
                child.goes_on_as(first);
                let _ = stop.go(0);
                wait_for_end(maker).map_err(unavailable("wait for a child process"))?;
                child.maker_is_gone();
            }
            News::Stop(stop, Why::Signal(signal)) => drop(stop.go(signal)),
            News::Stop(stop, _) => drop(stop.go(0)),
            News::Nothing => {}
            News::Exited(..) | News::Killed(..) | News::NoChildren => {
                let failure = child.failure();
                return Err(spawn_error(
                    program,
                    &failure.stage,
                    io::Error::from_raw_os_error(failure.errno),
                ));
            }
        }
    }
}

/// Lets a child of this thread run to its end.
fn wait_for_end(pid: i32) -> io::Result<()> {
    loop {
        match ptrace::wait(pid, true)? {
            News::Stop(stop, Why::Signal(signal)) => drop(stop.go(signal)),
            News::Stop(stop, _) => drop(stop.go(0)),
            News::Nothing => {}
            News::Exited(..) | News::Killed(..) | News::NoChildren => return Ok(()),
        }
    }
}

/// Kills a child of this thread and waits until it is gone.
pub(super) fn end(pid: i32) {
    process::kill(pid);
    while let Ok(News::Stop(..)) = ptrace::wait(pid, true) {
        process::kill(pid);
    }
}
