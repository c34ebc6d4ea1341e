//! Models behind HTTP: one request, one reply, in the protocol of a provider.
//!
//! What holds for each of them:
//!
//! - The key comes from the environment, goes into one header, and is never shown.
//! - A call ends by its deadline, retries included; a reply has at most [`REPLY_BYTES_MAX`] bytes.
//! - Status 429 and 5xx, and connections that are refused or break, are tried again, at increasing random intervals; `Retry-After` is
//!   honoured. Nothing else is.
//! - Redirects are not followed. A proxy of the environment is used for `https` alone, where it sees neither key nor question.
//!
//! A new provider is one new file here and a variant of [`Provider`].

mod access;
mod anthropic;
mod api;
mod client;
mod error;
mod ollama;
mod openai;
mod retry;

use std::fmt;
use std::time::Duration;

pub use access::{Access, AccessError, BaseUrl, Key};
pub use client::REPLY_BYTES_MAX;
pub use error::{CallError, Trouble};
pub use retry::{Pace, RealPace};

use self::api::{Api, Ask, Completion};
use self::client::{Client, HttpReply};
use super::{Message, Model, ModelError, Reply, Request, Tool};

/// Retries where the user names no number.
pub const RETRIES: u32 = 4;

/// Whose protocol a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// The Messages API.
    Anthropic,
    /// `/api/chat`.
    Ollama,
    /// Chat completions, which many other servers offer as well.
    OpenAi,
}

impl Provider {
    /// All of them.
    pub const ALL: [Provider; 3] = [Provider::Anthropic, Provider::Ollama, Provider::OpenAi];

    fn api(self) -> &'static dyn Api {
        match self {
            Provider::Anthropic => &anthropic::Anthropic,
            Provider::Ollama => &ollama::Ollama,
            Provider::OpenAi => &openai::OpenAi,
        }
    }

    /// What stands before the colon of `--model`.
    pub fn name(self) -> &'static str {
        self.api().name()
    }
}

/// A model of a provider.
pub struct Remote {
    provider: Provider,
    model: String,
    url: String,
    access: Access,
    client: Client,
    pace: Box<dyn Pace>,
}

impl Remote {
    /// The model that `provider` calls `model`. Nothing is sent yet.
    pub fn new(provider: Provider, model: &str, access: Access) -> Self {
        Remote {
            provider,
            model: model.to_owned(),
            url: format!("{}{}", access.base_url.as_str(), provider.api().path()),
            client: Client::new(&access.base_url),
            access,
            pace: Box::new(RealPace),
        }
    }

    /// The same, at another pace.
    #[must_use]
    pub fn at_pace(self, pace: impl Pace + 'static) -> Self {
        Remote { pace: Box::new(pace), ..self }
    }

    /// One try.
    fn attempt(&self, body: &str, left: Duration) -> Result<Completion, Trouble> {
        let headers = self.provider.api().headers(self.access.key.as_ref());
        self.client.post(&self.url, headers, body, left).and_then(|reply| self.read(&reply))
    }

    fn read(&self, reply: &HttpReply) -> Result<Completion, Trouble> {
        if !reply.is_success() {
            return Err(Trouble::of_status(reply, self.pace.date()));
        }
        let text = std::str::from_utf8(&reply.body)
            .map_err(|error| Trouble::not_json(&error, &reply.body))?;
        match &self.access.key {
            Some(key) if key.is_secret() => self.provider.api().read(&key.hide(text)),
            _ => self.provider.api().read(text),
        }
    }
}

impl Model for Remote {
    fn count_tokens(&self, messages: &[Message], tools: &[Tool]) -> u64 {
        let messages = messages.iter().map(|message| estimate(&message.content));
        let tools = tools.iter().map(|tool| {
            estimate(tool.name)
                + estimate(tool.description)
                + estimate(&tool.parameters.to_string())
        });
        messages.chain(tools).sum()
    }

    fn complete(&self, request: &Request<'_>) -> Result<Reply, ModelError> {
        let api = self.provider.api();
        let key = self.access.key.as_ref();
        let ask = Ask { model: &self.model, base_url: self.access.base_url.as_str(), request };
        let body = api.body(&ask).to_string();
        let completion = retry::until(&*self.pace, request.deadline, self.access.retries, |left| {
            self.attempt(&body, left).map_err(|trouble| trouble.without(key))
        })
        .map_err(|failure| {
            ModelError::Remote(Box::new(CallError::new(
                api.name(),
                &self.url,
                api.key_variable(),
                failure,
            )))
        })?;
        Ok(Reply {
            tokens_in: completion
                .tokens_in
                .unwrap_or_else(|| self.count_tokens(request.messages, request.tools)),
            tokens_out: completion.tokens_out.unwrap_or_else(|| completion.estimate()),
            text: completion.text,
            calls: completion.calls,
            finish: completion.finish,
        })
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("provider", &self.provider)
            .field("model", &self.model)
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}

/// Tokens of a text where nobody has counted them: one for each three bytes begun, which is more than most texts have.
fn estimate(text: &str) -> u64 {
    text.len().div_ceil(3) as u64
}
