//! What a provider says is read as a reply.

use long_horizon::choice::{BadReply, Choice};
use long_horizon::model::remote::{REPLY_BYTES_MAX, Trouble};
use long_horizon::model::{Finish, Model, Provider, Reply};
use long_horizon::prompt;
use serde_json::{Value, json};

use crate::ask::{called, remote};
use crate::server::Act;
use crate::words::{ANSWER, FLAG, Said, TOKENS, reply};

fn read(provider: Provider, body: &Value) -> Reply {
    called(provider, &[Act::json(body)]).0.reply()
}

fn choice(provider: Provider, said: &[Said<'_>]) -> Result<Choice, BadReply> {
    let reply = read(provider, &reply(provider, said));
    assert_eq!((reply.tokens_in, reply.tokens_out), TOKENS, "{provider:?}");
    Choice::from_reply(&reply)
}

#[test]
fn both_tools_and_plain_text_are_understood() {
    for provider in Provider::ALL {
        let text = "Yes, it is.".to_owned();
        assert_eq!(
            choice(provider, &[Said::Text("Let me see."), ANSWER]),
            Ok(Choice::Answer { text: text.clone(), citations: vec!["posix#1".into()] })
        );
        let reason = "they disagree".to_owned();
        assert_eq!(choice(provider, &[FLAG]), Ok(Choice::Flag { reason }));
        assert_eq!(
            choice(provider, &[Said::Text("Yes, "), Said::Text("it is.")]),
            Ok(Choice::Answer { text, citations: vec![] })
        );
    }
}

#[test]
fn what_is_no_decision_is_handed_on_as_it_came() {
    for provider in Provider::ALL {
        let said = [Said::Call("launch", "{}")];
        assert_eq!(choice(provider, &said), Err(BadReply::UnknownTool { name: "launch".into() }));
        let said = [Said::Call("answer", r#"{"text":7,"citations":[]}"#)];
        assert!(matches!(choice(provider, &said), Err(BadReply::BadArguments { .. })));
        assert!(matches!(choice(provider, &[ANSWER, FLAG]), Err(BadReply::SeveralCalls { .. })));
        assert_eq!(choice(provider, &[]), Err(BadReply::Empty));
    }
}

#[test]
fn arguments_are_handed_on_to_the_letter() {
    // A document in memory would keep one of the two texts, and round the number.
    let arguments = r#"{ "text":"a", "text":"b", "n":1.00000000000000000001 }"#;
    let bodies = [
        (
            Provider::Anthropic,
            format!(r#"{{"content":[{{"type":"tool_use","name":"answer","input":{arguments}}}]}}"#),
        ),
        (
            Provider::Ollama,
            format!(
                r#"{{"message":{{"tool_calls":[{{"function":{{"name":"answer","arguments":{arguments}}}}}]}},"done":true}}"#
            ),
        ),
        (
            Provider::OpenAi,
            format!(
                r#"{{"choices":[{{"message":{{"tool_calls":[{{"function":{{"name":"answer","arguments":{}}}}}]}}}}]}}"#,
                json!(arguments)
            ),
        ),
    ];
    for (provider, body) in bodies {
        let reply = called(provider, &[Act::reply(200, "", &body)]).0.reply();
        assert_eq!(reply.calls[0].arguments, arguments, "{provider:?}");
    }
}

#[test]
fn a_reply_that_the_limit_cut_says_so() {
    for (provider, place) in [
        (Provider::Anthropic, "/stop_reason"),
        (Provider::OpenAi, "/choices/0/finish_reason"),
        (Provider::Ollama, "/done_reason"),
    ] {
        let mut body = reply(provider, &[Said::Text("half an ans")]);
        let is_anthropic = provider == Provider::Anthropic;
        *body.pointer_mut(place).unwrap() =
            if is_anthropic { "max_tokens" } else { "length" }.into();
        assert_eq!(read(provider, &body).finish, Finish::Length, "{provider:?}");
    }
}

#[test]
fn an_answer_that_is_withheld_is_no_answer() {
    let mut refused = reply(Provider::OpenAi, &[]);
    refused["choices"][0]["message"]["refusal"] = "I will not.".into();
    let mut filtered = reply(Provider::OpenAi, &[Said::Text("The")]);
    filtered["choices"][0]["finish_reason"] = "content_filter".into();
    let mut stopped = reply(Provider::Anthropic, &[Said::Text("I will")]);
    stopped["stop_reason"] = "refusal".into();
    for (provider, body, words) in [
        (Provider::OpenAi, refused, "I will not."),
        (Provider::OpenAi, filtered, "content_filter"),
        (Provider::Anthropic, stopped, "refusal"),
    ] {
        let (called, server) = called(provider, &[Act::json(&body)]);
        assert_eq!(*called.trouble(), Trouble::Withheld { why: words.into() });
        server.only();
    }
}

#[test]
fn tokens_that_nobody_counted_are_estimated_and_never_none() {
    for (provider, counts) in [
        (Provider::Anthropic, &["usage"][..]),
        (Provider::OpenAi, &["usage"]),
        (Provider::Ollama, &["prompt_eval_count", "eval_count"]),
    ] {
        let mut body = reply(provider, &[ANSWER]);
        for count in counts {
            body.as_object_mut().unwrap().remove(*count);
        }
        let reply = read(provider, &body);
        let messages = prompt::messages(&["an earlier note".to_owned()], &[], "Is it so?");
        let model = remote(provider, "http://127.0.0.1:1");
        assert_eq!(reply.tokens_in, model.count_tokens(&messages, &prompt::tools()));
        assert!(reply.tokens_in > model.count_tokens(&messages, &[]), "tools are not free");
        assert!(model.count_tokens(&messages, &[]) > 100, "{provider:?}");
        assert!(reply.tokens_out >= 15, "{provider:?}: {}", reply.tokens_out);
    }
}

#[test]
fn a_reply_may_be_as_long_as_the_limit_and_no_longer() {
    let mut body = reply(Provider::OpenAi, &[ANSWER]).to_string();
    body += &" ".repeat(REPLY_BYTES_MAX - body.len());
    let reply = |body: &str| called(Provider::OpenAi, &[Act::reply(200, "", body)]).0;
    assert_eq!(reply(&body).reply().calls.len(), 1);
    body.push(' ');
    assert_eq!(*reply(&body).trouble(), Trouble::TooLong);
}

#[test]
fn a_key_that_the_server_repeats_is_hidden() {
    let said = format!("your key is {}", crate::ask::KEY);
    for provider in Provider::ALL {
        let reply = read(provider, &reply(provider, &[Said::Text(&said)]));
        assert_eq!(reply.text, "your key is [key]", "{provider:?}");
    }
}
