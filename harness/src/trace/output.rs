//! One thread beside the tracers: it takes the outputs of all runs as they come, and sounds the alarm at their time limits.
//!
//! A run that prints nothing never wakes it: the tracer itself enters and leaves its outputs, and takes what is left.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::unistd::Pid;

use crate::sys::process;

/// How often the thread looks whether somebody wished to stop.
const LOOK: Duration = Duration::from_millis(100);

/// So long the tracer may take to end the run by itself, before the alarm kills.
const GRACE: Duration = Duration::from_millis(200);

/// No run has so many outputs.
const OUTPUTS_MAX: u64 = 1 << 16;
/// What the kernel says of the thread's own call.
const CALLED: u64 = u64::MAX;

/// A bounded output.
#[derive(Debug, Default)]
pub(super) struct Collected {
    /// The bytes.
    pub(super) bytes: Vec<u8>,
    /// More came than was kept.
    pub(super) cut: bool,
}

#[derive(Debug)]
struct Source {
    file: Option<File>,
    collected: Collected,
    limit: usize,
}

/// A run whose outputs are collected, seen by its tracer; dropped, it is forgotten.
#[derive(Debug)]
pub(super) struct Collector {
    thread: Arc<Thread>,
    number: u64,
    alarm: Arc<Alarm>,
}

#[derive(Debug, Default)]
struct Alarm {
    rung: AtomicBool,
    heard: AtomicBool,
}

/// What the thread does for one run.
#[derive(Debug)]
struct Run {
    sources: Vec<Source>,
    mains: Vec<OwnedFd>,
    next: Option<Instant>,
    alarm: Arc<Alarm>,
}

/// What the thread and the tracers share.
#[derive(Debug)]
struct Thread {
    epoll: Epoll,
    call: EventFd,
    runs: Mutex<Runs>,
}

#[derive(Debug, Default)]
struct Runs {
    last: u64,
    all: BTreeMap<u64, Run>,
    /// When the thread looks again of itself.
    looks: Option<Instant>,
}

