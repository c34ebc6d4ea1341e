//! `stub`: answers every question with the text of its first source.

use super::{
    Finish, Message, Model, ModelError, Reply, Request, Tool, ToolCall, stub_tokens, stub_tokens_in,
};
use crate::prompt;

/// Answers with the text of the first source, as much of it as fits into the reply, and cites it; flags the question where there is no
/// source. For trying things out: the answer is what retrieval found, nothing more.
#[derive(Debug, Clone, Copy, Default)]
pub struct Echo;

impl Model for Echo {
    fn count_tokens(&self, messages: &[Message], _: &[Tool]) -> u64 {
        stub_tokens_in(messages)
    }

    fn complete(&self, request: &Request<'_>) -> Result<Reply, ModelError> {
        let message = prompt::last_user_message(request.messages);
        let call = match prompt::first_source(message) {
            Some((label, text)) => ToolCall {
                name: prompt::ANSWER.to_owned(),
                arguments: answer_that_fits(label, text, request.max_tokens),
            },
            None => ToolCall {
                name: prompt::FLAG.to_owned(),
                arguments:
                    serde_json::json!({"reason": "no section of the corpus matches the question"})
                        .to_string(),
            },
        };
        Ok(Reply {
            text: String::new(),
            tokens_in: stub_tokens_in(request.messages),
            tokens_out: stub_tokens(&call.arguments),
            calls: vec![call],
            finish: Finish::Done,
        })
    }
}

/// Drops words from the end until the arguments fit.
fn answer_that_fits(label: &str, text: &str, max_tokens: u32) -> String {
    let mut kept = text.trim_end();
    loop {
        let arguments = serde_json::json!({"text": kept, "citations": [label]}).to_string();
        if stub_tokens(&arguments) <= u64::from(max_tokens) {
            return arguments;
        }
        match kept.rfind(char::is_whitespace) {
            Some(end) => kept = kept[..end].trim_end(),
            None => return arguments,
        }
    }
}
