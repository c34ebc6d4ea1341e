//! `openai:ID`: [chat completions](https://platform.openai.com/docs/api-reference/chat), at OpenAI or any server that offers the same.

use serde::Deserialize;
use serde_json::{Value, json};

use super::access::Key;
use super::api::{Api, Ask, Completion, Header, bearer, chat_messages, function, parse};
use super::error::Trouble;
use crate::model::{Finish, ToolCall};

#[derive(Debug)]
pub(super) struct OpenAi;

#[derive(Deserialize)]
struct Chat {
    choices: Vec<Choice>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
    refusal: Option<String>,
    tool_calls: Option<Vec<Call>>,
}

#[derive(Deserialize)]
struct Call {
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    arguments: String,
}

#[derive(Default, Deserialize)]
struct Usage {
    prompt_tokens: Option<u32>,
    completion_tokens: Option<u32>,
}

impl Api for OpenAi {
    fn name(&self) -> &'static str {
        "openai"
    }

    fn base_url(&self) -> &'static str {
        "https://api.openai.com/v1"
    }

    fn path(&self) -> &'static str {
        "/chat/completions"
    }

    fn key_variable(&self) -> &'static str {
        "OPENAI_API_KEY"
    }

    fn needs_key(&self) -> bool {
        true
    }

    fn headers(&self, key: Option<&Key>) -> Vec<Header> {
        key.map(bearer).into_iter().collect()
    }

    fn body(&self, ask: &Ask<'_>) -> Value {
        // OpenAI's newer models refuse the old name; other servers may know no other, and would set no limit at all.
        let limit = match ask.base_url == self.base_url() {
            true => "max_completion_tokens",
            false => "max_tokens",
        };
        json!({
            "model": ask.model,
            limit: ask.request.max_tokens,
            "messages": chat_messages(ask.request.messages),
            "tools": ask.request.tools.iter().map(function).collect::<Vec<_>>(),
            "parallel_tool_calls": false,
        })
    }

    fn read(&self, body: &str) -> Result<Completion, Trouble> {
        let chat: Chat = parse(body)?;
        let Some(choice) = chat.choices.into_iter().next() else {
            return Err(Trouble::wrong_shape(&"`choices` is empty", body));
        };
        let finish = match choice.finish_reason.as_deref() {
            Some("length") => Finish::Length,
            Some(reason @ "content_filter") => return Err(Trouble::withheld(reason)),
            _ => Finish::Done,
        };
        if let Some(refusal) = choice.message.refusal.filter(|words| !words.is_empty()) {
            return Err(Trouble::withheld(&refusal));
        }
        let calls =
            choice.message.tool_calls.unwrap_or_default().into_iter().map(|call| ToolCall {
                name: call.function.name,
                arguments: call.function.arguments,
            });
        let usage = chat.usage.unwrap_or_default();
        Ok(Completion {
            text: choice.message.content.unwrap_or_default(),
            calls: calls.collect(),
            tokens_in: usage.prompt_tokens.map(u64::from),
            tokens_out: usage.completion_tokens.map(u64::from),
            finish,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::model::Request;

    #[test]
    fn openai_itself_is_told_the_limit_by_its_new_name_and_others_by_the_old_one() {
        let request =
            Request { messages: &[], tools: &[], max_tokens: 300, deadline: Instant::now() };
        for (base_url, name, other) in [
            ("https://api.openai.com/v1", "max_completion_tokens", "max_tokens"),
            ("http://127.0.0.1:8080/v1", "max_tokens", "max_completion_tokens"),
        ] {
            let body = OpenAi.body(&Ask { model: "m", base_url, request: &request });
            assert_eq!((&body[name], body.get(other)), (&json!(300), None));
        }
    }
}
