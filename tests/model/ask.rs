//! One call through the library, at a pace that does not wait.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use long_horizon::model::remote::{Access, BaseUrl, CallError, Key, Pace, Trouble};
use long_horizon::model::{Model, ModelError, Provider, Remote, Reply, Request};
use long_horizon::prompt;

use crate::server::{Act, Server};

/// Long enough to be known for a secret.
pub const KEY: &str = "sk-test-0123456789abcdefghij";
/// Tries after the first one.
pub const RETRIES: u32 = 2;

/// Waits are written down instead; the longest one is always drawn.
#[derive(Debug, Clone)]
pub struct Written {
    start: Instant,
    slept: Rc<RefCell<Vec<Duration>>>,
}

impl Pace for Written {
    fn now(&self) -> Instant {
        self.start + self.slept.borrow().iter().sum::<Duration>()
    }

    fn date(&self) -> Timestamp {
        "2026-03-01T12:00:00Z".parse().unwrap()
    }

    fn sleep(&self, time: Duration) {
        self.slept.borrow_mut().push(time);
    }

    fn jitter(&self, max: Duration) -> Duration {
        max
    }
}

/// How a call ended.
#[derive(Debug)]
pub struct Called {
    pub result: Result<Reply, CallError>,
    pub slept_ms: Vec<u128>,
}

impl Called {
    pub fn reply(self) -> Reply {
        self.result.unwrap()
    }

    pub fn error(&self) -> &CallError {
        self.result.as_ref().unwrap_err()
    }

    pub fn trouble(&self) -> &Trouble {
        &self.error().trouble
    }
}

pub fn remote(provider: Provider, base_url: &str) -> Remote {
    let access = Access {
        base_url: BaseUrl::parse(base_url).unwrap(),
        key: Key::new(KEY),
        retries: RETRIES,
    };
    Remote::new(provider, "some-model", access)
}

/// Calls the server at `base_url`.
pub fn call(provider: Provider, base_url: &str, limit: Duration) -> Called {
    let pace = Written { start: Instant::now(), slept: Rc::default() };
    let slept = Rc::clone(&pace.slept);
    let request = Request {
        messages: &prompt::messages(&["an earlier note".to_owned()], &[], "Is it so?"),
        tools: &prompt::tools(),
        max_tokens: 300,
        deadline: pace.start + limit,
    };
    let result = remote(provider, base_url).at_pace(pace).complete(&request);
    let result = result.map_err(|error| match error {
        ModelError::Remote(error) => *error,
        other => panic!("{other}"),
    });
    let slept_ms = slept.borrow().iter().map(Duration::as_millis).collect();
    Called { result, slept_ms }
}

/// Calls a server that does this, with time enough.
pub fn called(provider: Provider, acts: &[Act]) -> (Called, Server) {
    let server = Server::start(acts.iter().cloned());
    (call(provider, &server.url(), Duration::from_secs(60)), server)
}