impl Source {
    /// Takes all that is there now; tells whether more can come.
    fn drain(&mut self) -> bool {
        let mut buffer = [0; 16384];
        let Some(file) = &mut self.file else { return false };
        loop {
            match file.read(&mut buffer) {
                // A terminal whose other end is closed says EIO.
                Ok(0) => return false,
                Ok(count) => {
                    let room = self.limit - self.collected.bytes.len();
                    self.collected.bytes.extend_from_slice(&buffer[..count.min(room)]);
                    self.collected.cut |= count > room;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
        }
    }
}

impl Collector {
    /// Starts to collect from `outputs`; after `limit` the processes in `mains` are stopped, which wakes the tracer.
    ///
    /// # Errors
    ///
    /// The kernel's answer where the thread or a descriptor cannot be had.
    pub(super) fn start(
        outputs: Vec<OwnedFd>,
        most_bytes: usize,
        mains: Vec<OwnedFd>,
        limit: Duration,
        processors: CpuSet,
    ) -> io::Result<Collector> {
        let thread = Thread::get(processors)?;
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
        let deadline = Instant::now() + limit;
        let mut runs = thread.runs();
        runs.last += 1;
        let number = runs.last;
        let run = Run { sources, mains, next: Some(deadline), alarm: alarm.clone() };
        // Left again where an output cannot be entered.
        let collector = Collector { thread: thread.clone(), number, alarm };
        let run = runs.all.entry(number).or_insert(run);
        for (index, file) in run.sources.iter().flat_map(|source| &source.file).enumerate() {
            let data = number * OUTPUTS_MAX + index as u64;
            if let Err(error) = thread.epoll.add(file, EpollEvent::new(EpollFlags::EPOLLIN, data)) {
                drop(runs);
                drop(collector);
                return Err(error.into());
            }
        }
        let looks_in_time = runs.looks.is_some_and(|looks| looks <= deadline);
        drop(runs);
        if !looks_in_time {
            thread.call.write(1)?;
        }
        Ok(collector)
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
        let mut sources = self.leave();
        for source in &mut sources {
            source.drain();
        }
        sources.into_iter().map(|source| source.collected).collect()
    }

    fn leave(&self) -> Vec<Source> {
        let Some(run) = self.thread.runs().all.remove(&self.number) else {
            return Vec::new();
        };
        for file in run.sources.iter().flat_map(|source| &source.file) {
            // Copies of it in other processes would keep it there.
            let _ = self.thread.epoll.delete(file);
        }
        run.sources
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Thread {
    /// The one of this process, which is started when it is first asked for and never ends.
    fn get(processors: CpuSet) -> io::Result<Arc<Thread>> {
        static STARTED: Mutex<Option<Arc<Thread>>> = Mutex::new(None);
        let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = &*started {
            return Ok(thread.clone());
        }
        let call = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(&call, EpollEvent::new(EpollFlags::EPOLLIN, CALLED))?;
        let thread = Arc::new(Thread { epoll, call, runs: Mutex::default() });
        let own = thread.clone();
        std::thread::Builder::new().name("crashlab-output".into()).spawn(move || {
            // The tracers' own processors are busy; where the kernel does not let us leave them, it still works.
            let _ = sched_setaffinity(Pid::from_raw(0), &processors);
            loop {
                own.attend();
            }
        })?;
        *started = Some(thread.clone());
        Ok(thread)
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is something to do, and does it.
    fn attend(&self) {
        let now = Instant::now();
        let left = {
            let mut runs = self.runs();
            let next = runs.all.values().filter_map(|run| run.next);
            let left = next.map(|next| {
                let left = next.saturating_duration_since(now) + Duration::from_millis(1);
                left.min(LOOK)
            });
            // A run past its alarms is looked at no more.
            let left = left.min();
            runs.looks = left.map(|left| now + left);
            left
        };
        let timeout = left.map_or(EpollTimeout::NONE, |left| {
            EpollTimeout::try_from(left).unwrap_or(EpollTimeout::MAX)
        });
        let mut events = [EpollEvent::empty(); 16];
        // An error here means no memory; then the next turn tries again.
        let count = self.epoll.wait(&mut events, timeout).unwrap_or(0);
        let mut runs = self.runs();
        for event in &events[..count] {
            match event.data() {
                CALLED => _ = self.call.read(),
                data => self.collect(&mut runs, data / OUTPUTS_MAX, (data % OUTPUTS_MAX) as usize),
            }
        }
        runs.all.values_mut().for_each(Run::watch_the_clock);
    }

    fn collect(&self, runs: &mut Runs, number: u64, output: usize) {
        // It may have been left since.
        let source = runs.all.get_mut(&number).and_then(|run| run.sources.get_mut(output));
        if let Some(source) = source
            && !source.drain()
            && let Some(file) = source.file.take()
        {
            let _ = self.epoll.delete(&file);
        }
    }
}

impl Run {
    fn watch_the_clock(&mut self) {
        let alarm = &self.alarm;
        let interrupted = crate::interrupt::is_requested() && !alarm.rung.load(Ordering::Acquire);
        if !interrupted && self.next.is_none_or(|next| Instant::now() < next) {
            return;
        }
        if alarm.rung.swap(true, Ordering::AcqRel) {
            // A stop signal does not reach who waits inside the kernel; SIGKILL does.
            if !alarm.heard.load(Ordering::Acquire) {
                self.mains.iter().for_each(|main| process::signal(main, libc::SIGKILL));
            }
            self.next = None;
        } else {
            // A stop is news for the tracer, and unlike SIGKILL it cuts no write in two.
            self.mains.iter().for_each(|main| process::signal(main, libc::SIGSTOP));
            self.next = Some(Instant::now() + GRACE);
        }
    }
}
