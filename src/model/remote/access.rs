//! How a server is reached: its address, and a key that nobody gets to see.

use std::fmt;

use ureq::http::{HeaderValue, Uri};

use super::{Provider, RETRIES};

/// A shorter key is taken for what people give to a server that wants none, such as `none`: a word that replies may well hold.
const SECRET_BYTES_MIN: usize = 16;

/// What a call needs beside the model's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The server.
    pub base_url: BaseUrl,
    /// The key, where there is one.
    pub key: Option<Key>,
    /// How often a call that failed is tried again.
    pub retries: u32,
}

/// Why there can be no call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// The environment holds no key.
    #[error("`{provider}:` needs a key: put it into the environment variable {variable}")]
    NoKey {
        /// The provider.
        provider: &'static str,
        /// The variable.
        variable: &'static str,
    },
    /// What the environment holds cannot be a key.
    #[error(
        "{variable} holds no key: there is white space in it (perhaps a line feed at its end), or a character that no header can carry; set it to the key alone"
    )]
    BadKey {
        /// The variable.
        variable: &'static str,
    },
    /// The address cannot be used. It is not shown: there may be a password in it.
    #[error("--base-url: {why}; expected an address such as `{example}`")]
    BadUrl {
        /// What is wrong with it.
        why: &'static str,
        /// A good one.
        example: &'static str,
    },
    /// The model is a stub.
    #[error("--base-url: `{model}` has no server; it goes with {}", providers())]
    NoServer {
        /// The model.
        model: String,
    },
}

impl Access {
    /// The provider's own server without a key.
    pub fn of(provider: Provider) -> Self {
        let base_url = BaseUrl(provider.api().base_url().to_owned());
        Access { base_url, key: None, retries: RETRIES }
    }

    /// Takes the key from the environment, and the provider's own server where `base_url` names none.
    ///
    /// # Errors
    ///
    /// [`AccessError`].
    pub fn from_env(
        provider: Provider,
        base_url: Option<&str>,
        retries: u32,
    ) -> Result<Self, AccessError> {
        let own = Access::of(provider);
        let base_url = match base_url {
            Some(text) => BaseUrl::parse(text)
                .map_err(|why| AccessError::BadUrl { why, example: provider.api().base_url() })?,
            None => own.base_url,
        };
        Ok(Access { base_url, key: key_from_env(provider)?, retries })
    }
}

fn key_from_env(provider: Provider) -> Result<Option<Key>, AccessError> {
    let api = provider.api();
    let variable = api.key_variable();
    match std::env::var_os(variable).filter(|value| !value.is_empty()) {
        Some(value) => {
            let key = value.to_str().and_then(Key::new);
            key.map(Some).ok_or(AccessError::BadKey { variable })
        }
        None if api.needs_key() => Err(AccessError::NoKey { provider: api.name(), variable }),
        None => Ok(None),
    }
}

fn providers() -> String {
    Provider::ALL.map(|provider| format!("`{}:`", provider.name())).join(", ")
}

/// The address of a server, without credentials, query or fragment, and without a slash at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl(String);

impl BaseUrl {
    /// Reads one.
    ///
    /// # Errors
    ///
    /// What is wrong with it, in words that do not hold it.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let uri: Uri = text.parse().map_err(|_| "this is no address")?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err("it must begin with http:// or https://");
        }
        match uri.authority() {
            Some(authority) if authority.as_str().contains('@') => {
                return Err("it must hold no user name or password, which everyone could see");
            }
            Some(authority) if !authority.host().is_empty() => {}
            _ => return Err("it names no host"),
        }
        if text.contains(['?', '#']) {
            return Err("it must end with its path, without `?` or `#`");
        }
        Ok(BaseUrl(text.trim_end_matches('/').to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether what is sent there can be read on the way.
    pub(super) fn is_encrypted(&self) -> bool {
        self.0.starts_with("https:")
    }
}

/// A key. It is shown by nothing: neither `Debug` nor any error holds it.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// A key of printable ASCII characters; `None` for anything else.
    pub fn new(text: &str) -> Option<Self> {
        let is_key = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_key.then(|| Key(text.to_owned()))
    }

    /// As the value of a header, behind `prefix`.
    pub(super) fn header(&self, prefix: &'static str) -> HeaderValue {
        let mut value = HeaderValue::try_from(format!("{prefix}{}", self.0))
            .expect("printable ASCII is a header value");
        value.set_sensitive(true);
        value
    }

    /// Whether it is long enough to be told from an ordinary word.
    pub(super) fn is_secret(&self) -> bool {
        self.0.len() >= SECRET_BYTES_MIN
    }

    /// `text` with something else in its place.
    pub(super) fn hide(&self, text: &str) -> String {
        text.replace(&self.0, "[key]")
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_without_its_last_slash() {
        for (text, taken) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("https://models.example/v1/", "https://models.example/v1"),
            ("http://[::1]:11434/", "http://[::1]:11434"),
        ] {
            assert_eq!(BaseUrl::parse(text).unwrap().as_str(), taken);
        }
    }

    #[test]
    fn what_is_no_address_or_says_too_much_is_refused_and_not_repeated() {
        for text in [
            "",
            "models.example",
            "/v1",
            "ftp://models.example",
            "http://",
            "http://a b/",
            "http://ann:hunter2@models.example",
            "http://models.example/?api-key=hunter2",
            "http://models.example/#hunter2",
        ] {
            let why = BaseUrl::parse(text).unwrap_err();
            assert!(!why.contains("hunter2"), "{text}: {why}");
        }
    }

    #[test]
    fn a_key_has_no_white_space_and_shows_itself_to_nobody() {
        for text in ["", "sk-1\n", " sk-1", "sk 1", "sk\u{e9}", "sk\0"] {
            assert_eq!(Key::new(text), None, "{text:?}");
        }
        let key = Key::new("sk-0123456789abcdef").unwrap();
        let access = Access { key: Some(key.clone()), ..Access::of(Provider::OpenAi) };
        assert!(!format!("{access:?} {:?}", key.header("Bearer ")).contains("0123456789"));
        assert_eq!(key.hide("a sk-0123456789abcdef b"), "a [key] b");
        assert!(key.is_secret() && !Key::new("none").unwrap().is_secret());
    }
}
