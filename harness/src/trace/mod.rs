//! The tracer: runs programs under ptrace and a seccomp filter, and writes down what they do to the watched folder.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::op::{Event, OpKind};
use crate::recording::{Gap, Spool, Trace};
use crate::sandbox::Sandbox;
use crate::subject::{End, Exit, OUTPUT_LIMIT, Program};
use crate::sys::process::{self, Container};
use crate::sys::ptrace;
use crate::watched::Watched;

mod backtrace;
mod blocked;
mod budget;
mod calls;
mod decode;
mod descriptors;
mod elsewhere;
mod fork_server;
mod line;
mod lives;
mod mapping;
mod names;
mod numbers;
mod output;
mod outsiders;
mod reads;
mod released;
mod resolve;
mod spawn;
mod steps;
mod tracer;
mod turns;
mod world;

pub use budget::Budget;
pub use line::{describe, describe_call};
pub use steps::{Intent, Named, Part, Stand, Stepped, Turn};

use decode::MARKS;
pub(crate) use elsewhere::Fence;
pub(crate) use fork_server::ForkServer;
use output::{Collected, Collector};
use reads::Reads;
use resolve::View;
use spawn::Started;
use tracer::{Running, State, Thread, Tracer};
use world::World;

/// How to trace.
#[derive(Debug, Clone)]
pub struct Options {
    /// After this time everything that was started is ended.
    pub time_limit: Duration,
    /// What is written down.
    pub detail: Detail,
    /// How much of the run is kept.
    pub budget: Budget,
    /// Pin the tracer and what it traces to this processor.
    pub pin: Option<usize>,
    /// Take the call stack at each op: [`Trace::calls`].
    pub backtrace: bool,
    /// Each program is process 1 of a process namespace of its own, as in a container: two programs of a run can have the
    /// same process id, and see nothing of each other but their files. As there, the others of a namespace die with its
    /// first process, which takes over orphans, and which no signal from inside ends that it does not handle. Ids in the log
    /// are those of the lab.
    pub containers: bool,
}

/// What of a run is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Everything that changes the watched folder.
    Changes,
    /// The reads of watched files too, which costs a stop for each read of any file.
    Reads,
    /// Only what tells whether a file was read before it was overwritten, for runs of which the end alone is of interest:
    /// reads, and every change but those through a descriptor that is open already. Writes, syncs, locks, closes and
    /// outputs are not in the log (outputs are in [`Trace::ends`] all the same), nor who it was that read a file. A file of
    /// which nobody knows whether it was read is a gap.
    Overwrites,
    /// The reads too, and every program is held before each step on what is watched, looks included, until
    /// [`Director::turn`] lets it go on.
    Steps,
}

/// What a director wants at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Go on.
    Go,
    /// The program stays where it is until [`Director::next`] names it.
    Hold,
    /// SIGKILL for this process alone; the others go on until they end by themselves, also where it was a program's first.
    KillProcess(i32),
    /// SIGKILL for every process of the run, now.
    KillAll,
}

/// Where a program stands, for [`Director::next`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Not yet started, or held by a [`Step::Hold`].
    Held,
    /// Free to run.
    Running,
    /// Free to run, but it sleeps until another lets a lock go: a thread is inside a lock call that waits, and all
    /// others wait without a time limit for threads or processes of their own.
    Blocked,
    /// All of its processes have ended.
    Ended,
}

