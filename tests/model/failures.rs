//! What is tried again, what is not, and what is said about it.

use std::time::Duration;

use long_horizon::model::Provider;
use long_horizon::model::remote::Trouble;

use crate::ask::{Called, KEY, RETRIES, call, called};
use crate::server::{Act, Server};
use crate::words::{ANSWER, reply};

/// Too short for any wait of these tests.
const MOMENT: Duration = Duration::from_millis(200);

fn good() -> Act {
    Act::json(&reply(Provider::OpenAi, &[ANSWER]))
}

/// How the call ended, and how many requests the server got.
fn openai(acts: &[Act]) -> (Called, usize) {
    let (called, server) = called(Provider::OpenAi, acts);
    (called, server.received().len())
}

fn says(called: &Called, words: &[&str]) {
    let told = called.error().to_string();
    for word in words {
        assert!(told.contains(word), "`{word}` is missing: {told}");
    }
    assert!(told.starts_with("openai at http://127.0.0.1:"), "{told}");
    assert!(!told.contains(KEY), "{told}");
    assert!(!told.chars().any(long_horizon::words::misleads), "{told}");
}

fn status(status: u16, headers: &str) -> Act {
    let body = r#"{"error": {"message": "in\u001b[2J\nwords"}}"#;
    Act::reply(status, headers, body)
}

#[test]
fn what_may_pass_is_tried_again_until_it_succeeds() {
    for act in [
        status(429, ""),
        status(500, ""),
        status(503, ""),
        status(529, ""),
        Act::cut(),
        Act::reset(),
        Act::Send(Vec::new()),
    ] {
        let (called, requests) = openai(&[act.clone(), act.clone(), good()]);
        assert_eq!(requests, 3, "{act:?}: {called:?}");
        assert_eq!(called.slept_ms, [500, 1_000], "{act:?}");
        assert_eq!(called.reply().calls.len(), 1);
    }
}

#[test]
fn tries_are_bounded_and_the_last_failure_is_told() {
    for (act, words) in [
        (status(503, ""), "status 503: `in\\u{1b}[2J words` (tried 3 times); run again later"),
        (status(429, ""), "status 429: `in\\u{1b}[2J words` (tried 3 times); run again later"),
        (Act::cut(), "the connection broke"),
        (Act::reset(), "the connection broke"),
    ] {
        let acts = vec![act; RETRIES as usize + 2];
        let (called, requests) = openai(&acts);
        assert_eq!(requests, RETRIES as usize + 1);
        says(&called, &[words]);
    }
}

#[test]
fn a_refused_connection_is_tried_again_and_told() {
    let called = call(Provider::OpenAi, &Server::nowhere(), Duration::from_secs(60));
    assert!(matches!(called.trouble(), Trouble::Unreachable { .. }), "{called:?}");
    assert_eq!(called.slept_ms, [500, 1_000]);
    says(
        &called,
        &["cannot connect: ", "refused", "(tried 3 times)", "check that the server runs"],
    );
}

#[test]
fn a_server_whose_name_leads_nowhere_cannot_be_reached() {
    // Too long for a name, so that nobody is asked for it.
    let url = format!("http://{}.invalid", "x".repeat(64));
    let called = call(Provider::OpenAi, &url, Duration::from_secs(60));
    assert!(matches!(called.trouble(), Trouble::Unreachable { .. }), "{called:?}");
    assert_eq!(called.slept_ms, [500, 1_000]);
}

#[test]
fn what_is_the_callers_fault_is_not_tried_again() {
    for (act, words) in [
        (status(400, ""), "status 400: `in\\u{1b}[2J words`; check that the model"),
        (status(401, ""), "; check the key in OPENAI_API_KEY"),
        (status(403, ""), "; check the key in OPENAI_API_KEY"),
        (status(404, "Retry-After: 1\r\n"), "; check the model's name and --base-url"),
        (status(422, ""), "status 422"),
        (Act::reply(404, "", "<html>\n<p>none such"), "status 404: `<html> <p>none such`"),
        (Act::reply(400, "", ""), "status 400; "),
    ] {
        let (called, requests) = openai(&[act, good()]);
        assert_eq!(requests, 1, "{words}");
        says(&called, &[words]);
    }
}

