//! What the log tells about sessions and people. Pure.

use std::collections::HashMap;

use jiff::Timestamp;

use crate::log::{Cited, End, Ending, Entry, Event, Start};
use crate::store::Holder;

/// Turns the decisions of sessions and people whose process was killed before it could log their end into ends, where the checkpoint was
/// saved, and drops all others. `now` is the SHA-256 of the checkpoint as it is.
///
/// A decision names the checkpoint that it leads to. It was saved if that is what the next session or person found, or what is there now.
pub fn settle(entries: Vec<Entry>, now: Option<&str>) -> Vec<Entry> {
    let settled: Vec<Option<Event>> =
        (0..entries.len()).map(|at| settled_event(&entries[at..], now)).collect();
    let settled = entries.into_iter().zip(settled);
    settled.filter_map(|(Entry { time, .. }, event)| Some(Entry { time, event: event? })).collect()
}

/// The first of these entries once what follows it is known.
fn settled_event(entries: &[Entry], now: Option<&str>) -> Option<Event> {
    let (first, later) = entries.split_first()?;
    let (after, settled) = match &first.event {
        Event::Decision(end) => (end.after.as_deref(), Event::End(end.clone())),
        Event::Resolving(made) => (Some(made.after.as_str()), Event::Resolve(made.clone())),
        other => return Some(other.clone()),
    };
    let mut found_later = now;
    for entry in later {
        match (&entry.event, &settled) {
            (Event::End(end), Event::End(ours))
                if is_of(end, ours.pid, ours.session, ours.claim) =>
            {
                return None;
            }
            (Event::Resolve(made), Event::Resolve(ours)) if made == ours => return None,
            (Event::Start(start), _) => {
                found_later = start.before.as_deref();
                break;
            }
            // Of a session that had begun before ours was decided.
            (Event::Decision(other), _) => {
                found_later = other.before.as_deref();
                break;
            }
            (Event::Resolving(made) | Event::Resolve(made), _) => {
                found_later = Some(&made.before);
                break;
            }
            _ => {}
        }
    }
    (found_later == after).then_some(settled)
}

/// Whether an end is that of the session with this process, number and claim.
fn is_of(end: &End, pid: u32, session: u64, claim: Option<u64>) -> bool {
    (end.pid, end.session, end.claim) == (pid, session, claim)
}

/// One session, put together from its start and its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// Which of the entries its start is, or its end where the start is lost: the order of things, also where the clock was set back.
    pub index: usize,
    /// When it started.
    pub started: Timestamp,
    /// What it set out to do.
    pub start: Start,
    /// When and how it ended; `None` where it was killed, or runs.
    pub end: Option<(Timestamp, End)>,
}

impl SessionRecord {
    /// Whether its decision reached the checkpoint.
    pub fn recorded(&self) -> bool {
        matches!(&self.end, Some((_, end)) if end.choice != Ending::Failed)
    }

    /// Whether it has no end because one of the `holders`, who work on the checkpoint now, is still at it.
    pub fn runs(&self, holders: &[Holder]) -> bool {
        let is_this = |holder: &Holder| match (holder.claim, self.start.claim) {
            (None, None) => holder.pid.is_none_or(|pid| pid == self.start.pid),
            (holder, ours) => holder == ours,
        };
        self.end.is_none() && holders.iter().any(is_this)
    }
}

/// Sessions in the order of their starts. An end belongs to the last open start of the same process and number.
pub fn sessions(entries: &[Entry]) -> Vec<SessionRecord> {
    let mut sessions: Vec<SessionRecord> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        match &entry.event {
            Event::Start(start) => sessions.push(SessionRecord {
                index,
                started: entry.time,
                start: start.clone(),
                end: None,
            }),
            Event::End(end) => {
                let open = sessions.iter_mut().rev().find(|s| {
                    s.end.is_none() && is_of(end, s.start.pid, s.start.session, s.start.claim)
                });
                match open {
                    Some(session) => session.end = Some((entry.time, end.clone())),
                    // Its start was lost with a part of the log.
                    None => sessions.push(SessionRecord {
                        index,
                        started: entry.time,
                        start: Start {
                            session: end.session,
                            pid: end.pid,
                            claim: end.claim,
                            question: end.question.clone(),
                            before: end.before.clone(),
                        },
                        end: Some((entry.time, end.clone())),
                    }),
                }
            }
            _ => {}
        }
    }
    sessions
}

