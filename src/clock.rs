//! The one place that tells the time, so that a test can fix it.

use std::time::{Duration, Instant};

use jiff::fmt::temporal::DateTimePrinter;
use jiff::{Timestamp, Unit};

/// Where the time comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The machine's clock.
    System,
    /// Always this moment; durations measured with it are zero.
    Fixed(Timestamp),
}

impl Clock {
    /// The moment, in whole milliseconds.
    pub fn now(&self) -> Timestamp {
        let now = match self {
            Clock::System => Timestamp::now(),
            Clock::Fixed(moment) => *moment,
        };
        // Rounding fails only at the ends of the range of years, where the exact moment does as well.
        now.round(Unit::Millisecond).unwrap_or(now)
    }

    /// Starts to measure a duration.
    pub fn stopwatch(&self) -> Stopwatch {
        Stopwatch {
            started: match self {
                Clock::System => Some(Instant::now()),
                Clock::Fixed(_) => None,
            },
        }
    }
}

/// A duration being measured, on the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch {
    started: Option<Instant>,
}

impl Stopwatch {
    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started.map_or(Duration::ZERO, |started| started.elapsed())
    }

    /// Whole milliseconds since the start.
    pub fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// RFC 3339 in UTC with three digits of fraction: every moment has the same width.
pub fn rfc3339(moment: Timestamp) -> String {
    const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));
    PRINTER.timestamp_to_string(&moment)
}

/// Age of something that happened at `then`; zero where the clock was set back since.
pub fn age(now: Timestamp, then: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(then)).unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_have_one_width_and_end_in_z() {
        let whole: Timestamp = "2026-03-01T00:00:00Z".parse().unwrap();
        let fine: Timestamp = "2026-03-01T00:00:00.123999Z".parse().unwrap();
        assert_eq!(rfc3339(Clock::Fixed(whole).now()), "2026-03-01T00:00:00.000Z");
        assert_eq!(rfc3339(Clock::Fixed(fine).now()), "2026-03-01T00:00:00.124Z");
    }

    #[test]
    fn a_clock_that_was_set_back_gives_age_zero() {
        let now: Timestamp = "2026-03-01T00:00:00Z".parse().unwrap();
        let later: Timestamp = "2026-03-02T00:00:00Z".parse().unwrap();
        assert_eq!(age(now, later), Duration::ZERO);
        assert_eq!(age(later, now), Duration::from_secs(86_400));
    }
}
