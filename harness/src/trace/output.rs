//! One thread beside the tracer: it takes the run's outputs as they come, and sounds the alarm at the time limit.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

use crate::sys::process;

/// How often the thread looks whether somebody wished to stop.
const LOOK: Duration = Duration::from_millis(100);

/// So long the tracer may take to end the run by itself, before the alarm kills.
const GRACE: Duration = Duration::from_millis(200);

/// A bounded output.
#[derive(Debug, Default)]
pub(super) struct Collected {
    /// The bytes.
    pub(super) bytes: Vec<u8>,
    /// More came than was kept.
    pub(super) cut: bool,
}

struct Source {
    file: Option<File>,
    collected: Collected,
    limit: usize,
}

/// The thread, seen by the tracer.
#[derive(Debug)]
pub(super) struct Collector {
    thread: JoinHandle<Vec<Collected>>,
    finish: OwnedFd,
    alarm: Arc<Alarm>,
}

#[derive(Debug, Default)]
struct Alarm {
    rung: AtomicBool,
    heard: AtomicBool,
}

impl Source {
    /// Takes all that is there now.
    fn drain(&mut self) {
        let mut buffer = [0; 16384];
        while let Some(file) = &mut self.file {
            match file.read(&mut buffer) {
                // A terminal whose other end is closed says EIO.
                Ok(0) => self.file = None,
                Ok(count) => {
                    let room = self.limit - self.collected.bytes.len();
                    self.collected.bytes.extend_from_slice(&buffer[..count.min(room)]);
                    self.collected.cut |= count > room;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.file = None,
            }
        }
    }
}

impl Collector {
    /// Starts to collect from `outputs`; after `limit` the processes in `mains` are stopped, which wakes the tracer.
    ///
    /// # Errors
    ///
    /// The kernel's answer where a thread or a descriptor cannot be had.
    pub(super) fn start(
        outputs: Vec<OwnedFd>,
        most_bytes: usize,
        mains: Vec<OwnedFd>,
        limit: Duration,
        processors: CpuSet,
    ) -> io::Result<Collector> {
        let (stop, finish) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
        let mut sources = Vec::new();
        for output in outputs {
            fcntl(&output, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
            sources.push(Source {
                file: Some(output.into()),
                collected: Collected::default(),
                limit: most_bytes,
            });
        }
        let alarm = Arc::new(Alarm::default());
        let shared = Arc::clone(&alarm);
        let deadline = Instant::now() + limit;
        let thread =
            std::thread::Builder::new().name("crashlab-output".into()).spawn(move || {
                // The tracer's own processor is busy; where the kernel does not let us leave it, it still works.
                let _ = sched_setaffinity(Pid::from_raw(0), &processors);
                collect(sources, &stop, &mains, deadline, &shared)
            })?;
        Ok(Collector { thread, finish, alarm })
    }

    /// Whether the time is over.
    pub(super) fn is_over(&self) -> bool {
        self.alarm.rung.load(Ordering::Acquire)
    }

    /// The tracer ends the run by itself.
    pub(super) fn hear(&self) {
        self.alarm.heard.store(true, Ordering::Release);
    }

    /// Everything that could write has ended: the outputs, in the order in which they were given.
    pub(super) fn finish(self) -> Vec<Collected> {
        drop(self.finish);
        self.thread.join().unwrap_or_default()
    }
}

fn collect(
    mut sources: Vec<Source>,
    stop: &OwnedFd,
    mains: &[OwnedFd],
    deadline: Instant,
    alarm: &Alarm,
) -> Vec<Collected> {
    let mut next = Some(deadline);
    loop {
        let stopping = wait(&sources, stop, next);
        sources.iter_mut().for_each(Source::drain);
        if stopping {
            return sources.into_iter().map(|source| source.collected).collect();
        }
        let interrupted = crate::interrupt::is_requested() && !alarm.rung.load(Ordering::Acquire);
        if interrupted || next.is_some_and(|next| Instant::now() >= next) {
            if alarm.rung.swap(true, Ordering::AcqRel) {
                // A stop signal does not reach who waits inside the kernel; SIGKILL does.
                if !alarm.heard.load(Ordering::Acquire) {
                    mains.iter().for_each(|main| process::signal(main, libc::SIGKILL));
                }
                next = None;
            } else {
                // A stop is news for the tracer, and unlike SIGKILL it cuts no write in two.
                mains.iter().for_each(|main| process::signal(main, libc::SIGSTOP));
                next = Some(Instant::now() + GRACE);
            }
        }
    }
}

/// Waits for output, for the end (then `true`), or until a moment.
fn wait(sources: &[Source], stop: &OwnedFd, until: Option<Instant>) -> bool {
    let open = sources.iter().filter_map(|source| source.file.as_ref());
    let mut fds: Vec<PollFd<'_>> =
        open.map(|file| PollFd::new(file.as_fd(), PollFlags::POLLIN)).collect();
    fds.push(PollFd::new(stop.as_fd(), PollFlags::POLLIN));
    let timeout = until.map_or(PollTimeout::NONE, |until| {
        let left = until.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
        let left = left.min(LOOK);
        PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
    });
    // An error here means no memory; then the next turn tries again.
    let _ = poll(&mut fds, timeout);
    fds.last().and_then(PollFd::any).unwrap_or(false)
}
