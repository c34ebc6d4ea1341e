//! When a call that failed is tried again: exponential backoff with full jitter, and the provider's own wish.

use std::fmt::{self, Debug, Display};
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::error::{Seconds, Trouble};
use crate::clock::Clock;

/// The longest wait before the first retry; it doubles with each one.
const BACKOFF_FIRST: Duration = Duration::from_millis(500);
/// The longest wait of all.
const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// Time and chance, so that a test can do without both.
pub trait Pace: Debug {
    /// The moment, for the deadline.
    fn now(&self) -> Instant;

    /// The moment, for a date that a provider names.
    fn date(&self) -> Timestamp;

    /// Waits.
    fn sleep(&self, time: Duration);

    /// Any duration up to `max`, all of them equally likely.
    fn jitter(&self, max: Duration) -> Duration;
}

/// The machine's clocks, and real waiting.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealPace;

impl Pace for RealPace {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn date(&self) -> Timestamp {
        Clock::System.now()
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn jitter(&self, max: Duration) -> Duration {
        // The keys of the standard library's hash maps are random, and that is random enough to part clients from each other.
        let random = RandomState::new().hash_one(0_u8);
        max.mul_f64(random as f64 / u64::MAX as f64)
    }
}

/// Why there were no more tries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) trouble: Trouble,
    pub(super) tries: u32,
    /// Another try was allowed, but not in time.
    pub(super) gave_up: Option<GaveUp>,
}

/// A wait that would not have ended before the deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GaveUp {
    wait: Duration,
    left: Duration,
}

impl Display for GaveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GaveUp { wait, left } = *self;
        write!(
            f,
            "the next try would have to wait {}, and {} of the time limit are left",
            Seconds(wait),
            Seconds(left)
        )
    }
}

/// Tries until it succeeds, fails for good, has been tried again `retries` times, or the deadline comes too near. Each try is told how
/// much time is left.
pub(super) fn until<T>(
    pace: &dyn Pace,
    deadline: Instant,
    retries: u32,
    mut attempt: impl FnMut(Duration) -> Result<T, Trouble>,
) -> Result<T, Failure> {
    let left = || deadline.saturating_duration_since(pace.now());
    let mut tries = 0;
    loop {
        let trouble = match left() {
            Duration::ZERO => Trouble::TimedOut { limit: Duration::ZERO },
            left => match attempt(left) {
                Ok(done) => return Ok(done),
                Err(trouble) => trouble,
            },
        };
        tries += 1;
        if !trouble.may_pass() || tries > retries {
            return Err(Failure { trouble, tries, gave_up: None });
        }
        let backoff = pace.jitter(backoff_max(tries));
        let wait = trouble.retry_after().map_or(backoff, |asked| asked.max(backoff));
        let left = left();
        if wait >= left {
            return Err(Failure { trouble, tries, gave_up: Some(GaveUp { wait, left }) });
        }
        pace.sleep(wait);
    }
}

/// The longest wait after so many tries.
fn backoff_max(tries: u32) -> Duration {
    let factor = 2_u32.saturating_pow(tries.saturating_sub(1));
    BACKOFF_FIRST.saturating_mul(factor).min(BACKOFF_MAX)
}

