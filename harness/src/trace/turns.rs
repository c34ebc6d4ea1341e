//! Who may go on: one change at a time, and programs as their director wants it.

use crate::op::OpKind;
use crate::sys::ptrace::{Entry, Stopped, Tid};
use crate::sys::{memory, seccomp};
use crate::trace::calls::Call;
use crate::trace::decode::{Ask, Pending};
use crate::trace::elsewhere::Reach;
use crate::trace::tracer::{State, Tracer, stronger};
use crate::trace::world::Done;
use crate::trace::{Standing, Step, blocked, budget};

/// Results that mean "interrupted, will be entered again": no result at all.
const RESTARTS: [i64; 4] = [-512, -513, -514, -516];

impl Tracer<'_> {
    /// A thread stands in front of a call that the filter traps.
    pub(super) fn entered(&mut self, stop: Stopped) {
        let tid = stop.tid();
        let thread = &self.threads[&tid];
        let (program, process) = (thread.program, thread.process);
        let step = stronger(self.flush_mappings(), self.unless_disk_is_full());
        if step == Step::KillAll {
            return self.follow(stop, step);
        }
        let running = &mut self.programs[program];
        running.held |= step == Step::Hold;
        if running.held || running.doomed.is_some() || self.is_leaving(program, process) {
            return self.wait_at_entry(stop);
        }
        let Ok(entry) = stop.entry() else { return };
        if entry.data == seccomp::FOREIGN {
            self.gap_once("a call of another processor's table, which is not decoded", None);
            self.world.descriptors.get_mut().forget_all();
            return self.go(stop, 0);
        }
        let Some(call) = Call::from_number(entry.number) else {
            return self.go(stop, 0);
        };
        if let Some(what) = self.aims_outside(tid, call, &entry.args) {
            self.gap_once(&what, None);
            self.set(tid, State::Running);
            let _ = stop.refuse(libc::EPERM);
            return;
        }
        if self.world.fence.is_some() && self.reaches(tid, call, &entry.args) == Reach::Refused {
            self.set(tid, State::Running);
            let _ = stop.refuse(libc::EROFS);
            return;
        }
        self.world.descriptors.get_mut().before(process, call, &entry.args);
        match call {
            Call::Clone | Call::Clone3 => {
                keep_traced(&stop, call, &entry);
                return self.go(stop, 0);
            }
            Call::Nanosleep | Call::ClockNanosleep if self.cuts_sleep(tid, call) => {
                self.set(tid, State::Running);
                let _ = stop.refuse(0);
                return;
            }
            _ => {}
        }
        let stop = match call {
            Call::ExitGroup => match self.stands_before_end(stop) {
                Some(stop) => stop,
                None => return,
            },
            _ => stop,
        };
        match call {
            Call::ExitGroup if self.is_first(program, process) => {
                // With it the kernel ends all others of its container.
                let inside = self.inside.and_then(|inside| self.threads.get(&inside));
                if inside.is_some_and(|other| other.program == program) {
                    return self.wait_at_entry(stop);
                }
                self.leaving.insert(process);
                self.has_stepped(tid, 0);
                return self.go(stop, 0);
            }
            Call::ExitGroup | Call::Execve | Call::Execveat if self.has_siblings(tid) => {
                // It ends its siblings: not in the middle of a change, and not before one that could still begin.
                let inside = self.inside.and_then(|inside| self.threads.get(&inside));
                if inside.is_some_and(|sibling| sibling.process == process) {
                    return self.wait_at_entry(stop);
                }
                self.leaving.insert(process);
            }
            Call::ExitGroup => {
                self.has_stepped(tid, 0);
                return self.go(stop, 0);
            }
            Call::Execve | Call::Execveat => return self.go(stop, 0),
            _ => {}
        }
        self.attend(stop, call, &entry);
    }

    /// Lets a call run on that is of no interest, and any other in when it is its turn.
    fn attend(&mut self, stop: Stopped, call: Call, entry: &Entry) {
        let tid = stop.tid();
        let process = self.threads[&tid].process;
        let decoded = Ask { tid, process, call, args: entry.args, world: &self.world }.decode();
        if self.world.lost.take() {
            self.gap_once(
                "below a path of more than 4096 bytes, which the kernel does not tell",
                None,
            );
        }
        let lost = self.unless_lost();
        let Some((stop, decoded)) = self.stands_before(stop, decoded, entry) else { return };
        match decoded {
            _ if lost == Step::KillAll => self.follow(stop, lost),
            None => {
                if self.world.fence.is_none() {
                    self.reaches(tid, call, &entry.args);
                }
                self.go(stop, 0)
            }
            Some(pending) => self.has_its_turn(stop, pending, entry),
        }
    }

    /// Lets a call of interest in.
    pub(super) fn has_its_turn(&mut self, stop: Stopped, pending: Pending, entry: &Entry) {
        if pending.alone && self.inside.is_some() {
            self.wait_at_entry(stop);
        } else if pending.preview.as_ref().map_or(0, budget::kept) > self.world.room {
            let step = self.wrote_too_much();
            self.follow(stop, step);
        } else {
            self.let_in(stop, pending, entry);
        }
    }

    /// It is the first process of a container.
    pub(super) fn is_first(&self, program: usize, process: i32) -> bool {
        self.world.containers && self.programs[program].main == process
    }

    /// It is about to be ended by another thread, or with its container.
    fn is_leaving(&self, program: usize, process: i32) -> bool {
        let main = self.programs[program].main;
        self.leaving.contains(&process) || self.world.containers && self.leaving.contains(&main)
    }

    pub(super) fn has_siblings(&self, tid: Tid) -> bool {
        let process = self.threads[&tid].process;
        self.threads.iter().any(|(other, thread)| *other != tid && thread.process == process)
    }

    fn wait_at_entry(&mut self, stop: Stopped) {
        let tid = stop.tid();
        self.set(tid, State::AtEntry(stop));
        self.queue.push_back(tid);
    }

    fn let_in(&mut self, stop: Stopped, mut pending: Pending, entry: &Entry) {
        let tid = stop.tid();
        if pending.alone {
            self.inside = Some(tid);
        } else {
            // Others make their steps while it is inside.
            self.has_stepped(tid, 0);
        }
        if let Some(kind) = &pending.preview
            && !self.killed
        {
            let program = self.threads[&tid].program;
            let shortened = self.director.before(program, self.last_op + 1, kind);
            if let (Some(len), OpKind::Write { .. }) = (shortened, kind) {
                pending.restore = shorten(&stop, pending.call, entry, len as u64);
            }
        }
        if let Some(lock) = &pending.without_wait {
            let _ = stop.set_argument(lock.argument, lock.value);
            pending.entry = Some(*entry);
        }
        self.set(tid, State::InCall(pending));
        let _ = stop.go_to_exit();
    }

    /// A thread stands after a call.
    pub(super) fn exited(&mut self, stop: Stopped) {
        let tid = stop.tid();
        let state = self
            .threads
            .get_mut(&tid)
            .map(|thread| std::mem::replace(&mut thread.state, State::Running));
        match state {
            Some(State::InCall(pending)) if !pending.alone && self.inside.is_some() => {
                self.set(tid, State::AtExit(stop, pending));
                self.queue.push_back(tid);
            }
            Some(State::InCall(pending)) => self.leave(stop, pending),
            _ => self.go(stop, 0),
        }
    }

    fn leave(&mut self, stop: Stopped, pending: Pending) {
        let tid = stop.tid();
        if self.inside == Some(tid) {
            self.inside = None;
        }
        self.has_changed();
        let Ok(result) = stop.result() else { return };
        if let Some((address, before)) = pending.restore {
            let _ = stop.poke(address, before);
        }
        if RESTARTS.contains(&result) {
            return self.go(stop, 0);
        }
        if let (Some(lock), Some(entry)) = (&pending.without_wait, &pending.entry)
            && [-libc::EAGAIN, -libc::EACCES].contains(&(result as i32))
        {
            self.has_not_stepped(tid);
            let _ = stop.enter_again(entry, lock.argument);
            return;
        }
        // An exec that comes back has failed, and its siblings live on.
        if matches!(pending.call, Call::Execve | Call::Execveat) {
            self.leaving.remove(&self.threads[&tid].process);
        }
        if pending.call.can_change_locks() {
            self.world.locks.forget();
        }
        let call = pending.call.name();
        let done = pending.finish(tid, result, &mut self.world);
        if let Some(stacks) = &mut self.stacks
            && done.iter().any(|done| matches!(done, Done::Op(_)))
        {
            stacks.take(&stop);
        }
        let mut step = self.settle(self.actor(tid), call, done);
        if let Some(stacks) = &mut self.stacks {
            stacks.leave();
        }
        self.has_stepped(tid, result);
        if step != Step::KillAll {
            step = stronger(step, self.flush_mappings());
        }
        self.follow(stop, step);
    }

    /// Gives their turn to those who wait for one.
    pub(super) fn admit(&mut self) {
        while self.inside.is_none() {
            let Some(index) = self.queue.iter().position(|tid| self.may_go_on(*tid)) else {
                return;
            };
            let Some(tid) = self.queue.remove(index) else {
                return;
            };
            let state = self
                .threads
                .get_mut(&tid)
                .map(|thread| std::mem::replace(&mut thread.state, State::Running));
            match state {
                Some(State::AtEntry(stop)) => self.entered(stop),
                Some(State::AtExit(stop, pending)) => self.leave(stop, pending),
                _ => {}
            }
        }
    }

    fn may_go_on(&self, tid: Tid) -> bool {
        self.threads.get(&tid).is_some_and(|thread| match thread.state {
            State::AtExit(..) => true,
            State::AtEntry(_) => {
                let program = &self.programs[thread.program];
                !program.held
                    && program.doomed.is_none()
                    && !self.is_leaving(thread.program, thread.process)
            }
            _ => false,
        })
    }

    /// Asks the director who goes on while nobody does; returns whether one has to look again before there is news.
    pub(super) fn give_turns(&mut self) -> bool {
        loop {
            let held =
                |program: &crate::trace::tracer::Running| program.held && program.end.is_none();
            if self.killed || !self.programs.iter().any(held) {
                return false;
            }
            let standings: Vec<Standing> =
                (0..self.programs.len()).map(|program| self.standing(program)).collect();
            if standings.contains(&Standing::Running) {
                return self.threads.values().any(|thread| waits(&thread.state));
            }
            let chosen = self
                .director
                .next(&standings)
                .filter(|program| standings.get(*program) == Some(&Standing::Held));
            for program in 0..self.programs.len() {
                if chosen.is_none_or(|chosen| chosen == program) {
                    self.release(program);
                }
            }
            self.admit();
        }
    }

    fn release(&mut self, program: usize) {
        self.programs[program].held = false;
        for thread in self.threads.values_mut().filter(|thread| thread.program == program) {
            match std::mem::replace(&mut thread.state, State::Running) {
                State::Held(stop) => drop(stop.go(0)),
                other => thread.state = other,
            }
        }
    }

    fn standing(&self, program: usize) -> Standing {
        let running = &self.programs[program];
        let threads = || self.threads.iter().filter(|(_, thread)| thread.program == program);
        if threads().next().is_none() {
            Standing::Ended
        } else if running.held {
            Standing::Held
        } else if threads().any(|(_, thread)| waits(&thread.state))
            && threads().all(|(tid, thread)| match &thread.state {
                state if waits(state) => blocked::sleeps(*tid),
                State::Running => blocked::waits_for_others(*tid),
                _ => false,
            })
        {
            Standing::Blocked
        } else {
            Standing::Running
        }
    }
}

