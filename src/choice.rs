//! What the model decided: the reply, checked against the two tools. Pure.

use serde::Deserialize;

use crate::model::{Finish, Reply, ToolCall};
use crate::prompt::{ANSWER, FLAG};

/// The one decision of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// Record this.
    Answer {
        /// The answer.
        text: String,
        /// Sections of the corpus, as `file#N`.
        citations: Vec<String>,
    },
    /// A person must decide.
    Flag {
        /// Why.
        reason: String,
    },
}

/// Why a reply is no decision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadReply {
    /// The limit of tokens cut it off.
    #[error("the model's reply was cut short at the limit of tokens")]
    CutShort,
    /// More than one tool call.
    #[error("the model called {} tools at once ({}); one was expected", names.len(), names.join(", "))]
    SeveralCalls {
        /// The tools, in order.
        names: Vec<String>,
    },
    /// A tool that was not offered.
    #[error("the model called `{name}`, which is no tool here; there are `{ANSWER}` and `{FLAG}`")]
    UnknownTool {
        /// The tool.
        name: String,
    },
    /// Arguments that do not fit the tool's schema.
    #[error("the model called `{tool}` with wrong arguments: {why}")]
    BadArguments {
        /// The tool.
        tool: &'static str,
        /// What is wrong, and where.
        why: String,
    },
    /// Neither text nor a call.
    #[error("the model's reply is empty")]
    Empty,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerArguments {
    text: String,
    citations: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FlagArguments {
    reason: String,
}

impl Choice {
    /// Reads the decision from a reply. Plain text without a tool call is an answer without citations.
    ///
    /// # Errors
    ///
    /// [`BadReply`]; nothing may be recorded then.
    pub fn from_reply(reply: &Reply) -> Result<Self, BadReply> {
        if reply.finish == Finish::Length {
            return Err(BadReply::CutShort);
        }
        match reply.calls.as_slice() {
            [] if reply.text.trim().is_empty() => Err(BadReply::Empty),
            [] => Ok(Choice::Answer { text: reply.text.clone(), citations: Vec::new() }),
            [call] => Self::from_call(call),
            calls => Err(BadReply::SeveralCalls {
                names: calls.iter().map(|call| call.name.clone()).collect(),
            }),
        }
    }

    fn from_call(call: &ToolCall) -> Result<Self, BadReply> {
        match call.name.as_str() {
            ANSWER => {
                let AnswerArguments { text, citations } = arguments(ANSWER, call)?;
                Ok(Choice::Answer { text, citations })
            }
            FLAG => {
                let FlagArguments { reason } = arguments(FLAG, call)?;
                Ok(Choice::Flag { reason })
            }
            name => Err(BadReply::UnknownTool { name: name.to_owned() }),
        }
    }

    /// The sections cited; none where the question was flagged.
    pub fn citations(&self) -> &[String] {
        match self {
            Choice::Answer { citations, .. } => citations,
            Choice::Flag { .. } => &[],
        }
    }
}

fn arguments<'de, T: Deserialize<'de>>(
    tool: &'static str,
    call: &'de ToolCall,
) -> Result<T, BadReply> {
    let wrong = |why: String| BadReply::BadArguments { tool, why };
    // serde would also take the fields from a list, in order.
    if !call.arguments.trim_start().starts_with('{') {
        return Err(wrong("expected a JSON object".to_owned()));
    }
    serde_json::from_str(&call.arguments).map_err(|error| wrong(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(text: &str, calls: &[(&str, &str)]) -> Reply {
        Reply {
            text: text.to_owned(),
            calls: calls
                .iter()
                .map(|(name, arguments)| ToolCall {
                    name: (*name).to_owned(),
                    arguments: (*arguments).to_owned(),
                })
                .collect(),
            tokens_in: 0,
            tokens_out: 0,
            finish: Finish::Done,
        }
    }

    #[test]
    fn one_well_formed_call_is_a_choice() {
        let answer =
            reply("thinking aloud", &[(ANSWER, r#" {"citations": ["a#1"], "text": "yes"}"#)]);
        assert_eq!(
            Choice::from_reply(&answer),
            Ok(Choice::Answer { text: "yes".into(), citations: vec!["a#1".into()] })
        );
        let flag = reply("", &[(FLAG, r#"{"reason": "sources disagree"}"#)]);
        assert_eq!(
            Choice::from_reply(&flag),
            Ok(Choice::Flag { reason: "sources disagree".into() })
        );
    }

    #[test]
    fn plain_text_is_an_answer_without_citations() {
        assert_eq!(
            Choice::from_reply(&reply("just so", &[])),
            Ok(Choice::Answer { text: "just so".into(), citations: vec![] })
        );
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let wrong = [
            (ANSWER, r#"{"text": 7, "citations": []}"#),
            (ANSWER, r#"{"text": null, "citations": []}"#),
            (ANSWER, r#"{"text": "a", "citations": "a#1"}"#),
            (ANSWER, r#"{"text": "a", "citations": [1]}"#),
            (ANSWER, r#"{"text": "a", "citations": null}"#),
            (ANSWER, r#"{"text": "a"}"#),
            (ANSWER, r#"{"citations": []}"#),
            (ANSWER, r#"{"text": "a", "citations": [], "mood": "good"}"#),
            (ANSWER, r#"{"text": "a", "text": "b", "citations": []}"#),
            (ANSWER, r#"["a", []]"#),
            (ANSWER, r#""a""#),
            (ANSWER, "null"),
            (ANSWER, ""),
            (ANSWER, r#"{"text": "a", "citations": []} {}"#),
            (FLAG, "{}"),
            (FLAG, r#"{"reason": ["a"]}"#),
            (FLAG, r#"{"reason": "a", "text": "b"}"#),
            (FLAG, r#"["a"]"#),
        ];
        for (tool, arguments) in wrong {
            let result = Choice::from_reply(&reply("", &[(tool, arguments)]));
            assert!(
                matches!(result, Err(BadReply::BadArguments { .. })),
                "{tool} {arguments}: {result:?}"
            );
        }
    }

    #[test]
    fn unknown_tools_several_calls_cut_and_empty_replies_are_refused() {
        let unknown = reply("", &[("launch", "{}")]);
        assert!(matches!(Choice::from_reply(&unknown), Err(BadReply::UnknownTool { .. })));

        let good = (ANSWER, r#"{"text": "a", "citations": []}"#);
        for calls in [[good, (FLAG, r#"{"reason": "b"}"#)], [good, good]] {
            assert!(matches!(
                Choice::from_reply(&reply("", &calls)),
                Err(BadReply::SeveralCalls { .. })
            ));
        }

        let mut cut = reply("half an ans", &[]);
        cut.finish = Finish::Length;
        assert_eq!(Choice::from_reply(&cut), Err(BadReply::CutShort));
        for nothing in ["", " \n"] {
            assert_eq!(Choice::from_reply(&reply(nothing, &[])), Err(BadReply::Empty));
        }
    }
}