/// Steers a run. The default does nothing.
pub trait Director {
    /// The program is about to execute its first instruction.
    fn start(&mut self, _program: usize) -> Step {
        Step::Go
    }
    /// An op is about to begin; `Some(n)` shortens a write to its first `n` bytes.
    ///
    /// `number` is what it gets if it succeeds. The op is told as far as it is known before the call: the owner of what
    /// is made is 0, its mode still without the umask, and a copy inside the kernel has no bytes yet.
    fn before(&mut self, _program: usize, _number: u32, _op: &OpKind) -> Option<usize> {
        None
    }
    /// An event has been written down; the actor stands at the exit of its call (for a mark: of the look-up).
    fn after(&mut self, _event: &Event) -> Step {
        Step::Go
    }
    /// Called whenever no program is [`Standing::Running`] and at least one is held; names the one to let go on.
    /// `None`, or one that is not held, lets all held ones go on.
    fn next(&mut self, _standings: &[Standing]) -> Option<usize> {
        None
    }
    /// With [`Detail::Steps`]: all programs stand; says what happens next. One that cannot go on is not to be named.
    fn turn(&mut self, stands: &[Stand<'_>]) -> Turn {
        let can = |stand: &Stand<'_>| matches!(stand, Stand::At { waits_for: None, .. });
        stands.iter().position(can).map_or(Turn::End, Turn::Go)
    }
    /// With [`Detail::Steps`]: whether a program is held before this at all.
    fn is_step(&mut self, _program: usize, _intent: &Intent) -> bool {
        true
    }
    /// With [`Detail::Steps`]: what became of the step of a program.
    fn stepped(&mut self, _program: usize, _what: &Stepped) {}
    /// With [`Detail::Steps`]: a program is about to sleep for some time; `true` makes it no time.
    fn slept(&mut self, _program: usize) -> bool {
        false
    }
}

/// A director that never interferes.
#[derive(Debug, Default)]
pub struct Undisturbed;

impl Director for Undisturbed {}

/// The run could not be made.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A program could not be started.
    #[error("cannot start `{program}`: {stage}: {source}")]
    Spawn {
        /// What was to be started.
        program: String,
        /// The step that failed, in words.
        stage: String,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// Without namespaces, a program went to its folder by an absolute path, where its copy is not.
    #[error("the program reaches {} by an absolute path", path.display())]
    Strayed {
        /// The path.
        path: PathBuf,
    },
    /// This machine does not let the lab trace.
    #[error("cannot trace: {what}: {source}")]
    Unavailable {
        /// What failed.
        what: String,
        /// The kernel's answer.
        source: std::io::Error,
    },
}

/// Runs the programs in the sandbox, together, until the first process of each has ended.
///
/// What else a program started is killed when its first process ends, also what daemonised, and also on errors: nothing
/// is left when this returns. Programs have a session of their own without a controlling terminal. All of them stand
/// before their first instruction when the first [`Director::start`] is asked.
///
/// Signals and other harm that they aim at processes outside of the run are answered with EPERM, and are gaps. A run that
/// uses up its [`Budget`], or has too many processes at a time, is ended with a gap.
///
/// The calling thread traces, and waits for all its children while it does: it must have no other child that somebody
/// else wants to wait for. Several threads can each make a run at the same time.
///
/// # Errors
///
/// [`TraceError`] where a program cannot be started or traced; how programs end is in [`Trace::ends`].
pub fn run(
    programs: &[Program],
    sandbox: &Sandbox,
    options: &Options,
    director: &mut dyn Director,
) -> Result<Trace, TraceError> {
    run_into(programs, sandbox, options, director, &Spool::default())
}

/// As [`run`], with a spool that takes in what comes while it comes.
///
/// # Errors
///
/// As [`run`].
pub fn run_into(
    programs: &[Program],
    sandbox: &Sandbox,
    options: &Options,
    director: &mut dyn Director,
    spool: &Spool,
) -> Result<Trace, TraceError> {
    // What it reads by an absolute path shows only then.
    let strays = sandbox.fence().is_some_and(|fence| fence.original.is_some());
    let detail = match options.detail {
        Detail::Changes if strays => Detail::Reads,
        detail => detail,
    };
    let options = &Options { detail, ..options.clone() };
    let pinned = Pinned::to(options.pin)?;
    let unavailable = |why: String| TraceError::Unavailable {
        what: "give each program a process namespace".into(),
        source: std::io::Error::other(why),
    };
    let container = options.containers.then(|| sandbox.container());
    let container = container.transpose().map_err(unavailable)?;
    let strangers = ptrace::has_children();
    let started = start_all(programs, sandbox, filter_for(detail, sandbox), container)?;
    go_on(started, strangers, sandbox, options, director, spool, pinned)
}

/// As [`run_into`], of the program of a fork server, from where that stands; `None` where it does not stand there any more.
///
/// # Errors
///
/// As [`run`].
pub(crate) fn run_forked(
    server: &mut ForkServer,
    sandbox: &Sandbox,
    options: &Options,
    director: &mut dyn Director,
    spool: &Spool,
) -> Result<Option<Trace>, TraceError> {
    let pinned = Pinned::to(options.pin)?;
    let unavailable = |source| TraceError::Unavailable { what: "copy a process".into(), source };
    let Some(started) = server.fork().map_err(unavailable)? else { return Ok(None) };
    go_on(vec![started], true, sandbox, options, director, spool, pinned).map(Some)
}

/// The filter for programs in this sandbox.
fn filter_for(detail: Detail, sandbox: &Sandbox) -> &'static [libc::sock_filter] {
    calls::filter(detail, detail == Detail::Overwrites && sandbox.reads().is_some())
}

