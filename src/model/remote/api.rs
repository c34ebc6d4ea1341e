//! What a provider's protocol has to say.

use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde_json::error::Category;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use ureq::http::HeaderValue;

use super::access::Key;
use super::error::Trouble;
use super::estimate;
use crate::model::{Finish, Message, Request, Role, Tool, ToolCall};

/// A header and its value.
pub(super) type Header = (&'static str, HeaderValue);

/// The protocol of a provider. Pure: the caller does the sending.
pub(super) trait Api: Debug {
    /// What stands before the colon of `--model`.
    fn name(&self) -> &'static str;

    /// The provider's own server.
    fn base_url(&self) -> &'static str;

    /// What stands behind the base URL.
    fn path(&self) -> &'static str;

    /// The environment variable of the key.
    fn key_variable(&self) -> &'static str;

    /// Whether there is no call without a key.
    fn needs_key(&self) -> bool;

    /// The headers, apart from those of each JSON request.
    fn headers(&self, key: Option<&Key>) -> Vec<Header>;

    /// The request's body.
    fn body(&self, ask: &Ask<'_>) -> Value;

    /// Reads the body of a reply with a status of success.
    fn read(&self, body: &str) -> Result<Completion, Trouble>;
}

/// What is asked, and of whom.
#[derive(Debug)]
pub(super) struct Ask<'a> {
    pub(super) model: &'a str,
    pub(super) base_url: &'a str,
    pub(super) request: &'a Request<'a>,
}

/// A reply, with what the provider counted.
#[derive(Debug)]
pub(super) struct Completion {
    pub(super) text: String,
    pub(super) calls: Vec<ToolCall>,
    pub(super) tokens_in: Option<u64>,
    pub(super) tokens_out: Option<u64>,
    pub(super) finish: Finish,
}

impl Completion {
    /// Its tokens, where the provider has not counted them.
    pub(super) fn estimate(&self) -> u64 {
        let calls = self.calls.iter().map(|call| estimate(&call.name) + estimate(&call.arguments));
        estimate(&self.text) + calls.sum::<u64>()
    }
}

/// A tool call whose arguments are JSON themselves.
pub(super) fn call_of(name: String, arguments: &RawValue) -> ToolCall {
    ToolCall { name, arguments: arguments.get().to_owned() }
}

/// The key as OpenAI and Ollama take it.
pub(super) fn bearer(key: &Key) -> Header {
    ("authorization", key.header("Bearer "))
}

/// Messages as OpenAI and Ollama take them.
pub(super) fn chat_messages(messages: &[Message]) -> Vec<Value> {
    let message = |message: &Message| {
        let role = match message.role {
            Role::System => "system",
            Role::User => "user",
        };
        json!({"role": role, "content": message.content})
    };
    messages.iter().map(message).collect()
}

/// A tool as OpenAI and Ollama describe it.
pub(super) fn function(tool: &Tool) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        },
    })
}

/// Reads a provider's JSON; what it has beyond `T` is ignored.
pub(super) fn parse<T: DeserializeOwned>(body: &str) -> Result<T, Trouble> {
    serde_json::from_str(body).map_err(|error| match error.classify() {
        Category::Data => Trouble::wrong_shape(&error, body),
        Category::Syntax | Category::Eof | Category::Io => {
            Trouble::not_json(&error, body.as_bytes())
        }
    })
}
