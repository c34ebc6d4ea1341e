//! Threads and processes: how they begin, become other programs, and end.

use crate::op::{Actor, What};
use crate::subject::Exit;
use crate::sys::ptrace::{Stopped, Tid};
use crate::trace::Step;
use crate::trace::released::released;
use crate::trace::tracer::{Doom, MOST_PROCESSES, State, Thread, Tracer, executable, stronger};

impl Tracer<'_> {
    /// Takes a new thread in. Its first stop can come before the news that its parent made it.
    pub(super) fn adopt(&mut self, tid: Tid, parent: Option<Tid>) {
        let (process, ppid) = family(tid);
        let known = |id: Tid| {
            self.threads.values().find(|thread| thread.process == id).map(|thread| thread.program)
        };
        let of_parent =
            parent.and_then(|parent| self.threads.get(&parent)).map(|thread| thread.program);
        // Where the parent is gone already, it has been killed together with its program.
        let doomed = || self.programs.iter().position(|program| program.doomed.is_some());
        let program = of_parent
            .or_else(|| known(process))
            .or_else(|| known(ppid))
            .or_else(doomed)
            .unwrap_or(0);
        self.threads.insert(tid, Thread { process, program, state: State::Running });
    }

    /// A thread has made another thread or process.
    pub(super) fn made(&mut self, stop: Stopped, child: Tid) {
        let tid = stop.tid();
        if !self.threads.contains_key(&child) {
            self.adopt(child, Some(tid));
        }
        let step = self.emit(self.actor(tid), What::Spawned { child });
        if step != Step::KillAll {
            self.begin(child);
        }
        let mut processes: Vec<i32> = self.threads.values().map(|thread| thread.process).collect();
        processes.sort_unstable();
        processes.dedup();
        if processes.len() > MOST_PROCESSES {
            self.gap(
                format!("more than {MOST_PROCESSES} processes at a time: the run was ended"),
                None,
            );
            return self.follow(stop, Step::KillAll);
        }
        self.follow(stop, step);
    }

    /// A new thread that has waited for the news that it was made runs on.
    fn begin(&mut self, child: Tid) {
        let Some(thread) = self.threads.get_mut(&child) else {
            return;
        };
        match std::mem::replace(&mut thread.state, State::Running) {
            State::Born(stop) => drop(stop.go(0)),
            other => thread.state = other,
        }
    }

    /// Those whose parent has died before it could tell that it made them.
    fn begin_orphans(&mut self) {
        let born = |thread: &Thread| matches!(thread.state, State::Born(_));
        let waiting: Vec<Tid> =
            self.threads.iter().filter(|(_, thread)| born(thread)).map(|(tid, _)| *tid).collect();
        for child in waiting {
            let (process, parent) = family(child);
            let maker =
                |thread: &Thread| [process, parent].contains(&thread.process) && !born(thread);
            if !self.threads.values().any(maker) {
                self.begin(child);
            }
        }
    }

    /// A process has become another program; its other threads are gone, also the one whose id it takes over.
    pub(super) fn executed(&mut self, stop: Stopped, former: Tid) {
        self.has_changed();
        let tid = stop.tid();
        let process = self.threads[&tid].process;
        let others: Vec<Tid> = self
            .threads
            .iter()
            .filter(|(other, thread)| thread.process == process && **other != tid)
            .map(|(other, _)| *other)
            .collect();
        for other in others {
            self.forget(other);
        }
        self.leaving.remove(&process);
        self.world.descriptors.get_mut().forget(process);
        self.world.locks.forget();
        if former != tid && self.inside == Some(tid) {
            self.inside = None;
        }
        self.queue.retain(|other| *other != tid);
        self.set(tid, State::Running);
        let path = executable(tid);
        self.check_privileges(tid, &path);
        let actor = self.actor(tid);
        let mut step = self.flush_mappings();
        step = stronger(step, self.emit(actor, What::Executed { path }));
        step = stronger(step, self.sweep(actor));
        self.prune_mappings();
        self.follow(stop, step);
    }

    fn prune_mappings(&mut self) {
        let living: Vec<Tid> = self.threads.keys().copied().collect();
        self.world.mappings.prune(true, living.into_iter());
    }

    /// Takes a thread out of all lists; a change that it was in the middle of may have been made in part.
    fn forget(&mut self, tid: Tid) -> Option<Thread> {
        let thread = self.threads.remove(&tid)?;
        self.has_changed();
        self.queue.retain(|other| *other != tid);
        if self.inside == Some(tid) {
            self.inside = None;
        }
        if let State::InCall(pending) | State::AtExit(_, pending) = &thread.state
            && pending.tells_failure
            && !pending.may_wait
        {
            self.gap(
                format!("a process ended inside {}", pending.call.name()),
                pending.path.clone(),
            );
        }
        Some(thread)
    }

    /// The locks of the process that was killed alone are free.
    fn release_locks(&mut self, actor: Actor) -> Step {
        let mut living: Vec<i32> = self.threads.values().map(|thread| thread.process).collect();
        living.dedup();
        let held = std::mem::take(&mut self.victims_locks);
        let done = released(&self.world, held, &living);
        self.settle(actor, "exit", done)
    }

    /// A thread has ended.
    pub(super) fn ended(&mut self, tid: Tid, exit: Exit) {
        // Before anything else: a parent that waits knows of the end as soon as this thread does.
        self.world.descriptors.get_mut().forget(tid);
        self.world.locks.forget();
        let actor = self.actor(tid);
        let Some(thread) = self.forget(tid) else {
            return;
        };
        let status = match exit {
            Exit::Code(code) => format!("exit {code}"),
            Exit::Signal(signal) => format!("signal {signal}"),
            other => other.to_string(),
        };
        let mut step = Step::Go;
        let process_lives = self.threads.values().any(|other| other.process == thread.process);
        if !process_lives {
            self.leaving.remove(&thread.process);
            step = self.flush_mappings();
            step = stronger(step, self.sweep(actor));
            self.prune_mappings();
            if self.victim == Some(thread.process) {
                step = stronger(step, self.release_locks(actor));
            }
        }
        self.begin_orphans();
        step = stronger(step, self.emit(actor, What::Ended { status }));
        let program = &mut self.programs[thread.program];
        if program.main == tid {
            let killed = program.reason.filter(|_| exit == Exit::Signal(libc::SIGKILL));
            program.end = Some((killed.unwrap_or(exit), program.begun.elapsed()));
            // What it left running ends with it, unless it was killed alone.
            if self.victim != Some(tid) {
                self.doom(thread.program, None);
            }
        }
        match step {
            Step::Go => {}
            Step::Hold => {
                self.programs[thread.program].held |=
                    self.programs[thread.program].doomed != Some(Doom::Sent)
            }
            Step::KillProcess(process) => self.kill_alone(process),
            Step::KillAll => self.kill_all(tid),
        }
    }
}

/// The process that a thread belongs to, and that one's parent.
fn family(tid: Tid) -> (i32, i32) {
    let text = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let field = |name| {
        let value = text.lines().find_map(|line: &str| line.strip_prefix(name));
        value.and_then(|value| value.trim().parse().ok())
    };
    (field("Tgid:").unwrap_or(tid), field("PPid:").unwrap_or(0))
}