/// Lets programs that stand before an instruction run to their ends. `strangers`: this thread has other children.
fn go_on(
    started: Vec<Started>,
    strangers: bool,
    sandbox: &Sandbox,
    options: &Options,
    director: &mut dyn Director,
    spool: &Spool,
    pinned: Pinned,
) -> Result<Trace, TraceError> {
    let reads = match options.detail {
        Detail::Overwrites => sandbox.reads().map(Reads::new),
        Detail::Changes | Detail::Reads | Detail::Steps => None,
    };
    let begun = Instant::now();
    let fence = sandbox.fence();
    let world = World { fence, ..look_around(&started, sandbox, options, spool, reads) };
    let pids: Vec<i32> = started.iter().map(|one| one.stop.tid()).collect();
    let (mut stops, mut outputs, mut mains, mut kept) = (vec![], vec![], vec![], vec![]);
    for one in started {
        stops.push(one.stop);
        outputs.extend(one.outputs);
        mains.push(one.pidfd);
        kept.push(one.kept);
    }
    let collector =
        Collector::start(outputs, OUTPUT_LIMIT, mains, options.time_limit, pinned.before);
    let collector = collector.map_err(|source| {
        pids.iter().for_each(|pid| spawn::end(*pid));
        TraceError::Unavailable { what: "start a thread for the output".into(), source }
    })?;
    let mut tracer = Tracer::new(director, world, &pids, begun, &collector, options);
    let outcome = tracer.run(stops, strangers);
    tracer.note_reads();
    tracer.note_unclear_reads();
    if outcome.is_err() {
        // The first process of a namespace goes when all others in it have gone.
        let is_main = |process: &i32| pids.contains(process);
        let all = tracer.threads.values().map(|thread| thread.process);
        let (mains, others): (Vec<i32>, Vec<i32>) = all.partition(is_main);
        mains.iter().for_each(|pid| process::kill(*pid));
        others.into_iter().chain(mains).for_each(spawn::end);
    }
    let Tracer { events, mut gaps, programs, world, stacks, .. } = tracer;
    let strayed = world.strayed;
    let outputs = collector.finish();
    drop(kept);
    outcome?;
    if let Some(path) = strayed {
        return Err(TraceError::Strayed { path });
    }
    let ends = ends(programs, outputs, begun, events.len(), &mut gaps);
    let elapsed = begun.elapsed();
    let calls = stacks.map(backtrace::Stacks::finish).unwrap_or_default();
    Ok(Trace { events, ends, gaps, calls, elapsed })
}

/// Brings every program up to its first instruction, or none.
fn start_all(
    programs: &[Program],
    sandbox: &Sandbox,
    filter: &[libc::sock_filter],
    container: Option<Container>,
) -> Result<Vec<Started>, TraceError> {
    let mut started: Vec<Started> = Vec::new();
    for program in programs {
        match spawn::start(program, sandbox, filter, container) {
            Ok(one) => started.push(one),
            Err(error) => {
                started.iter().for_each(|one| spawn::end(one.stop.tid()));
                return Err(error);
            }
        }
    }
    Ok(started)
}

/// How the programs ended, with their outputs: two for each program.
fn ends(
    programs: Vec<Running>,
    outputs: Vec<Collected>,
    begun: Instant,
    at_event: usize,
    gaps: &mut Vec<Gap>,
) -> Vec<End> {
    let mut outputs = outputs.into_iter();
    let mut ends = Vec::new();
    for (program, running) in programs.into_iter().enumerate() {
        let stdout = outputs.next().unwrap_or_default();
        let stderr = outputs.next().unwrap_or_default();
        if stdout.cut || stderr.cut {
            let what = format!(
                "program {program} printed more than {OUTPUT_LIMIT} bytes; the rest was thrown away"
            );
            let path = None;
            gaps.push(Gap { what, path, at_event });
        }
        // Without news of its end it has ended with everything else.
        let (exit, elapsed) = running.end.unwrap_or((Exit::Killed, begun.elapsed()));
        ends.push(End { exit, stdout: stdout.bytes, stderr: stderr.bytes, elapsed });
    }
    ends
}

