//! One POST over HTTP, bounded in time and size.

use std::io::{ErrorKind, Read};
use std::time::Duration;

use ureq::http::header::RETRY_AFTER;
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Proxy};

use super::access::BaseUrl;
use super::api::Header;
use super::error::Trouble;

/// Bytes that the body of a reply may have: many times what a reply of the session's limit of tokens needs.
pub const REPLY_BYTES_MAX: usize = 1 << 20;

/// The client of one server.
#[derive(Debug)]
pub(super) struct Client {
    agent: Agent,
}

/// What came back.
#[derive(Debug)]
pub(super) struct HttpReply {
    pub(super) status: u16,
    pub(super) retry_after: Option<String>,
    pub(super) body: Vec<u8>,
}

impl HttpReply {
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl Client {
    /// A client for the server at `base_url`. A proxy would see the key and the question if they were not encrypted.
    pub(super) fn new(base_url: &BaseUrl) -> Self {
        let proxy = if base_url.is_encrypted() { Proxy::try_from_env() } else { None };
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(proxy)
            .tls_config(TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build())
            .user_agent(concat!("long-horizon/", env!("CARGO_PKG_VERSION")))
            .accept("application/json")
            .build();
        Client { agent: config.into() }
    }

    /// Sends `body` and waits for the whole reply, for no longer than `left`.
    pub(super) fn post(
        &self,
        url: &str,
        headers: Vec<Header>,
        body: &str,
        left: Duration,
    ) -> Result<HttpReply, Trouble> {
        let mut request = self.agent.post(url).content_type("application/json");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.config().timeout_global(Some(left)).build();
        let response = request.send(body).map_err(|error| trouble(error, left))?;
        let mut reply = HttpReply {
            status: response.status().as_u16(),
            retry_after: response
                .headers()
                .get(RETRY_AFTER)
                .and_then(|value| value.to_str().ok())
                .map(str::to_owned),
            body: Vec::new(),
        };
        let mut reader = response.into_body().into_reader().take(REPLY_BYTES_MAX as u64 + 1);
        match reader.read_to_end(&mut reply.body) {
            Ok(_) if reply.body.len() > REPLY_BYTES_MAX && reply.is_success() => {
                Err(Trouble::TooLong)
            }
            Err(error) if reply.is_success() => Err(trouble(error.into(), left)),
            // The status says enough, whatever becomes of the words that go with it.
            Ok(_) | Err(_) => Ok(reply),
        }
    }
}

fn trouble(error: ureq::Error, left: Duration) -> Trouble {
    let why = error.to_string();
    match error {
        ureq::Error::Timeout(_) => Trouble::TimedOut { limit: left },
        ureq::Error::Io(error) => match error.kind() {
            ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
            | ErrorKind::NotConnected
            | ErrorKind::UnexpectedEof => Trouble::Broken { why: error.to_string() },
            // How the TLS library says that it does not trust the other side.
            ErrorKind::InvalidData => Trouble::Protocol { why: error.to_string() },
            // Also a name that is not known, which has no kind of its own.
            _ => Trouble::Unreachable { why: error.to_string() },
        },
        ureq::Error::HostNotFound
        | ureq::Error::ConnectionFailed
        | ureq::Error::ConnectProxyFailed(_) => Trouble::Unreachable { why },
        ureq::Error::LargeResponseHeader(..) => Trouble::TooLong,
        _ => Trouble::Protocol { why },
    }
}
