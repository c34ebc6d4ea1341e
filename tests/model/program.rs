//! The command with a provider behind it: what it records, what it leaves alone, and that the key is nowhere to be seen.

use long_horizon::checkpoint::Checkpoint;
use long_horizon::model::Provider;
use serde_json::Value;

use crate::ask::KEY;
use crate::command::{Folder, Ran};
use crate::server::{Act, Server};
use crate::words::{ANSWER, FLAG, Said, TOKENS, reply};

const STATE: &str = "long-horizon.json";
const KEYS: [&str; 3] = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OLLAMA_API_KEY"];

/// A folder with two questions in the queue, and a trace that is asked for.
fn queued() -> Folder {
    let folder = Folder::new();
    let checkpoint = Checkpoint::fresh(vec!["Is it so?".into(), "And then?".into()]);
    folder.write(STATE, checkpoint.encode());
    folder
}

/// One session at the server, with the key in the environment, and a JSON line for each thing that it says.
fn run(folder: &Folder, provider: Provider, url: &str, more: &[&str]) -> Ran {
    let model = format!("{}:some-model", provider.name());
    let args = ["run", "--model", &model, "--base-url", url, "--trace", "trace", "--json"];
    let mut command = folder.command(&[&args, more].concat());
    for variable in KEYS {
        command.env(variable, KEY);
    }
    let ran = Ran::from(command.output().unwrap());
    holds_no_key(folder, &ran);
    ran
}

fn holds_no_key(folder: &Folder, ran: &Ran) {
    let held = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(KEY);
    assert!(!held(ran.text().as_bytes()), "{ran:?}");
    for (name, bytes) in folder.files() {
        assert!(!held(&bytes), "{name}");
    }
}

/// The last line of the log.
fn last_event(folder: &Folder) -> Value {
    let log = folder.read("long-horizon.json.log.jsonl");
    serde_json::from_str(log.lines().last().unwrap()).unwrap()
}