#[test]
fn retry_after_is_granted_in_seconds_and_as_a_date() {
    for (header, slept_ms) in [
        ("Retry-After: 7\r\n", 7_000),
        ("retry-after: Sun, 01 Mar 2026 12:00:09 GMT\r\n", 9_000),
        ("Retry-After: 0\r\n", 500),
        ("Retry-After: soon\r\n", 500),
    ] {
        for code in [429, 503] {
            let (called, requests) = openai(&[status(code, header), good()]);
            assert_eq!((requests, &called.slept_ms[..]), (2, &[slept_ms][..]), "{header}");
        }
    }
}

#[test]
fn a_retry_after_beyond_the_time_limit_ends_the_call_at_once() {
    let (called, requests) = openai(&[status(429, "Retry-After: 3600\r\n"), good()]);
    assert_eq!((requests, called.slept_ms.len()), (1, 0));
    says(&called, &["status 429", "would have to wait 3600 s, and ", "--timeout"]);
}

#[test]
fn a_redirect_is_not_followed() {
    let elsewhere = Server::start([good()]);
    for code in [301, 302, 303, 307, 308] {
        let header = format!("Location: {}/\r\n", elsewhere.url());
        let (called, requests) = openai(&[status(code, &header)]);
        assert_eq!(requests, 1);
        says(&called, &[&format!("status {code}"), "a redirect is not followed"]);
    }
    assert!(elsewhere.received().is_empty());
}

#[test]
fn a_reply_that_does_not_come_ends_at_the_time_limit() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"half\":".to_vec();
    for act in [Act::Stall(Vec::new()), Act::Stall(head[..20].to_vec()), Act::Stall(head)] {
        let server = Server::start([act]);
        let called = call(Provider::OpenAi, &server.url(), MOMENT);
        assert!(matches!(called.trouble(), Trouble::TimedOut { .. }), "{called:?}");
        says(&called, &["no whole reply within the 0.2 s", "--timeout"]);
        server.only();
    }
}

#[test]
fn the_time_limit_is_for_all_tries_together() {
    let server = Server::start([status(503, ""), Act::Stall(Vec::new())]);
    let wait = Duration::from_millis(500);
    let called = call(Provider::OpenAi, &server.url(), wait + MOMENT);
    assert_eq!(*called.trouble(), Trouble::TimedOut { limit: MOMENT });
    assert_eq!((server.received().len(), called.error().tries), (2, 2));
}

#[test]
fn an_error_whose_words_do_not_end_is_told_all_the_same() {
    let head = b"HTTP/1.1 400 Bad\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    let (called, _) = openai(&[Act::Repeat(head, b"5\r\nwords\r\n".to_vec())]);
    says(&called, &["status 400: `wordswords", " ...`"]);
}

#[test]
fn a_reply_without_an_end_is_given_up() {
    let header = b"HTTP/1.1 200 OK\r\nX-More: ".to_vec();
    for act in [Act::endless(), Act::Repeat(header, vec![b'x'; 0x1000])] {
        let (called, requests) = openai(&[act, good()]);
        assert_eq!((called.trouble(), requests), (&Trouble::TooLong, 1));
        says(&called, &["longer than 1048576 bytes"]);
    }
}

#[test]
fn what_is_not_http_is_given_up() {
    for act in [
        Act::Send(b"SSH-2.0-OpenSSH_9.9\r\n".to_vec()),
        Act::Send(b"HTTP/1.1 two hundred\r\n\r\n".to_vec()),
        Act::Repeat(b"HTTP/1.1 200 OK\r\n".to_vec(), b"X-More: and more\r\n".to_vec()),
    ] {
        let (called, requests) = openai(&[act, good()]);
        assert_eq!(requests, 1, "{called:?}");
        says(&called, &["no proper HTTP"]);
    }
}

