//! `ollama:TAG`: [`/api/chat`](https://github.com/ollama/ollama/blob/main/docs/api.md) of a local or remote Ollama.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::access::Key;
use super::api::{Api, Ask, Completion, Header, bearer, call_of, chat_messages, function, parse};
use super::error::Trouble;
use crate::model::Finish;

#[derive(Debug)]
pub(super) struct Ollama;

#[derive(Deserialize)]
struct Chat {
    message: Message,
    done: bool,
    done_reason: Option<String>,
    prompt_eval_count: Option<u32>,
    eval_count: Option<u32>,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
    tool_calls: Option<Vec<Call>>,
}

#[derive(Deserialize)]
struct Call {
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    arguments: Box<RawValue>,
}

impl Api for Ollama {
    fn name(&self) -> &'static str {
        "ollama"
    }

    fn base_url(&self) -> &'static str {
        "http://127.0.0.1:11434"
    }

    fn path(&self) -> &'static str {
        "/api/chat"
    }

    fn key_variable(&self) -> &'static str {
        "OLLAMA_API_KEY"
    }

    fn needs_key(&self) -> bool {
        false
    }

    fn headers(&self, key: Option<&Key>) -> Vec<Header> {
        key.map(bearer).into_iter().collect()
    }

    fn body(&self, ask: &Ask<'_>) -> Value {
        json!({
            "model": ask.model,
            "messages": chat_messages(ask.request.messages),
            "tools": ask.request.tools.iter().map(function).collect::<Vec<_>>(),
            "stream": false,
            "options": {"num_predict": ask.request.max_tokens},
        })
    }

    fn read(&self, body: &str) -> Result<Completion, Trouble> {
        let chat: Chat = parse(body)?;
        if !chat.done {
            return Err(Trouble::wrong_shape(&"`done` is false", body));
        }
        let finish = match chat.done_reason.as_deref() {
            Some("length") => Finish::Length,
            _ => Finish::Done,
        };
        let calls = chat.message.tool_calls.unwrap_or_default();
        Ok(Completion {
            text: chat.message.content.unwrap_or_default(),
            calls: calls
                .into_iter()
                .map(|Call { function }| call_of(function.name, &function.arguments))
                .collect(),
            tokens_in: chat.prompt_eval_count.map(u64::from),
            tokens_out: chat.eval_count.map(u64::from),
            finish,
        })
    }
}
