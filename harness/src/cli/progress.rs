//! How far a run is, for people who wait for it.

use std::io::{IsTerminal, Write as _};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::progress::{Counts, Progress};
use crate::wrap::thousands;

/// A run that is over sooner needs no word on its way.
const TELL_AFTER: Duration = Duration::from_secs(2);
const TELL_EVERY: Duration = Duration::from_millis(200);

/// Does the work, and tells how far it is on standard error, if that is a terminal and it takes its time.
pub(super) fn watched<T>(progress: &Progress, work: impl FnOnce() -> T) -> T {
    if !std::io::stderr().is_terminal() {
        return work();
    }
    let (ended, waits) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let begun = Instant::now();
            let mut pause = TELL_AFTER;
            while let Err(mpsc::RecvTimeoutError::Timeout) = waits.recv_timeout(pause) {
                pause = TELL_EVERY;
                if let Some(told) = told(progress.counts(), begun.elapsed()) {
                    _ = write!(std::io::stderr(), "\r\x1b[K{told}");
                }
            }
            _ = write!(std::io::stderr(), "\r\x1b[K");
        });
        let result = work();
        drop(ended);
        result
    })
}

/// The time left is what all took so far, for what is left of it: of the scenarios, where there are several. Of a race alone
/// nobody knows it: its schedules make more of them known. `None` while they are built.
fn told(counts: Counts, elapsed: Duration) -> Option<String> {
    let Counts { scenarios, scenarios_done, planned, done, schedules, due } = counts;
    let (parts, ended) = if scenarios > 1 { (scenarios, scenarios_done) } else { (planned, done) };
    let mut told = match scenarios {
        0 => return None,
        1 => String::new(),
        _ => format!("{scenarios_done} of {scenarios} scenarios, "),
    };
    let states = |of: &str| format!("{done} of {planned} {of}");
    told += &match (planned, schedules) {
        (0, 0) => "recording".to_owned(),
        (_, 0) => states("distinct states"),
        (0, _) if scenarios == 1 => {
            let due = thousands(due);
            format!("{} schedules tried, {due} more known to be due", thousands(schedules))
        }
        (0, _) => format!("{} schedules", thousands(schedules)),
        (..) => format!("{}, {} schedules", states("states"), thousands(schedules)),
    };
    if ended > 0 {
        let left = elapsed.as_secs_f64() / ended as f64 * parts.saturating_sub(ended) as f64;
        told += &format!(", about {left:.0} s left");
    }
    Some(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_in_words() {
        let told = |counts| told(counts, Duration::from_secs(10)).unwrap_or_default();
        let none = Counts { scenarios: 1, ..Counts::default() };
        let of_states = |planned, done| Counts { planned, done, ..none };
        let of_scenarios =
            |scenarios_done, states: Counts| Counts { scenarios: 5, scenarios_done, ..states };
        assert_eq!(told(Counts::default()), "");
        assert_eq!(told(none), "recording");
        assert_eq!(told(of_states(30, 0)), "0 of 30 distinct states");
        assert_eq!(told(of_states(30, 10)), "10 of 30 distinct states, about 20 s left");
        assert_eq!(
            told(of_scenarios(0, of_states(3, 1))),
            "0 of 5 scenarios, 1 of 3 distinct states"
        );
        assert_eq!(
            told(of_scenarios(2, of_states(3, 1))),
            "2 of 5 scenarios, 1 of 3 distinct states, about 15 s left"
        );
        let race = Counts { schedules: 1200, due: 34, ..none };
        assert_eq!(told(race), "1,200 schedules tried, 34 more known to be due");
        assert_eq!(told(of_scenarios(0, race)), "0 of 5 scenarios, 1,200 schedules");
        assert_eq!(
            told(of_scenarios(2, Counts { planned: 3, done: 1, ..race })),
            "2 of 5 scenarios, 1 of 3 states, 1,200 schedules, about 15 s left"
        );
    }
}