/// `Retry-After`: seconds, or a date in one of the three forms of HTTP. What cannot be read is as good as none.
pub(super) fn retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    const DATES: [&str; 3] =
        ["%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];
    let text = text.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = DATES.iter().find_map(|form| DateTime::strptime(form, text).ok())?;
    let date = TimeZone::UTC.to_timestamp(date).ok()?;
    // A date that is over asks for no wait.
    Some(Duration::try_from(date.duration_since(now)).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Never waits, and always draws the longest wait.
    #[derive(Debug)]
    struct Script {
        start: Instant,
        slept: RefCell<Vec<Duration>>,
    }

    impl Script {
        fn new() -> Self {
            Script { start: Instant::now(), slept: RefCell::default() }
        }

        fn fail(&self, limit_s: u64, retries: u32, trouble: &Trouble) -> Failure {
            let deadline = self.start + Duration::from_secs(limit_s);
            until(self, deadline, retries, |_| Err::<(), _>(trouble.clone())).unwrap_err()
        }
    }

    impl Pace for Script {
        fn now(&self) -> Instant {
            self.start + self.slept.borrow().iter().sum::<Duration>()
        }

        fn date(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }

        fn sleep(&self, time: Duration) {
            self.slept.borrow_mut().push(time);
        }

        fn jitter(&self, max: Duration) -> Duration {
            max
        }
    }

    fn status(status: u16, retry_after_s: Option<u64>) -> Trouble {
        let retry_after = retry_after_s.map(Duration::from_secs);
        Trouble::Status { status, message: String::new(), retry_after }
    }

    #[test]
    fn waits_double_up_to_a_limit_and_tries_are_counted() {
        let pace = Script::new();
        let failure = pace.fail(1_000, 8, &status(503, None));
        assert_eq!((failure.tries, failure.gave_up), (9, None));
        let slept_ms: Vec<u128> = pace.slept.borrow().iter().map(Duration::as_millis).collect();
        assert_eq!(slept_ms, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
        assert_eq!(backoff_max(u32::MAX), BACKOFF_MAX);
    }

    #[test]
    fn a_longer_wish_of_the_provider_is_granted_and_a_shorter_one_does_not_hurry() {
        for (asked_s, waited_ms) in [(7, 7_000), (0, 500)] {
            let pace = Script::new();
            pace.fail(100, 1, &status(429, Some(asked_s)));
            assert_eq!(*pace.slept.borrow(), [Duration::from_millis(waited_ms)]);
        }
    }

    #[test]
    fn a_wait_beyond_the_deadline_is_not_begun() {
        let pace = Script::new();
        let failure = pace.fail(60, 4, &status(429, Some(60)));
        assert_eq!(failure.tries, 1);
        assert_eq!(
            failure.gave_up.unwrap().to_string(),
            "the next try would have to wait 60 s, and 60 s of the time limit are left"
        );
        assert!(pace.slept.borrow().is_empty());
    }

    #[test]
    fn what_will_not_pass_is_tried_once() {
        for trouble in [
            status(400, None),
            status(404, Some(1)),
            status(302, None),
            Trouble::TooLong,
            Trouble::TimedOut { limit: Duration::ZERO },
        ] {
            let pace = Script::new();
            assert_eq!(pace.fail(60, 4, &trouble).tries, 1, "{trouble}");
            assert!(pace.slept.borrow().is_empty(), "{trouble}");
        }
    }

    #[test]
    fn a_deadline_that_is_over_allows_no_try() {
        let pace = Script::new();
        let failure = until(&pace, pace.start, 4, |_| -> Result<(), Trouble> { panic!() });
        assert!(matches!(failure, Err(Failure { trouble: Trouble::TimedOut { .. }, .. })));
    }

    #[test]
    fn the_provider_names_seconds_or_a_date() {
        let now = "1994-11-06T08:49:00Z".parse().unwrap();
        for (text, seconds) in [
            ("0", Some(0)),
            (" 120 ", Some(120)),
            ("18446744073709551615", Some(u64::MAX)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(37)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(37)),
            ("Sun Nov  6 08:49:37 1994", Some(37)),
            ("Sun, 06 Nov 1994 08:48:00 GMT", Some(0)),
            ("", None),
            ("-1", None),
            ("1.5", None),
            ("soon", None),
            ("18446744073709551616", None),
        ] {
            assert_eq!(retry_after(text, now), seconds.map(Duration::from_secs), "{text:?}");
        }
    }

    #[test]
    fn real_jitter_stays_within_its_bounds_and_is_not_always_the_same() {
        let max = Duration::from_secs(1);
        let drawn: Vec<Duration> = (0..100).map(|_| RealPace.jitter(max)).collect();
        assert!(drawn.iter().all(|time| *time <= max));
        assert!(drawn.iter().any(|time| *time != drawn[0]));
    }
}
