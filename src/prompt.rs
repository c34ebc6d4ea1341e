//! What a session tells the model: the notes, the sources and the question; never an earlier session's messages.

use serde_json::json;

use crate::corpus::Section;
use crate::model::{Message, Role, Tool};

/// The tool that records an answer.
pub const ANSWER: &str = "answer";
/// The tool that hands the question to a person.
pub const FLAG: &str = "flag_for_review";

const SYSTEM: &str = "You work through a queue of questions, one in each session, and nobody is watching. \
Answer from the sources alone and cite each section that you use by its label, such as `rename#2`. \
Where the sources contradict each other or do not hold the answer, do not guess: flag the question for a person and say why. \
Call exactly one tool, once.";

const SOURCES: &str = "Sources:\n\n";
const QUESTION: &str = "\n\nQuestion: ";

/// The messages of one session.
pub fn messages(notes: &[String], sources: &[&Section], question: &str) -> Vec<Message> {
    let notes = match notes {
        [] => "(none yet)".to_owned(),
        _ => notes.iter().map(|note| format!("- {note}")).collect::<Vec<_>>().join("\n"),
    };
    let sources = match sources {
        [] => "(none)".to_owned(),
        _ => sources
            .iter()
            .map(|s| format!("[{}] {}\n{}", s.cite(), s.title, s.text))
            .collect::<Vec<_>>()
            .join("\n\n"),
    };
    vec![
        Message { role: Role::System, content: SYSTEM.to_owned() },
        Message {
            role: Role::User,
            content: format!(
                "What earlier sessions noted:\n{notes}\n\n{SOURCES}{sources}{QUESTION}{question}"
            ),
        },
    ]
}

/// The two tools, of which the model calls one.
pub fn tools() -> Vec<Tool> {
    vec![
        Tool {
            name: ANSWER,
            description: "Record the answer to the question.",
            parameters: json!({
                "type": "object",
                "properties": {
                    "text": {"type": "string", "description": "The answer, from the sources alone."},
                    "citations": {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "Labels of the sections used, such as `rename#2`."
                    }
                },
                "required": ["text", "citations"],
                "additionalProperties": false
            }),
        },
        Tool {
            name: FLAG,
            description: "Hand the question to a person, because the sources contradict each other or do not hold the answer.",
            parameters: json!({
                "type": "object",
                "properties": {
                    "reason": {"type": "string", "description": "What a person has to decide, and why."}
                },
                "required": ["reason"],
                "additionalProperties": false
            }),
        },
    ]
}

/// The last user message: all that a stub looks at.
pub(crate) fn last_user_message(messages: &[Message]) -> &str {
    messages.iter().rev().find(|m| m.role == Role::User).map_or("", |m| m.content.as_str())
}

/// Whether `message` asks exactly `question`.
pub(crate) fn asks(message: &str, question: &str) -> bool {
    message.strip_suffix(question).is_some_and(|before| before.ends_with(QUESTION))
}

/// Label and text of the first source in `message`.
pub(crate) fn first_source(message: &str) -> Option<(&str, &str)> {
    let (_, sources) = message.split_once(SOURCES)?;
    let (label, rest) = sources.strip_prefix('[')?.split_once("] ")?;
    let (_title, body) = rest.split_once('\n')?;
    let end =
        body.find("\n\n[").into_iter().chain(body.rfind(QUESTION)).min().unwrap_or(body.len());
    Some((label, &body[..end]))
}
