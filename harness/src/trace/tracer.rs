//! The loop of a run: waits for stops, decides who goes on, and writes down what happened.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::op::{Actor, Event, LockAction, Op, OpKind, Stream, What};
use crate::recording::Gap;
use crate::subject::{Exit, OUTPUT_LIMIT};
use crate::sys::process;
use crate::sys::ptrace::{self, News, Stopped, Tid, Why};
use crate::trace::backtrace::Stacks;
use crate::trace::budget::{self, Budget};
use crate::trace::decode::Pending;
use crate::trace::output::Collector;
use crate::trace::reads::Reads;
use crate::trace::released::{self, Held};
use crate::trace::resolve;
use crate::trace::steps::{Gate, Steps};
use crate::trace::world::{Done, World};
use crate::trace::{Director, Step, TraceError, blocked};

/// More processes at a time than this end the run.
pub(super) const MOST_PROCESSES: usize = 256;
/// Between two looks at programs that may be blocked.
pub(super) const PAUSE: Duration = Duration::from_micros(300);

/// A thread that is traced.
#[derive(Debug)]
pub(super) struct Thread {
    /// Its process.
    pub(super) process: i32,
    /// The program that it belongs to.
    pub(super) program: usize,
    /// What it is doing.
    pub(super) state: State,
}

/// What a thread is doing.
#[derive(Debug)]
pub(super) enum State {
    /// It runs, or it is about to die.
    Running,
    /// It is inside a call whose exit is awaited.
    InCall(Pending),
    /// It stands in front of a call that others must finish first, or that its program may not make yet.
    AtEntry(Stopped),
    /// It stands after a call, and what the call did has to be written down after what others do now.
    AtExit(Stopped, Pending),
    /// It stands before a step, until it is its turn.
    AtGate(Stopped, Box<Gate>),
    /// It stands where its director held it.
    Held(Stopped),
    /// It stands at its very beginning, until the news has come who made it.
    Born(Stopped),
}

/// One of the programs of the run.
#[derive(Debug)]
pub(super) struct Running {
    /// Its first process.
    pub(super) main: i32,
    /// When it began.
    pub(super) begun: Instant,
    /// How its first process ended, and how long that took.
    pub(super) end: Option<(Exit, Duration)>,
    /// It may make no calls that are of interest.
    pub(super) held: bool,
    /// It is to be killed, and with SIGKILL already sent or not yet.
    pub(super) doomed: Option<Doom>,
    /// What to say of a first process that was killed.
    pub(super) reason: Option<Exit>,
}

/// How far the killing has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doom {
    /// As soon as nobody of it is inside a call that changes something.
    Soon,
    /// Done.
    Sent,
}

/// A run that goes on.
pub(super) struct Tracer<'a> {
    pub(super) director: &'a mut dyn Director,
    pub(super) world: World,
    pub(super) threads: BTreeMap<Tid, Thread>,
    pub(super) programs: Vec<Running>,
    pub(super) events: Vec<Event>,
    pub(super) gaps: Vec<Gap>,
    /// From where the ops were made, where somebody asks.
    pub(super) stacks: Option<Stacks>,
    pub(super) budget: Budget,
    /// The last number given to an op.
    pub(super) last_op: u32,
    /// Who is inside a call that nobody else may overlap.
    pub(super) inside: Option<Tid>,
    /// Who waits for a turn, in order.
    pub(super) queue: VecDeque<Tid>,
    /// Processes of which one thread is about to end all others.
    pub(super) leaving: BTreeSet<i32>,
    /// The director has ended the run: it is not asked any more.
    pub(super) killed: bool,
    /// The process that the director has killed alone.
    pub(super) victim: Option<i32>,
    /// The locks that it held then.
    pub(super) victims_locks: Vec<Held>,
    /// Where every step is held.
    pub(super) steps: Steps,
    pub(super) collector: &'a Collector,
    /// How many bytes each output has had.
    pub(super) printed: HashMap<(usize, Stream), usize>,
}

