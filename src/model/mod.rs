//! Models: one trait, the providers that are reached over HTTP ([`remote`]), and stubs that answer without one.

pub mod remote;
mod scripted;
mod spec;
mod stub;

use std::fmt::Debug;
use std::time::Instant;

pub use remote::{Provider, Remote};
pub use scripted::{ScriptError, Scripted};
pub use spec::{ModelSpec, Prepared, StubSpec, UnknownModel};
pub use stub::Echo;

/// Something that answers one request.
pub trait Model: Debug {
    /// The tokens that a request of `messages` and `tools` will be billed as, as well as they can be known before the call.
    fn count_tokens(&self, messages: &[Message], tools: &[Tool]) -> u64;

    /// One call. It must return by `request.deadline`.
    ///
    /// # Errors
    ///
    /// [`ModelError`]; nothing of a failed call is used.
    fn complete(&self, request: &Request<'_>) -> Result<Reply, ModelError>;
}

/// Who says a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The standing instruction.
    System,
    /// The work at hand.
    User,
}

/// One message of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub content: String,
}

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// The name that a call gives.
    pub name: &'static str,
    /// What it does, for the model.
    pub description: &'static str,
    /// JSON Schema of the arguments.
    pub parameters: serde_json::Value,
}

/// One request.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The messages, the system's first.
    pub messages: &'a [Message],
    /// The tools on offer.
    pub tools: &'a [Tool],
    /// The most tokens that the reply may have.
    pub max_tokens: u32,
    /// When the caller stops to wait.
    pub deadline: Instant,
}

/// One reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Text outside of tool calls; empty where there is none.
    pub text: String,
    /// The tool calls, in their order.
    pub calls: Vec<ToolCall>,
    /// Tokens of the request, as billed.
    pub tokens_in: u64,
    /// Tokens of the reply, as billed.
    pub tokens_out: u64,
    /// Why the reply ended.
    pub finish: Finish,
}

/// A tool call, not yet checked: a provider hands on what the model wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The tool that the model named.
    pub name: String,
    /// The arguments as JSON text, exactly as received.
    pub arguments: String,
}

/// Why a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The model was done.
    Done,
    /// `max_tokens` cut it short.
    Length,
}

/// Why there is no usable reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// A stub has no reply.
    #[error("the model call failed: {why}")]
    Failed {
        /// The stub's words.
        why: String,
    },
    /// A stub was told to give no reply by the deadline.
    #[error("the model call timed out")]
    TimedOut,
    /// A provider gave no usable reply, or none in time.
    #[error("the model call failed: {0}")]
    Remote(Box<remote::CallError>),
}

/// What the stubs bill: a token for each four bytes of UTF-8 begun.
fn stub_tokens(text: &str) -> u64 {
    text.len().div_ceil(4) as u64
}

/// What the stubs bill for a request: the sum over its messages; tools are free.
fn stub_tokens_in(messages: &[Message]) -> u64 {
    messages.iter().map(|m| stub_tokens(&m.content)).sum()
}
