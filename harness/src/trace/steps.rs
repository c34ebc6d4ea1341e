//! One step at a time: every program is held before each of its ops on what is watched, and its director says who goes on.
//!
//! A program stands when one of its threads is before such an op and all others of it sleep, or stand as well. Which of
//! them sleep is read from `/proc`. A lock that waits is tried without waiting, and tried again when it may be free; a
//! program that sleeps for some time is woken at once where the director says so, since others are what it waits for.

use std::path::PathBuf;

use crate::op::touch::{Access, How, Object, Touch, Waits};
use crate::op::{LockAction, LockFamily, Op, OpKind};
use crate::subject::Exit;
use crate::sys::ptrace::{Entry, Stopped, Tid};
use crate::trace::calls::Call;
use crate::trace::decode::Pending;
use crate::trace::released::Lock;
use crate::trace::tracer::{State, Tracer};
use crate::trace::{blocked, line};

/// So many looks that bring no news, before one looks who sleeps.
const PATIENCE: u32 = 64;

/// What a program is about to do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Intent {
    /// What it touches.
    pub touch: Touch,
    /// In words: `rename s.tmp -> s`.
    pub text: String,
    /// What it touches by the names that it has now, which are the same in another run.
    pub named: Vec<Named>,
}

/// Something that a step touches, by name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Named {
    /// What of it.
    pub part: Part,
    /// Its path, relative to the watched folder.
    pub path: PathBuf,
    /// It is changed.
    pub changed: bool,
}

/// What of a file or folder a step touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// Its name.
    Entry,
    /// The names in it.
    Listing,
    /// Its bytes.
    Content,
    /// Its mode, owner and number of names.
    Attributes,
    /// Anything else.
    Other,
}

/// Where a program stands when all of them do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stand<'a> {
    /// Before a step. `waits_for`: a program that holds the lock which the step is to take.
    At {
        /// The step.
        intent: &'a Intent,
        /// Who has the lock, by its place among the programs.
        waits_for: Option<usize>,
    },
    /// It sleeps until another does something that nobody can see, such as writing into a pipe.
    Sleeps,
    /// All of it has ended.
    Ended,
}

/// What is to happen next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// This program makes the step that it stands before.
    Go(usize),
    /// This program dies where it stands, with all of its processes.
    Kill(usize),
    /// Everything ends here.
    End,
}

/// What became of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stepped {
    /// It was made: what it touched, and what the call returned, negative for an error number.
    Made(Touch, i64),
    /// The lock was not free: it stands before the same step again.
    NotYet,
}

/// A step that a thread stands before.
#[derive(Debug)]
pub(super) struct Gate {
    intent: Intent,
    /// The lock that it is to take, where it would wait for it.
    wants: Option<Lock>,
    /// The call as it was decoded; none for the end of a process.
    call: Option<(Entry, Pending)>,
    /// What [`Steps::changes`] was then.
    decoded_at: u64,
}

/// What is known while programs are held before each step.
#[derive(Debug, Default)]
pub(super) struct Steps {
    /// The thread whose step is due.
    admitted: Option<Tid>,
    /// Looks without news since the last.
    looks: u32,
    /// The step under way, as it was announced, and whose it is.
    made: Option<(Tid, Intent)>,
    /// What the last step touched.
    last: Option<Touch>,
    /// Calls that came to their end: what was decoded before one of them is decoded again.
    changes: u64,
}