/// When each question was last handed to a person, unless the log says that it was resolved since.
pub fn waiting_since(entries: &[Entry]) -> HashMap<&str, Timestamp> {
    let mut since = HashMap::new();
    for entry in entries {
        match &entry.event {
            Event::End(end) if end.choice == Ending::Flag => {
                since.insert(end.question.as_str(), entry.time);
            }
            Event::Resolve(made) => {
                since.remove(made.question.as_str());
            }
            _ => {}
        }
    }
    since
}

/// Sessions in a row, up to the last one, that worked `question` and did not get it recorded: each forces the next to ask again.
/// A session that runs now, as the `holders` tell, is not counted. Where sessions work side by side, those of other questions are passed
/// over.
pub fn forced_retries(sessions: &[SessionRecord], question: &str, holders: &[Holder]) -> usize {
    let last_runs = sessions.last().is_some_and(|last| last.runs(holders));
    let passed_over = |session: &SessionRecord| {
        let other = session.start.claim.is_some() && session.start.question != question;
        other || (session.start.claim.is_some() && session.runs(holders))
    };
    sessions
        .iter()
        .rev()
        .skip(usize::from(last_runs))
        .filter(|session| !passed_over(session))
        .take_while(|session| session.start.question == question && !session.recorded())
        .count()
}

/// When a question was last answered, flagged or resolved.
pub fn last_progress(entries: &[Entry]) -> Option<Timestamp> {
    let last = entries.iter().rev().find(|entry| match &entry.event {
        Event::End(end) => end.choice != Ending::Failed,
        Event::Resolve(_) => true,
        _ => false,
    })?;
    Some(last.time)
}