impl Tracer<'_> {
    /// Runs until all have ended.
    ///
    /// # Errors
    ///
    /// [`TraceError`] where the kernel gives no news; the caller ends what is left.
    pub(super) fn run(&mut self, started: Vec<Stopped>, strangers: bool) -> Result<(), TraceError> {
        self.start(started);
        loop {
            self.admit();
            self.kill_doomed();
            // The alarm stops first processes, and the one that was killed alone may have been one.
            let is_held = if self.world.steps { self.take_steps() } else { self.give_turns() };
            let looks_again =
                is_held || strangers && self.threads.is_empty() || self.victim.is_some();
            let news = ptrace::wait(-1, !looks_again);
            let news = news.map_err(|source| TraceError::Unavailable {
                what: "wait for a stop".into(),
                source,
            })?;
            self.watch_the_clock();
            if !matches!(news, News::Nothing) {
                self.has_news();
            }
            match news {
                News::Stop(stop, why) => self.stopped(stop, why),
                News::Exited(tid, code) => self.ended(tid, Exit::Code(code)),
                News::Killed(tid, signal) => self.ended(tid, Exit::Signal(signal)),
                News::NoChildren => return Ok(()),
                News::Nothing if self.threads.is_empty() => return Ok(()),
                News::Nothing if self.world.steps => self.look_later(),
                News::Nothing => std::thread::sleep(PAUSE),
            }
        }
    }

    fn start(&mut self, started: Vec<Stopped>) {
        for (program, stop) in started.into_iter().enumerate() {
            let actor = self.actor(stop.tid());
            let path = executable(stop.tid());
            self.check_privileges(stop.tid(), &path);
            let mut event = Event { actor, what: What::Executed { path } };
            self.world.spool.event(&mut event);
            self.events.push(event);
            let step = if self.killed { Step::KillAll } else { self.director.start(program) };
            self.follow(stop, step);
        }
    }

    /// Who a thread is.
    pub(super) fn actor(&self, tid: Tid) -> Actor {
        match self.threads.get(&tid) {
            Some(thread) => Actor { program: thread.program, pid: thread.process, tid },
            None => Actor { program: 0, pid: tid, tid },
        }
    }

    fn stopped(&mut self, stop: Stopped, why: Why) {
        let tid = stop.tid();
        let is_new = !self.threads.contains_key(&tid);
        if is_new {
            self.adopt(tid, None);
        }
        let program = self.threads[&tid].program;
        if self.programs[program].doomed == Some(Doom::Sent) {
            // It stopped before the signal came, or it was born since; it dies where it stands.
            process::kill(tid);
            return;
        }
        match why {
            Why::Entry => {
                self.note_reads();
                self.entered(stop);
            }
            Why::Exit => self.exited(stop),
            Why::Signal(signal) => self.signalled(stop, signal),
            Why::GroupStop => drop(stop.listen()),
            Why::Made(child) => self.made(stop, child),
            Why::Exec(former) => self.executed(stop, former),
            Why::Begin if is_new => self.set(tid, State::Born(stop)),
            Why::Begin | Why::Other => self.go(stop, 0),
        }
    }

    /// A signal is about to be delivered. A fault that a program does not handle ends it, also in a container; but from its
    /// first process the kernel keeps it while it is traced, and it would come to the same fault again for ever.
    fn signalled(&mut self, stop: Stopped, signal: i32) {
        let thread = &self.threads[&stop.tid()];
        let program = thread.program;
        let is_first = self.is_first(program, thread.process);
        if is_first && stop.is_at_fault(signal) && !blocked::handles(stop.tid(), signal) {
            // It stays where it is.
            return self.doom(program, Some(Exit::Signal(signal)));
        }
        self.go(stop, signal);
    }

    /// Writes down what was read since the last time, where no stops tell.
    pub(super) fn note_reads(&mut self) {
        let files = self.world.told_reads.as_mut().map(Reads::news).unwrap_or_default();
        for file in files {
            let path = self.world.path(file);
            let actor = self.actor(self.programs.first().map_or(0, |program| program.main));
            // Nobody steers by what may have been long ago.
            let mut event = Event { actor, what: What::Read { file, path } };
            self.world.spool.event(&mut event);
            self.events.push(event);
        }
    }

    /// A file that was opened may have been read through memory.
    pub(super) fn note_unclear_reads(&mut self) {
        if let Some(file) = self.world.told_reads.as_ref().and_then(Reads::unclear) {
            let path = self.world.path(file);
            self.gap("it was opened, and perhaps read through memory".to_owned(), Some(path));
        }
    }

    /// Lets a thread run on; where it is gone, the next wait tells.
    pub(super) fn go(&mut self, stop: Stopped, signal: i32) {
        if let Some(thread) = self.threads.get_mut(&stop.tid()) {
            thread.state = State::Running;
        }
        let _ = stop.go(signal);
    }

    /// Sets what a thread is doing.
    pub(super) fn set(&mut self, tid: Tid, state: State) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.state = state;
        }
    }

    /// Writes down what a call did, and says what the director wants then.
    pub(super) fn settle(&mut self, actor: Actor, call: &str, done: Vec<Done>) -> Step {
        let mut step = Step::Go;
        for done in done {
            let next = match done {
                Done::Op(kind) => self.op(actor, call, kind),
                Done::Event(what) => {
                    if let What::Failed { path: Some(path), errno: libc::EROFS, .. } = &what {
                        self.refused(path);
                    }
                    let what = self.bounded(actor.program, what);
                    self.emit(actor, what)
                }
                Done::Gap { what, path } => {
                    self.gap(what, path);
                    self.unless_full()
                }
                Done::TooMuch => self.wrote_too_much(),
                Done::Sweep => self.sweep(actor),
            };
            step = stronger(step, next);
            if step == Step::KillAll {
                // The rest has happened already: it is written down, but the director has spoken.
                self.killed = true;
            }
        }
        step
    }

    fn op(&mut self, actor: Actor, call: &str, kind: OpKind) -> Step {
        let Some(room) = self.world.room.checked_sub(budget::kept(&kind)) else {
            return self.wrote_too_much();
        };
        self.world.room = room;
        self.last_op += 1;
        if let Some(stacks) = &mut self.stacks {
            stacks.note(self.last_op);
        }
        if let OpKind::Lock { file, action, .. } = &kind
            && *action != LockAction::Unlock
        {
            self.world.locked.insert((*file, actor.pid));
        }
        self.world.mappings.note(&kind);
        self.emit(actor, What::Op(Op { number: self.last_op, call: call.to_owned(), kind }))
    }

    /// Of outputs no more bytes are kept than the run's result will hold.
    fn bounded(&mut self, program: usize, mut what: What) -> What {
        if let What::Output { stream, bytes } = &mut what {
            let printed = self.printed.entry((program, *stream)).or_default();
            *bytes = bytes.slice(..bytes.len().min(OUTPUT_LIMIT - *printed));
            *printed += bytes.len();
        }
        what
    }

    /// Writes an event down.
    pub(super) fn emit(&mut self, actor: Actor, what: What) -> Step {
        let mut event = Event { actor, what };
        self.world.spool.event(&mut event);
        let step = if self.killed { Step::Go } else { self.director.after(&event) };
        self.events.push(event);
        stronger(step, stronger(self.unless_lost(), self.unless_full()))
    }

    /// Writes down that something was not seen.
    pub(super) fn gap(&mut self, what: String, path: Option<PathBuf>) {
        self.gaps.push(Gap { what, path, at_event: self.events.len() });
    }

    /// The same, but only the first time.
    pub(super) fn gap_once(&mut self, what: &str, path: Option<PathBuf>) {
        if !self.gaps.iter().any(|gap| gap.what == what && gap.path == path) {
            self.gap(what.to_owned(), path);
        }
    }

    /// What a program that begins hides from the lab: a set-uid or set-gid bit has no effect on who is traced, and one
    /// that its user may not read shows its descriptors and memory to root only.
    pub(super) fn check_privileges(&mut self, tid: Tid, path: &std::path::Path) {
        if !resolve::is_open_to_us(tid) {
            let what =
                format!("{} may not be looked into: what it does was not seen", path.display());
            self.gap(what, None);
        }
        let Ok(program) = nix::sys::stat::stat(format!("/proc/{tid}/exe").as_str()) else {
            return;
        };
        let Ok(own) = nix::sys::stat::stat(format!("/proc/{tid}").as_str()) else {
            return;
        };
        let gains = (program.st_mode & libc::S_ISUID != 0 && program.st_uid != own.st_uid)
            || (program.st_mode & libc::S_ISGID != 0 && program.st_gid != own.st_gid);
        if gains {
            self.gap(format!("the set-uid or set-gid bit of {} was ignored", path.display()), None);
        }
    }

    /// What the memory of shared mappings did since the last look.
    pub(super) fn flush_mappings(&mut self) -> Step {
        let mut step = Step::Go;
        if self.world.mappings.is_empty() {
            return step;
        }
        for change in self.world.mappings.changes() {
            let path = self.world.path(change.file);
            let (file, offset) = (change.file, change.offset);
            let kind =
                OpKind::Write { file, path, offset, data: change.bytes.into(), append: false };
            step =
                stronger(step, self.settle(self.actor(change.pid), "mmap", vec![Done::Op(kind)]));
        }
        let living: Vec<Tid> = self.threads.keys().copied().collect();
        self.world.mappings.prune(false, living.into_iter());
        step
    }

    /// The files whose last writable descriptor is gone.
    pub(super) fn sweep(&mut self, actor: Actor) -> Step {
        let mut step = Step::Go;
        if self.world.writable.is_empty() {
            return step;
        }
        let mut gone = self.world.writable.clone();
        let mut seen = BTreeSet::new();
        for (tid, thread) in &self.threads {
            if seen.contains(&thread.process) {
                continue;
            }
            // A thread that has ended shows nothing; another of its process does.
            if let Some(open) = self.world.open_for_writing(*tid) {
                gone.retain(|file| !open.contains(file));
                seen.insert(thread.process);
            }
        }
        for file in gone {
            self.world.writable.remove(&file);
            let path = self.world.path(file);
            step = stronger(step, self.emit(actor, What::Close { file, path }));
        }
        step
    }

    /// Does what the director wants with a thread that stands after a call.
    pub(super) fn follow(&mut self, stop: Stopped, step: Step) {
        let tid = stop.tid();
        match step {
            Step::Go => self.go(stop, 0),
            Step::Hold => {
                let program = self.threads[&tid].program;
                self.programs[program].held = true;
                self.set(tid, State::Held(stop));
            }
            Step::KillProcess(process) => {
                self.kill_alone(process);
                match self.threads.get(&tid).is_some_and(|thread| thread.process == process) {
                    true => drop(stop),
                    false => self.go(stop, 0),
                }
            }
            Step::KillAll => {
                drop(stop);
                self.kill_all(tid);
            }
        }
    }

    /// SIGKILL for one process; its program ends when the others have.
    pub(super) fn kill_alone(&mut self, process: i32) {
        self.victim = Some(process);
        self.victims_locks = released::held_by(&self.world, process);
        process::kill(process);
        if let Some(program) = self.programs.iter_mut().find(|program| program.main == process) {
            program.reason.get_or_insert(Exit::Killed);
        }
    }

    /// SIGKILL for every process, at once; nothing is resumed before. The process of `last` comes last.
    pub(super) fn kill_all(&mut self, last: Tid) {
        self.killed = true;
        let last = self.actor(last).pid;
        let mut processes: Vec<i32> = self.threads.values().map(|thread| thread.process).collect();
        processes.sort_by_key(|process| (*process == last, *process));
        processes.dedup();
        processes.into_iter().for_each(process::kill);
        for program in &mut self.programs {
            program.doomed = Some(Doom::Sent);
            program.reason.get_or_insert(Exit::Killed);
        }
        self.queue.clear();
    }

    /// A program is to be killed, but not in the middle of a change.
    pub(super) fn doom(&mut self, program: usize, reason: Option<Exit>) {
        let program = &mut self.programs[program];
        program.doomed.get_or_insert(Doom::Soon);
        program.reason = program.reason.or(reason);
    }

    fn kill_doomed(&mut self) {
        let inside =
            self.inside.and_then(|tid| self.threads.get(&tid)).map(|thread| thread.program);
        for program in 0..self.programs.len() {
            if self.programs[program].doomed != Some(Doom::Soon) || inside == Some(program) {
                continue;
            }
            self.programs[program].doomed = Some(Doom::Sent);
            let threads = self.threads.values().filter(|thread| thread.program == program);
            threads.for_each(|thread| process::kill(thread.process));
        }
    }

    fn watch_the_clock(&mut self) {
        if self.collector.is_over() {
            self.collector.hear();
            for program in 0..self.programs.len() {
                let lives = self.threads.values().any(|thread| thread.program == program);
                let running = &mut self.programs[program];
                // Its first process was killed alone, and the others did not end.
                if lives && let Some((exit @ Exit::Killed, _)) = &mut running.end {
                    *exit = Exit::TimedOut;
                }
                self.doom(program, Some(Exit::TimedOut));
            }
        }
    }
}

/// The more drastic of two steps.
pub(super) fn stronger(one: Step, other: Step) -> Step {
    let rank = |step| match step {
        Step::Go => 0,
        Step::Hold => 1,
        Step::KillProcess(_) => 2,
        Step::KillAll => 3,
    };
    if rank(other) > rank(one) { other } else { one }
}

/// The program that a thread runs.
pub(super) fn executable(tid: Tid) -> PathBuf {
    std::fs::read_link(format!("/proc/{tid}/exe")).unwrap_or_default()
}
