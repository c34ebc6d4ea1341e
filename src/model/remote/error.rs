//! What can go wrong with a call, and what to do about it.

use std::fmt::{self, Display};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::access::Key;
use super::client::{HttpReply, REPLY_BYTES_MAX};
use super::retry::{Failure, GaveUp, retry_after};
use crate::words::visible;

/// Code points of a provider's words that are shown.
const EXCERPT_CHARS: usize = 300;

/// A call without a usable reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallError {
    /// The provider.
    pub provider: &'static str,
    /// The address, which holds neither credentials nor a query.
    pub url: String,
    /// What went wrong at the last try.
    pub trouble: Trouble,
    /// How often it was tried.
    pub tries: u32,
    key_variable: &'static str,
    gave_up: Option<GaveUp>,
}

impl CallError {
    pub(super) fn new(
        provider: &'static str,
        url: &str,
        key_variable: &'static str,
        failure: Failure,
    ) -> Self {
        let Failure { trouble, tries, gave_up } = failure;
        CallError { provider, url: url.to_owned(), trouble, tries, key_variable, gave_up }
    }

    fn remedy(&self) -> String {
        const SERVER: &str = "check that --base-url leads to a server of this provider's kind";
        if self.gave_up.is_some() {
            return "run again later, or allow more time with --timeout".to_owned();
        }
        let words = match &self.trouble {
            Trouble::Status { status: 401 | 403, .. } => {
                return format!("check the key in {}", self.key_variable);
            }
            Trouble::Status { status: 300..400, .. } => {
                "a redirect is not followed, since the key would go with it: give --base-url the new address"
            }
            Trouble::Status { status: 404, .. } => "check the model's name and --base-url",
            Trouble::Status { status: 429, .. } => "run again later, or raise the limit there",
            Trouble::Status { status: 400..500, .. } => {
                "check that the model exists and can call tools"
            }
            Trouble::Status { .. } | Trouble::Broken { .. } => "run again later",
            Trouble::Unreachable { .. } => "check that the server runs, and --base-url",
            Trouble::TimedOut { .. } => "allow more time with --timeout",
            Trouble::Protocol { .. } => "check --base-url, also whether it is http or https",
            Trouble::TooLong | Trouble::NotJson { .. } | Trouble::WrongShape { .. } => SERVER,
            Trouble::Withheld { .. } => "reword the question, or take another model",
        };
        words.to_owned()
    }
}

impl Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: {}", self.provider, self.url, self.trouble)?;
        if self.tries > 1 {
            write!(f, " (tried {} times)", self.tries)?;
        }
        if let Some(gave_up) = &self.gave_up {
            write!(f, "; {gave_up}")?;
        }
        write!(f, "; {}", self.remedy())
    }
}

impl std::error::Error for CallError {}

/// What went wrong at one try. Texts of the provider are whole here, but for the key; only their beginnings are shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// A status other than success.
    #[error("status {status}{}", quoted(message))]
    Status {
        /// The status.
        status: u16,
        /// The provider's words.
        message: String,
        /// How long the provider asks to wait.
        retry_after: Option<Duration>,
    },
    /// There is no connection.
    #[error("cannot connect: {why}")]
    Unreachable {
        /// The kernel's answer, or the client's.
        why: String,
    },
    /// The connection broke before the reply was whole.
    #[error("the connection broke: {why}")]
    Broken {
        /// The kernel's answer, or the client's.
        why: String,
    },
    /// What came is not HTTP, or TLS does not trust it.
    #[error("this is no proper HTTP or TLS: {}", Excerpt(why))]
    Protocol {
        /// The client's words.
        why: String,
    },
    /// No whole reply by the deadline.
    #[error("no whole reply within the {} that were left of the time limit", Seconds(*limit))]
    TimedOut {
        /// What was left when the try began.
        limit: Duration,
    },
    /// More than [`REPLY_BYTES_MAX`] bytes.
    #[error("the reply is longer than {REPLY_BYTES_MAX} bytes")]
    TooLong,
    /// The reply is not JSON.
    #[error("the reply is not JSON: {}{}", Excerpt(why), quoted(body))]
    NotJson {
        /// What is wrong, and where.
        why: String,
        /// The reply.
        body: String,
    },
    /// The reply is JSON, and not what the provider's protocol says.
    #[error("the reply has another shape than expected: {}{}", Excerpt(why), quoted(body))]
    WrongShape {
        /// What is wrong, and where.
        why: String,
        /// The reply.
        body: String,
    },
    /// The provider holds the answer back.
    #[error("the provider withholds the answer{}", quoted(why))]
    Withheld {
        /// The provider's words.
        why: String,
    },
}

