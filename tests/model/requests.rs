//! What is sent is what each provider's API takes.

use insta::assert_snapshot;
use long_horizon::model::Provider;

use crate::ask::{KEY, called, remote};
use crate::server::{Act, Received};
use crate::words::{ANSWER, reply};

fn request(provider: Provider) -> Received {
    let (_, server) = called(provider, &[Act::json(&reply(provider, &[ANSWER]))]);
    server.only()
}

#[test]
fn the_body_is_in_the_providers_own_format() {
    for provider in Provider::ALL {
        let body = request(provider).json();
        let body = serde_json::to_string_pretty(&body).unwrap();
        assert_snapshot!(format!("request-{}", provider.name()), body);
    }
}

#[test]
fn the_head_names_the_path_and_holds_the_key_where_the_provider_looks_for_it() {
    for (provider, line, key) in [
        (Provider::Anthropic, "POST /v1/messages HTTP/1.1", format!("x-api-key: {KEY}")),
        (
            Provider::OpenAi,
            "POST /chat/completions HTTP/1.1",
            format!("authorization: Bearer {KEY}"),
        ),
        (Provider::Ollama, "POST /api/chat HTTP/1.1", format!("authorization: Bearer {KEY}")),
    ] {
        let Received { head, body } = request(provider);
        let lines: Vec<&str> = head.lines().collect();
        assert_eq!(lines[0], line);
        assert!(lines.contains(&key.as_str()), "{head}");
        assert!(lines.contains(&"content-type: application/json"), "{head}");
        assert_eq!(
            lines.contains(&"anthropic-version: 2023-06-01"),
            provider == Provider::Anthropic,
            "{head}"
        );
        assert_eq!(head.matches(KEY).count(), 1, "{head}");
        assert!(!body.contains(KEY), "{body}");
    }
}

#[test]
fn a_model_shows_everything_but_its_key() {
    let shown = format!("{:?}", remote(Provider::OpenAi, "http://127.0.0.1:1"));
    assert!(shown.contains("some-model") && shown.contains("http://127.0.0.1:1"), "{shown}");
    assert!(!shown.contains(&KEY[..8]), "{shown}");
}