#[test]
fn an_answer_and_a_flag_are_recorded_with_the_providers_count_of_tokens() {
    for provider in Provider::ALL {
        let folder = queued();
        let acts = [ANSWER, FLAG].map(|said| Act::json(&reply(provider, &[said])));
        let server = Server::start(acts);
        let ran = run(&folder, provider, &server.url(), &["--until-empty", "--max-tokens", "2000"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");

        let checkpoint = Checkpoint::decode(folder.read(STATE).as_bytes()).unwrap();
        assert_eq!(checkpoint.answers["Is it so?"].text, "Yes, it is.");
        assert_eq!(checkpoint.answers["Is it so?"].citations, ["posix#1"]);
        assert_eq!(checkpoint.pending["And then?"], "they disagree");

        let event = last_event(&folder);
        assert_eq!(
            (&event["tokens_in"], &event["tokens_out"]),
            (&TOKENS.0.into(), &TOKENS.1.into())
        );
        let summary: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
        assert_eq!(summary["budget"]["tokens"]["used"], 2 * (TOKENS.0 + TOKENS.1));
        let asked = server.received();
        assert!(asked[1].body.contains("Is it so? -> Yes, it is."), "the note is carried forward");
    }
}

#[test]
fn the_budget_of_tokens_stops_before_a_call_that_might_not_fit() {
    let folder = queued();
    let server = Server::start([Act::json(&reply(Provider::OpenAi, &[ANSWER]))]);
    let more = ["--until-empty", "--max-tokens", "1000"];
    let ran = run(&folder, Provider::OpenAi, &server.url(), &more);
    let summary: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    assert_eq!((ran.code, &summary["end"]), (Some(0), &"tokens".into()), "{ran:?}");
    server.only();
}

#[test]
fn plain_text_is_an_answer() {
    for provider in Provider::ALL {
        let folder = queued();
        let server = Server::start([Act::json(&reply(provider, &[Said::Text("So it is.")]))]);
        assert_eq!(run(&folder, provider, &server.url(), &[]).code, Some(0));
        let checkpoint = Checkpoint::decode(folder.read(STATE).as_bytes()).unwrap();
        assert_eq!(checkpoint.answers["Is it so?"].text, "So it is.");
    }
}

/// What a server can do wrong, and words of what is then said. Everything that has room for it repeats the key.
fn failures(provider: Provider) -> Vec<(Act, &'static str)> {
    let words = format!(r#"{{"error": {{"message": "not with {KEY}"}}}}"#);
    let status = |status, headers: &str| Act::reply(status, headers, &words);
    let repeated = format!(r#"{{"{KEY}":1}}"#);
    vec![
        (status(400, ""), "status 400: `not with [key]`"),
        (status(401, ""), "status 401: `not with [key]`; check the key in "),
        (status(404, ""), "status 404: `not with [key]`"),
        (status(429, ""), "status 429: `not with [key]`"),
        (status(429, "Retry-After: 9\r\n"), "status 429: `not with [key]`"),
        (status(429, "Retry-After: Sun, 01 Mar 2026 12:00:09 GMT\r\n"), "status 429"),
        (status(500, ""), "status 500: `not with [key]`"),
        (status(503, ""), "status 503: `not with [key]`"),
        (status(307, &format!("Location: http://127.0.0.1:1/{KEY}\r\n")), "is not followed"),
        (Act::cut(), "the connection broke"),
        (Act::reset(), "the connection broke"),
        (Act::endless(), "longer than 1048576 bytes"),
        (Act::Send(format!("{KEY}\r\n\r\n").into_bytes()), "no proper HTTP"),
        (Act::reply(200, "", KEY), "not JSON"),
        (Act::reply(200, "", &repeated), "another shape than expected"),
        (Act::json(&reply(provider, &[])), "the model's reply is empty"),
        (
            Act::json(&reply(provider, &[Said::Call(KEY, "{}")])),
            "called `[key]`, which is no tool here",
        ),
        (
            Act::json(&reply(provider, &[Said::Call("answer", &repeated)])),
            "with wrong arguments: unknown field `[key]`",
        ),
        (Act::json(&reply(provider, &[ANSWER, FLAG])), "called 2 tools at once"),
    ]
}

fn failed(folder: &Folder, before: &str, ran: &Ran, words: &str) {
    assert_eq!(ran.code, Some(1), "{words}: {ran:?}");
    assert!(ran.stderr.contains(words), "`{words}` is missing: {ran:?}");
    assert!(ran.stderr.contains("nothing was written, and the question stays"), "{ran:?}");
    assert_eq!(folder.read(STATE), before, "{words}");
    let event = last_event(folder);
    assert_eq!(event["choice"], "failed", "{words}");
    assert!(event["reason"].as_str().unwrap().contains(words), "{event}");
}

#[test]
fn a_call_that_fails_writes_nothing_and_says_why() {
    for provider in Provider::ALL {
        let folder = queued();
        let before = folder.read(STATE);
        for (act, words) in failures(provider) {
            let server = Server::start([act]);
            let ran = run(&folder, provider, &server.url(), &["--retries", "0"]);
            failed(&folder, &before, &ran, words);
            server.only();
        }
        let ran = run(&folder, provider, &Server::nowhere(), &["--retries", "0"]);
        failed(&folder, &before, &ran, "cannot connect");
        let names: Vec<String> = folder.files().into_keys().collect();
        let companions = ["", ".lock", ".log.jsonl"].map(|end| format!("{STATE}{end}"));
        assert_eq!(names, [&companions[..], &["trace".to_owned()]].concat());
    }
}

#[test]
fn a_server_that_does_not_answer_is_left_at_the_time_limit() {
    let folder = queued();
    let before = folder.read(STATE);
    for limit in ["--timeout", "--max-seconds"] {
        let server = Server::start([Act::Stall(Vec::new())]);
        let ran = run(&folder, Provider::OpenAi, &server.url(), &[limit, "1"]);
        failed(&folder, &before, &ran, "no whole reply within the ");
    }
}

#[test]
fn a_wait_that_the_time_limit_does_not_allow_is_told_at_once() {
    let folder = queued();
    let before = folder.read(STATE);
    let server = Server::start([Act::reply(429, "Retry-After: 3600\r\n", "")]);
    let ran = run(&folder, Provider::Anthropic, &server.url(), &[]);
    failed(&folder, &before, &ran, "would have to wait 3600 s");
}

/// What is refused before anything is touched.
fn refused(folder: &Folder, args: &[&str], key: Option<&str>) -> String {
    let before = folder.files();
    let mut command = folder.command(args);
    for variable in KEYS {
        command.env_remove(variable);
        if let Some(key) = key {
            command.env(variable, key);
        }
    }
    let ran = Ran::from(command.output().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    assert_eq!(folder.files(), before);
    ran.stderr
}

#[test]
fn without_a_key_nothing_is_touched() {
    for (model, variable) in
        [("anthropic:some-model", "ANTHROPIC_API_KEY"), ("openai:some-model", "OPENAI_API_KEY")]
    {
        let folder = Folder::new();
        // Not even looked at.
        folder.write(STATE, "damaged");
        for key in [None, Some("")] {
            let told = refused(&folder, &["run", "--model", model, "--trace", "trace"], key);
            assert!(told.contains("needs a key") && told.contains(variable), "{told}");
        }
        let told = refused(&folder, &["run", "--model", model], Some("sk-torn\n0123456789"));
        assert!(told.contains(variable) && !told.contains("sk-torn"), "{told}");
    }
}

#[test]
fn ollama_needs_no_key_and_sends_none() {
    let folder = queued();
    let server = Server::start([Act::json(&reply(Provider::Ollama, &[ANSWER]))]);
    let mut command =
        folder.command(&["run", "--model", "ollama:some-model", "--base-url", &server.url()]);
    let ran = Ran::from(command.env_remove("OLLAMA_API_KEY").output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!server.only().head.contains("authorization"));
}

#[test]
fn an_address_that_cannot_be_used_is_refused_and_not_repeated() {
    let folder = Folder::new();
    for (model, url, words) in [
        ("openai:m", "http://ann:hunter2@127.0.0.1", "no user name or password"),
        ("openai:m", "http://127.0.0.1/?key=hunter2", "without `?` or `#`"),
        ("ollama:m", "127.0.0.1:hunter2", "such as `http://127.0.0.1:11434`"),
        ("stub", "http://127.0.0.1/hunter2", "`stub` has no server"),
    ] {
        let told = refused(&folder, &["run", "--model", model, "--base-url", url], Some(KEY));
        assert!(told.contains(words) && !told.contains("hunter2"), "{told}");
    }
    for args in [["--timeout", "0"], ["--timeout", "soon"], ["--retries", "-1"]] {
        refused(&folder, &[&["run", "--model", "openai:m"], &args[..]].concat(), Some(KEY));
    }
}

#[test]
fn a_proxy_is_asked_for_a_tunnel_and_sees_neither_key_nor_question() {
    let folder = queued();
    let proxy = Server::start([Act::reply(502, "", "")]);
    let model = ["run", "--model", "openai:m", "--retries", "0", "--base-url"];
    let run = |url: &str| {
        let mut command = folder.command(&[&model[..], &[url]].concat());
        for variable in ["ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"] {
            command.env_remove(variable).env_remove(variable.to_lowercase());
        }
        command.env("HTTPS_PROXY", proxy.url()).env("HTTP_PROXY", proxy.url());
        Ran::from(command.env("OPENAI_API_KEY", KEY).output().unwrap())
    };
    let ran = run("https://models.invalid");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("cannot connect"), "{ran:?}");
    let asked = proxy.only();
    assert!(asked.head.starts_with("CONNECT models.invalid:443 "), "{asked:?}");
    assert!(!asked.head.contains(KEY) && asked.body.is_empty(), "{asked:?}");

    let server = Server::start([Act::json(&reply(Provider::OpenAi, &[ANSWER]))]);
    assert_eq!(run(&server.url()).code, Some(0));
    server.only();
    proxy.only();
}