impl Trouble {
    /// That of a status which is no success.
    pub(super) fn of_status(reply: &HttpReply, now: Timestamp) -> Self {
        Trouble::Status {
            status: reply.status,
            message: message(&reply.body),
            retry_after: reply.retry_after.as_deref().and_then(|text| retry_after(text, now)),
        }
    }

    pub(super) fn not_json(why: &dyn Display, body: &[u8]) -> Self {
        Trouble::NotJson { why: why.to_string(), body: String::from_utf8_lossy(body).into() }
    }

    pub(super) fn wrong_shape(why: &dyn Display, body: &str) -> Self {
        Trouble::WrongShape { why: why.to_string(), body: plain(body) }
    }

    pub(super) fn withheld(why: &str) -> Self {
        Trouble::Withheld { why: why.to_owned() }
    }

    /// Whether it may be over soon.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Trouble::Status { status, .. } => *status == 429 || *status >= 500,
            Trouble::Unreachable { .. } | Trouble::Broken { .. } => true,
            _ => false,
        }
    }

    /// How long the provider asks to wait.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Trouble::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// The same with the key hidden, should the provider have repeated it.
    pub(super) fn without(mut self, key: Option<&Key>) -> Self {
        let Some(key) = key else { return self };
        let texts: &mut [&mut String] = match &mut self {
            Trouble::NotJson { why, body } | Trouble::WrongShape { why, body } => &mut [why, body],
            Trouble::Status { message: text, .. }
            | Trouble::Unreachable { why: text }
            | Trouble::Broken { why: text }
            | Trouble::Protocol { why: text }
            | Trouble::Withheld { why: text } => &mut [text],
            Trouble::TimedOut { .. } | Trouble::TooLong => &mut [],
        };
        for text in texts {
            **text = key.hide(text);
        }
        self
    }
}

/// The words in the body of an error: where the known providers put them, or all of it.
fn message(body: &[u8]) -> String {
    const PLACES: [&str; 4] = ["/error/message", "/error", "/message", "/detail"];
    match serde_json::from_slice::<Value>(body) {
        Ok(document) => {
            let words = PLACES.iter().find_map(|place| document.pointer(place)?.as_str());
            words.map_or_else(|| document.to_string(), str::to_owned)
        }
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    }
}

/// The document with nothing escaped that need not be: a key that is spelt otherwise would not be found.
fn plain(json: &str) -> String {
    serde_json::from_str(json)
        .map_or_else(|_| json.to_owned(), |document: Value| document.to_string())
}

/// Behind what it belongs to; nothing where there are no words.
fn quoted(words: &str) -> String {
    if words.trim().is_empty() { String::new() } else { format!(": `{}`", Excerpt(words)) }
}

/// The beginning of a foreign text, on one line, with nothing that a terminal obeys.
struct Excerpt<'a>(&'a str);

impl Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.0.split_whitespace().collect::<Vec<_>>().join(" ");
        let shown: String = words.chars().take(EXCERPT_CHARS).collect();
        let rest = if shown.len() < words.len() { " ..." } else { "" };
        write!(f, "{}{rest}", visible(&shown))
    }
}

/// A duration in seconds, to a tenth.
pub(super) struct Seconds(pub(super) Duration);

impl Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} s", (self.0.as_secs_f64() * 10.0).round() / 10.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_an_error_are_found_where_providers_put_them() {
        for (body, words) in [
            (r#"{"type": "error", "error": {"type": "x", "message": "overloaded"}}"#, "overloaded"),
            (r#"{"error": "model not found"}"#, "model not found"),
            (r#"{"message": "no"}"#, "no"),
            (r#"{"detail": "no"}"#, "no"),
            (r#"{"other": "\u0073"}"#, r#"{"other":"s"}"#),
            ("<html>Bad Gateway</html>", "<html>Bad Gateway</html>"),
            ("", ""),
        ] {
            assert_eq!(message(body.as_bytes()), words);
        }
    }

    #[test]
    fn an_excerpt_is_one_short_line_that_no_terminal_obeys() {
        assert_eq!(Excerpt("a\r\n\tb\u{1b}[2Jc").to_string(), "a b\\u{1b}[2Jc");
        let long = "\u{e9}".repeat(EXCERPT_CHARS + 1);
        assert_eq!(Excerpt(&long).to_string(), format!("{} ...", "\u{e9}".repeat(EXCERPT_CHARS)));
        assert_eq!(quoted(" \n"), "");
    }

    #[test]
    fn seconds_are_told_to_a_tenth() {
        assert_eq!(Seconds(Duration::from_secs(120)).to_string(), "120 s");
        assert_eq!(Seconds(Duration::from_millis(1_449)).to_string(), "1.4 s");
    }
}