impl Tracer<'_> {
    /// Whether a call is a step that has to wait for its turn; if so, the thread stands before it.
    pub(super) fn stands_before(
        &mut self,
        stop: Stopped,
        decoded: Option<Pending>,
        entry: &Entry,
    ) -> Option<(Stopped, Option<Pending>)> {
        let tid = stop.tid();
        let is_step = |pending: &Pending| pending.preview.is_some() || !pending.touches.is_empty();
        let pending = match decoded {
            Some(pending) if self.world.steps && !self.killed && is_step(&pending) => pending,
            decoded => return Some((stop, decoded)),
        };
        let touch = self.touch(&pending);
        let named = self.named(&touch);
        let intent = Intent { touch, text: text(&pending, entry), named };
        let wants = pending.without_wait.as_ref().and_then(|lock| lock.wants);
        if self.is_free(tid, &intent) {
            return Some((stop, Some(pending)));
        }
        self.hold(stop, intent, wants, Some((*entry, pending)));
        None
    }

    /// The end of a process is a step where it lets locks go, or where others ask whether it lives.
    pub(super) fn stands_before_end(&mut self, stop: Stopped) -> Option<Stopped> {
        let tid = stop.tid();
        if !self.world.steps || self.killed {
            return Some(stop);
        }
        let process = self.threads[&tid].process;
        let program = self.threads[&tid].program;
        let mut accesses = self.world.lets_go(process, |_| true);
        if self.programs[program].main == process {
            accesses.push(Access::change(Object::Life(program)));
        }
        if accesses.is_empty() {
            return Some(stop);
        }
        let waits = lets_go(&accesses);
        let touch = Touch::new(accesses, waits);
        let named = self.named(&touch);
        let intent = Intent { touch, text: "exit".to_owned(), named };
        if self.is_free(tid, &intent) {
            return Some(stop);
        }
        self.hold(stop, intent, None, None);
        None
    }

    /// It is its turn, or nobody has to wait for one.
    fn is_free(&mut self, tid: Tid, intent: &Intent) -> bool {
        if self.steps.admitted == Some(tid) {
            self.steps.admitted = None;
            self.steps.made = Some((tid, intent.clone()));
            return true;
        }
        let program = self.threads[&tid].program;
        !self.director.is_step(program, intent)
    }

    fn hold(
        &mut self,
        stop: Stopped,
        intent: Intent,
        wants: Option<Lock>,
        call: Option<(Entry, Pending)>,
    ) {
        let tid = stop.tid();
        let decoded_at = self.steps.changes;
        self.set(tid, State::AtGate(stop, Box::new(Gate { intent, wants, call, decoded_at })));
    }

    fn named(&self, touch: &Touch) -> Vec<Named> {
        let named = |access: &Access| {
            let (part, path) = match &access.object {
                Object::Entry(path) => (Part::Entry, path.clone()),
                Object::Listing(path) => (Part::Listing, path.clone()),
                Object::Content(file) => (Part::Content, self.world.path(*file)),
                Object::Attributes(file) => (Part::Attributes, self.world.path(*file)),
                Object::Lock(file, _) => (Part::Other, self.world.path(*file)),
                Object::Life(_) => (Part::Other, PathBuf::new()),
            };
            Named { part, path, changed: access.how != How::Look }
        };
        touch.accesses().iter().map(named).collect()
    }

    /// A call came to its end: what others are about to do can be something else now.
    pub(super) fn has_changed(&mut self) {
        self.steps.changes += 1;
    }

    /// The step of a thread that has made it.
    pub(super) fn has_stepped(&mut self, tid: Tid, result: i64) {
        self.has_changed();
        let made = self.steps.made.take_if(|(who, _)| *who == tid);
        if let (Some((_, made)), Some(thread)) = (made, self.threads.get(&tid)) {
            let program = thread.program;
            self.director.stepped(program, &Stepped::Made(made.touch, result));
        }
    }

    /// The step could not be made: the lock is not free.
    pub(super) fn has_not_stepped(&mut self, tid: Tid) {
        self.steps.made = None;
        if let Some(thread) = self.threads.get(&tid) {
            let program = thread.program;
            self.director.stepped(program, &Stepped::NotYet);
        }
    }

    /// What a call touches: what it says itself, and the files that lose or get a name by it.
    fn touch(&self, pending: &Pending) -> Touch {
        let mut accesses = pending.touches.clone();
        if let Some(kind) = &pending.preview {
            accesses.extend(kind.accesses());
            let names = &self.world.names;
            let files = match kind {
                OpKind::Unlink { path } => [names.by_path(path), None],
                OpKind::Rename { from, to, .. } => [names.by_path(from), names.by_path(to)],
                _ => [None, None],
            };
            let changed = files.into_iter().flatten();
            accesses.extend(changed.map(|file| Access::change(Object::Attributes(file))));
            // A file that others can know only by its name is told by that.
            if let OpKind::Create { .. } = kind {
                accesses.retain(|access| !matches!(access.object, Object::Content(_)));
            }
        }
        let waits = match &pending.preview {
            _ if pending.without_wait.is_some() => Waits::ForLock,
            Some(OpKind::Lock { action, .. }) if *action != LockAction::Unlock => Waits::Never,
            _ => lets_go(&accesses),
        };
        Touch::new(accesses, waits)
    }

    /// Lets the next step be made where all programs stand; returns whether one has to look again before there is news.
    pub(super) fn take_steps(&mut self) -> bool {
        loop {
            if self.killed || self.threads.is_empty() {
                return false;
            }
            if self.inside.is_some() || !self.all_stand() {
                return true;
            }
            let doomed = |program: &crate::trace::tracer::Running| program.doomed.is_some();
            if self.programs.iter().any(doomed)
                && self.threads.values().any(|thread| doomed(&self.programs[thread.program]))
            {
                // It is about to end.
                return true;
            }
            if self.look_again_at_gates() {
                // Who need not be held any more runs on.
                continue;
            }
            let turn = self.ask_director();
            match turn {
                Turn::Go(program) => self.make_step(program),
                Turn::Kill(program) => {
                    self.doom(program, Some(Exit::Killed));
                    return true;
                }
                Turn::End => {
                    let last = self.threads.keys().next().copied().unwrap_or(0);
                    self.kill_all(last);
                    return true;
                }
            }
        }
    }

    fn ask_director(&mut self) -> Turn {
        let mut stands = Vec::new();
        for program in 0..self.programs.len() {
            let mut threads = self.threads.iter().filter(|(_, thread)| thread.program == program);
            let gate = self.threads.values().filter(|thread| thread.program == program);
            let gate = gate.filter_map(|thread| match &thread.state {
                State::AtGate(_, gate) => Some(gate),
                _ => None,
            });
            stands.push(match gate.into_iter().next() {
                Some(gate) => {
                    let waits_for = gate.wants.as_ref().and_then(|lock| self.holder(program, lock));
                    Stand::At { intent: &gate.intent, waits_for }
                }
                None if threads.next().is_some() => Stand::Sleeps,
                None => Stand::Ended,
            });
        }
        self.director.turn(&stands)
    }

    /// Another program that keeps this one from taking a lock.
    fn holder(&self, program: usize, wanted: &Lock) -> Option<usize> {
        if !self.world.locked.iter().any(|(file, _)| *file == wanted.file) {
            return None;
        }
        let mut others: Vec<(usize, i32)> = self
            .threads
            .values()
            .filter(|thread| thread.program != program)
            .map(|thread| (thread.program, thread.process))
            .collect();
        others.dedup();
        let excludes = |lock: &Lock| lock.excludes(wanted);
        let holds = |process: i32| self.world.locks.of(&self.world, process).iter().any(excludes);
        others.into_iter().find(|(_, process)| holds(*process)).map(|(program, _)| program)
    }

    /// What a step touches can be another file, since others have made steps: it is asked again. Whether that was to be done.
    fn look_again_at_gates(&mut self) -> bool {
        let Some(stepped) = self.steps.last.take() else { return false };
        let now = self.steps.changes;
        let affected: Vec<Tid> = self
            .threads
            .iter()
            .filter(|(_, thread)| match &thread.state {
                State::AtGate(_, gate) => {
                    gate.decoded_at != now && gate.intent.touch.conflicts(&stepped)
                }
                _ => false,
            })
            .map(|(tid, _)| *tid)
            .collect();
        let any = !affected.is_empty();
        for tid in affected {
            if let Some(State::AtGate(stop, _)) = self
                .threads
                .get_mut(&tid)
                .map(|thread| std::mem::replace(&mut thread.state, State::Running))
            {
                self.entered(stop);
            }
        }
        any
    }

    fn make_step(&mut self, program: usize) {
        let at_gate = |thread: &crate::trace::tracer::Thread| {
            thread.program == program && matches!(thread.state, State::AtGate(..))
        };
        let Some(tid) =
            self.threads.iter().find(|(_, thread)| at_gate(thread)).map(|(tid, _)| *tid)
        else {
            return;
        };
        let state = self
            .threads
            .get_mut(&tid)
            .map(|thread| std::mem::replace(&mut thread.state, State::Running));
        let Some(State::AtGate(stop, gate)) = state else { return };
        self.steps.last = Some(gate.intent.touch.clone());
        self.steps.looks = 0;
        match gate.call {
            Some((entry, pending)) if gate.decoded_at == self.steps.changes => {
                self.steps.made = Some((tid, gate.intent));
                self.has_its_turn(stop, pending, &entry);
            }
            _ => {
                self.steps.admitted = Some(tid);
                self.entered(stop);
                self.steps.admitted = None;
            }
        }
    }

    /// Every program stands, sleeps, or has ended.
    fn all_stand(&mut self) -> bool {
        let programs = self.programs.len();
        (0..programs).all(|program| self.stands(program))
    }

    fn stands(&mut self, program: usize) -> bool {
        let mut at_gate = false;
        let mut others = Vec::new();
        for (tid, thread) in self.threads.iter().filter(|(_, thread)| thread.program == program) {
            match &thread.state {
                // With the first process of a container the kernel ends the others: the news is on the way.
                State::AtGate(..) if self.world.containers && !blocked::stands_still(*tid) => {
                    return false;
                }
                State::AtGate(..) => at_gate = true,
                State::Running => others.push(*tid),
                State::InCall(pending) if !pending.alone => others.push(*tid),
                _ => return false,
            }
        }
        if others.is_empty() {
            return true;
        }
        // One that computes needs time, and looking at it costs more.
        if !at_gate && self.steps.looks < PATIENCE {
            return false;
        }
        let sleeps = |tid: &Tid| match at_gate {
            true => blocked::sleeps(*tid) || blocked::waits_for_others(*tid),
            false => blocked::waits_for_others(*tid) || blocked::waits_for_data(*tid),
        };
        // Whom one of the later ones has woken shows it by then.
        let all_sleep =
            others.iter().all(sleeps) && (others.len() == 1 || others.iter().all(sleeps));
        // News of its end is on the way. Asked last: who has ended meanwhile looks as if it waited to be collected.
        let has_ended = |tid: &Tid| matches!(blocked::state(*tid), Some('Z' | 'X') | None);
        all_sleep && !others.iter().any(has_ended)
    }

    /// Nothing is new: lets the programs have the processor.
    pub(super) fn look_later(&mut self) {
        self.steps.looks = self.steps.looks.saturating_add(1);
        match self.steps.looks < PATIENCE {
            true => std::thread::yield_now(),
            false => std::thread::sleep(crate::trace::tracer::PAUSE),
        }
    }

    /// There is news.
    pub(super) fn has_news(&mut self) {
        self.steps.looks = 0;
    }

    /// Whether a sleep is to be over at once: of a process with one thread, where the director says so.
    pub(super) fn cuts_sleep(&mut self, tid: Tid, call: Call) -> bool {
        let sleeps = matches!(call, Call::Nanosleep | Call::ClockNanosleep);
        if !sleeps || self.killed || self.has_siblings(tid) {
            return false;
        }
        let program = self.threads[&tid].program;
        self.director.slept(program)
    }
}