/// The sections that the recorded answer to `question` cites, as they were when it was given.
pub fn cited_for<'a>(entries: &'a [Entry], question: &str) -> Option<&'a [Cited]> {
    entries.iter().rev().find_map(|entry| match &entry.event {
        Event::End(end) if end.choice == Ending::Answer && end.question == question => {
            Some(end.cited.as_slice())
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Resolution;

    fn at(second: i64, event: Event) -> Entry {
        Entry { time: Timestamp::from_second(second).unwrap(), event }
    }

    fn start(second: i64, session: u64, pid: u32, question: &str) -> Entry {
        at(
            second,
            Event::Start(Start {
                session,
                pid,
                claim: None,
                question: question.to_owned(),
                before: None,
            }),
        )
    }

    fn end(second: i64, session: u64, pid: u32, question: &str, choice: Ending) -> Entry {
        at(
            second,
            Event::End(End {
                session,
                pid,
                claim: None,
                question: question.to_owned(),
                before: None,
                after: None,
                choice,
                reason: None,
                cited: vec![],
                tokens_in: 0,
                tokens_out: 0,
                ms: 0,
            }),
        )
    }

    fn hashed(second: i64, event: Event, before: &str, after: &str) -> Entry {
        let mut entry = at(second, event);
        match &mut entry.event {
            Event::Start(start) => start.before = Some(before.to_owned()),
            Event::Decision(end) | Event::End(end) => {
                end.before = Some(before.to_owned());
                end.after = Some(after.to_owned());
            }
            _ => {}
        }
        entry
    }

    fn decision(second: i64, session: u64, pid: u32, after: &str) -> Entry {
        let Event::End(end) = end(second, session, pid, "q", Ending::Flag).event else {
            unreachable!()
        };
        hashed(second, Event::Decision(end), "h0", after)
    }

    #[test]
    fn a_decision_counts_where_it_was_saved_and_its_end_was_not_logged() {
        let began = hashed(1, start(1, 1, 7, "q").event, "h0", "");
        let decided = decision(2, 1, 7, "h1");
        let killed = vec![began.clone(), decided.clone()];

        // Killed after its save, or before it.
        let saved = settle(killed.clone(), Some("h1"));
        assert_eq!(waiting_since(&saved).get("q"), Timestamp::from_second(2).ok().as_ref());
        assert_eq!(settle(killed.clone(), Some("h0")), std::slice::from_ref(&began));
        assert_eq!(settle(killed.clone(), None), std::slice::from_ref(&began));

        // What the next one found counts, not what came of that.
        let next_found = |before| {
            let next = hashed(3, start(3, 1, 7, "q").event, before, "");
            let all = [killed.clone(), vec![next]].concat();
            sessions(&settle(all, Some("h1")))[0].recorded()
        };
        assert!(next_found("h1"));
        assert!(!next_found("h0"));

        // With its end in the log, the end alone counts.
        let ended = hashed(3, end(3, 1, 7, "q", Ending::Flag).event, "h0", "h1");
        let whole = [killed, vec![ended.clone()]].concat();
        assert_eq!(settle(whole, Some("h1")), [began, ended]);
    }

    /// Two sessions side by side: the second decides on what the first has saved, and had begun before.
    #[test]
    fn a_decision_counts_where_a_session_beside_it_found_it_saved() {
        let began = hashed(1, start(1, 1, 7, "q").event, "h0", "");
        let beside = hashed(2, start(2, 2, 8, "r").event, "h0", "");
        let decided = decision(3, 1, 7, "h1");
        let found = |before| {
            let Event::End(end) = end(4, 2, 8, "r", Ending::Flag).event else { unreachable!() };
            let next = hashed(4, Event::Decision(end), before, "h2");
            let log = vec![began.clone(), beside.clone(), decided.clone(), next];
            sessions(&settle(log, Some("h2")))[0].recorded()
        };
        assert!(found("h1"), "killed after its save");
        assert!(!found("h0"), "killed before it");
    }

    fn claimed(mut entry: Entry, number: u64) -> Entry {
        match &mut entry.event {
            Event::Start(start) => start.claim = Some(number),
            Event::Decision(end) | Event::End(end) => end.claim = Some(number),
            _ => {}
        }
        entry
    }

    #[test]
    fn sessions_of_equal_process_and_number_are_told_apart_by_their_claims() {
        // In two containers, each process 1.
        let sessions = sessions(&[
            claimed(start(1, 1, 1, "q"), 5),
            claimed(start(2, 1, 1, "r"), 6),
            claimed(end(3, 1, 1, "q", Ending::Answer), 5),
        ]);
        assert!(sessions[0].recorded() && !sessions[1].recorded());
        let holder = |claim| [Holder { pid: None, claim }];
        assert!(sessions[1].runs(&holder(Some(6))));
        assert!(!sessions[1].runs(&holder(Some(5))) && !sessions[1].runs(&holder(None)));
        assert!(!sessions[0].runs(&holder(Some(5))), "it has ended");
    }

    #[test]
    fn retries_of_a_question_are_counted_across_sessions_beside_it() {
        let log = [
            claimed(start(1, 1, 1, "q"), 1),
            claimed(start(2, 2, 2, "r"), 2),
            claimed(end(3, 2, 2, "r", Ending::Answer), 2),
            claimed(start(4, 2, 3, "q"), 3),
            claimed(start(5, 3, 4, "s"), 4),
        ];
        let all = sessions(&log);
        assert_eq!(forced_retries(&all, "q", &[]), 2);
        let running = [3, 4].map(|claim| Holder { pid: None, claim: Some(claim) });
        assert_eq!(forced_retries(&all, "q", &running), 1);
        assert_eq!(forced_retries(&all, "r", &[]), 0);
    }

    fn resolution(question: &str) -> Resolution {
        Resolution {
            question: question.to_owned(),
            note: String::new(),
            by: String::new(),
            before: "h1".to_owned(),
            after: "h2".to_owned(),
        }
    }

    fn resolve(second: i64, question: &str) -> Entry {
        at(second, Event::Resolve(resolution(question)))
    }

    #[test]
    fn a_persons_decision_counts_where_it_was_saved_and_that_was_not_logged() {
        let resolving = at(1, Event::Resolving(resolution("q")));
        let killed = vec![resolving.clone()];
        assert_eq!(settle(killed.clone(), Some("h2")), [resolve(1, "q")]);
        assert_eq!(settle(killed.clone(), Some("h1")), []);
        // Made once more after the kill.
        let again = vec![resolving.clone(), at(2, resolving.event.clone()), resolve(3, "q")];
        assert_eq!(settle(again, Some("h9")), [resolve(3, "q")]);
        let next = hashed(2, start(2, 1, 7, "r").event, "h2", "");
        assert_eq!(
            settle([killed, vec![next.clone()]].concat(), Some("h9")),
            [resolve(1, "q"), next]
        );
        let whole = vec![resolving, resolve(2, "q")];
        assert_eq!(settle(whole, Some("edited by hand since")), [resolve(2, "q")]);
    }

    #[test]
    fn a_killed_session_stays_open_also_when_its_process_id_comes_again() {
        let sessions = sessions(&[
            start(1, 1, 7, "q"),
            start(2, 1, 7, "q"),
            end(3, 1, 7, "q", Ending::Answer),
            end(4, 9, 9, "z", Ending::Answer),
        ]);
        assert_eq!(sessions.len(), 3);
        assert!(sessions[0].end.is_none());
        assert!(sessions[1].recorded());
        assert_eq!(sessions[2].start.question, "z");
    }

    #[test]
    fn retries_count_killed_and_failed_sessions_of_one_question_in_a_row() {
        let log = [
            start(1, 1, 1, "p"),
            start(2, 1, 2, "q"),
            start(3, 1, 3, "q"),
            end(4, 1, 3, "q", Ending::Failed),
            start(5, 1, 4, "q"),
        ];
        let all = sessions(&log);
        assert_eq!(forced_retries(&all, "q", &[]), 3);
        assert_eq!(forced_retries(&all, "q", &[Holder { pid: Some(4), claim: None }]), 2);
        assert_eq!(forced_retries(&all, "q", &[Holder { pid: None, claim: None }]), 2);
        // Someone else holds the lock: the last session was killed.
        assert_eq!(forced_retries(&all, "q", &[Holder { pid: Some(9), claim: None }]), 3);
        assert_eq!(forced_retries(&all, "p", &[]), 0);
        let recorded = [log.as_slice(), &[end(6, 1, 4, "q", Ending::Flag)]].concat();
        assert_eq!(forced_retries(&sessions(&recorded), "q", &[]), 0);
    }

    #[test]
    fn the_age_of_a_pending_question_counts_from_its_last_flag() {
        let log = [
            end(1, 1, 1, "q", Ending::Flag),
            resolve(2, "q"),
            end(3, 2, 1, "other", Ending::Answer),
        ];
        let at = |second| HashMap::from([("q", Timestamp::from_second(second).unwrap())]);
        assert_eq!(waiting_since(&log[..1]), at(1));
        assert_eq!(waiting_since(&log), HashMap::new());
        let again = [log.as_slice(), &[end(9, 3, 1, "q", Ending::Flag)]].concat();
        assert_eq!(waiting_since(&again), at(9));
    }

    #[test]
    fn progress_is_a_recorded_session_or_a_person() {
        let log = [
            end(1, 1, 1, "q", Ending::Answer),
            start(2, 2, 1, "r"),
            end(3, 2, 1, "r", Ending::Failed),
        ];
        assert_eq!(last_progress(&log), Timestamp::from_second(1).ok());
        let resolved = [log.as_slice(), &[resolve(5, "q")]].concat();
        assert_eq!(last_progress(&resolved), Timestamp::from_second(5).ok());
        assert_eq!(last_progress(&log[1..]), None);
    }
}