/// The watched folders as a thread sees them, without links.
fn watched_by(tid: i32, sandbox: &Sandbox) -> Watched {
    let (watched, lost) = (sandbox.watched(), Cell::new(false));
    let view = View { tid, watched: &watched, lost: &lost, passed: None };
    let base = view.canonical(sandbox.seen()).unwrap_or_else(|| sandbox.seen().to_owned());
    Watched { base, ..watched }
}

/// What the watched folder holds before anything runs.
fn look_around(
    started: &[Started],
    sandbox: &Sandbox,
    options: &Options,
    spool: &Spool,
    told_reads: Option<Reads>,
) -> World {
    let tid = started.first().map_or(0, |one| one.stop.tid());
    let watched = watched_by(tid, sandbox);
    let view = View { tid, watched: &watched, lost: &Cell::new(false), passed: None };
    let at = |part: &PathBuf| view.reachable(&watched.base.join(part));
    let folders: Vec<(PathBuf, PathBuf)> =
        watched.parts.iter().map(|part| (at(part), part.clone())).collect();
    let streams = started
        .iter()
        .enumerate()
        .flat_map(|(program, one)| {
            one.ends.iter().map(move |(end, stream)| (*end, program, *stream))
        })
        .collect();
    let mut world = World {
        device: folders
            .first()
            .and_then(|(at, _)| nix::sys::stat::stat(at).ok())
            .map_or(0, |stat| stat.st_dev),
        watched,
        lost: Cell::new(false),
        passed: RefCell::default(),
        names: names::Names::default(),
        descriptors: RefCell::default(),
        writable: BTreeSet::new(),
        mappings: mapping::Mappings::default(),
        reads: options.detail != Detail::Changes,
        steps: options.detail == Detail::Steps,
        containers: options.containers,
        mains: started.iter().map(|one| one.stop.tid()).collect(),
        locked: BTreeSet::new(),
        locks: released::Known::default(),
        told_reads,
        room: options.budget.bytes,
        fence: None,
        strayed: None,
        disk: budget::Disk::of(sandbox.work()),
        refused: false,
        spool: spool.clone(),
        streams,
    };
    match sandbox.files() {
        // Only one folder is ever laid over.
        Some(files) => folders.iter().for_each(|(at, _)| {
            files.iter().for_each(|file| world.scan(&at.join(file), file));
        }),
        None => folders.iter().for_each(|(at, part)| world.scan(at, part)),
    }
    world
}

impl<'a> Tracer<'a> {
    fn new(
        director: &'a mut dyn Director,
        world: World,
        pids: &[i32],
        begun: Instant,
        collector: &'a Collector,
        options: &Options,
    ) -> Tracer<'a> {
        let running = |main: &i32| Running {
            main: *main,
            begun,
            end: None,
            held: false,
            doomed: None,
            reason: None,
        };
        let thread = |(program, pid): (usize, &i32)| {
            (*pid, Thread { process: *pid, program, state: State::Running })
        };
        Tracer {
            director,
            world,
            threads: pids.iter().enumerate().map(thread).collect::<BTreeMap<_, _>>(),
            programs: pids.iter().map(running).collect(),
            events: Vec::new(),
            gaps: Vec::new(),
            stacks: options.backtrace.then(backtrace::Stacks::default),
            budget: options.budget,
            last_op: 0,
            inside: None,
            queue: std::collections::VecDeque::new(),
            leaving: BTreeSet::new(),
            killed: false,
            victim: None,
            victims_locks: Vec::new(),
            steps: steps::Steps::default(),
            collector,
            printed: std::collections::HashMap::new(),
        }
    }
}

/// The calling thread on one processor, for as long as this lives.
struct Pinned {
    before: CpuSet,
    restore: bool,
}

impl Pinned {
    fn to(processor: Option<usize>) -> Result<Pinned, TraceError> {
        let this = Pid::from_raw(0);
        let failed = |errno: nix::Error| TraceError::Unavailable {
            what: "pin the tracer to one processor".into(),
            source: errno.into(),
        };
        let before = sched_getaffinity(this).map_err(failed)?;
        let Some(processor) = processor else {
            return Ok(Pinned { before, restore: false });
        };
        let mut one = CpuSet::new();
        one.set(processor).and_then(|()| sched_setaffinity(this, &one)).map_err(failed)?;
        Ok(Pinned { before, restore: true })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if self.restore {
            // It was allowed before; there is nobody to tell if it is not any more.
            let _ = sched_setaffinity(Pid::from_raw(0), &self.before);
        }
    }
}