/// Whether a step that takes no lock lets one go.
fn lets_go(accesses: &[Access]) -> Waits {
    let goes =
        |access: &Access| matches!(access.object, Object::Lock(..)) && access.how != How::Look;
    if accesses.iter().any(goes) { Waits::LetsGo } else { Waits::Never }
}

/// A step in words.
fn text(pending: &Pending, entry: &Entry) -> String {
    let path = |path: &Option<std::path::PathBuf>| match path {
        Some(path) if path.as_os_str().is_empty() => ".".to_owned(),
        Some(path) => path.display().to_string(),
        None => String::new(),
    };
    match (&pending.preview, pending.call) {
        (Some(kind), call) => {
            let op = Op { number: 0, call: call.name().to_owned(), kind: kind.clone() };
            let word = match kind {
                OpKind::Create { .. } => "create",
                OpKind::Lock { family: LockFamily::Flock, .. } => "flock",
                kind => kind.word(),
            };
            format!("{word} {}", line::short(&op))
        }
        (None, call) => {
            let word = match call {
                Call::Open | Call::Openat | Call::Openat2 | Call::Creat => "open",
                Call::Read | Call::Readv | Call::Pread64 | Call::Preadv | Call::Preadv2 => "read",
                Call::Stat | Call::Lstat | Call::Newfstatat | Call::Statx => "stat",
                Call::Access | Call::Faccessat | Call::Faccessat2 => "access",
                Call::Readlink | Call::Readlinkat => "readlink",
                Call::Getdents | Call::Getdents64 => "list",
                Call::Fcntl => "getlk",
                Call::Kill => return format!("is process {} alive?", entry.args[0] as i32),
                call => call.name(),
            };
            format!("{word} {}", path(&pending.path))
        }
    }
    .trim_end()
    .to_owned()
}
