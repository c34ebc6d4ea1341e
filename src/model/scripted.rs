//! `stub:scripted`: a reply for each question, from a JSON file.
//!
//! The file is one object, question -> reply. A reply is an object with one of these:
//!
//! | key | what the model does |
//! |---|---|
//! | `"text": "..."` | answers in plain text, without a tool call |
//! | `"error": "timed out"` | times out |
//! | `"error": "cut short"` | breaks off at the limit of tokens |
//! | `"error": "..."` | fails with these words |
//! | any other keys | calls the tools of these names, in this order, with the values as their arguments |
//!
//! So `{"answer": {"text": "...", "citations": ["rename#1"]}}` answers, `{"flag_for_review": {"reason": "..."}}` flags, and unknown tools,
//! two calls at once or wrong arguments can be scripted as well. A question that is not in the file is an error.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde_json::Value;

use super::{
    Finish, Message, Model, ModelError, Reply, Request, Tool, ToolCall, stub_tokens, stub_tokens_in,
};
use crate::{builtin, prompt};

/// Replies from a script.
#[derive(Debug, Clone, PartialEq)]
pub struct Scripted {
    source: String,
    replies: IndexMap<String, IndexMap<String, Value>>,
}

/// Why there is no script.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("{}: cannot read the script: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// The file is no script.
    #[error(
        "{name}: not a script: {why}; expected an object, question -> {{\"answer\": ...}}, {{\"flag_for_review\": ...}}, {{\"text\": ...}} or {{\"error\": ...}}"
    )]
    Parse {
        /// The file, or `built-in script`.
        name: String,
        /// What is wrong, and where.
        why: String,
    },
}

impl Scripted {
    /// The script that comes with the built-in corpus and its questions.
    ///
    /// # Errors
    ///
    /// None in a released build: a test reads it.
    pub fn built_in() -> Result<Self, ScriptError> {
        Self::parse("built-in script", builtin::SCRIPT.as_bytes())
    }

    /// The script in a file.
    ///
    /// # Errors
    ///
    /// [`ScriptError`].
    pub fn load(path: &Path) -> Result<Self, ScriptError> {
        let bytes = std::fs::read(path)
            .map_err(|source| ScriptError::Read { path: path.into(), source })?;
        Self::parse(&path.display().to_string(), &bytes)
    }

    /// The script in `bytes`; `name` is for messages.
    ///
    /// # Errors
    ///
    /// [`ScriptError::Parse`].
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, ScriptError> {
        let wrong = |why: String| ScriptError::Parse { name: name.to_owned(), why };
        let replies: IndexMap<String, IndexMap<String, Value>> =
            serde_json::from_slice(bytes).map_err(|error| wrong(error.to_string()))?;
        for (question, reply) in &replies {
            let lone = ["text", "error"].iter().find_map(|key| Some((key, reply.get(*key)?)));
            match lone {
                Some((key, _)) if reply.len() > 1 => {
                    return Err(wrong(format!("`{question}`: `{key}` must stand alone")));
                }
                Some((key, value)) if !value.is_string() => {
                    return Err(wrong(format!("`{question}`: `{key}` must be a string")));
                }
                None if reply.is_empty() => {
                    return Err(wrong(format!("`{question}`: the reply is empty")));
                }
                _ => {}
            }
        }
        Ok(Scripted { source: name.to_owned(), replies })
    }

    /// The questions that have a reply.
    pub fn questions(&self) -> impl Iterator<Item = &str> {
        self.replies.keys().map(String::as_str)
    }

    fn reply_to(&self, message: &str) -> Result<&IndexMap<String, Value>, ModelError> {
        self.replies
            .iter()
            .filter(|(question, _)| prompt::asks(message, question))
            // A question may end with another one; the whole one is the longest.
            .max_by_key(|(question, _)| question.len())
            .map(|(_, reply)| reply)
            .ok_or_else(|| ModelError::Failed {
                why: format!(
                    "{} holds no reply to this question; add one, or use another model",
                    self.source
                ),
            })
    }
}

impl Model for Scripted {
    fn count_tokens(&self, messages: &[Message], _: &[Tool]) -> u64 {
        stub_tokens_in(messages)
    }

    fn complete(&self, request: &Request<'_>) -> Result<Reply, ModelError> {
        let script = self.reply_to(prompt::last_user_message(request.messages))?;
        let mut reply = Reply {
            text: String::new(),
            calls: Vec::new(),
            tokens_in: stub_tokens_in(request.messages),
            tokens_out: 0,
            finish: Finish::Done,
        };
        for (key, value) in script {
            match (key.as_str(), value) {
                ("error", Value::String(why)) => match why.as_str() {
                    "timed out" => return Err(ModelError::TimedOut),
                    "cut short" => reply.finish = Finish::Length,
                    _ => return Err(ModelError::Failed { why: why.clone() }),
                },
                ("text", Value::String(text)) => reply.text.clone_from(text),
                (tool, arguments) => reply
                    .calls
                    .push(ToolCall { name: tool.to_owned(), arguments: arguments.to_string() }),
            }
        }
        reply.tokens_out = stub_tokens(&reply.text)
            + reply.calls.iter().map(|c| stub_tokens(&c.arguments)).sum::<u64>();
        if reply.tokens_out > u64::from(request.max_tokens) {
            reply.finish = Finish::Length;
        }
        Ok(reply)
    }
}
