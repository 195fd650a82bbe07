//! Broken conversations, a way to send them, and a real client.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::client::conn::http1;
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use steadyhand_conversation::Provider;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Far more than an answer takes.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn path(provider: Provider) -> &'static str {
    match provider {
        Provider::Anthropic => "/v1/messages",
        Provider::OpenAi | Provider::LangChain => "/chat/completions",
        Provider::OpenAiResponses => "/responses",
        Provider::Gemini => "/v1beta/models/gemini-2.5-pro:generateContent",
        Provider::Mistral => "/v1/chat/completions",
        Provider::Ollama => "/api/chat",
        Provider::BedrockConverse => "/model/amazon.nova-pro-v1:0/converse",
    }
}

/// A call that has no result.
pub(super) fn broken(provider: Provider) -> Value {
    let hello = json!({"role": "user", "content": "Hello"});
    let again = json!({"role": "user", "content": "Hello?"});
    let schema = json!({"type": "object", "properties": {}});
    let function = json!({"name": "look", "description": "Looks", "parameters": schema});
    let chat = |arguments: Value| {
        let call = json!({"id": "call00001", "type": "function", "function": {"name": "look", "arguments": arguments}});
        let said = json!({"role": "assistant", "content": "", "tool_calls": [call]});
        json!({"model": "m", "messages": [hello, said, again], "tools": [{"type": "function", "function": function}]})
    };
    match provider {
        Provider::Anthropic => {
            let call = json!({"type": "tool_use", "id": "call00001", "name": "look", "input": {}});
            let said = json!({"role": "assistant", "content": [call]});
            let tool = json!({"name": "look", "description": "Looks", "input_schema": schema});
            json!({"model": "m", "max_tokens": 9, "messages": [hello, said, again], "tools": [tool]})
        }
        Provider::OpenAi | Provider::Mistral | Provider::LangChain => chat(json!("{}")),
        Provider::Ollama => {
            let mut request = chat(json!({}));
            request["stream"] = json!(false);
            request
        }
        Provider::OpenAiResponses => {
            let call = json!({"type": "function_call", "call_id": "call00001", "name": "look", "arguments": "{}"});
            json!({"model": "m", "input": [hello, call, again]})
        }
        Provider::BedrockConverse => {
            let text = |text: &str| json!({"role": "user", "content": [{"text": text}]});
            let call = json!({"toolUse": {"toolUseId": "call00001", "name": "look", "input": {}}});
            let said = json!({"role": "assistant", "content": [call]});
            let spec =
                json!({"name": "look", "description": "Looks", "inputSchema": {"json": schema}});
            json!({"messages": [text("Hello"), said, text("Hello?")], "toolConfig": {"tools": [{"toolSpec": spec}]}})
        }
        Provider::Gemini => {
            let text = |text: &str| json!({"role": "user", "parts": [{"text": text}]});
            let call = json!({"functionCall": {"name": "look", "args": {}}});
            json!({"contents": [text("Hello"), {"role": "model", "parts": [call]}, text("Hello?")]})
        }
    }
}

/// The status and the body of the answer.
pub(super) async fn post(url: &str, body: &Value) -> (u16, String) {
    timeout(PATIENCE, send(url, body)).await.expect("in time")
}

async fn send(url: &str, body: &Value) -> (u16, String) {
    let url: Uri = url.parse().expect("an address");
    let host = url.authority().expect("a host").to_string();
    let stream = TcpStream::connect(&host).await.expect("it listens");
    let connected = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = connected.expect("a connection");
    tokio::spawn(connection);
    let path = url.path_and_query().expect("a path").as_str();
    let request = Request::post(path)
        .header("host", host)
        .header("content-type", "application/json")
        .body(body.to_string())
        .expect("a request");
    let answer = sender.send_request(request).await.expect("an answer");
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.expect("a body");
    let text = String::from_utf8(body.to_bytes().to_vec()).expect("a text");
    (status, text)
}

/// Runs `tests/peers/ollama_client.py` with the package of PyPI; it ends itself after two minutes.
pub(super) fn ask_ollama(input: &Value) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root
        .ancestors()
        .map(|directory| directory.join("target/peers/langchain-ollama/bin/python"))
        .find(|candidate: &PathBuf| candidate.exists());
    let python = python.unwrap_or_else(|| panic!("run ./test once: it installs langchain-ollama"));
    let mut child = Command::new(python)
        .arg("-I")
        .arg(root.join("tests/peers/ollama_client.py"))
        .env("NO_PROXY", "127.0.0.1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("Python starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin
        .write_all(input.to_string().as_bytes())
        .expect("it is read");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"))
}