#[test]
fn a_reply_that_is_not_json_is_told_with_its_beginning() {
    for body in ["<html>\u{1b}[2J</html>", "", "{\"choices\": [", "\u{feff}{}"] {
        let (called, requests) = openai(&[Act::reply(200, "", body), good()]);
        assert_eq!(requests, 1);
        assert!(matches!(called.trouble(), Trouble::NotJson { .. }), "{body}: {called:?}");
        says(&called, &["the reply is not JSON: ", "--base-url"]);
    }
    let latin = [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n".as_slice(), b"\"caf\xe9"].concat();
    says(&openai(&[Act::Send(latin)]).0, &["the reply is not JSON: ", "utf-8"]);
}

#[test]
fn json_of_another_shape_is_told_for_each_provider() {
    let any = ["[]", "{}", "null", "7", r#""text""#, r#"{"error": "overloaded"}"#];
    let own: [(Provider, &[&str]); 3] = [
        (
            Provider::Anthropic,
            &[
                r#"{"content": "text"}"#,
                r#"{"content": null}"#,
                r#"{"content": [{"type": "text"}]}"#,
                r#"{"content": [{"type": "tool_use", "name": "answer"}]}"#,
                r#"{"content": [{"type": "tool_use", "name": "answer", "input": null}]}"#,
                r#"{"content": [], "usage": {"input_tokens": -1}}"#,
                r#"{"content": [], "usage": {"output_tokens": 18446744073709551615}}"#,
            ],
        ),
        (
            Provider::OpenAi,
            &[
                r#"{"choices": []}"#,
                r#"{"choices": [{}]}"#,
                r#"{"choices": [{"message": null}]}"#,
                r#"{"choices": [{"message": {"content": ["text"]}}]}"#,
                r#"{"choices": [{"message": {"tool_calls": [{"function": {"name": "answer"}}]}}]}"#,
                r#"{"choices": [{"message": {"tool_calls": [{"function": {"name": "answer", "arguments": {}}}]}}]}"#,
                r#"{"choices": [{"message": {}}], "usage": {"prompt_tokens": 4294967296}}"#,
            ],
        ),
        (
            Provider::Ollama,
            &[
                r#"{"message": {"content": "half"}, "done": false}"#,
                r#"{"message": {"content": "text"}}"#,
                r#"{"message": "text", "done": true}"#,
                r#"{"message": {"tool_calls": [{"function": {"name": "answer"}}]}, "done": true}"#,
                r#"{"message": {"content": ""}, "done": true, "eval_count": 1.5}"#,
            ],
        ),
    ];
    for (provider, bodies) in own {
        for body in any.iter().chain(bodies) {
            let (called, server) = called(provider, &[Act::reply(200, "", body)]);
            assert!(
                matches!(called.trouble(), Trouble::WrongShape { .. }),
                "{provider:?} {body}: {called:?}"
            );
            let told = called.error().to_string();
            assert!(told.contains("another shape than expected: "), "{told}");
            server.only();
        }
    }
}

#[test]
fn a_key_that_an_error_repeats_is_hidden_also_where_the_excerpt_ends_in_it() {
    let long = format!("{}{KEY}", "x".repeat(280));
    let escaped = format!("\\u{:04x}{}", u32::from(KEY.as_bytes()[0]), &KEY[1..]);
    let json = |words: &str| {
        [
            Act::reply(401, "", &format!(r#"{{"error": "{words}"}}"#)),
            Act::reply(400, "", &format!(r#"{{"other": "{words}"}}"#)),
            Act::reply(200, "", &format!(r#"{{"choices": "{words}"}}"#)),
        ]
    };
    let plain = |words: &str| [Act::reply(400, "", words), Act::reply(200, "", words)];
    let acts = [json(KEY), json(&long), json(&escaped)].into_iter().flatten();
    for act in acts.chain([plain(KEY), plain(&long)].into_iter().flatten()) {
        let told = openai(std::slice::from_ref(&act)).0.error().to_string();
        assert!(!told.contains(&KEY[1..9]), "{act:?}: {told}");
        assert!(!told.contains(&KEY[KEY.len() - 8..]), "{act:?}: {told}");
        assert!(told.contains("[key]") || told.contains("[ke ..."), "{act:?}: {told}");
    }
}
