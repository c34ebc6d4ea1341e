//! Good: no subject of its own, but a provider for one that calls a model over HTTP. It listens on a free port of loopback, then
//! runs `canned-provider PROGRAM ARGUMENTS...` with `--base-url http://127.0.0.1:PORT` behind the arguments, and ends as that does.
//!
//! Each request is answered like OpenAI's chat completions, always with the same call of the tool `answer`. It passes the mark
//! `call-open` when a request is there and its reply is not, so that the caller can be killed while it waits.

use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, ExitCode};

use crashlab_subjects::{finish, mark};
use serde_json::json;

fn main() -> ExitCode {
    match serve_and_run() {
        Ok(code) => code,
        Err(error) => finish(Err(error)),
    }
}

fn serve_and_run() -> Result<ExitCode, String> {
    let mut arguments = env::args_os().skip(1);
    let program = arguments.next().ok_or("say which program to run, and its arguments")?;
    let listener = TcpListener::bind("127.0.0.1:0")
        .map_err(|error| format!("cannot listen on loopback: {error}"))?;
    let port = listener.local_addr().map_err(|error| format!("no port: {error}"))?.port();
    // Ends with the process.
    std::thread::spawn(move || serve(&listener));
    let status = Command::new(&program)
        .args(arguments)
        .arg("--base-url")
        .arg(format!("http://127.0.0.1:{port}"))
        .env("OPENAI_API_KEY", "none")
        .status()
        .map_err(|error| format!("{}: cannot run it: {error}", program.display()))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, From::from))
}

fn serve(listener: &TcpListener) {
    for stream in listener.incoming().flatten() {
        if let Err(error) = answer(stream) {
            eprintln!("canned-provider: {error}");
        }
    }
}

fn answer(stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(std::io::Error::other)?;
        }
        if line.is_empty() {
            break;
        }
    }
    reader.read_exact(&mut vec![0; length])?;
    mark("call-open");
    let body = reply();
    write!(
        reader.into_inner(),
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn reply() -> String {
    let arguments = json!({"text": "so says the provider", "citations": []}).to_string();
    let call = json!({
        "id": "call_1", "type": "function",
        "function": {"name": "answer", "arguments": arguments},
    });
    let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    json!({
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 400, "completion_tokens": 20},
    })
    .to_string()
}
