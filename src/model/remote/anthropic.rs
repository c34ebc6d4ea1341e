//! `anthropic:ID`: the [Messages API](https://docs.anthropic.com/en/api/messages).

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use ureq::http::HeaderValue;

use super::access::Key;
use super::api::{Api, Ask, Completion, Header, call_of, parse};
use super::error::Trouble;
use crate::model::{Finish, Role};

#[derive(Debug)]
pub(super) struct Anthropic;

#[derive(Deserialize)]
struct Message {
    content: Vec<Block>,
    stop_reason: Option<String>,
    #[serde(default)]
    usage: Usage,
}

/// A block of any type; only `text` and `tool_use` are looked into.
#[derive(Deserialize)]
struct Block {
    r#type: String,
    text: Option<String>,
    name: Option<String>,
    input: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
struct Usage {
    input_tokens: Option<u32>,
    cache_creation_input_tokens: Option<u32>,
    cache_read_input_tokens: Option<u32>,
    output_tokens: Option<u32>,
}

impl Api for Anthropic {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn base_url(&self) -> &'static str {
        "https://api.anthropic.com"
    }

    fn path(&self) -> &'static str {
        "/v1/messages"
    }

    fn key_variable(&self) -> &'static str {
        "ANTHROPIC_API_KEY"
    }

    fn needs_key(&self) -> bool {
        true
    }

    fn headers(&self, key: Option<&Key>) -> Vec<Header> {
        let version = ("anthropic-version", HeaderValue::from_static("2023-06-01"));
        key.map(|key| ("x-api-key", key.header(""))).into_iter().chain([version]).collect()
    }

    fn body(&self, ask: &Ask<'_>) -> Value {
        let of = |role: Role| ask.request.messages.iter().filter(move |m| m.role == role);
        let system: Vec<&str> = of(Role::System).map(|m| m.content.as_str()).collect();
        let messages: Vec<Value> =
            of(Role::User).map(|m| json!({"role": "user", "content": m.content})).collect();
        let tools: Vec<Value> = ask
            .request
            .tools
            .iter()
            .map(|tool| {
                json!({
                    "name": tool.name,
                    "description": tool.description,
                    "input_schema": tool.parameters,
                })
            })
            .collect();
        json!({
            "model": ask.model,
            "max_tokens": ask.request.max_tokens,
            "system": system.join("\n\n"),
            "messages": messages,
            "tools": tools,
            "tool_choice": {"type": "auto", "disable_parallel_tool_use": true},
        })
    }

    fn read(&self, body: &str) -> Result<Completion, Trouble> {
        let message: Message = parse(body)?;
        let finish = match message.stop_reason.as_deref() {
            Some("max_tokens" | "model_context_window_exceeded") => Finish::Length,
            Some(reason @ "refusal") => return Err(Trouble::withheld(reason)),
            _ => Finish::Done,
        };
        let mut text = String::new();
        let mut calls = Vec::new();
        for block in message.content {
            match (block.r#type.as_str(), block.text, block.name, block.input) {
                ("text", Some(part), ..) => text.push_str(&part),
                ("tool_use", _, Some(name), Some(input)) => calls.push(call_of(name, &input)),
                (kind @ ("text" | "tool_use"), ..) => {
                    let why = format!("a content block `{kind}` lacks its content");
                    return Err(Trouble::wrong_shape(&why, body));
                }
                _ => {}
            }
        }
        let usage = message.usage;
        let cached = [usage.cache_creation_input_tokens, usage.cache_read_input_tokens];
        let cached: u64 = cached.into_iter().flatten().map(u64::from).sum();
        Ok(Completion {
            text,
            calls,
            tokens_in: usage.input_tokens.map(|tokens| u64::from(tokens) + cached),
            tokens_out: usage.output_tokens.map(u64::from),
            finish,
        })
    }
}