fn waits(state: &State) -> bool {
    matches!(state, State::InCall(pending) if pending.may_wait)
}

/// A clone must not get away from the tracer.
fn keep_traced(stop: &Stopped, call: Call, entry: &Entry) {
    let untraced = libc::CLONE_UNTRACED as u64;
    if call == Call::Clone {
        let _ = stop.set_argument(0, entry.args[0] & !untraced);
        return;
    }
    // struct clone_args begins with its flags.
    if let Some(flags) =
        memory::read_u64(stop.tid(), entry.args[0]).filter(|flags| flags & untraced != 0)
    {
        let _ = stop.poke(entry.args[0], flags & !untraced);
    }
}

/// Makes the call write no more than `len` bytes; returns what to put back into memory afterwards.
fn shorten(stop: &Stopped, call: Call, entry: &Entry, len: u64) -> Option<(u64, u64)> {
    let count = match call {
        Call::Write | Call::Pwrite64 => 2,
        Call::CopyFileRange | Call::Splice => 4,
        Call::Sendfile => 3,
        Call::Writev | Call::Pwritev | Call::Pwritev2 => return shorten_vector(stop, entry, len),
        _ => return None,
    };
    let _ = stop.set_argument(count, len.min(entry.args[count]));
    None
}

/// The same for a vector: fewer pieces, and a shorter last one.
fn shorten_vector(stop: &Stopped, entry: &Entry, len: u64) -> Option<(u64, u64)> {
    let pieces = memory::read_iovecs(stop.tid(), entry.args[1], entry.args[2]);
    let mut left = len;
    for (index, (_, piece)) in pieces.iter().enumerate() {
        if *piece >= left {
            let address = entry.args[1] + 16 * index as u64 + 8;
            let _ = stop.poke(address, left);
            let _ = stop.set_argument(2, index as u64 + 1);
            return Some((address, *piece));
        }
        left -= piece;
    }
    None
}
