//! The same replies in the words of each provider.

use long_horizon::model::Provider;
use serde_json::{Value, json};

/// Tokens of the request and of the reply, in each of these replies.
pub const TOKENS: (u64, u64) = (420, 17);

/// What a model says.
#[derive(Debug, Clone, Copy)]
pub enum Said<'a> {
    Text(&'a str),
    /// Tool and arguments as JSON text.
    Call(&'a str, &'a str),
}

pub const ANSWER: Said<'static> =
    Said::Call("answer", r#"{"text":"Yes, it is.","citations":["posix#1"]}"#);
pub const FLAG: Said<'static> = Said::Call("flag_for_review", r#"{"reason":"they disagree"}"#);

/// The reply of a provider, whose model says this.
pub fn reply(provider: Provider, said: &[Said<'_>]) -> Value {
    let text: String = said
        .iter()
        .filter_map(|said| if let Said::Text(text) = said { Some(*text) } else { None })
        .collect();
    let calls = said.iter().filter_map(|said| match said {
        Said::Call(name, arguments) => Some((*name, *arguments)),
        Said::Text(_) => None,
    });
    match provider {
        Provider::Anthropic => anthropic(said),
        Provider::OpenAi => openai(&text, calls),
        Provider::Ollama => ollama(&text, calls),
    }
}

fn anthropic(said: &[Said<'_>]) -> Value {
    let block = |said: &Said<'_>| match said {
        Said::Text(text) => json!({"type": "text", "text": text}),
        Said::Call(name, arguments) => {
            json!({"type": "tool_use", "id": "toolu_1", "name": name, "input": object(arguments)})
        }
    };
    let is_call = said.iter().any(|said| matches!(said, Said::Call(..)));
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": said.iter().map(block).collect::<Vec<_>>(),
        "stop_reason": if is_call { "tool_use" } else { "end_turn" },
        "stop_sequence": null,
        "usage": {"input_tokens": 400, "cache_read_input_tokens": 20, "output_tokens": 17},
    })
}

fn openai<'a>(text: &str, calls: impl Iterator<Item = (&'a str, &'a str)>) -> Value {
    let calls: Vec<Value> = calls
        .map(|(name, arguments)| {
            json!({"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}})
        })
        .collect();
    let finish = if calls.is_empty() { "stop" } else { "tool_calls" };
    let content = if text.is_empty() { Value::Null } else { text.into() };
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{
            "index": 0, "logprobs": null, "finish_reason": finish,
            "message": {"role": "assistant", "content": content, "refusal": null, "tool_calls": calls},
        }],
        "usage": {"prompt_tokens": 420, "completion_tokens": 17, "total_tokens": 437},
    })
}

fn ollama<'a>(text: &str, calls: impl Iterator<Item = (&'a str, &'a str)>) -> Value {
    let calls: Vec<Value> = calls
        .map(
            |(name, arguments)| json!({"function": {"name": name, "arguments": object(arguments)}}),
        )
        .collect();
    json!({
        "model": "m", "created_at": "2026-03-01T00:00:00Z",
        "message": {"role": "assistant", "content": text, "tool_calls": calls},
        "done": true, "done_reason": "stop", "total_duration": 1, "prompt_eval_count": 420, "eval_count": 17,
    })
}

fn object(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap()
}
