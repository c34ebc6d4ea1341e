//! The way of a program from its first instruction to the first call that need not come to the same in every run.

use std::cell::Cell;
use std::path::Path;
use std::{fs, io};

use super::calls_before::{self, Sort};
use super::ways::{Way, Ways};
use crate::sys::ptrace::{self, Entry, News, Phase, Stopped, Why};
use crate::trace::MARKS;
use crate::trace::resolve::View;
use crate::trace::tracer::executable;
use crate::watched::Watched;

/// What came of bringing a program to where its copies begin.
pub(super) enum Brought<T> {
    /// There it stands.
    Stands(T),
    /// It knew its number by then, or how its folder looks.
    Asked,
    /// It ended, was signalled, or its time was over.
    Lost,
}

/// Where a program stands.
pub(super) struct Place {
    /// After a call that was none, in place of the one that comes next.
    pub(super) stop: Stopped,
    /// Its registers there.
    pub(super) registers: libc::user_regs_struct,
    /// That call.
    pub(super) next: Entry,
}

/// A program on its way.
pub(super) struct Journey<'a> {
    watched: &'a Watched,
    ways: Ways<'a>,
    /// Whether a watched file is the same in all runs.
    is_same: &'a dyn Fn(&Path) -> bool,
    /// It may ask who it is and how its folder looks, if it becomes another program before it stands.
    may_ask: bool,
    asked: bool,
    /// Where its C library may keep its thread's number.
    pub(super) tid_address: u64,
    /// The list of robust locks that it has told the kernel of.
    pub(super) robust_list: Option<[u64; 2]>,
}

impl<'a> Journey<'a> {
    /// One that begins. `is_same`: whether a watched file is the same in all runs.
    pub(super) fn of(
        tid: i32,
        watched: &'a Watched,
        is_same: &'a dyn Fn(&Path) -> bool,
        may_ask: bool,
    ) -> Journey<'a> {
        Journey {
            watched,
            ways: Ways::of(tid, watched),
            is_same,
            may_ask,
            asked: false,
            tid_address: 0,
            robust_list: None,
        }
    }

    /// Follows a program from its first instruction.
    ///
    /// # Errors
    ///
    /// The kernel's answer to a wait.
    pub(super) fn follow(&mut self, mut stop: Stopped) -> io::Result<Brought<Box<Place>>> {
        let tid = stop.tid();
        loop {
            if stop.go_to_exit().is_err() {
                return Ok(Brought::Lost);
            }
            stop = match ptrace::wait(tid, true)? {
                News::Stop(stop, Why::Exec(_)) if self.is_past(&executable(tid)) => {
                    // Nothing of what it knew is left.
                    (self.asked, self.tid_address, self.robust_list) = (false, 0, None);
                    stop
                }
                News::Stop(stop, Why::Exit | Why::Entry) => match stop.phase() {
                    Ok(Phase::Entry(entry)) if !self.passes(tid, &entry) => {
                        return self.arrive(stop, entry);
                    }
                    Ok(_) => stop,
                    Err(_) => return Ok(Brought::Lost),
                },
                _ => return Ok(Brought::Lost),
            };
        }
    }

    /// The program stands before a call that is its copies'.
    fn arrive(&self, stop: Stopped, next: Entry) -> io::Result<Brought<Box<Place>>> {
        if self.asked || self.may_ask && !names_itself_nowhere(stop.tid()) {
            return Ok(Brought::Asked);
        }
        let Some(registers) = stop.registers() else { return Ok(Brought::Lost) };
        if stop.make_none(libc::ENOSYS).is_err() {
            return Ok(Brought::Lost);
        }
        Ok(match to_exit(stop, |_| {})? {
            Some((stop, _)) => Brought::Stands(Box::new(Place { stop, registers, next })),
            None => Brought::Lost,
        })
    }

    /// Whether a call comes to the same in every run.
    fn passes(&mut self, tid: i32, entry: &Entry) -> bool {
        let number = entry.number as i64;
        if number == libc::SYS_set_tid_address {
            self.tid_address = entry.args[0];
        } else if number == libc::SYS_set_robust_list {
            self.robust_list = Some([entry.args[0], entry.args[1]]);
        }
        match calls_before::sort(entry) {
            Sort::Same => true,
            Sort::Looks(path) => self.looks_past(tid, path),
            Sort::AsksWho => {
                self.asked |= self.may_ask;
                self.may_ask
            }
            Sort::Other => false,
        }
    }

    fn looks_past(&mut self, tid: i32, path: calls_before::Path) -> bool {
        let lost = Cell::new(false);
        let view = View { tid, watched: self.watched, lost: &lost, passed: None };
        // A path that cannot be read is EFAULT, in every run.
        let Some(text) = view.path_at(path.address) else { return true };
        if text.as_os_str().is_empty() {
            // The empty path is nowhere, or what the descriptor is of, which was looked at when it was opened.
            return path.folder != libc::AT_FDCWD || !path.may_be_empty;
        }
        let Some(whole) = view.absolute(path.folder, &text) else { return false };
        match self.ways.lead(&whole, path.follow) {
            Way::Outside => !text.starts_with(MARKS),
            // Shells look whether they are where they were told to be.
            Way::Watched(file) if file.as_os_str().is_empty() && path.from_outside => {
                self.asked |= self.may_ask;
                self.may_ask
            }
            Way::Watched(file) => (self.is_same)(&file),
            Way::Own => false,
        }
    }

    /// Whether what an absolute path leads to is the same in every run.
    pub(super) fn is_past(&mut self, whole: &Path) -> bool {
        match self.ways.lead(whole, true) {
            Way::Outside => true,
            Way::Watched(file) => (self.is_same)(&file),
            Way::Own => false,
        }
    }
}

/// No argument and no variable holds the number of the process, which a shell could have put there.
fn names_itself_nowhere(tid: i32) -> bool {
    let number = tid.to_string();
    ["cmdline", "environ"].iter().all(|file| {
        let Ok(text) = fs::read(format!("/proc/{tid}/{file}")) else { return false };
        !text.windows(number.len()).any(|window| window == number.as_bytes())
    })
}

/// Lets a thread that was made to enter a call do so, up to its exit, and tells of whom it made; `None` where it did
/// anything else.
///
/// # Errors
///
/// The kernel's answer to a wait.
pub(super) fn to_exit(
    mut stop: Stopped,
    mut made: impl FnMut(i32),
) -> io::Result<Option<(Stopped, i64)>> {
    let tid = stop.tid();
    loop {
        if stop.go_to_exit().is_err() {
            return Ok(None);
        }
        stop = match ptrace::wait(tid, true)? {
            News::Stop(stop, Why::Made(child)) => {
                made(child);
                stop
            }
            News::Stop(stop, Why::Exit | Why::Entry) => match stop.phase() {
                Ok(Phase::Exit(result)) => return Ok(Some((stop, result))),
                Ok(_) => stop,
                Err(_) => return Ok(None),
            },
            _ => return Ok(None),
        };
    }
}
