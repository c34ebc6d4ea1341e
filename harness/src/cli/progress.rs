//! How far a run is, for people who wait for it.

use std::io::{IsTerminal, Write as _};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::progress::{Counts, Progress};

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

/// The time left is what all took so far, for what is left of it: of the scenarios, where there are several. `None` while
/// they are built.
fn told(counts: Counts, elapsed: Duration) -> Option<String> {
    let Counts { scenarios, scenarios_done, planned, done } = counts;
    let (parts, ended) = if scenarios > 1 { (scenarios, scenarios_done) } else { (planned, done) };
    let mut told = match scenarios {
        0 => return None,
        1 => String::new(),
        _ => format!("{scenarios_done} of {scenarios} scenarios, "),
    };
    told += &match planned {
        0 => "recording".to_owned(),
        _ => format!("{done} of {planned} distinct states"),
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
        let told = |scenarios, scenarios_done, planned, done| {
            let counts = Counts { scenarios, scenarios_done, planned, done };
            told(counts, Duration::from_secs(10)).unwrap_or_default()
        };
        assert_eq!(told(0, 0, 0, 0), "");
        assert_eq!(told(1, 0, 0, 0), "recording");
        assert_eq!(told(1, 0, 30, 0), "0 of 30 distinct states");
        assert_eq!(told(1, 0, 30, 10), "10 of 30 distinct states, about 20 s left");
        assert_eq!(told(5, 0, 3, 1), "0 of 5 scenarios, 1 of 3 distinct states");
        assert_eq!(told(5, 2, 3, 1), "2 of 5 scenarios, 1 of 3 distinct states, about 15 s left");
    }
}
